"""Takes documents that are sent to a collection: checks, limits, and the file that keeps them.

    pushes = Pushes(manager, audit)
    collection = pushes.collection("hr")                    # HttpError
    pushes.push(collection, [PushDocument(url=..., text=...)], by)

A document is on disk when its answer is sent (workdir/pushed.py). The manager starts the crawl of
the collection, which stores it (spiders/push.py).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from scrapy.settings import BaseSettings

from larmspider import options
from larmspider.access.lists import MAX_ENTRIES, AccessList
from larmspider.crawl.reader import read_manifest
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.dates import http_time
from larmspider.errors import ConfigError, CrawlDirError, HttpError, InvalidURL
from larmspider.extraction.pages.own_fields import MAX_VALUE, MAX_VALUES, OwnFields
from larmspider.extraction.pages.page_builder import MAX_TITLE, language_tag, one_line
from larmspider.extraction.texts.language import KNOWN
from larmspider.formatting import counted, printable, size
from larmspider.frontier.storage.records import UrlState, url_key
from larmspider.server.api.api_types import PushAnswer, PushAnswers, PushDocument
from larmspider.server.api.crawls import By
from larmspider.server.api.rate import Rate, too_many
from larmspider.server.audit import Audit
from larmspider.server.config.crawl_file import settings_of
from larmspider.server.config.crawl_schema import MAX_URL
from larmspider.server.home import CrawlEntry
from larmspider.server.runs.manager import Manager
from larmspider.spiders.push import SETTINGS
from larmspider.urls.normalizer import UrlForms
from larmspider.workdir.pushed import DiskFullError, Document, Facts, Pushed, State
from larmspider.workdir.removals import Removals

MAX_DOCUMENTS = 1_000
"""Documents of a request."""
MAX_REQUESTS = 4
"""Requests whose bodies are in memory at a time; others wait."""
BODY_SECS = 300.0
"""Seconds for the body of a request: 50 MB at 170 kB/s."""
PATIENCE = 3
"""A body of up to 3 times the allowed size is read to its end and dropped: many clients read no
answer before they have sent all."""
MAX_VERSION, MAX_TYPE = 100, 200  # characters
FILE_QUERY = ("url", "collection", "title", "date", "language", "version", "access")
"""Parameters of a file that is pushed."""
LINES = ("application/x-ndjson", "application/jsonl", "application/json-lines")
_JSON = "application/json"
_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:\s*;[ -~]*)?", re.ASCII)
_TEXTS = ("text/", "application/json", "application/xml", "application/xhtml+xml")
_FULL_SECS = 30
_HELD = frozenset({UrlState.STORED, UrlState.QUEUED, UrlState.LEASED})


@dataclass(frozen=True, slots=True)
class Collection:
    """A crawl of kind push. ``label``: its name in the search."""

    name: str
    label: str
    directory: Path
    forms: UrlForms
    fields: frozenset[str]


class Pushes:
    def __init__(
        self, manager: Manager, audit: Audit, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._manager, self._audit = manager, audit
        settings = manager.settings
        self.max_bytes, self._max_waiting = settings.push_bytes, settings.push_waiting_bytes
        self._rate = Rate(settings.push_per_minute, "documents", clock)
        self._reading = asyncio.Semaphore(MAX_REQUESTS)
        self._known: dict[str, tuple[CrawlEntry, Collection]] = {}

    # collections

    def collection(self, name: str) -> Collection:
        """The collection called ``name``, by its crawl file or by its label in the search. ""
        stands for the only collection. Raises HttpError."""
        entries = self._manager.entries()
        pushed = {
            entry.name: entry
            for entry in entries.values()
            if entry.crawl is not None and entry.crawl.kind == "push"
        }
        entry = pushed.get(name) or next(
            (one for one in pushed.values() if name and _label(one) == name), None
        )
        if entry is not None:
            return self._opened(entry)
        if not name and len(pushed) == 1:
            return self._opened(*pushed.values())
        if not name:
            expected = ", ".join(pushed) or 'a crawl file with kind = "push"; there is none'
            raise HttpError(f"collection is missing: expected {expected}", 400)
        if (other := entries.get(name)) is not None:
            why = "it is crawled" if other.crawl is not None else other.problem
            raise HttpError(f"Nothing can be pushed to {name}: {why}", 409)
        raise HttpError(f"There is no collection {printable(name[:64])!r}.", 404)

    def all(self) -> list[Collection]:
        """All collections of kind push."""
        return [
            self._opened(entry)
            for entry in self._manager.entries().values()
            if entry.crawl is not None and entry.crawl.kind == "push"
        ]

    def _opened(self, entry: CrawlEntry) -> Collection:
        known = self._known.get(entry.name)
        if known is not None and known[0] is entry:
            return known[1]
        assert entry.crawl is not None
        directory = self._manager.directory_of(entry)
        with suppress(CrawlDirError):
            manifest = read_manifest(directory)
            if manifest and not manifest.get("settings", {}).get("LARM_PUSH"):
                raise HttpError(
                    f"Nothing can be pushed to {entry.name}: {directory} holds a crawl; expected a"
                    " directory of its own",
                    409,
                )
        settings = BaseSettings(dict(options.defaults()))
        settings.update(settings_of(entry.crawl))
        settings.update({name: value for name, value in SETTINGS.items() if name[:5] == "LARM_"})
        found = Collection(
            entry.name,
            _label(entry),
            directory,
            UrlForms.from_settings(settings),
            frozenset(OwnFields.from_settings(settings).names),
        )
        self._known[entry.name] = entry, found
        return found

    # requests

    @asynccontextmanager
    async def body(self, request: web.Request, who: str) -> AsyncIterator[bytes]:
        """The body of a request, within all limits. Raises HttpError."""
        self._rate.check(who)
        if self._manager.disk_full:
            raise HttpError(f"The disk is full: {self._manager.disk_full}", 507)
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise HttpError("Content-Encoding: expected a body that is not compressed", 415)
        most, read = self.max_bytes * 4 // 3 + 100_000, 0  # base64
        too_large = HttpError(
            f"The body is larger than {size(most)}: send fewer documents, or raise push_bytes", 413
        )
        async with self._reading:
            body = bytearray()
            try:
                async with asyncio.timeout(BODY_SECS):
                    async for piece in request.content.iter_chunked(1 << 16):
                        if len(body) <= most:
                            body += piece
                        read += len(piece)
                        if read > most * PATIENCE:
                            raise too_large
            except TimeoutError:
                raise HttpError(f"The body took longer than {BODY_SECS:g} s.", 408) from None
            if read > most:
                raise too_large
            yield bytes(body)

    def push(
        self, collection: Collection, given: Sequence[PushDocument | HttpError], by: By
    ) -> list[PushAnswer]:
        """Keep documents; each error is returned in its place. Raises LarmspiderError if nothing
        is kept. For a thread."""
        self._rate.took(by.who, len(given))
        answers: list[PushAnswer | None] = []
        found: list[Document] = []
        for one in given:
            try:
                if isinstance(one, HttpError):
                    raise one
                found.append(self._checked(one, collection))
                answers.append(None)
            except HttpError as error:
                url = "" if isinstance(one, HttpError) else one.url[:MAX_URL]
                answers.append(refused(url, error))
        try:
            stored = iter(self._stored(collection, found))
        except DiskFullError as error:
            raise HttpError(f"Nothing is kept: {error}", 507) from None
        done = [next(stored) if answer is None else answer for answer in answers]
        words = [answer.result for answer in done]
        each = {word: words.count(word) for word in dict.fromkeys(words)}
        said = ", ".join(f"{number:,} {word}" for word, number in each.items())
        self._note(by, "push", f"{collection.name}: {counted(len(done), 'document')}", said)
        return done

    def _stored(self, collection: Collection, found: Sequence[Document]) -> list[PushAnswer]:
        if not found:
            return []
        taken = self._taken(collection, found)
        kept = [one for one in found if one.exact not in taken]
        with Pushed.open(collection.directory) as pushed:
            if pushed.waiting_bytes() > self._max_waiting:
                waits = f"More than {size(self._max_waiting)} of {collection.name} wait"
                raise too_many(f"{waits} to be stored", _FULL_SECS)
            results = iter(pushed.put(kept))
        answers = []
        for one in found:
            if one.exact in taken:
                answers.append(refused(one.url, HttpError(taken[one.exact], 409)))
                continue
            word, why = next(results)
            if word == "conflict":
                answers.append(refused(one.url, HttpError(why, 409)))
            else:
                status = 201 if word == "created" else 200
                answers.append(PushAnswer(url=one.url, status=status, result=word))
        return answers

    def _taken(self, collection: Collection, found: Sequence[Document]) -> dict[str, str]:
        """Why some URLs cannot be pushed, by exact form: a crawl has them in the same collection,
        or the operator has removed them."""
        taken = {}
        removals = Removals.read(collection.directory)
        for one in found if removals else ():
            if removals.has(collection.forms(one.url)):
                taken[one.exact] = f"the operator has removed this URL ({removals.path.name})"
        for entry in self._manager.entries().values():
            if entry.crawl is None or entry.crawl.kind == "push":
                continue
            if _label(entry) != collection.label:
                continue
            with suppress(CrawlDirError), ExitStack() as stack:
                crawl = open_crawl(self._manager.directory_of(entry))
                frontier = stack.enter_context(crawl.frontier())
                for one in found if frontier is not None else ():
                    assert frontier is not None
                    if frontier.state(url_key(crawl.forms(one.url).exact)) in _HELD:
                        taken[one.exact] = f"the crawl {entry.name} of this collection has this URL"
        return taken

    def remove(self, collections: Iterable[Collection], url: str, by: By) -> list[str]:
        """Have a document removed. Returns the names of the collections that had it. Call it in a
        thread."""
        done = []
        for collection in collections:
            exact = exact_of(url, collection)
            pushed = Pushed.found(collection.directory)
            if pushed is not None:
                with pushed:
                    try:
                        if pushed.remove(exact):
                            done.append(collection.name)
                    except DiskFullError as error:
                        raise HttpError(str(error), 507) from None
        if not done:
            raise HttpError("No document with this URL was pushed.", 404)
        self._note(by, "unpush", url[:MAX_URL], f"leaves {', '.join(done)}")
        return done

    def state(self, collections: Iterable[Collection], url: str) -> tuple[str, State]:
        """The collection and the state of a document. For a thread. Raises HttpError."""
        for collection in collections:
            exact = exact_of(url, collection)
            if (pushed := Pushed.found(collection.directory)) is not None:
                with pushed:
                    if (found := pushed.state(exact)) is not None:
                        return collection.name, found
        raise HttpError("No document with this URL was pushed.", 404)

    def _note(self, by: By, act: str, what: str, result: str) -> None:
        try:
            self._audit.note(by.who, by.address, act, what, result)
        except OSError as error:
            raise HttpError(f"The audit log cannot be written: {error.strerror}.", 507) from None

    # documents

    def _checked(self, one: PushDocument, collection: Collection) -> Document:
        """The document in the form in which it is stored. Raises HttpError."""
        exact = exact_of(one.url, collection)
        if one.collection not in ("", collection.name, collection.label):
            raise HttpError(f"collection: expected {collection.name}, as in the request", 400)
        body, content_type = self._content(one)
        if len(body) > self.max_bytes:
            raise HttpError(
                f"the document has {size(len(body))}: expected at most {size(self.max_bytes)}"
                " (push_bytes)",
                413,
            )
        if isinstance(one.version, str) and not 0 < len(one.version) <= MAX_VERSION:
            raise HttpError(f"version: expected a number, or 1 to {MAX_VERSION} characters", 400)
        facts = Facts(
            title=one_line(one.title, MAX_TITLE),
            language=_language(one.language),
            modified=_date(one.date),
            fields=_fields(one.fields, collection),
            access=_access(one.access),
        )
        return Document(one.url, exact, body, content_type, facts, one.version)

    @staticmethod
    def _content(one: PushDocument) -> tuple[bytes, str]:
        kind = one.content_type.strip()
        if kind and not (len(kind) <= MAX_TYPE and _TYPE.fullmatch(kind)):
            raise HttpError("content_type: expected a media type such as text/html", 400)
        if bool(one.text) == bool(one.file):
            raise HttpError("expected text or file, one of them, and not empty", 400)
        if one.file:
            return one.file, kind or "application/octet-stream"
        if not one.text.strip():
            raise HttpError("text: is empty", 400)
        kind = (kind or "text/plain").partition(";")[0].strip().lower()
        if not kind.startswith(_TEXTS):
            raise HttpError(f"content_type: {kind} is not text: send it as file", 400)
        return one.text.encode(), f"{kind}; charset=utf-8"


def refused(url: str, error: HttpError) -> PushAnswer:
    """The answer for a document that is not taken."""
    return PushAnswer(url=url, status=error.status, result="refused", error=str(error))


def answers_of(found: list[PushAnswer]) -> PushAnswers:
    """The answer of a batch."""
    return PushAnswers(documents=found, refused=sum(1 for one in found if one.result == "refused"))


def documents_in(body: bytes) -> list[PushDocument | HttpError]:
    """The documents of JSON lines, and an error for each line that is not a document. Raises
    HttpError for too many lines. Call it in a thread."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    if not 0 < len(lines) <= MAX_DOCUMENTS:
        raise HttpError(
            f"{counted(len(lines), 'document')}: expected 1 to {MAX_DOCUMENTS:,} in a request", 413
        )
    return [_decoded(line) for line in lines]


