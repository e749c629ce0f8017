"""Pages of ordinary size are extracted beside the crawl, as the crawl itself would."""

import asyncio
import os
import signal
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from larmspider.extraction.pages import html
from larmspider.extraction.processes import page_process
from larmspider.extraction.processes.helper_process import ExtractionStopped
from larmspider.extraction.processes.page_process import AUTO, LEAST_BYTES, OFF, ON, SAMPLE, WAITING
from larmspider.extraction.processes.page_process import PageProcess as Process
from larmspider.extraction.processes.process import ExtractionRefused, Readers
from larmspider.items import Page

T = TypeVar("T")
MEMORY = 1 << 30
FILLED = b"<!-- " + b"x" * LEAST_BYTES + b" -->"
BODY = FILLED + (
    b"<html lang=de><title>T</title><meta name=description content=d><nav>menu</nav>"
    b'<main><h2 id=first>One</h2><div class="toc">1. One</div>'
    + b"a long text "
    * 30
    + b"<h2 id=second>Two</h2></main>"
    b"<a href=/x rel=nofollow>caf\xc3\xa9</a><iframe src=/f></iframe>\xed\xa0\x80 text"
)
NESTED = b"<i>" * 20_000 + b"</u>" * 1_000_000  # seconds
NOBODY = "import sys; sys.stdin.buffer.read(1)"
"""A process that ends with its first page."""


@pytest.fixture
def process() -> Process:
    """Closed by `run`, as long as there is an event loop."""
    return Process(30, MEMORY, ON)


def run(process: Process, work: Coroutine[Any, Any, T]) -> T:
    async def closed_behind() -> T:
        try:
            return await work
        finally:
            process.close()
            await asyncio.sleep(0.01)

    return asyncio.run(closed_behind())


async def read(process: Process, body: bytes = BODY, mime: str = "text/html") -> Page | None:
    assert process.takes(body)
    return await process.read(mime, body, "http://h/x", mime)


def test_finds_what_the_crawl_itself_would_find(process: Process) -> None:
    """Every field, and the types of its values."""
    page = run(process, read(process))
    own = html.extract(BODY, "http://h/x", "text/html")
    assert own.rest
    assert own.contents
    assert len(own.sections) == 2
    assert page == own


def test_several_pages_are_under_way_and_no_more(process: Process) -> None:
    async def all_at_once() -> list[Page | None]:
        reading = []
        for number in range(WAITING):
            text = b"page %d " % number + FILLED
            reading.append(asyncio.ensure_future(read(process, text, "text/plain")))
            await asyncio.sleep(0)
        assert not process.takes(BODY)
        pages = await asyncio.gather(*reading)
        assert process.takes(BODY)
        return pages

    pages = run(process, all_at_once())
    assert [page and page.text.split()[1] for page in pages] == [*map(str, range(WAITING))]


def test_what_is_small_is_not_worth_it(process: Process) -> None:
    assert not process.takes(BODY[: LEAST_BYTES - 1])


