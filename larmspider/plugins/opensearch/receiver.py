"""OpenSearchReceiver: pages in an index of OpenSearch or Elasticsearch, by their _bulk API.

    LARM_OPENSEARCH_URL=https://larm:secret@search.example:9200/intranet scrapy crawl intranet ...

``intranet`` is an alias for one index, ``intranet-1``, which is created with our mapping if
missing. A document is a page, its id the SHA-256 of the URL, its version the stamp: a repeated or
late version is a version conflict, and changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from w3lib.http import basic_auth_header

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.formatting import utc
from larmspider.pipelines.outbox.receiver import (
    AwayError,
    BatchError,
    Receiver,
    RefusedError,
    Sent,
)
from larmspider.pipelines.outbox.replies import parsed, read_reply, reply_within
from larmspider.pipelines.outbox.spool import Entry
from larmspider.redaction import keep_secrets_of, told

if TYPE_CHECKING:
    from larmspider.options import Settings

_KEYWORD = {"type": "keyword", "ignore_above": 8191}
"""Lucene's terms have 32,766 bytes."""
_TEXT, _DATE = {"type": "text"}, {"type": "date"}
PROPERTIES: Mapping[str, Mapping[str, Any]] = {
    "url": _KEYWORD, "normalized": _KEYWORD, "host": _KEYWORD, "title": _TEXT,
    "description": _TEXT, "text": _TEXT, "author": _TEXT, "language": _KEYWORD, "mime": _KEYWORD,
    "status": {"type": "integer"}, "depth": {"type": "integer"}, "size": {"type": "long"},
    "stored": _DATE, "fetched": _DATE, "modified": _DATE, "noindex": {"type": "boolean"},
    "digest": _KEYWORD, "from_page": _KEYWORD, "links": _KEYWORD,
    "fields": {"type": "object", "dynamic": True},
}  # fmt: skip
"""The mapping. Further fields of a document, such as LARM_FIELDS, are below ``fields``."""
INDEX = {
    "mappings": {"dynamic": "strict", "properties": PROPERTIES},
    "settings": {"index": {"gc_deletes": "1d"}},
}
"""For one day the server remembers versions of deleted documents: an older version may come
late."""
TIMEOUT_SECS = 60
_REINDEX_SECS = 86_400
_SAFE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,200}")
_BUSY = frozenset({429, 500, 502, 503, 504})


class Answer(NamedTuple):
    status: int
    body: Any
    retry_secs: float

    @property
    def error(self) -> str:
        """The error of the server, in one line."""
        found = self.body.get("error", self.body) if isinstance(self.body, dict) else self.body
        return f"{self.status} {_reason(found)}"


def _reason(error: Any) -> str:
    if isinstance(error, dict):
        parts = (str(error.get(name) or "") for name in ("type", "reason"))
        error = ": ".join(part for part in parts if part)
    return told(error or "")


def _object(value: Any) -> dict[str, Any]:
    """``value`` if it is a JSON object, else {}."""
    return value if isinstance(value, dict) else {}