def document_in(body: bytes) -> PushDocument:
    """The document of a body. Raises HttpError."""
    found = _decoded(body)
    if isinstance(found, HttpError):
        raise found
    return found


def _decoded(text: bytes) -> PushDocument | HttpError:
    try:
        return msgspec.json.decode(text, type=PushDocument)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return HttpError(f"it is not a document: {printable(str(error))[:300]}", 400)


def document_of_query(query: Mapping[str, str], body: bytes, content_type: str) -> PushDocument:
    """The document whose file is the body of a request. Raises HttpError."""
    given = {name: query[name] for name in FILE_QUERY if name in query}
    for name in query:
        if name not in FILE_QUERY:
            raise HttpError(f"{printable(name[:40])}: expected {', '.join(FILE_QUERY)}", 400)
    if "url" not in given:
        raise HttpError("url is missing", 400)
    fields: dict[str, Any] = {**given, "content_type": content_type, "file": body}
    if "access" in fields:
        fields["access"] = [one.strip() for one in fields["access"].split(",")]
    return PushDocument(**fields)


def is_lines(request: web.Request) -> bool:
    """Whether a body has a document a line. Raises HttpError for another type of body."""
    if request.content_type in LINES:
        return True
    if request.content_type == _JSON:
        return False
    raise HttpError(
        f"Content-Type: expected {_JSON} for a document, {LINES[0]} for a document a line; PUT"
        " takes a file",
        415,
    )