def test_an_extractor_that_raises_does_so_in_the_crawl(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log says what; the process goes on."""

    async def refused(*_: object) -> dict[str, str]:
        return {"refused": "raised"}

    def broken(*_: object) -> Page:
        raise ValueError("a bug")

    async def both() -> None:
        await read(process)
        monkeypatch.setattr(process._answers, "ask", refused)
        monkeypatch.setattr(page_process, "extractor_for", lambda mime: broken)
        with pytest.raises(ValueError, match="a bug"):
            await read(process)

    run(process, both())


def test_a_process_that_dies_is_replaced(process: Process) -> None:
    """The page that it had is read by the rules of large pages (Readers)."""

    async def killed() -> list[str]:
        titles = []
        for _ in range(2):
            page = await read(process)
            assert page is not None
            titles.append(page.title)
            assert process.child is not None
            os.kill(process.child.pid, signal.SIGKILL)
            process.child.wait()
            assert await read(process) is None
        return titles

    assert run(process, killed()) == ["T", "T"]


def test_nothing_more_is_written_to_a_process_that_died(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    """Or asyncio would say so in the crawl's log."""

    async def killed() -> list[Page | None]:
        await read(process)
        assert process.child is not None
        process.child.kill()
        process.child.wait()
        return await asyncio.gather(*(read(process) for _ in range(WAITING)))

    assert run(process, killed())[0] is None
    assert caplog.text == ""


def test_processes_that_end_with_each_page_are_given_up(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    process._program = NOBODY

    async def tried() -> None:
        for _ in range(3):
            assert await read(process) is None
        assert not process.takes(BODY)

    run(process, tried())
    assert "the process beside it ends" in caplog.text


def test_a_page_that_takes_too_long_is_refused_and_those_behind_it_are_read() -> None:
    """By the seconds of CPU of large pages; nothing else is lost with the process."""
    with Readers(0.3, MEMORY, beside=ON) as readers:

        async def both() -> list[Page | BaseException]:
            reading = []
            for body in (NESTED, BODY):
                assert readers.beside.takes(body)
                one = readers.read_beside("text/html", body, "http://h/x", "text/html")
                reading.append(asyncio.ensure_future(one))
                await asyncio.sleep(0)
            return await asyncio.gather(*reading, return_exceptions=True)

        refused, read = run(readers.beside, both())
    assert isinstance(refused, ExtractionRefused)
    assert "takes longer than 0.3 s" in str(refused)
    assert isinstance(read, Page)
    assert read.title == "T"


def test_a_process_that_gives_no_answer_is_ended(process: Process) -> None:
    """One that is stopped takes no CPU."""

    async def stopped() -> None:
        await read(process)
        assert process.child is not None
        process.child.send_signal(signal.SIGSTOP)
        process.seconds = 0.01
        assert await read(process) is None
        process.seconds = 30
        page = await read(process)
        assert page is not None
        assert page.title == "T"

    run(process, stopped())


def test_a_new_process_is_started_behind_the_end_of_the_old_one(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes: the new one is not ended in its place."""
    end, ended = process.end, []

    def slow_end() -> int | None:
        ended.append(process.child)
        time.sleep(0.2 if len(ended) == 1 else 0)
        return end()

    async def killed() -> Page | None:
        await read(process)
        assert process.child is not None
        process.child.kill()
        process.child.wait()
        monkeypatch.setattr(process, "end", slow_end)
        late = asyncio.ensure_future(read(process))
        while process._opening is not None:
            await asyncio.sleep(0.001)
        page = await read(process)
        assert await late is None
        return page

    page = run(process, killed())
    assert page is not None
    assert page.title == "T"


def test_closing_ends_the_process_and_what_it_reads(process: Process) -> None:
    async def close_meanwhile() -> None:
        await read(process)
        reading = [asyncio.ensure_future(read(process, NESTED)) for _ in range(3)]
        await asyncio.sleep(0.1)
        process.close()
        for one in reading:
            with pytest.raises(ExtractionStopped):
                await one
        process.close()

    run(process, close_meanwhile())
    assert process.child is None


@pytest.mark.parametrize(
    ("cores", "share", "mode", "starts"),
    [
        (2, 0.6, AUTO, True),
        (2, 0.4, AUTO, False),
        (1, 1.0, AUTO, False),
        (2, 1.0, OFF, False),
    ],
    ids=["busy", "polite", "one core", "off"],
)
def test_when_the_process_is_started(
    monkeypatch: pytest.MonkeyPatch, cores: int, share: float, mode: str, starts: bool
) -> None:
    """At the end of the first sample of pages, or never."""
    monkeypatch.setattr(page_process, "cores", lambda: cores)
    now = 0.0
    process = Process(30, MEMORY, mode, clock=lambda: now, used=lambda: share * now)

    async def crawled() -> None:
        nonlocal now
        for _ in range(SAMPLE + 1):
            assert not process.takes(BODY)
            now += 0.005
        assert process.takes(BODY) is starts

    run(process, crawled())
