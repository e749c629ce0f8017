"""The settings of one host: credentials, certificates, a proxy, headers, cookies.

Values only: lookup.py reads them and finds the settings of a URL, curl.py hands them to libcurl. No
repr() shows a secret.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import NoReturn, final

from larmspider.errors import ConfigError
from larmspider.urls.host_pattern import HostPattern
from larmspider.urls.schemes import DEFAULT_PORTS


def origin_text(origin: tuple[str, str, int]) -> str:
    """The form of the header Origin: https://app.example, http://app.example:8080."""
    scheme, host, port = origin
    return f"{scheme}://{host}" + ("" if port == DEFAULT_PORTS[scheme] else f":{port}")


@final
class Secret:
    """A password or token that repr(), str(), f-strings, logs and pickles do not show.

    >>> word = Secret("correct horse")
    >>> word, f"{word}", word.reveal()
    (Secret(***), '***', 'correct horse')
    """

    __slots__ = ("_missing", "_value")

    def __init__(self, value: str, missing: str = "") -> None:
        """``missing``: why there is no value; "" if there is one."""
        self._value, self._missing = value, missing

    @property
    def is_missing(self) -> bool:
        return bool(self._missing)

    def reveal(self) -> str:
        """The text itself, for an option of a request. Raises ConfigError if it is missing."""
        if self._missing:
            raise ConfigError(self._missing)
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        same = hmac.compare_digest(self._value.encode(), other._value.encode())
        return same and self._missing == other._missing

    def __hash__(self) -> int:
        return hash((Secret, self._value, self._missing))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled or copied")


@dataclass(frozen=True, slots=True)
class Credentials:
    """``method`` is basic, digest, negotiate, ntlm or bearer; a bearer has a token, negotiate
    nothing (its ticket is Kerberos'), the others user and password."""

    method: str
    user: Secret | None = None
    password: Secret | None = None
    token: Secret | None = None


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """PEM files; ``key`` may be the certificate's file."""

    certificate: Path
    key: Path
    password: Secret | None = None


@dataclass(frozen=True, slots=True)
class Proxy:
    """``url`` without credentials; "": none, whatever the environment says."""

    url: str
    method: str = "basic"
    user: Secret | None = None
    password: Secret | None = None
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """A form to sign in with: its ``url`` (or path), the values of its fields, and a text that
    pages have only while signed in."""

    url: str
    fields: tuple[tuple[str, Secret], ...]
    check: str


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """None: not set here."""

    credentials: Credentials | None = None
    cookies: tuple[tuple[str, Secret], ...] | None = None
    headers: tuple[tuple[str, Secret], ...] | None = None
    login: Login | None = None
    client_certificate: ClientCertificate | None = None
    ca_file: Path | None = None
    tls_min: str | None = None
    verify: bool | None = None
    proxy: Proxy | None = None
    render: bool | None = None
    render_origins: tuple[tuple[str, str, int], ...] | None = None
    """Further origins to which a rendered page may send requests with their credentials."""

    @property
    def has_secrets(self) -> bool:
        """Whether a request with these options sends its server a secret. A client certificate is
        not a secret, because it only proves its key. The password of a proxy goes to the proxy
        alone."""
        return bool(self.credentials or self.cookies or self.headers or self.login)

    @property
    def sends_credentials(self) -> bool:
        """Whether a request with these identifies us."""
        return self.has_secrets or self.client_certificate is not None

    @property
    def is_trusted(self) -> bool:
        """Whether a stranger in the host's place would get a secret: our own, or what another
        origin shows to pages of this host (``render_origins``)."""
        return self.has_secrets or bool(self.render_origins)

    @property
    def opens_doors(self) -> bool:
        """Whether these options may open pages that not every user may see. This includes a page
        that may send requests to other origins with their credentials."""
        return self.sends_credentials or bool(self.render_origins)

    @property
    def needs_tls(self) -> bool:
        """Whether any of these have no effect without TLS."""
        tls = (self.client_certificate, self.ca_file, self.tls_min, self.verify)
        return any(value is not None for value in tls)

    def or_else(self, other: SiteOptions) -> SiteOptions:
        """These options; missing ones come from ``other``."""
        names = (option.name for option in fields(SiteOptions))
        return SiteOptions(
            **{
                name: getattr(other if getattr(self, name) is None else self, name)
                for name in names
            }
        )

    def __str__(self) -> str:
        """A description without secrets: "basic; CA ca.pem; proxy socks5h://gate:1080"."""
        parts = [self.credentials.method] if self.credentials else []
        for what, pairs in (("cookie", self.cookies), ("header", self.headers)):
            if pairs:
                parts.append(f"{what} " + ", ".join(name for name, _ in pairs))
        if self.login:
            names = ", ".join(name for name, _ in self.login.fields)
            parts.append(f"signs in at {self.login.url} (fields {names})")
        if self.client_certificate:
            parts.append(f"client certificate {self.client_certificate.certificate}")
        if self.ca_file:
            parts.append(f"CA {self.ca_file}")
        if self.tls_min:
            parts.append(f"TLS {self.tls_min} or later")
        if self.verify is not None:
            parts.append("certificate verified" if self.verify else "certificate NOT verified")
        if self.proxy:
            parts.append(f"proxy {self.proxy.url}" if self.proxy.url else "no proxy")
        if self.render:
            parts.append("rendered by Chromium")
        if self.render_origins:
            named = ", ".join(map(origin_text, self.render_origins))
            parts.append(f"its pages may ask {named} with credentials")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class SiteRule:
    """One [[site]] of the file. ``where`` names it for people: "sites.toml [[site]] 2 (wiki)".

    ``schemes`` are for patterns that name none. ``problems``: missing or unusable secrets and
    files, each as the text of an error; only processes that fetch need them.
    """

    where: str
    patterns: tuple[HostPattern, ...]
    schemes: frozenset[str]
    options: SiteOptions
    problems: tuple[str, ...] = ()

    def matches(self, scheme: str, host: str, port: int) -> bool:
        return any(
            pattern.matches(scheme, host, port)
            and (pattern.scheme is not None or scheme in self.schemes)
            for pattern in self.patterns
        )


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """The settings for all URLs of one ``origin``, (scheme, host, port): each option comes from the
    first rule that matches and sets it. One object an origin: compare with ``is``."""

    origin: tuple[str, str, int]
    options: SiteOptions
    rules: tuple[str, ...] = field(default=())

    def without_secrets(self) -> Site:
        """A copy without credentials, cookies, headers, login and client certificate."""
        bare = replace(
            self.options,
            credentials=None,
            cookies=None,
            headers=None,
            login=None,
            client_certificate=None,
        )
        return replace(self, options=bare)

    def __str__(self) -> str:
        return f"{', '.join(self.rules)}: {self.options}"