def exact_of(url: str, collection: Collection) -> str:
    """The exact form of a URL. Raises HttpError."""
    if not url or len(url) > MAX_URL:
        raise HttpError(f"url: it has {len(url):,} characters: expected 1 to {MAX_URL:,}", 400)
    try:
        parts = urlsplit(url)
        if parts.scheme.lower() not in ("http", "https"):
            raise HttpError("url: expected a URL with http:// or https://", 400)
        if parts.username is not None or parts.password is not None:
            raise HttpError("url: expected a URL without user and password", 400)
        if parts.fragment:
            raise HttpError("url: expected a URL without #, which names a part of a page", 400)
        if not url.isprintable() or " " in url:
            raise InvalidURL("it has blanks or control characters")
        return collection.forms(url).exact
    except HttpError:
        raise
    except (InvalidURL, ValueError) as error:
        raise HttpError(f"url: {printable(str(error))[:200]}", 400) from None


def _label(entry: CrawlEntry) -> str:
    return (entry.crawl.collection if entry.crawl else "") or entry.name


def _language(given: str) -> str:
    if not given:
        return ""
    tag = language_tag(given)
    if tag is None or tag.partition("-")[0] not in KNOWN:
        raise HttpError(
            f"language {printable(given[:20])!r}: expected a tag such as en or de-AT, of a known"
            " language; or none, and it is guessed",
            400,
        )
    return tag


