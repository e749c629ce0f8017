"""A process that reads documents or pages (process.py, page_process.py); no part of the crawl runs
here.

Standard input has requests, each followed by the body, standard output has answers
(helper_child.py).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import astuple
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from larmspider import plugin
from larmspider.extraction.body_type import is_container, is_signed, without_junk
from larmspider.extraction.formats import column_extractor_for, extractor_for, without_text
from larmspider.extraction.processes import progress
from larmspider.extraction.processes.helper_child import keep_memory, receive, send
from larmspider.items import Link, Outcome, Page, Part, Section
from larmspider.urls.media_types import is_read_apart

if TYPE_CHECKING:
    from larmspider.extraction.pages.own_fields import OwnFields, Rules

FIELDS = ("charset", "title", "text", "description", "language", "canonical", "noindex", "nofollow",
          "moved", "author", "modified", "unread", "fields", "core", "contents")  # fmt: skip
"""The fields of a Page that extraction sets, and that need no conversion."""
COLUMNS = ("url", "type", "anchor", "nofollow")
"""The fields of a Link that extraction sets."""
_GARBAGE = 50_000
"""New objects after which garbage is looked for where pages are read, which leave none."""
_FILE_BYTES = 64_000_000
_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000  # CLONE_NEWNET, CLONE_NEWUSER of sched.h


PDF = "application/pdf"


class Helpers(NamedTuple):
    """Readers to try where the first reader finds no text, from the settings of these names."""

    second_reader: str = ""
    ocr: str = ""
    ocr_secs: float = 0.0


NONE = Helpers()


def answer_of(page: Page, columns: Sequence[Sequence[Any]] | None = None) -> list[Any]:
    """The extracted fields of ``page``, for `page_of`. Links are ``columns``, by default the page's
    own links: the crawl's thread creates them faster from four lists than from one list each."""
    links = page.links
    return [
        *(getattr(page, name) for name in FIELDS),
        page.rest,
        page.sections,
        list(map(astuple, page.parts)),
        *(columns or ([getattr(link, name) for link in links] for name in COLUMNS)),
    ]


def page_of(answer: list[Any], url: str, body: bytes) -> Page:
    """The Page that an answer of `answer_of` describes."""
    page = Page(url, body=body)
    for name, value in zip(FIELDS, answer, strict=False):
        setattr(page, name, value)
    rest, sections, parts, urls, types, anchors, nofollows = answer[len(FIELDS) :]
    page.rest = [(start, end) for start, end in rest]
    page.sections = list(map(Section._make, sections))
    page.parts = [Part(*part) for part in parts]
    page.links = list(map(Link, urls, repeat(None), types, anchors, nofollows))
    return page


def _read(
    mime: str, body: bytes, url: str, content_type: str, helpers: Helpers, own: OwnFields | None
) -> dict[str, Any]:
    columns = None
    said, mime = mime, _final_type(mime, body, url)
    if mime != said:
        progress.media_type(mime)
    if extract := column_extractor_for(mime):
        page, columns = extract(body, url, content_type)
    else:
        page = _page(mime, body, url, content_type, helpers)
    if own is not None and own.are_on(mime, url):
        page.fields = own.of_page(body, url, content_type)
    return {"page": answer_of(page, columns), "mime": "" if mime == said else mime}


def _final_type(mime: str, body: bytes, url: str) -> str:
    """The media type by the content of a container, which the crawl's process does not open."""
    if not is_read_apart(mime) or not is_container(body):
        return mime
    from larmspider.extraction.documents.containers import document_type

    return document_type(body, url, mime)


def _page(mime: str, body: bytes, url: str, content_type: str, helpers: Helpers) -> Page:
    if not is_read_apart(mime):
        extract = extractor_for(mime)
        if extract is None:
            return Page(url, unread=without_text(mime))
        return extract(body, url, content_type)
    if not body:
        return Page(url, unread=without_text(mime, is_empty=True))
    from larmspider.extraction.documents import ole_damage, parts

    if is_signed(mime):
        body = without_junk(body)
    ends = time.monotonic() + helpers.ocr_secs

    def helped(mime: str, body: bytes, page: Page) -> Page:
        return _helped(mime, body, page, helpers, ends)

    def read() -> Page:
        return parts.read(mime, body, url, content_type, helped)

    page = helped(mime, body, _by(read, url, mime))
    ole_damage.mark(body, page)
    return page


def _by(read: Callable[[], Page], url: str, mime: str) -> Page:
    from larmspider.extraction.documents.reading import Unread

    try:
        page = read()
    except Unread as refused:
        page = refused.page or Page(url)
        page.unread = refused.unread
    if not page.text and not page.unread:
        page.unread = without_text(mime)
    return page


