"""Reads documents in other processes, so that they neither hold up nor harm the crawl.

    readers = Readers.from_settings(settings)
    page = await readers.read("text/html", body, "http://wiki.example/all", "text/html")
    readers.close()

One process reads large pages: 100,000 links take 0.6 s, hostile markup may take seconds or end a
parser by a signal. Another one reads PDF, Office and the like (formats.py), which may take longer,
has no network and is replaced from time to time. Each is started for its first document and kept.
A document that takes longer or more memory than allowed is refused, and the process replaced.
Documents are read one after the other.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self
from zipimport import zipimporter

import larmspider
from larmspider import options
from larmspider.errors import ConfigError, LarmspiderError
from larmspider.extraction.formats import extractor_for
from larmspider.extraction.markup_guard import is_large
from larmspider.extraction.own_fields import NONE as NO_FIELDS
from larmspider.extraction.own_fields import OwnFields
from larmspider.extraction.process_child import (
    FIELDS,
    NONE,
    PART_FIELDS,
    PDF,
    Helpers,
    receive,
    send,
)
from larmspider.items import Link, Outcome, Page, Part
from larmspider.urls.media_types import is_read_apart
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from larmspider.options import Settings


logger = logging.getLogger(__name__)


def archive() -> str | None:
    """The zip file (an egg) that this package was imported from, as in sys.path; None for a
    folder."""
    spec = larmspider.__spec__
    loader = spec.loader if spec is not None else None
    return loader.archive if isinstance(loader, zipimporter) else None


def origin() -> Path:
    """The folder or zip file that this package was imported from."""
    return Path(archive() or next(iter(larmspider.__path__))).absolute()


def shadowed() -> str | None:
    """An egg on sys.path that does not run, because this package is installed besides."""
    eggs = [entry for entry in sys.path if entry.endswith(".egg")]
    return eggs[0] if eggs and archive() is None else None


class ChildPath:
    """``entries`` for sys.path of a child, to which the files ``fds`` are passed on (POSIX).

    An egg may be deleted or replaced while a job runs from it (delversion.json, addversion.json).
    The child reads a copy: an open file without a name, gone with the last process that has it.
    """

    def __init__(self) -> None:
        self.entries = list(sys.path)
        self.fds: tuple[int, ...] = ()
        self._copy: IO[bytes] | None = None
        egg = archive()
        if egg is not None and Path("/dev/fd").exists():
            self._copy = tempfile.TemporaryFile(prefix="larmspider-")  # noqa: SIM115 - see close()
            with Path(egg).open("rb") as file:
                shutil.copyfileobj(file, self._copy)
            self._copy.flush()
            self.fds = (self._copy.fileno(),)
            copy = f"/dev/fd/{self.fds[0]}"
            self.entries = [copy if entry == egg else entry for entry in self.entries]

    def close(self) -> None:
        """May be called twice. A child under way keeps its file."""
        self.fds = ()
        if self._copy is not None:
            self._copy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


WALL = 6
"""Times the seconds of CPU, by the clock: the machine may be busy."""
_SIGPROF = getattr(signal, "SIGPROF", 0)
_PROGRAM = (
    "from larmspider.extraction.process_child import Helpers, main;"
    " main({memory_bytes}, {most}, {helpers!r}, {fields!r})"
)
RECYCLED = 200
"""Documents that a process reads before another one takes its place: libraries may leak."""


class ExtractionRefused(LarmspiderError):  # noqa: N818 - a decision, not a fault
    """A document needs more time or memory than allowed, as the message says: as in
    ``Page.unread``."""


class ExtractionStopped(LarmspiderError):  # noqa: N818 - nothing is wrong with the document
    """The crawl ends before a document is read; when it is continued it fetches it again."""


class HelperProcess:
    """A process of our own modules that answers messages, one after the other; for a thread that
    may wait (`pool`). It is started for the first message."""

    def __init__(self, program: str, name: str) -> None:
        """``program`` is what Python runs there, ``name`` that of the thread."""
        self._program = program
        self.pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._path = ChildPath()
        self._child: subprocess.Popen[bytes] | None = None
        self.status: int | None = None
        """That of the last process which ended before it had answered."""
        self.closed = False

    def ask(self, message: Any, body: bytes = b"") -> Any:
        """The answer to ``message``, which ``body`` follows. Raises EOFError or OSError where the
        process ends first; the next message has another one. Raises ExtractionStopped."""
        child = self.started()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            with suppress(BrokenPipeError):  # the child may have written the reason
                send(child.stdin, message)
                child.stdin.write(body)
                child.stdin.flush()
            return receive(child.stdout)
        except (EOFError, OSError):
            self.status = self.end()
            raise

    def close(self) -> None:
        """End the process; messages under way are dropped. May be called twice."""
        self.closed = True
        self.kill()
        self.pool.shutdown(wait=True)  # calls that wait end at once
        self.end()
        self._path.close()

    def kill(self) -> None:
        """For another thread: `ask` raises."""
        if (child := self._child) is not None:
            child.kill()

    def started(self) -> subprocess.Popen[bytes]:
        """The process. Raises ExtractionStopped."""
        if self._child is not None and self._child.poll() is not None:
            self.end()
        if self._child is None and not self.closed:
            start = f"import sys; sys.path[:] = {self._path.entries!r}; {self._program}"
            self._child = subprocess.Popen(  # noqa: S603 - our own module, by this interpreter
                [sys.executable, "-W", "ignore", "-c", start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=self._path.fds,
                process_group=0,  # signals to the crawl's group are for the crawl
            )
        if self._child is None or self.closed:  # perhaps meanwhile: close() saw nothing to kill
            self.end()
            raise ExtractionStopped("the crawl is being stopped")
        return self._child

    def end(self) -> int | None:
        """End the process, if it has not ended; its exit status."""
        child, self._child = self._child, None
        if child is None:
            return None
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):  # unwritten data
                    pipe.close()
        return child.wait()


class ExtractionProcess(HelperProcess):
    """``seconds`` of CPU and ``memory_bytes`` limit one document on POSIX, WALL times the seconds
    by the clock everywhere."""

    def __init__(
        self,
        seconds: float,
        memory_bytes: int,
        most: int = 0,
        helpers: Helpers = NONE,
        fields: OwnFields = NO_FIELDS,
    ) -> None:
        """``most``: documents that one process reads, without a network; 0: no limit."""
        program = _PROGRAM.format(
            memory_bytes=memory_bytes, most=most, helpers=helpers, fields=fields.rules
        )
        super().__init__(program, "extraction")
        self.seconds, self.helpers = seconds, helpers

    async def read(self, mime: str, body: bytes, url: str, content_type: str) -> Page:
        """The Page that the extractor of ``mime`` makes of ``body``. Raises ExtractionRefused,
        ExtractionStopped."""
        if self.closed:
            raise ExtractionStopped("the crawl is being stopped")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, self.read_now, mime, body, url, content_type)

    def read_now(self, mime: str, body: bytes, url: str, content_type: str) -> Page:
        """`read` for a thread that may wait, one at a time."""
        answer = self._answer((mime, len(body), url, content_type, self.seconds, ""), body)
        page = Page(url, body=body)
        for name in FIELDS:
            setattr(page, name, answer[name])
        page.links = [
            Link(target, None, kind, anchor, nofollow)
            for target, kind, anchor, nofollow in answer["links"]
        ]
        page.parts = [Part(**dict(zip(PART_FIELDS, part, strict=True))) for part in answer["parts"]]
        return page

    def member(self, mime: str, body: bytes, url: str, name: str) -> bytes:
        """The bytes of one part of a document. Raises ExtractionRefused."""
        answer = self._answer((mime, len(body), url, "", self.seconds, name), body)
        found: bytes = answer["member"]
        return found

    def _answer(self, request: tuple[str, int, str, str, float, str], body: bytes) -> Any:
        self.started()
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(self.seconds * WALL, stop)
        timer.start()
        try:
            answer = self.ask(request, body)
        except (EOFError, OSError):
            raise self._failure(late.is_set()) from None
        finally:
            timer.cancel()
        if "ended" in answer:
            self.end()
        if "refused" in answer:
            raise ExtractionRefused(answer["refused"])
        return answer

    def _failure(self, was_late: bool) -> LarmspiderError:
        if self.closed:
            return ExtractionStopped("the crawl is being stopped")
        if was_late or self.status == -_SIGPROF:
            return ExtractionRefused(f"{Outcome.TOO_LONG}: takes longer than {self.seconds:g} s")
        return ExtractionRefused(
            f"{Outcome.READER_DIED}: ended the extraction process with status {self.status}"
        )


def helpers_from_settings(settings: Settings) -> Helpers:
    """LARM_SECOND_READER, LARM_OCR and LARM_OCR_SECS. Raises ConfigError for what is not there."""
    second = options.choice(settings, "LARM_SECOND_READER", ("", "tika"))
    if second and find_spec("iscc_tika") is None:
        raise ConfigError(
            "LARM_SECOND_READER=tika: iscc-tika is not installed; pip install 'larmspider[tika]'"
        )
    secs = options.seconds(settings, "LARM_OCR_SECS", minimum=1, maximum=86_400)
    if languages := str(settings.get("LARM_OCR") or ""):
        _check_tesseract(languages)
    return Helpers(second, languages, secs if languages else 0.0)


def _check_tesseract(languages: str) -> None:
    program = shutil.which("tesseract")
    if program is None:
        raise ConfigError(f"LARM_OCR={languages}: tesseract is not installed (tesseract-ocr)")
    listed = subprocess.run(  # noqa: S603 - the program of the system, no shell
        [program, "--list-langs"], capture_output=True, text=True, check=False, timeout=60
    )
    known = (listed.stdout + listed.stderr).splitlines()[1:]
    for name in languages.split("+"):
        if name not in known:
            raise ConfigError(
                f"LARM_OCR={languages}: expected languages of tesseract ({', '.join(known)})"
                f" with + between them; {name or 'an empty one'} is not installed"
                f" (tesseract-ocr-{name or 'deu'})"
            )


class Readers:
    """A process for large pages and one for documents, each started when it is needed."""

    def __init__(
        self,
        page_secs: float = 10.0,
        page_bytes: int = 1 << 30,
        document_secs: float = 30.0,
        document_bytes: int = 1 << 30,
        helpers: Helpers = NONE,
        fields: OwnFields = NO_FIELDS,
    ) -> None:
        self.fields = fields
        self.pages = ExtractionProcess(page_secs, page_bytes, fields=fields)
        first = helpers._replace(ocr="")
        self.documents = ExtractionProcess(document_secs, document_bytes, RECYCLED, first)
        # scans take minutes, so they have a queue of their own, and the lowest priority
        secs = document_secs + helpers.ocr_secs
        self.scans = ExtractionProcess(secs, document_bytes, RECYCLED, helpers)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises ConfigError for a limit that cannot be."""
        return cls(
            options.seconds(settings, "LARM_EXTRACTION_SECS", minimum=0.1, maximum=86_400),
            options.integer(settings, "LARM_EXTRACTION_BYTES", minimum=1 << 26),
            options.seconds(settings, "LARM_DOCUMENT_SECS", minimum=0.1, maximum=86_400),
            options.integer(settings, "LARM_DOCUMENT_BYTES", minimum=1 << 26),
            helpers_from_settings(settings),
            OwnFields.from_settings(settings),
        )

    def is_apart(self, mime: str, body: bytes, url: str) -> bool:
        """Whether a body is read in another process."""
        return is_read_apart(mime) or is_large(body) or self.fields.are_on(mime, url)

    async def read(self, mime: str, body: bytes, url: str, content_type: str) -> Page:
        """The Page of a document or a large page. Raises ExtractionRefused, ExtractionStopped."""
        process = self.documents if is_read_apart(mime) else self.pages
        try:
            page = await process.read(mime, body, url, content_type)
        except ExtractionRefused as refused:
            page = self._without_fields(refused, mime, body, url, content_type)
        if self._has_scans(mime, page):
            try:
                return await self.scans.read(mime, body, url, content_type)
            except ExtractionRefused as refused:  # what was typed is worth having
                page.unread = str(refused)
        return page

    def _without_fields(
        self, refused: ExtractionRefused, mime: str, body: bytes, url: str, content_type: str
    ) -> Page:
        """A selector that takes too long costs a page its own fields alone, if it is not large."""
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
        if not self.scans.helpers.ocr or not pdfs:
            return False
        from larmspider.extraction.documents.ocr import is_wanted

        return any(map(is_wanted, pdfs))

    def read_again(self, mime: str, body: bytes, url: str, charset: str = "") -> Page:
        """The Page of any stored body, in a thread that may wait; without text and links where it
        cannot be read. ``charset``: that of the Content-Type header, if known."""
        extract = extractor_for(mime)
        if extract is None:
            return Page(url, body=body)
        header = f"{mime}; charset={charset}" if charset else ""
        try:
            if is_read_apart(mime):
                page = self.documents.read_now(mime, body, url, header)
                if self._has_scans(mime, page):
                    try:
                        return self.scans.read_now(mime, body, url, header)
                    except ExtractionRefused as refused:
                        page.unread = str(refused)
                return page
            if not self.is_apart(mime, body, url):
                return extract(body, url, header)
            try:
                return self.pages.read_now(mime, body, url, header)
            except ExtractionRefused as refused:
                return self._without_fields(refused, mime, body, url, header)
        except ExtractionRefused as refused:
            return Page(url, body=body, unread=str(refused))

    def close(self) -> None:
        """May be called twice."""
        for process in (self.pages, self.documents, self.scans):
            process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
