"""Sends a crawl's stored pages to a receiver: all of them, or the pages that are dead letters.

    with Fill(crawl, settings, SqlReceiver) as fill, stored_items(crawl, settings) as items:
        fill.send_all(items)                  # `scrapy outbox --fill SqlReceiver`

A receiver gets each page as it did in the crawl, read again from the page files, with the time at
which the page was fetched for a stamp. That stamp is smaller than the crawl's own stamp of this
version, and larger than the stamps of older versions. A receiver that has the version already thus
keeps it, and repeats change nothing. The crawl may run meanwhile. A killed fill continues where it
was.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from larmspider import options, program
from larmspider.crawl.reader import CrawlDir, last_visit
from larmspider.errors import (
    CommittedGoneError,
    ConfigError,
    CrawlDirError,
    InvalidURL,
    TemporaryError,
)
from larmspider.extraction.formats import add_outcome
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.texts.language import Languages
from larmspider.fetch.blobs import digest_of
from larmspider.files import lock, replace_file
from larmspider.formatting import counted, duration
from larmspider.items import Link, Outcome, Page, Removed
from larmspider.pipelines.deleted_log import DELETED_LOG_COLUMNS, DeletedLogPipeline
from larmspider.pipelines.outbox.facts import IndexFacts
from larmspider.pipelines.outbox.outbox import SenderProcess, tried
from larmspider.pipelines.outbox.sender import DEAD_LOG_COLUMNS, dead_log
from larmspider.pipelines.outbox.spool import (
    FILL,
    FOLDER,
    LOCK,
    RETRY,
    SEGMENT_BYTES,
    Cursor,
    Position,
    Spool,
    fill_folder,
    read_retried,
    segments,
    write_retried,
)
from larmspider.pipelines.page_files import BLOBS, blob_file, read_body
from larmspider.pipelines.records import RecordLog, read_records
from larmspider.pipelines.reextract import Fetched, fetches_in, read_again
from larmspider.workdir.frames import open_stored, present

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.pipelines.outbox.receiver import Receiver

Say: TypeAlias = Callable[[str], object]
Item: TypeAlias = tuple[int, "Page | Removed", float]
"""The offset after it in store.log, the page or removal, and its stamp, in seconds."""

_STATE = "state.json"
_LETTERS = "dead.log"
_WAITING_BYTES = 2 * SEGMENT_BYTES
"""Most bytes of a fill that wait on disk."""
_NOTE_SECS, _SAY_SECS, _LOOK_SECS = 1.0, 5.0, 0.1
_MARK_BYTES = 4_096
"""A fill resumes only if these bytes of store.log, before its place there, are unchanged."""
_LOCK_SECS = 60.0
_MAX_LINKS = 1 << 62


class _Place(NamedTuple):
    """The progress of a fill: its offset in store.log, and ``done`` of ``total`` entries."""

    at: int
    done: int
    total: int


class StoredItems:
    """Stored pages of one directory, as receivers get them, in the order of store.log; then
    removals. Only committed records count."""

    def __init__(
        self,
        crawl: CrawlDir,
        readers: Readers,
        languages: Languages,
        only: Collection[str] | None = None,
    ) -> None:
        """``only``: URLs of pages; None: all."""
        self._crawl, self._readers, self._languages = crawl, readers, languages
        self._only = only
        self._ends = crawl.committed()
        self._fetches = fetches_in(crawl.path / "fetch.log")
        self._last: dict[int, int] = {}
        for at, fields in self._records(0):
            self._last[hash(fields[1])] = at
        self._removals = self._removed()
        self._has_links = present(crawl.path / "links.log").exists()
        self._links = self._link_offsets() if self._has_links else {}
        self.total = self._count() + len(self._removals)

    def _records(self, start: int) -> Iterator[tuple[int, list[str]]]:
        end = self._ends["store.log"]
        for at, fields in self._crawl.logs.search("store.log", None, 0, start):
            if at >= end:
                return
            if self._only is None or fields[1] in self._only:
                yield at, fields

    def _count(self) -> int:
        return sum(self._counts(at, fields) for at, fields in self._records(0))

    def _counts(self, at: int, fields: list[str]) -> bool:
        """Whether a record has the last version of a page, and the page was not removed."""
        return fields[4] != "0" and self._last[hash(fields[1])] == at

    def _removed(self) -> dict[str, Removed]:
        """The last removal of each URL that is not stored."""
        path = self._crawl.path / DeletedLogPipeline.file_name
        found: dict[str, Removed] = {}
        for when, url, exact, reason in (
            read_records(path, len(DELETED_LOG_COLUMNS)) if present(path).exists() else ()
        ):
            if self._only is None or url in self._only:
                with suppress(ValueError):
                    seconds = datetime.fromisoformat(when).timestamp()
                    found[url] = Removed(url, exact, reason, seconds)
        for at, fields in self._records(0):
            if self._counts(at, fields):
                found.pop(fields[1], None)
        return found

    def _link_offsets(self) -> dict[int, int]:
        """Where the links of each page begin in links.log, by the hash of its URL."""
        found: dict[int, int] = {}
        end, page = self._ends["links.log"], ""
        for at, fields in self._crawl.logs.search("links.log", None, 0):
            if at >= end:
                break
            if fields[0] != page or not fields[1]:
                page = fields[0]
                if self._only is None or page in self._only:
                    found[hash(page)] = at
        return found

    def all_from(self, start: int) -> Iterator[Item]:
        """The items from an offset in store.log on."""
        found: tuple[Page, float] | None = None
        with self._crawl.frontier() as frontier:
            for at, fields in self._records(start):
                if found is not None:
                    yield at, *found
                found = self._page(fields, frontier) if self._counts(at, fields) else None
        end = self._ends["store.log"]
        if found is not None:
            yield end, *found
        for removed in self._removals.values():
            yield end, removed, removed.time

    def _page(self, fields: list[str], frontier: Any) -> tuple[Page, float]:
        from_page, url, normalized, link_type, status, mime, size, title, number, offset = fields
        fetched = self._fetches.get(hash((url, status)), Fetched())
        body, is_whole = self._body(int(number), int(offset), int(size))
        page = read_again(self._readers, mime, body, url, fetched.remarks)
        if status == "200":
            add_outcome(page)
            page.language = self._languages.of_now(page)
        page.noindex |= fetched.remarks.noindex
        page.unread = page.unread or fetched.remarks.unread
        page.title = page.title or title
        page.url, page.from_page, page.link_type = url, from_page, int(link_type)
        page.normalized, page.status, page.mime = normalized, int(status), page.mime or mime
        page.exact = self._crawl.forms(url).exact
        page.fetched, page.latency = fetched.time, fetched.latency
        page.body, page.stored_at = body, (int(number), int(offset))
        unread = not body and page.unread.startswith(Outcome.TOO_LARGE)  # as in a crawl
        known = url.encode() if unread else body
        page.digest = hashlib.sha1(known, usedforsecurity=False).hexdigest()
        if int(number) == BLOBS:
            with suppress(CrawlDirError):  # the sender names it
                page.digest = digest_of(blob_file(self._crawl.path, int(offset)))
        if int(number) == BLOBS or not is_whole:
            page.file_bytes = int(size)
        page.links = self._links_of(page)
        visit = None if frontier is None else last_visit(frontier, page.exact)
        if visit is not None:
            page.depth, page.etag, page.last_modified = visit.depth, visit.etag, visit.last_modified
        stamp = page.fetched or (0.0 if visit is None else visit.stored or visit.time)
        return page, stamp

    def _body(self, number: int, offset: int, size: int) -> tuple[bytes, bool]:
        """b"" and False if it cannot be read: the sender makes a dead letter of that page."""
        if number == BLOBS:
            return b"", True
        try:
            body = read_body(self._crawl.path, number, offset, size)
        except CrawlDirError:
            return b"", False
        return (body, True) if len(body) == size else (b"", False)

    def _links_of(self, page: Page) -> list[Link]:
        """Links of links.log; without that file, links that extraction finds today."""
        if not self._has_links:
            for link in page.links:
                with suppress(InvalidURL):
                    link.normalized = self._crawl.forms(link.url).normalized
            return page.links
        offset = self._links.get(hash(page.url))
        if offset is None:
            return []
        return [
            Link(url, normalized, int(kind) if kind.isdecimal() else 0, anchor)
            for _, url, normalized, kind, anchor in self._crawl.logs.links_at(
                offset, page.url, _MAX_LINKS
            )
        ]


class Fill:
    """Sends to one receiver of one directory. Use it as a context manager: it holds a lock."""

    def __init__(
        self,
        crawl: CrawlDir,
        settings: BaseSettings,
        receiver: type[Receiver],
        kind: str = FILL,
        say: Say = lambda _: None,
    ) -> None:
        """``kind``: FILL or RETRY."""
        self.name, self._crawl, self._say = receiver.__name__, crawl, say
        self._receiver, self._settings = receiver, settings
        self._directory = fill_folder(crawl.path, self.name, kind)
        self._letters = self._directory / _LETTERS
        self._spool = Spool(self._directory)
        self._patience = options.seconds(settings, "LARM_OUTBOX_END_SECS", minimum=0)
        self._held: IO[str] | None = None
        self._begun = self._said = self._noted = 0.0
        self._trouble = ""
        self.sent = self.dead = 0
        """Entries that it took, or refused, in this run."""

    def __enter__(self) -> Fill:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._held = lock(self._directory / LOCK)
        except BlockingIOError:
            raise CrawlDirError(
                f"{self._directory} is in use: another command sends to {self.name} from there"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self._held.close()

    def send_all(self, items: StoredItems) -> None:
        """Send everything; resume a killed fill where it was. Raises TemporaryError
        if the receiver takes nothing for LARM_OUTBOX_END_SECS."""
        before, _ = unfinished(self._crawl.path).get(self.name, (0, 0))
        place = self._taken_up()
        if place.done and before >= place.total:  # it was killed at its end
            self._begin_anew()
            place = _Place(0, 0, 0)
        total = place.total if place.done else items.total
        if place.done:
            self._say(
                f"{self.name}: continues an earlier fill, which sent {before:,} of"
                f" {counted(total, 'page or delete', 'pages and deletes')}"
            )
        self._send(items, _Place(place.at, place.done, total))
        (self._directory / _STATE).unlink(missing_ok=True)

    def take_letters(self) -> set[str]:
        """Remove the dead letters from their log; returns their URLs."""
        log = self._crawl.path / FOLDER / dead_log(self.name)
        if not self._letters.exists():
            log.rename(self._letters)
        return {fields[1] for fields in read_records(self._letters, len(DEAD_LOG_COLUMNS))}

    def send_letters(self, items: StoredItems, urls: Collection[str]) -> int:
        """Send the pages of dead letters. Returns the number of letters that stay, because their
        pages are no longer stored. Raises as send_all()."""
        self._begin_anew()
        found: set[str] = set()
        self._send(items, _Place(0, 0, items.total), found)
        kept = taken = 0
        log = RecordLog(self._crawl.path / FOLDER / dead_log(self.name), DEAD_LOG_COLUMNS)
        for fields in read_records(self._letters, len(DEAD_LOG_COLUMNS)):
            if fields[1] in found or fields[1] not in urls:
                taken += fields[1] in found
            else:
                kept += 1
            if fields[1] not in found:  # including letters that came after take_letters()
                log.append(*fields)
        log.close()
        log.flush()  # raises what close() met
        write_retried(self._directory, read_retried(self._directory) + taken)
        self._letters.unlink()
        return kept

    # the spool

    def _taken_up(self) -> _Place:
        """Continue with the spool of a fill that was killed, or begin a new one."""
        self._wait_for_sender()
        cursor = Cursor.read(self._directory, self.name) or Cursor()
        with suppress(OSError, ValueError, KeyError, TypeError, CommittedGoneError):
            state = json.loads((self._directory / _STATE).read_bytes())
            place, end = _Place(*state["place"]), Position(*state["spool"])
            ours = (self._crawl.began, self._mark(place.at)) == (state["began"], state["mark"])
            if ours and cursor.offset <= end.offset:
                self._spool.recover(end)
                self._spool.open()
                return place
        self._begin_anew()
        return _Place(0, 0, 0)

    def _begin_anew(self) -> None:
        self._wait_for_sender()
        (self._directory / _STATE).unlink(missing_ok=True)
        for path in segments(self._directory).values():
            path.unlink()
        cursor = Cursor.read(self._directory, self.name) or Cursor()
        self._spool.end = Position(cursor.offset, cursor.number)
        self._spool.open()

    def _wait_for_sender(self) -> None:
        """Wait for the sender of a killed command, which may still be sending its last batch."""
        deadline = time.monotonic() + _LOCK_SECS
        while True:
            try:
                lock(self._directory / f"{self.name}.lock").close()
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TemporaryError(
                        f"{self.name}: an earlier sender is still at its last batch: try again"
                    ) from None
                time.sleep(_LOOK_SECS)

    def _mark(self, at: int) -> str:
        """A digest of the bytes of store.log before ``at``."""
        with open_stored(self._crawl.path / "store.log") as log:
            start = max(0, at - _MARK_BYTES)
            log.seek(start)
            return hashlib.sha1(log.read(at - start), usedforsecurity=False).hexdigest()

    def _note(self, place: _Place) -> None:
        """Commit the spool: entries before ``place`` may be sent."""
        self._noted = time.monotonic()
        end = self._spool.flush()
        state = {
            "place": place,
            "spool": end,
            "began": self._crawl.began,
            "mark": self._mark(place.at),
        }
        replace_file(self._directory / _STATE, json.dumps(state).encode())
        self._sender.may_send(end)

    # sending

    def _send(self, items: StoredItems, place: _Place, found: set[str] | None = None) -> None:
        """Adds the URLs of sent pages to ``found``."""
        before = Cursor.read(self._directory, self.name) or Cursor()
        self._before = before
        self._sender = SenderProcess(self._receiver, self._settings, self._directory)
        self._sender.committed = self._spool.end
        facts = IndexFacts.of_run(self._settings) if self._receiver.wants_index else None
        self._begun = self._said = time.monotonic()
        self._first = place.done - (self._spool.end.number - before.number)
        at, done, total = place
        try:
            self._look(before, total)
            for behind, item, stamp in items.all_from(at):
                if facts is not None and isinstance(item, Page):
                    self._name_targets(item)
                self._spool.append(item, stamp, body=True, again=True, facts=facts)
                at, done = behind, done + 1
                if found is not None:
                    found.add(item.url)
                if time.monotonic() >= self._noted + _NOTE_SECS:
                    self._note(_Place(at, done, total))
                    self._wait(_WAITING_BYTES, total)
            self._note(_Place(at, done, total))
            self._sender.finish()
            self._wait(0, total)
        finally:
            self._sender.close()
            self._spool.close()
            cursor = Cursor.read(self._directory, self.name) or before
            self.sent, self.dead = cursor.sent - before.sent, cursor.dead - before.dead
        for path in segments(self._directory).values():
            path.unlink()

    def _name_targets(self, page: Page) -> None:
        """Give links their exact form, which links.log does not have."""
        for link in page.links:
            with suppress(InvalidURL):
                link.exact = self._crawl.forms(link.url).exact

    def _wait(self, most: int, total: int) -> None:
        """Wait until at most ``most`` bytes of the spool are unsent."""
        seen, since = (-1, 0), time.monotonic()
        while True:
            cursor = Cursor.read(self._directory, self.name) or self._before
            self._look(cursor, total)
            waiting = self._spool.end.offset - cursor.offset
            if waiting <= most and not (waiting == most == 0 and cursor.left):
                return
            now = time.monotonic()
            if (cursor.offset, cursor.left) != seen:
                seen, since = (cursor.offset, cursor.left), now
            if cursor.trouble and now > since + self._patience:
                raise TemporaryError(
                    f"{self.name}: {cursor.trouble}; it keeps the pages that it took, and the same"
                    " command continues from there"
                )
            time.sleep(_LOOK_SECS)

    def _look(self, cursor: Cursor, total: int) -> None:
        self._sender.keep_running()
        self._spool.forget(cursor.offset)
        now = time.monotonic()
        if cursor.trouble != self._trouble:
            self._trouble = cursor.trouble
            self._say(
                f"{self.name}: {cursor.trouble}; waiting"
                if cursor.trouble
                else f"{self.name} takes pages again"
            )
        if now >= self._said + _SAY_SECS:
            self._said = now
            done = self._first + cursor.number - self._before.number
            entries = counted(total, "page or delete", "pages and deletes")
            rate = (cursor.number - self._before.number) / (now - self._begun)
            left = f", about {duration((total - done) / rate)} left" if rate and done else ""
            self._say(f"{self.name}: {done:,} of {entries} sent{left}")


def check_receiver(receiver: type[Receiver], settings: BaseSettings) -> None:
    """Raise TemporaryError if the receiver is away, ConfigError if it refuses."""
    receiver.from_settings(settings)
    kind, why = tried(receiver, settings)
    if kind == "away":
        raise TemporaryError(f"{receiver.__name__} cannot be reached: {why}")
    if kind:
        raise ConfigError(f"{receiver.__name__} cannot be used: {why}")


def has_letters(crawl: Path, receiver: str) -> bool:
    """Whether a receiver has dead letters in this directory."""
    taken = fill_folder(crawl, receiver, RETRY) / _LETTERS
    return taken.exists() or (crawl / FOLDER / dead_log(receiver)).exists()


@contextmanager
def stored_items(
    crawl: CrawlDir, settings: BaseSettings, only: Collection[str] | None = None
) -> Iterator[StoredItems]:
    """The stored pages of a directory, with the readers that they take."""
    with ExitStack() as stack:
        readers = stack.enter_context(Readers.from_settings(settings))
        languages = Languages.from_settings(settings)
        stack.callback(languages.close)
        yield StoredItems(crawl, readers, languages, only)


def unfinished(crawl: Path) -> Mapping[str, tuple[int, int]]:
    """Fills that were killed or still run, by receiver: the number of entries that were taken or
    refused, and the number of all entries."""
    found = {}
    for path in sorted((crawl / FOLDER / FILL).glob(f"*/{_STATE}")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            state, name = json.loads(path.read_bytes()), path.parent.name
            place, end = _Place(*state["place"]), Position(*state["spool"])
            cursor = Cursor.read(path.parent, name) or Cursor()
            waiting = end.number - min(cursor.number, end.number)
            found[name] = max(0, place.done - waiting), place.total
    return found


def forget_unfinished(crawl: Path) -> None:
    """Let killed fills start over, because page files and store.log have changed. Raises
    CrawlDirError while a fill runs."""
    for kind in (FILL, RETRY):
        for folder in (crawl / FOLDER / kind).glob("*"):
            try:
                with lock(folder / LOCK):
                    (folder / _STATE).unlink(missing_ok=True)
            except BlockingIOError:
                raise CrawlDirError(
                    f"{folder} is in use: `{program.NAME} outbox` sends from there; wait, or"
                    " stop it"
                ) from None