class OpenSearchReceiver(Receiver):
    """Writes to the index, or alias, of LARM_OPENSEARCH_URL."""

    settings = ("LARM_OPENSEARCH_URL",)
    wants_body = False
    max_bytes = 8_000_000

    def __init__(self, url: str) -> None:
        """Raises ConfigError."""
        keep_secrets_of("LARM_OPENSEARCH_URL", url)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        self.name = parts.path.strip("/")
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or not _SAFE.fullmatch(self.name)
        ):
            shown = f"{parts.scheme}://..." if parts.scheme in ("http", "https") else ""
            raise ConfigError(
                f"LARM_OPENSEARCH_URL={shown}: expected https://user:password@host:9200/index, the"
                " index in lower case"
            )
        self._host, self._port, self._tls = parts.hostname, port, parts.scheme == "https"
        self._at = f"{parts.hostname}:{port or (443 if self._tls else 80)}"
        self._headers = {"Accept": "application/json"}
        if parts.username is not None:
            user, password = unquote(parts.username), unquote(parts.password or "")
            self._headers["Authorization"] = basic_auth_header(user, password, "utf-8").decode()
        self._query = ""
        self._connection: HTTPConnection | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(options.text(settings, "LARM_OPENSEARCH_URL").strip())

    def connect(self) -> None:
        self._open(TIMEOUT_SECS)
        index, properties = self._index()
        self._check(properties)
        # without this a server makes an index of its own where ours was deleted
        self._query = "?require_alias=true" if index != self.name else ""

    def _open(self, timeout: float) -> None:
        self.close()
        kind = HTTPSConnection if self._tls else HTTPConnection
        self._connection = kind(self._host, self._port, timeout=timeout)

    def _index(self) -> tuple[str, Mapping[str, Any]]:
        """The name of the index behind our alias, created if missing, and its fields."""
        answer = self._ask("GET", f"/{self.name}/_mapping")
        if answer.status == 404:
            self._make(f"{self.name}-1", {self.name: {}})
            answer = self._ask("GET", f"/{self.name}/_mapping")
        if answer.status != 200 or not isinstance(answer.body, dict):
            raise RefusedError(answer.error)
        if len(answer.body) != 1:
            raise RefusedError(
                f"{self.name} stands for {len(answer.body)} indexes: expected an alias for one"
            )
        ((index, found),) = answer.body.items()
        return index, _object(_object(_object(found).get("mappings")).get("properties"))

    def _make(self, index: str, aliases: Mapping[str, Any]) -> None:
        made = self._ask("PUT", f"/{index}", {**INDEX, "aliases": aliases})
        if made.status != 200 and "resource_already_exists" not in made.error:
            raise RefusedError(f"the index {index} cannot be made: {made.error}")

    def reindex(self) -> str:
        """The server copies all documents, with their versions, into a new index with the mapping
        of now; then the alias stands for that."""
        self._open(_REINDEX_SECS)
        old, _ = self._index()
        number = re.fullmatch(rf"{re.escape(self.name)}-([0-9]+)", old)
        if number is None:
            raise RefusedError(f"{self.name} is no alias for {self.name}-1 or such, but for {old}")
        new = f"{self.name}-{int(number[1]) + 1}"
        self._make(new, {})
        dest = {"index": new, "version_type": "external"}
        copied = self._ask(
            "POST", "/_reindex?refresh=true", {"source": {"index": old}, "dest": dest}
        )
        body = _object(copied.body)
        if copied.status != 200 or body.get("failures"):
            failures = body.get("failures")
            failed = failures[0] if isinstance(failures, list) and failures else copied.body
            raise RefusedError(f"{old} cannot be copied to {new}: {_reason(failed)}")
        actions = [
            {"remove": {"index": old, "alias": self.name}},
            {"add": {"index": new, "alias": self.name}},
        ]
        moved = self._ask("POST", "/_aliases", {"actions": actions})
        if moved.status != 200:
            raise RefusedError(moved.error)
        total = body.get("total", 0)
        documents = f"{total:,}" if isinstance(total, int) else "?"
        return f"{self.name} is {new} now, with {documents} documents; {old} may be deleted"

    def _check(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        for name, wanted in PROPERTIES.items():
            missing = "object" if name in found else "missing"
            there = _object(found.get(name)).get("type", missing)
            if there != wanted["type"]:
                raise RefusedError(
                    f"the index {self.name} has another mapping: {name} is {there}, expected"
                    f" {wanted['type']}; name an index that is not there yet, and it is made"
                )

    def send(self, batch: Sequence[Entry]) -> Sent:
        ids = [sha256(entry.url.encode()).hexdigest() for entry in batch]
        lines = []
        for entry, name in zip(batch, ids, strict=True):
            about = {"_id": name, "version": entry.stamp, "version_type": "external"}
            lines.append({"index" if entry.removed is None else "delete": about})
            if entry.removed is None:
                lines.append(document(entry))
        body = b"".join(json.dumps(line, ensure_ascii=True).encode() + b"\n" for line in lines)
        answer = self._ask("POST", f"/{self.name}/_bulk{self._query}", body)
        if answer.status == 413:
            raise BatchError(f"413: {len(body):,} bytes are too many for it", unfit=True)
        if answer.status != 200:
            # a proxy says 400 of its own: by that no page becomes a dead letter
            about_it = answer.status == 400 and "error" in _object(answer.body)
            raise (BatchError if about_it else RefusedError)(answer.error)
        deletes = {number for number, entry in enumerate(batch) if entry.removed is not None}
        return self._judge(answer.body, ids, deletes)

    def _judge(self, body: Any, ids: Sequence[str], deletes: Collection[int] = ()) -> Sent:
        """Entry by entry; ``deletes`` are the numbers of removals. Raises AwayError for an answer
        that is not about them."""
        rejected, again = {}, []
        try:
            items = [next(iter(item.items())) for item in body["items"]]
            if [item["_id"] for _, item in items] != list(ids):
                raise ValueError
            for number, (done, item) in enumerate(items):
                status, reason = item["status"], _reason(item.get("error"))
                if type(status) is not int or not 200 <= status <= 599:
                    raise ValueError
                if (done == "delete") is not (number in deletes):
                    raise ValueError
                if status < 300 or status == 409:  # it has this version, or a newer one
                    continue
                if status == 404 and number in deletes:
                    continue
                # the index is gone, and is made again; or its disk is full
                if status in (*_BUSY, 404) or "cluster_block" in reason:
                    again.append(number)
                else:
                    rejected[number] = f"{status} {reason}"
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration):
            raise AwayError("its answer is not one about the batch") from None
        return Sent(rejected, again)

    def _ask(self, method: str, path: str, body: Any = None) -> Answer:
        """Raises AwayError, RefusedError."""
        assert self._connection is not None
        headers, content = dict(self._headers), body
        if body is not None:
            kind = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
            headers["Content-Type"] = kind
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = self._connection
        try:
            connection.request(method, path, content, headers)
            with (
                reply_within(connection, connection.timeout or TIMEOUT_SECS),
                closing(connection.getresponse()) as response,
            ):
                said = read_reply(response)
        except AwayError as error:
            raise AwayError(f"{self._at}: {error}") from None
        except (OSError, HTTPException) as error:  # also half an answer
            raise AwayError(f"{self._at}: {error or type(error).__name__}") from None
        found: Any = parsed(said)
        if found is None:
            found = said[:10_000].decode("utf-8", "replace")
        secs = 0.0
        with suppress(ValueError):
            secs = max(0.0, float(response.headers.get("Retry-After", 0)))
        answer = Answer(response.status, found, secs)
        if response.status in (401, 403):
            raise RefusedError(f"{self._at}: {answer.error}")
        if response.status in _BUSY:
            raise AwayError(f"{self._at}: {answer.error}", secs)
        if response.status < 300 and not isinstance(found, dict):
            raise AwayError(f"{self._at} answers with something else than JSON")
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def document(entry: Entry) -> dict[str, Any]:
    """The document of a page in the index."""
    page = entry.page
    found = {name: page[name] for name in PROPERTIES if page.get(name) not in (None, "", [])}
    with suppress(ValueError):
        found["host"] = urlsplit(entry.url).netloc
    found["stored"] = utc(entry.stamp / 1_000_000)
    for name in ("fetched", "modified"):
        found.pop(name, None)
        with suppress(ValueError, OverflowError):
            if page[name]:
                found[name] = utc(page[name])
    found["size"] = entry.size
    found["links"] = sorted({link.url for link in entry.links})
    if not found.get("fields"):
        found.pop("fields", None)
    return found
