"""Tables of server.toml about signing in: [sessions], [roles], [oidc], [ldap] (docs/people.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from larmspider.errors import ConfigError
from larmspider.web.auth import EDIT, OPERATE, SEARCH
from larmspider.web.reader import KINDS

DISABLED = "userAccountControl:1.2.840.113556.1.4.803:=2"
"""Accounts of Active Directory that are disabled, as they are when a person leaves."""
Text = Annotated[str, Meta(min_length=1, max_length=1_000)]


def _about(text: str, **limits: Any) -> Meta:
    return Meta(description=text, **limits)


class Sessions(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    hours: Annotated[float, _about("Hours after which a session ends", ge=0.1, le=720)] = 12.0
    idle_minutes: Annotated[
        float, _about("Minutes without a request after which a session ends", ge=1, le=43_200)
    ] = 120.0


class Roles(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """Principals, such as `group:it`, whose people have a role. All others are readers."""

    operator: Annotated[list[Text], _about("Operators, such as group:it", max_length=1_000)] = []
    editor: Annotated[list[Text], _about("Editors, such as user:anna", max_length=1_000)] = []

    def scope_of(self, principals: frozenset[str]) -> str:
        """The scope of a person whom a provider or directory has signed in."""
        if principals.intersection(self.operator):
            return OPERATE
        return EDIT if principals.intersection(self.editor) else SEARCH

    def check(self) -> None:
        """Raises ConfigError."""
        for one in (*self.operator, *self.editor):
            kind, _, name = one.partition(":")
            if kind not in KINDS or not name:
                raise ConfigError(
                    f"[roles]: {one[:60]!r}: expected a principal such as group:it or user:anna"
                )


class Oidc(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    issuer: Annotated[str, _about("The provider's issuer URL", min_length=1, max_length=500)]
    client_id: Annotated[str, _about("The client's name there", min_length=1, max_length=500)]
    client_secret: Annotated[
        str, _about("The name of a file in secrets/; none for a public client", max_length=64)
    ] = ""
    name: Annotated[
        str, _about("The provider's name on the sign-in page", min_length=1, max_length=60)
    ] = "OpenID Connect"
    scopes: Annotated[str, _about("Scopes of the request, openid among them", max_length=1_000)] = (
        "openid profile"
    )
    name_claim: Annotated[
        str, _about("The claim that is the person's name", min_length=1, max_length=100)
    ] = "preferred_username"
    groups_claim: Annotated[
        str, _about("The claim that lists the person's groups", min_length=1, max_length=100)
    ] = "groups"
    ca_file: Annotated[
        str, _about("CA certificates to verify the provider's certificate", max_length=1_000)
    ] = ""

    @property
    def host(self) -> str:
        return urlsplit(self.issuer).netloc

    def check(self) -> None:
        """Raises ConfigError."""
        _check_url("oidc.issuer", self.issuer, ("https", "http"), "https://login.example/realms/a")
        parts = urlsplit(self.issuer)
        if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise ConfigError(f"oidc.issuer {self.issuer[:80]}: expected https://")
        if "openid" not in self.scopes.split():
            raise ConfigError('oidc.scopes: expected "openid" among them')


class Ldap(Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    url: Annotated[
        str, _about("The server: ldaps://dc1.corp.example or ldap://", min_length=1, max_length=500)
    ]
    base: Annotated[str, _about("The tree of the people", min_length=1, max_length=1_000)]
    start_tls: Annotated[bool, _about("Encrypt a connection to ldap://")] = True
    ca_file: Annotated[
        str, _about("CA certificates to verify the server's certificate", max_length=1_000)
    ] = ""
    user: Annotated[
        str, _about("The DN that looks people up; empty: anonymous", max_length=1_000)
    ] = ""
    password: Annotated[str, _about("The name of a file in secrets/", max_length=64)] = ""
    filter: Annotated[
        str,
        _about("Finds a person; {name} is the name in the form", min_length=1, max_length=1_000),
    ] = f"(&(objectClass=user)(sAMAccountName={{name}})(!({DISABLED})))"
    name_attribute: Annotated[
        str, _about("The attribute that is the person's name", min_length=1, max_length=100)
    ] = "sAMAccountName"
    group_base: Annotated[str, _about("The tree of the groups; empty: base", max_length=1_000)] = ""
    group_attribute: Annotated[
        str, _about("The attribute that is a group's name", min_length=1, max_length=100)
    ] = "sAMAccountName"
    nested: Annotated[
        Literal["auto", "chain", "walk", "none"],
        _about("How groups of groups are found; auto asks the server what it can do"),
    ] = "auto"
    seconds: Annotated[int, _about("The timeout of a request", ge=1, le=60)] = 5

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def check(self) -> None:
        """Raises ConfigError."""
        _check_url("ldap.url", self.url, ("ldaps", "ldap"), "ldaps://dc1.corp.example")
        parts = urlsplit(self.url)
        is_here = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if parts.scheme == "ldap" and not self.start_tls and not is_here:
            raise ConfigError(
                f"ldap.url {self.url[:80]}: sends passwords unencrypted: expected ldaps://, or"
                " start_tls = true"
            )
        if self.filter.count("{name}") < 1 or not self.filter.startswith("("):
            raise ConfigError(
                f"ldap.filter {self.filter[:60]!r}: expected a filter such as (uid={{name}})"
            )
        if self.user and not self.password:
            raise ConfigError("ldap.password: expected the name of a file in secrets/")


def _check_url(key: str, text: str, schemes: tuple[str, ...], example: str) -> None:
    try:
        parts = urlsplit(text)
        good = parts.scheme in schemes and parts.hostname and not (parts.query or parts.fragment)
        good = good and "@" not in parts.netloc and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f"{key} {text[:80]!r}: expected a URL such as {example}")
