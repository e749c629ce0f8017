"""Reads one [[site]] of the sites file: types, values, files; errors name file and key.

    table = SiteTable(values, "sites.toml [[site]] 2 (wiki.example)", folder)
    table.text("tls_min")           # or None
    table.secret("password")        # from password, password_env or password_file
    read_proxy(table)               # from proxy, proxy_auth, proxy_user, ...
    table.check_names()             # a key that was not read is an error
    table.problems                  # missing secrets and files, which only fetches need

A variable that is not set, an unreadable file, and their contents are not errors here: a command
that only reads a crawl needs none of them.

No message shows the value of a key that may hold a secret.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from larmspider.errors import ConfigError
from larmspider.fetch.curl_options import check_method
from larmspider.fetch.sites.model import ClientCertificate, Credentials, Login, Proxy, Secret
from larmspider.files import read_plain
from larmspider.urls.host_resolver import canonical_host
from larmspider.urls.schemes import DEFAULT_PORTS

_FORMS = 'a string, { env = "NAME" } or { file = "PATH" }'


class SiteTable:
    """``where`` begins each message; paths are relative to ``folder``."""

    def __init__(self, values: Mapping[str, Any], where: str, folder: Path) -> None:
        self.where = where
        self.has_inline_secret = False
        self.problems: list[str] = []
        """Errors about values from outside the file."""
        self._from_outside: list[Secret] = []
        self.secret_files: list[Path] = []
        """Files that were read for a secret."""
        self._values = values
        self._folder = folder
        self._asked: set[str] = set()

    def refuse(self, key: str, what: str) -> ConfigError:
        """The error for a key: ``what`` describes the fault."""
        return ConfigError(f"{self.where}: {key} {what}")

    def expected(self, key: str, wanted: str, value: object = None) -> ConfigError:
        """The error for a key whose value is not ``wanted``. It shows ``value``, so never pass a
        secret."""
        shown = "" if value is None else f" = {value!r}"
        return ConfigError(f"{self.where}: {key}{shown}: expected {wanted}")

    def has(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, accepted: Collection[str] = ()) -> str | None:
        """A string, one of ``accepted`` unless that is empty."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, str) or (accepted and value not in accepted):
            wanted = f"one of {', '.join(accepted)}" if accepted else "a string"
            shown = value if isinstance(value, str) else None  # a table may hold secrets
            raise self.expected(key, wanted, shown)
        return value

    def boolean(self, key: str) -> bool | None:
        value = self._get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self.expected(key, "true or false", value)

    def texts(self, key: str) -> list[str] | None:
        """A string or a list of them."""
        value = self._get(key)
        if isinstance(value, str):
            return [value]
        if value is None or (isinstance(value, list) and all(isinstance(x, str) for x in value)):
            return value
        raise self.expected(key, "a string or a list of strings")

    def file(self, key: str) -> Path | None:
        """A file, as an absolute path."""
        name = self.text(key)
        if name is None:
            return None
        path = self._path(key, name)
        try:
            self._read(key, path, f"= '{path}'")
        except ConfigError as error:
            self.defer(error)
        return path

    def defer(self, error: ConfigError) -> None:
        """Keep an error for processes that fetch."""
        self.problems.append(str(error))

    def judge(self, secret: Secret | None, error: ConfigError) -> None:
        """Raise the error about the value of ``secret``; if the value comes from outside the file,
        keep the error for processes that fetch."""
        if not any(secret is one for one in self._from_outside):
            raise error
        self.defer(error)

    def secret(self, key: str) -> Secret | None:
        """The secret from ``key``, ``key``_env or ``key``_file, at most one of them."""
        keys = [name for name in (key, f"{key}_env", f"{key}_file") if name in self._values]
        self._asked.update(keys)
        if not keys:
            return None
        if len(keys) > 1:
            raise self.refuse(" and ".join(keys), "are given: expected one of them")
        kind = keys[0].removeprefix(key).removeprefix("_")
        value = self._values[keys[0]]
        return self._secret(keys[0], {kind: value} if kind else value)

    def secrets(self, key: str) -> tuple[tuple[str, Secret], ...] | None:
        """A table from names to secrets, each a string or { env = ... } or { file = ... }."""
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, dict) or not value:
            raise self.expected(key, "a table from names to values")
        return tuple((name, self._secret(f"{key}.{name}", given)) for name, given in value.items())

    def check_names(self) -> None:
        """Raise ConfigError for a key that was not read."""
        for key in self._values:
            if key not in self._asked:
                near = get_close_matches(key, self._asked, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise self.refuse(repr(key), f"is not known{hint} (docs/sites.md)")

    def _get(self, key: str) -> Any:
        self._asked.add(key)
        return self._values.get(key)

    def _secret(self, key: str, given: object) -> Secret:
        if isinstance(given, str):
            self.has_inline_secret = True
            return Secret(given)
        if isinstance(given, dict) and len(given) == 1:
            kind, name = next(iter(given.items()))
            if isinstance(name, str) and kind in ("env", "file"):
                path = self._path(key, name) if kind == "file" else None
                try:
                    value = (
                        self._from_environment(key, name)
                        if path is None
                        else self._from_file(key, path)
                    )
                    secret = Secret(value)
                except ConfigError as error:
                    self.defer(error)
                    secret = Secret("", str(error))
                self._from_outside.append(secret)
                return secret
        raise self.expected(key, _FORMS)

    def _from_environment(self, key: str, name: str) -> str:
        value = os.environ.get(name)
        if not value:  # the name is not shown: it may be the secret, put in the wrong place
            raise self.refuse(key, "names an environment variable that is not set, or empty")
        return value

    def _from_file(self, key: str, path: Path) -> str:
        try:
            value = self._read(key, path).decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise self.refuse(key, "names a file that is not UTF-8") from None
        if not value or "\n" in value:
            raise self.refuse(key, "names a file that is not one line, the secret")
        self.secret_files.append(path)
        return value

    def _path(self, key: str, name: str) -> Path:
        if not name or "\0" in name:
            raise self.expected(key, "the path of a file")
        return (self._folder / Path(name).expanduser()).absolute()

    def _read(self, key: str, path: Path, shown: str = "") -> bytes:
        try:
            return read_plain(path)
        except OSError as error:
            reason = error.strerror or error
            raise self.refuse(
                key,
                f"{shown or 'names a file that'} cannot be read: {reason};"
                f" paths are relative to {self._folder}",
            ) from None


METHODS = {
    "basic": ("user", "password"),
    "digest": ("user", "password"),
    "negotiate": (),
    "ntlm": ("user", "password"),
    "bearer": ("token",),
}
"""Values of auth, and the keys that go with each."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 5.6.2
_FIELD_VALUE = re.compile(r"[!-~](?:[ -~\t]*[!-~])?")  # RFC 9110 5.5, ASCII alone
_COOKIE_VALUE = re.compile(r'("?)[!#-+\--:<-\[\]-~]*\1')  # RFC 6265 4.1.1
_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 2.1
_LOGIN = re.compile(r"(?:https?://[^\x00-\x20/?#@\\]+)?/(?![/\\])[^\x00-\x20#]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_BY_HAND = {
    "cookie": ": use cookies",
    "proxy-authorization": ": use proxy_user and proxy_password",
    **dict.fromkeys(("host", "connection", "content-length", "transfer-encoding"), ""),
}
"""Headers with a key of their own in the file, and headers that libcurl sets for a request."""


def read_credentials(table: SiteTable, *, for_web: bool = True) -> Credentials | None:
    """Read user and password. A connector needs no authentication method of libcurl."""
    method = table.text("auth", tuple(METHODS))
    secrets = {key: table.secret(key) for key in ("user", "password", "token")}
    given = tuple(key for key, secret in secrets.items() if secret is not None)
    if method is None:
        if given:
            raise table.refuse(
                "auth", f"is missing: {given[0]} goes with one of {', '.join(METHODS)}"
            )
        return None
    if for_web:
        check_method(method, f"{table.where}: auth")
    if given != METHODS[method]:
        needed = " and ".join(METHODS[method]) or "none of user, password, token (it has a ticket)"
        raise table.refuse("auth", f"= {method!r} goes with {needed}")
    check_user(table, "user", secrets["user"], method)
    check_text(table, "password", secrets["password"])
    token = secrets["token"]
    if value_of(token) and not _BEARER.fullmatch(value_of(token)):
        table.judge(token, table.expected("token", "letters, digits and -._~+/ (RFC 6750)"))
    return Credentials(method, **secrets)


def read_cookies(table: SiteTable) -> tuple[tuple[str, Secret], ...] | None:
    return _pairs(table, "cookies", _COOKIE_VALUE)


def read_headers(table: SiteTable) -> tuple[tuple[str, Secret], ...] | None:
    headers = _pairs(table, "headers", _FIELD_VALUE)
    for name, _ in headers or ():
        hint = _NOT_BY_HAND.get(name.lower())
        if hint is not None:
            raise table.refuse(f"headers.{name}", f"cannot be set here{hint}")
        if name.lower() == "authorization" and table.has("auth"):
            raise table.refuse(f"headers.{name}", "and auth are given: expected one of them")
    return headers


def read_login(table: SiteTable) -> Login | None:
    keys = ("login", "login_fields", "login_check")
    url, fields, check = table.text(keys[0]), table.secrets(keys[1]), table.text(keys[2])
    if url is None and fields is None and check is None:
        return None
    if missing := [key for key, value in zip(keys, (url, fields, check), strict=True) if not value]:
        raise table.refuse(missing[0], f"is missing or empty: {', '.join(keys)} go together")
    assert url is not None
    assert fields is not None
    assert check is not None
    if not _LOGIN.fullmatch(url):
        raise table.expected("login", "a path such as /login, or a URL without user name", url)
    for name, secret in fields:
        check_text(table, f"login_fields.{name}", secret)
    return Login(url, fields, check)


_ORIGIN = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[^\x00-\x20%*/?#@\\:\[\]]+)(?::([0-9]{1,5}))?")


def read_render_origins(table: SiteTable) -> tuple[tuple[str, str, int], ...] | None:
    """Scheme, host as can_ada writes it, port of each."""
    texts = table.texts("render_origins")
    if texts is None:
        return None
    if table.boolean("render") is not True:
        raise table.refuse(
            "render_origins", "is for pages that are rendered: expected render = true"
        )
    return tuple(dict.fromkeys(_origin(table, text) for text in texts))


def _origin(table: SiteTable, text: str) -> tuple[str, str, int]:
    found = _ORIGIN.fullmatch(text.lower())
    host = None if found is None else canonical_host(found[2])
    port = 0 if found is None else int(found[3] or DEFAULT_PORTS[found[1]])
    if found is None or host is None or not 0 < port < 65_536:
        shown = None if "@" in text else text  # a password may stand before it
        wanted = "origins: https://host, or https://host:port, or http://; no path, no wildcard"
        raise table.expected("render_origins", wanted, shown)
    return found[1], host, port


def check_user(table: SiteTable, key: str, user: Secret | None, method: str) -> None:
    """Raise ConfigError for an empty user name, or one with a colon in Basic."""
    check_text(table, key, user)
    if user is None or user.is_missing:
        return
    if not user.reveal() or (method == "basic" and ":" in user.reveal()):
        wanted = "a user name, not empty and without a colon (RFC 7617)"
        table.judge(user, table.expected(key, wanted))


def check_text(table: SiteTable, key: str, secret: Secret | None) -> None:
    """Raise ConfigError for control characters."""
    if _CONTROL.search(value_of(secret)):
        table.judge(secret, table.expected(key, "no control characters"))


def value_of(secret: Secret | None) -> str:
    """ "" for a secret that is missing: `problems` names it already."""
    return "" if secret is None or secret.is_missing else secret.reveal()


def _pairs(
    table: SiteTable, key: str, value: re.Pattern[str]
) -> tuple[tuple[str, Secret], ...] | None:
    pairs = table.secrets(key)
    for name, secret in pairs or ():
        if not _TOKEN.fullmatch(name):
            raise table.expected(key, "names of letters, digits and -")
        if not secret.is_missing and not value.fullmatch(secret.reveal()):
            wrong = table.refuse(f"{key}.{name}", "holds a character that is not allowed there")
            table.judge(secret, wrong)
    return pairs


PROXY_METHODS = ("basic", "digest", "negotiate", "ntlm")
TLS_VERSIONS = ("1.0", "1.1", "1.2", "1.3")

_PROXY = re.compile(r"(https?|socks5h?)://(\[[0-9a-f:.]+\]|[^\x00-\x20/@:\[\]]+):([0-9]{1,5})/?")


def read_client_certificate(table: SiteTable) -> ClientCertificate | None:
    """Read the client certificate. Only processes that fetch check whether client_key, or
    client_cert itself, has the certificate's key."""
    before = len(table.problems)
    certificate, key = table.file("client_cert"), table.file("client_key")
    password = table.secret("client_key_password")
    if certificate is None:
        if key is not None or password is not None:
            raise table.refuse("client_cert", "is missing: client_key needs it")
        return None
    key = key or certificate
    client = ClientCertificate(certificate, key, password)
    if len(table.problems) > before:
        return client
    try:
        # a password that is "" is never asked for at the terminal
        word = value_of(password)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, word)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or "not a certificate with its key"
        wrong = f"= '{certificate}' cannot be used with key '{key}' ({reason})"
        table.defer(
            table.refuse(
                "client_cert",
                f"{wrong}: expected a certificate and its key in PEM, and client_key_password where"
                " the key is encrypted",
            )
        )
    else:
        table.secret_files.append(key)
    return client


