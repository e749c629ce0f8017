"""Reads documents in other processes, so that they neither delay nor harm the crawl.

    readers = Readers.from_settings(settings)
    page = await readers.read("text/html", body, "http://wiki.example/all", "text/html")
    readers.close()

Some processes read large pages: 100,000 links take 0.6 s, hostile markup may take seconds or end a
parser by a signal. Others read PDF, Office and the like (formats.py), which may take longer, have
no network and are replaced from time to time. Each starts on demand and is kept. A document that
needs more time or memory than allowed is refused, and the process replaced. Hosts share the
processes (reader_pool.py). All other pages are extracted by the crawl's own thread, and by another
process beside it if that has a core to itself (page_process.py).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import threading
from collections.abc import Callable
from importlib.util import find_spec
from math import inf
from typing import TYPE_CHECKING, Any, Self

from larmspider import options, plugin
from larmspider.errors import ConfigError, LarmspiderError
from larmspider.extraction.formats import extractor_for, media_type, without_text
from larmspider.extraction.pages.markup_guard import is_large
from larmspider.extraction.pages.own_fields import NONE as NO_FIELDS
from larmspider.extraction.pages.own_fields import OwnFields
from larmspider.extraction.processes.backlog import Backlog
from larmspider.extraction.processes.helper_process import (
    WALL,
    ExtractionRefused,
    ExtractionStopped,
    HelperProcess,
)
from larmspider.extraction.processes.notes import Notes
from larmspider.extraction.processes.page_process import MODES, OFF, PageProcess, cores
from larmspider.extraction.processes.process_child import NONE, PDF, Helpers, page_of
from larmspider.extraction.processes.reader_pool import ReaderPool, Sharing
from larmspider.items import Outcome, Page, Part
from larmspider.urls.media_types import is_read_apart
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from larmspider.options import Settings


__all__ = ["ExtractionProcess", "ExtractionRefused", "ExtractionStopped", "Readers"]

logger = logging.getLogger(__name__)


_SIGPROF = getattr(signal, "SIGPROF", 0)
_PROGRAM = (
    "from larmspider.extraction.processes.process_child import Helpers, main;"
    " main({memory_bytes}, {most}, {helpers!r}, {fields!r}, {notes})"
)
MOST_READERS = 64
LEAST_WALL_SECS = 30.0
"""A document has at least 30 s by the clock, because a process may take some for its start."""
RECYCLED = 200
"""Documents that a process reads before another one takes its place: libraries may leak."""


class ExtractionProcess(HelperProcess):
    """``seconds`` of CPU and ``memory_bytes`` limit one document on POSIX, WALL times the seconds
    by the clock everywhere, and LEAST_WALL_SECS at least."""

    def __init__(
        self,
        seconds: float,
        memory_bytes: int,
        most: int = 0,
        helpers: Helpers = NONE,
        fields: OwnFields = NO_FIELDS,
    ) -> None:
        """``most``: documents that one process reads, without a network; 0: no limit."""
        self._notes = Notes() if most else None
        fd = self._notes.fd if self._notes else -1
        program = _PROGRAM.format(
            memory_bytes=memory_bytes, most=most, helpers=helpers, fields=fields.rules, notes=fd
        )
        super().__init__(program, "extraction", (fd,) if fd >= 0 else ())
        self.seconds, self.helpers = seconds, helpers
        self.used = 0.0
        """CPU seconds that the last document took."""
        self._reported = 0.0  # CPU seconds of the process before that document

    async def read(
        self, mime: str, body: bytes, url: str, content_type: str, seconds: float | None = None
    ) -> Page:
        """The Page that the extractor of ``mime`` makes of ``body``. Raises ExtractionRefused,
        ExtractionStopped."""
        if self.closed:
            raise ExtractionStopped("the crawl is being stopped")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self.pool, self.read_now, mime, body, url, content_type, seconds
        )

    def read_now(
        self, mime: str, body: bytes, url: str, content_type: str, seconds: float | None = None
    ) -> Page:
        """`read` for a thread that may wait, one at a time. ``seconds`` replaces the usual limit.
        ``Page.mime`` is set if the content of a container shows a type other than ``mime``."""
        limit = self.seconds if seconds is None else seconds
        if self._notes:
            self._notes.clear()
        try:
            answer = self._answer((mime, len(body), url, content_type, limit, ""), body)
        except ExtractionRefused as refused:
            refused.kept = self._notes.so_far(url, str(refused)) if self._notes else None
            if refused.kept is not None:
                refused.kept.body = body
            raise
        page = page_of(answer["page"], url, body)
        page.mime = answer["mime"]
        return page

    def close(self) -> None:
        super().close()
        if self._notes:
            self._notes.close()

    def member(self, mime: str, body: bytes, url: str, name: str) -> bytes:
        """The bytes of one part of a document. Raises ExtractionRefused."""
        answer = self._answer((mime, len(body), url, "", self.seconds, name), body)
        found: bytes = answer["member"]
        return found

    def picture(self, mime: str, body: bytes, url: str, width: int) -> bytes:
        """A JPEG of a document's first page, or of an image (pictures.py). Raises
        ExtractionRefused."""
        answer = self._answer((mime, len(body), url, "", self.seconds, width), body)
        found: bytes = answer["picture"]
        return found

    def started(self) -> subprocess.Popen[bytes]:
        before, child = self.child, super().started()
        if child is not before:
            self._reported = 0.0
        return child

    def _answer(self, request: tuple[str, int, str, str, float, str | int], body: bytes) -> Any:
        self.used = 0.0
        self.started()
        seconds = request[4]
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(max(WALL * seconds, LEAST_WALL_SECS), stop)
        timer.start()
        try:
            answer = self.ask(request, body)
        except (EOFError, OSError):
            self.used = max(0.0, self.cpu_secs - self._reported)
            raise self._failure(late.is_set(), seconds) from None
        finally:
            timer.cancel()
        self.used = max(0.0, answer["cpu"] - self._reported)
        self._reported = answer["cpu"]
        if "ended" in answer:
            self.end()
        if "refused" in answer:
            raise ExtractionRefused(answer["refused"], is_costly="exhausted" in answer)
        return answer

    def _failure(self, was_late: bool, seconds: float) -> LarmspiderError:
        if self.closed:
            return ExtractionStopped("the crawl is being stopped")
        if was_late or self.status == -_SIGPROF:
            self.used = max(self.used, seconds)  # by the clock, even with less CPU time
            why = f"{Outcome.TOO_LONG}: takes longer than {seconds:g} s"
        else:
            why = f"{Outcome.READER_DIED}: ended the extraction process with status {self.status}"
        return ExtractionRefused(why, is_costly=True)


def _better(page: Page, refused: ExtractionRefused) -> Page:
    """The Page with more text: ``page``, or the Page of the reader of scans before its refusal."""
    kept = refused.kept
    if kept is not None and _size(kept) > _size(page):
        return kept
    page.unread = str(refused)
    return page


def _size(page: Page) -> int:
    return len(page.text) + sum(len(part.text) for part in page.parts)


def helpers_from_settings(settings: Settings) -> Helpers:
    """LARM_SECOND_READER, LARM_OCR and LARM_OCR_SECS. Raises ConfigError for missing programs."""
    second = options.choice(settings, "LARM_SECOND_READER", ("", "auto", "tika"))
    is_installed = find_spec("iscc_tika") is not None
    if second == "tika" and not is_installed:
        raise ConfigError(
            "LARM_SECOND_READER=tika: iscc-tika is not installed; pip install 'larmspider[tika]'"
        )
    second = "tika" if second and is_installed else ""
    secs = options.seconds(settings, "LARM_OCR_SECS", minimum=1, maximum=86_400)
    if languages := str(settings.get("LARM_OCR") or ""):
        plugin.load("ocr.tesseract").check(languages)
    return Helpers(second, languages, secs if languages else 0.0)


class Readers:
    """Processes for large pages and for documents, each started when it is needed; hosts share
    them."""

    def __init__(
        self,
        page_secs: float = 10.0,
        page_bytes: int = 1 << 30,
        document_secs: float = 30.0,
        document_bytes: int = 1 << 30,
        helpers: Helpers = NONE,
        fields: OwnFields = NO_FIELDS,
        beside: str = OFF,
        places: int = 0,
        room: float = inf,
    ) -> None:
        """``beside``: as in PageProcess. ``places``: documents that are read at a time; 0: two on
        a machine with two cores, else one. ``room``: bytes of bodies that may wait (`backlog`)."""
        self.fields = fields
        self.beside = PageProcess(page_secs, page_bytes, beside)
        places = places or min(2, cores())
        self.sharing = Sharing()
        self.hold: Callable[[str, bool], None] = lambda _host, _held: None
        """Called to hold a host or let it go, as in Backlog."""
        self.backlog = Backlog(room, lambda host, held: self.hold(host, held))
        self.pages = ReaderPool(
            lambda: ExtractionProcess(page_secs, page_bytes, fields=fields),
            min(2, places),
            "LARM_EXTRACTION_SECS",
            self.sharing,
            self.backlog,
        )
        first = helpers._replace(ocr="")
        self.documents = ReaderPool(
            lambda: ExtractionProcess(document_secs, document_bytes, RECYCLED, first),
            places,
            "LARM_DOCUMENT_SECS",
            self.sharing,
            self.backlog,
        )
        # scans take minutes, so they have a separate queue and the lowest priority
        self.helpers = helpers
        secs = document_secs + helpers.ocr_secs
        self.scans = ReaderPool(
            lambda: ExtractionProcess(secs, document_bytes, RECYCLED, helpers),
            min(2, places),
            "LARM_DOCUMENT_SECS and LARM_OCR_SECS",
            self.sharing,
            self.backlog,
        )

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises ConfigError for an impossible limit."""
        return cls(
            options.seconds(settings, "LARM_EXTRACTION_SECS", minimum=0.1, maximum=86_400),
            options.integer(settings, "LARM_EXTRACTION_BYTES", minimum=1 << 26),
            options.seconds(settings, "LARM_DOCUMENT_SECS", minimum=0.1, maximum=86_400),
            options.integer(settings, "LARM_DOCUMENT_BYTES", minimum=1 << 26),
            helpers_from_settings(settings),
            OwnFields.from_settings(settings),
            options.choice(settings, "LARM_EXTRACTION_BESIDE", MODES),
            options.integer(settings, "LARM_DOCUMENT_READERS", minimum=0, maximum=MOST_READERS),
            options.integer(settings, "SCRAPER_SLOT_MAX_ACTIVE_SIZE", minimum=0) / 2,
        )

    def is_apart(self, mime: str, body: bytes, url: str) -> bool:
        """Whether a body is read in another process."""
        return is_read_apart(mime) or is_large(body) or self.fields.are_on(mime, url)

    async def read(self, mime: str, body: bytes, url: str, content_type: str) -> Page:
        """The Page of a document or a large page, once it is its host's turn. Raises
        ExtractionRefused, ExtractionStopped, and ExtractionPostponed where bodies that wait have no
        room."""
        pool = self.documents if is_read_apart(mime) else self.pages
        try:
            page = await pool.read(mime, body, url, content_type)
        except ExtractionRefused as refused:
            page = self._without_fields(refused, mime, body, url, content_type)
        if self._has_scans(mime, page):
            try:
                return await self.scans.read(mime, body, url, content_type)
            except ExtractionRefused as refused:
                page = _better(page, refused)
        return page

    async def read_beside(self, mime: str, body: bytes, url: str, content_type: str) -> Page:
        """The Page of a body that ``beside`` accepts. If its process ends, the process of large
        pages reads it by its own rules. Raises ExtractionRefused, ExtractionStopped, and the errors
        of an extractor."""
        page = await self.beside.read(mime, body, url, content_type)
        return page or await self.pages.read(mime, body, url, content_type)

    def _without_fields(
        self, refused: ExtractionRefused, mime: str, body: bytes, url: str, content_type: str
    ) -> Page:
        """If a selector takes too long, a page that is not large loses only its own fields."""
        extract = extractor_for(mime)
        if is_read_apart(mime) or is_large(body) or extract is None:
            raise refused
        shown = without_userinfo(url)
        logger.warning("Stored without its own fields (LARM_FIELDS): %s (%s)", shown, refused)
        return extract(body, url, content_type)

    def _has_scans(self, mime: str, page: Page) -> bool:
        pdfs: list[Page | Part] = [part for part in page.parts if part.mime == PDF]
        if mime == PDF:
            pdfs.append(page)
        if not self.helpers.ocr or not pdfs:
            return False
        return any(map(plugin.load("ocr.tesseract").is_wanted, pdfs))

    def read_again(self, mime: str, body: bytes, url: str, charset: str = "") -> Page:
        """The Page of any stored body, in a thread that may wait. It has no text and links if the
        body cannot be read. ``charset``: from the Content-Type header, if known."""
        header = f"{mime}; charset={charset}" if charset else mime
        kind = media_type(mime, body, url)  # by the present rules
        page = self._read_again(kind, body, url, header)
        page.mime = page.mime or kind
        return page

    def _read_again(self, mime: str, body: bytes, url: str, header: str) -> Page:
        extract = extractor_for(mime)
        if extract is None:
            return Page(url, body=body, unread=without_text(mime))
        try:
            if is_read_apart(mime):
                page = self.documents.read_now(mime, body, url, header)
                if self._has_scans(mime, page):
                    try:
                        return self.scans.read_now(mime, body, url, header)
                    except ExtractionRefused as refused:
                        page = _better(page, refused)
                return page
            if not self.is_apart(mime, body, url):
                return extract(body, url, header)
            try:
                return self.pages.read_now(mime, body, url, header)
            except ExtractionRefused as refused:
                return self._without_fields(refused, mime, body, url, header)
        except ExtractionRefused as refused:
            return refused.kept or Page(url, body=body, unread=str(refused))

    def close(self) -> None:
        """May be called twice."""
        for one in (self.beside, self.pages, self.documents, self.scans):
            one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