def _helped(mime: str, body: bytes, page: Page, helpers: Helpers, ends: float) -> Page:
    """``page``, or the second reader's Page, with the text of scans that were read until ``ends``,
    a time of time.monotonic()."""
    if helpers.second_reader:
        from larmspider.extraction.documents import tika

        page = tika.helped(mime, body, page)
    if helpers.ocr and mime == PDF:
        ocr = plugin.load("ocr.tesseract")
        if ocr.is_wanted(page):
            ocr.read_scans(body, page, helpers.ocr, ends)
    return page


def _member(mime: str, body: bytes, url: str, name: str) -> dict[str, Any]:
    from larmspider.extraction.documents import parts
    from larmspider.extraction.documents.reading import Unread

    mime = _final_type(mime, body, url)
    if is_signed(mime):
        body = without_junk(body)
    try:
        return {"member": parts.member(mime, body, parts.file_name(url), name)}
    except KeyError:
        return {"refused": f"it holds no {name}"}
    except Unread as refused:
        return {"refused": refused.unread}


def _picture(mime: str, body: bytes, width: int) -> dict[str, Any]:
    from larmspider.extraction.documents import pictures
    from larmspider.extraction.documents.reading import Unread

    try:
        return {"picture": pictures.picture(mime, body, width)}
    except Unread as refused:
        return {"refused": refused.unread}


def main(
    memory_bytes: int,
    most: int = 0,
    helpers: Helpers = NONE,
    fields: Rules | None = None,
    notes: int = -1,
) -> None:
    """Read documents until the input ends; more than ``memory_bytes`` for one is an error.

    ``most``: end after this number of documents, and have no network; 0: neither. ``fields``: as in
    OwnFields. ``notes``: the file for the text read so far (progress.py), -1 for none."""
    _ignore_signals()
    if most:
        _leave_network()
    _limit(memory_bytes, helpers)
    if helpers.ocr and hasattr(os, "nice"):
        os.nice(19)
    if not most:
        keep_memory()
        gc.freeze()
        gc.set_threshold(_GARBAGE)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    own = _own_fields(fields) if fields else None
    done = 0
    with suppress(EOFError, BrokenPipeError):
        answer: dict[str, Any] = {}
        while "ended" not in answer:
            request = receive(source)
            try:
                # wanted: the name of a member, the width of a picture, or "" for the Page
                mime, size, url, content_type, seconds, wanted = request
                body = source.read(size)
                progress.begin(notes)
                _limit_time(seconds)
                if isinstance(wanted, int):
                    answer = _picture(mime, body, wanted)
                elif wanted:
                    answer = _member(mime, body, url, wanted)
                else:
                    within = helpers._replace(ocr_secs=min(helpers.ocr_secs, seconds))
                    answer = _read(mime, body, url, content_type, within, own)
                _limit_time(0)
            except MemoryError:
                # the body may not have been read whole, and not all memory is given back
                why = f"{Outcome.TOO_LARGE}: needs more than {memory_bytes} bytes of memory"
                answer = {"refused": why, "ended": 1, "exhausted": 1}
            except Exception as error:  # noqa: BLE001 - the crawl logs it
                answer = {"refused": f"{Outcome.READER_DIED}: raised {error!r}"[:500]}
            done += 1
            if done == most or _is_heavy(helpers):
                answer["ended"] = 1
            answer["cpu"] = sum(os.times()[:4])  # including its child processes
            send(sink, answer)
            sink.flush()


def _is_heavy(helpers: Helpers) -> bool:
    """Whether Tika keeps so much memory that another process should go on."""
    if not helpers.second_reader:
        return False
    from larmspider.extraction.documents import tika

    return tika.is_heavy()


def _own_fields(rules: Rules) -> OwnFields:
    import parsel  # noqa: F401 - takes 0.2 s, which no page should pay

    from larmspider.extraction.pages.own_fields import OwnFields

    return OwnFields(rules)


def _leave_network() -> None:
    """Move to a network without interfaces, where the system lets this user: no reader fetches
    anything, and none could."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            libc = ctypes.CDLL(None)
            if libc.unshare(_NEW_NETWORK) != 0:
                libc.unshare(_NEW_USER | _NEW_NETWORK)


def _ignore_signals() -> None:
    """Signals that stop a crawl may be sent to all of its processes; the crawl ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _limit_time(seconds: float) -> None:
    """Seconds of CPU, after which SIGPROF ends this process; 0: no limit. Not on Windows."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit(memory_bytes: int, helpers: Helpers) -> None:
    """Limit the number of processes and threads. Only Tesseract (a process) and Tika (threads, from
    its start on) need some. Root is not limited."""
    try:
        import resource
    except ImportError:  # no POSIX
        return
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not helpers.ocr:
        most = resource.getrlimit(resource.RLIMIT_NPROC)[1] if helpers.second_reader else 0
        resource.setrlimit(resource.RLIMIT_NPROC, (0, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