def read_ca_file(table: SiteTable, key: str = "ca_file") -> Path | None:
    before = len(table.problems)
    path = table.file(key)
    if path is not None and len(table.problems) == before:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or "no certificate"
            wrong = f"= '{path}' cannot be used ({reason}): expected certificates in PEM"
            table.defer(table.refuse(key, wrong))
    return path


def read_tls_min(table: SiteTable) -> str | None:
    return table.text("tls_min", TLS_VERSIONS)


def read_proxy(table: SiteTable) -> Proxy | None:
    url, method = table.text("proxy"), table.text("proxy_auth", PROXY_METHODS)
    user, password = table.secret("proxy_user"), table.secret("proxy_password")
    ca_file = read_ca_file(table, "proxy_ca_file")
    if not url:
        if any(value is not None for value in (method, user, password, ca_file)):
            raise table.refuse("proxy", "is missing or empty: other keys of a proxy need it")
        return None if url is None else Proxy("")
    if "@" in url:
        raise table.refuse("proxy", "holds a user name: use proxy_user and proxy_password")
    found = _PROXY.fullmatch(url.lower())
    if found is None or canonical_host(found[2]) is None or not 0 < int(found[3]) < 65_536:
        wanted = 'http://host:port, https://, socks5:// or socks5h://, or "" for none'
        raise table.expected("proxy", wanted, url)
    if (user is None) != (password is None):
        raise table.refuse("proxy_user", "and proxy_password go together")
    if method is not None and (user is None) != (method == "negotiate"):
        needed = "neither proxy_user nor proxy_password" if user else "proxy_user, proxy_password"
        raise table.refuse("proxy_auth", f"= {method!r} goes with {needed}")
    if method is not None and found[1].startswith("socks"):
        raise table.refuse("proxy_auth", "is for proxies that speak http or https")
    if ca_file is not None and found[1] != "https":
        raise table.refuse("proxy_ca_file", "is for proxies that speak https")
    check_method(method or "basic", f"{table.where}: proxy_auth")
    check_user(table, "proxy_user", user, method or "basic")
    check_text(table, "proxy_password", password)
    return Proxy(f"{found[1]}://{found[2]}:{found[3]}", method or "basic", user, password, ca_file)
