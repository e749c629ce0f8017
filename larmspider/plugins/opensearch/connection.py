"""A connection to OpenSearch or Elasticsearch, by LARM_OPENSEARCH_URL, and its settings.

    connection = Connection(Address.from_settings(settings), 60)
    connection.ask("GET", "/intranet").body

The password may be in the URL, or with the user in the file LARM_OPENSEARCH_LOGIN. An answer has
limits of bytes and seconds.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from w3lib.http import basic_auth_header

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.pipelines.outbox.receiver import AwayError, RefusedError
from larmspider.pipelines.outbox.replies import REPLY_BYTES, parsed, read_reply, reply_within
from larmspider.redaction import keep_secret, keep_secrets_of, told

if TYPE_CHECKING:
    from larmspider.options import Settings

SETTINGS = ("LARM_OPENSEARCH_URL", "LARM_OPENSEARCH_LOGIN", "LARM_OPENSEARCH_CA")
TEMPLATE = "index.json"
"""Settings and mapping of an index. For one day the server remembers versions of deleted documents:
an older version may come late."""
_LOGIN_CHARS = 10_000
_SAFE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,200}")
_ALL_SHARDS = "search_phase_execution_exception"
BUSY = frozenset({429, 500, 502, 503, 504})
_STEMS = ("index", "analysis", "filter", "stems")


class Answer(NamedTuple):
    status: int
    body: Any
    retry_secs: float

    @property
    def error(self) -> str:
        """The error of the server, in one line."""
        found = self.body.get("error", self.body) if isinstance(self.body, dict) else self.body
        return f"{self.status} {reason_of(found)}"


def reason_of(error: Any) -> str:
    """The error of the server, in one line. If all shards failed, the first shard's error."""
    if isinstance(error, dict):
        causes = error.get("root_cause")
        if error.get("type") == _ALL_SHARDS:
            causes = causes or [error.get("caused_by")]
            error = (isinstance(causes, list) and as_object(causes[0])) or error
        parts = (str(error.get(name) or "") for name in ("type", "reason"))
        error = ": ".join(part for part in parts if part)
    return told(error or "")


def as_object(value: Any) -> dict[str, Any]:
    """``value`` if it is a JSON object, else {}."""
    return value if isinstance(value, dict) else {}


def template(stemmer: str) -> dict[str, Any]:
    """Settings and mappings of an index."""
    text = files("larmspider.plugins.opensearch").joinpath(TEMPLATE).read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    found["settings"]["analysis"]["filter"]["stems"]["language"] = _stemmer_name(stemmer)
    return found


def _stemmer_name(stemmer: str) -> str:
    """Lucene's name of a stemmer of Snowball."""
    return stemmer.capitalize()


def check_mapping(name: str, found: Mapping[str, Any], stemmer: str) -> None:
    """Check that the index ``name`` has our mapping, by its settings and mapping. Raises
    RefusedError."""
    properties = as_object(as_object(found.get("mappings")).get("properties"))
    for wanted, kind in _types(template(stemmer)["mappings"]["properties"]).items():
        if (there := _types(properties).get(wanted, "missing")) != kind:
            raise RefusedError(
                f"the index {name} has another mapping: {wanted} is {there}, expected {kind};"
                " name an index that does not exist yet; it is created. An index of an earlier"
                " version: scrapy outbox --reindex"
            )
    language = as_object(found.get("settings"))
    for part in _STEMS:
        language = as_object(language.get(part))
    if (stems := language.get("language")) != _stemmer_name(stemmer):
        raise RefusedError(
            f"the index {name} is stemmed for {told(stems)}, not for"
            f" {_stemmer_name(stemmer)} (LARM_INDEX_STEMMER)"
        )


def _types(properties: Mapping[str, Any]) -> dict[str, str]:
    """The type of each field, and of each further field of a field."""
    found = {name: str(as_object(one).get("type", "object")) for name, one in properties.items()}
    for name, one in properties.items():
        for more, inner in as_object(as_object(one).get("fields")).items():
            found[f"{name}.{more}"] = str(as_object(inner).get("type"))
    return found