def _date(given: str | float) -> float | None:
    """Seconds since the epoch."""
    if given == "":
        return None
    found: float | None = None
    if isinstance(given, str):
        with suppress(ValueError, OverflowError):
            at = datetime.fromisoformat(given)
            found = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        found = http_time(given) if found is None else found
    else:
        found = float(given)
    if found is None or not 0 <= found < 253_402_300_800:
        raise HttpError(
            "date: expected a date such as 2026-11-30 or 2026-11-30T12:00:00Z, or seconds since"
            " 1970",
            400,
        )
    return found


def _access(given: Sequence[str]) -> list[str]:
    if len(given) > MAX_ENTRIES:
        raise HttpError(f"access: expected at most {MAX_ENTRIES:,} principals", 400)
    try:
        return AccessList.simple(given).principals
    except ConfigError as error:
        raise HttpError(f"access: {printable(str(error))}", 400) from None


def _fields(given: Mapping[str, str | list[str]], collection: Collection) -> dict[str, list[str]]:
    found = {}
    for name, value in given.items():
        values = [value] if isinstance(value, str) else value
        if name not in collection.fields:
            known = ", ".join(sorted(collection.fields)) or "none: LARM_FIELDS has none"
            raise HttpError(f"fields: {printable(name[:40])!r}: expected {known}", 400)
        lines = [one_line(one, MAX_VALUE + 1) for one in values]
        if len(lines) > MAX_VALUES or not all(0 < len(one) <= MAX_VALUE for one in lines):
            raise HttpError(
                f"fields: {name}: expected at most {MAX_VALUES} values of 1 to {MAX_VALUE}"
                " characters",
                400,
            )
        found[name] = lines
    return found