@dataclass(frozen=True)
class Address:
    """The address of OpenSearch, and the account for it. ``name`` is the index or its alias;
    ``login`` is the Authorization header."""

    host: str
    port: int | None
    tls: bool
    name: str
    login: str = field(default="", repr=False)
    ca: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises ConfigError."""
        url, login, ca = [options.text(settings, name).strip() for name in SETTINGS]
        return cls.of(url, login, ca)

    @classmethod
    def of(cls, url: str, login: str = "", ca: str = "") -> Self:
        """``login``: a file with ``user:password``; ``ca``: a file of certificates. Raises
        ConfigError."""
        keep_secrets_of("LARM_OPENSEARCH_URL", url)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        name = parts.path.strip("/")
        is_known = parts.scheme in ("http", "https")
        if not is_known or not parts.hostname or not _SAFE.fullmatch(name):
            shown = f"{parts.scheme}://..." if is_known else ""
            raise ConfigError(
                f"LARM_OPENSEARCH_URL={shown}: expected https://user:password@host:9200/index, the"
                " index in lower case"
            )
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if login:
            if parts.username is not None:
                raise ConfigError(
                    "LARM_OPENSEARCH_LOGIN: LARM_OPENSEARCH_URL names a user too; expected one of"
                    " both"
                )
            user, password = _read_login(login)
        header = ""
        if login or parts.username is not None:
            header = basic_auth_header(user, password, "utf-8").decode()
        if ca and parts.scheme != "https":
            raise ConfigError(f"LARM_OPENSEARCH_CA={ca}: expected an https URL")
        found = cls(parts.hostname, port, parts.scheme == "https", name, header, ca)
        if ca:
            found.context  # noqa: B018 - raises ConfigError
        return found

    @property
    def at(self) -> str:
        return f"{self.host}:{self.port or (443 if self.tls else 80)}"

    @cached_property
    def context(self) -> ssl.SSLContext:
        """Raises ConfigError."""
        try:
            return ssl.create_default_context(cafile=self.ca or None)
        except OSError as error:  # ssl.SSLError too
            raise ConfigError(
                f"LARM_OPENSEARCH_CA={self.ca}: expected a file of certificates (PEM): {error}"
            ) from None


def _read_login(path: str) -> tuple[str, str]:
    """User and password. Raises ConfigError."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            user, colon, password = file.read(_LOGIN_CHARS).strip().partition(":")
    except (OSError, ValueError) as error:
        raise ConfigError(f"LARM_OPENSEARCH_LOGIN={path}: cannot be read: {error}") from None
    if not (user and colon) or "\n" in password:
        raise ConfigError(f"LARM_OPENSEARCH_LOGIN={path}: expected one line, user:password")
    keep_secret(password)
    return user, password


class Connection:
    """One connection, for one thread at a time."""

    def __init__(self, address: Address, timeout: float) -> None:
        self.address, self._timeout = address, timeout
        if address.tls:
            context = address.context
            self._http: HTTPConnection = HTTPSConnection(
                address.host, address.port, timeout=timeout, context=context
            )
        else:
            self._http = HTTPConnection(address.host, address.port, timeout=timeout)

    def ask(self, method: str, path: str, body: Any = None, limit: int = REPLY_BYTES) -> Answer:
        """Raises AwayError, RefusedError."""
        at, headers, content = self.address.at, {"Accept": "application/json"}, body
        if self.address.login:
            headers["Authorization"] = self.address.login
        if body is not None:
            kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
            headers["Content-Type"] = kind
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            self._http.request(method, path, content, headers)
            with (
                reply_within(self._http, self._timeout),
                closing(self._http.getresponse()) as response,
            ):
                said = read_reply(response, limit)
        except AwayError as error:
            raise type(error)(f"{at}: {error}") from None
        except RemoteDisconnected:  # a BadStatusLine, too
            raise AwayError(f"{at}: it closed the connection without an answer") from None
        except BadStatusLine as error:
            raise AwayError(f"{at} answers with something else than HTTP: {told(error)}") from None
        except IncompleteRead:
            raise AwayError(f"{at}: its answer ended before its end") from None
        except (OSError, HTTPException) as error:
            raise AwayError(f"{at}: {error or type(error).__name__}") from None
        found: Any = parsed(said)
        if found is None:
            found = said[:10_000].decode("utf-8", "replace")
        secs = 0.0
        with suppress(ValueError):
            secs = max(0.0, float(response.headers.get("Retry-After", 0)))
        answer = Answer(response.status, found, secs)
        if 300 <= response.status < 400:
            raise RefusedError(f"{at}: {response.status}, a redirect; it is not followed")
        if response.status in (401, 403):
            raise RefusedError(f"{at}: {answer.error}")
        if response.status in BUSY:
            raise AwayError(f"{at}: {answer.error}", secs)
        if response.status < 300 and not isinstance(found, dict):
            raise AwayError(f"{at} answers with something else than JSON")
        return answer

    def close(self) -> None:
        self._http.close()
