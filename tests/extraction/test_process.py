"""Large documents are read in another process, which may be stopped or may end."""

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.extraction.formats import media_type
from larmspider.extraction.pages import html
from larmspider.extraction.pages.markup_guard import MAX_BYTES, MAX_TAGS, is_large
from larmspider.extraction.processes.helper_child import packed, receive, send
from larmspider.extraction.processes.helper_process import HelperProcess
from larmspider.extraction.processes.process import (
    ExtractionProcess,
    ExtractionRefused,
    ExtractionStopped,
)
from larmspider.items import Page
from tests.support.documents.hostile import ole_of_many_entries

MEMORY = 1 << 30
BODY = (
    b"<html lang=de><title>T</title><meta name=description content=d>"
    b"<link rel=canonical href=/c><meta name=robots content=noindex>"
    b"<a href=/x rel=nofollow>caf\xc3\xa9</a><iframe src=/f></iframe>\xed\xa0\x80 text"
)
NESTED = b"<i>" * 20_000 + b"</u>" * 1_000_000  # seconds


@pytest.fixture
def reader() -> Iterator[ExtractionProcess]:
    reader = ExtractionProcess(30, MEMORY)
    yield reader
    reader.close()


def read(reader: ExtractionProcess, body: bytes, mime: str = "text/html"):
    return asyncio.run(reader.read(mime, body, "http://h/x", mime))


def test_finds_what_the_crawl_itself_would_find(reader):
    """Every field, and the types of its values."""
    assert read(reader, BODY) == html.extract(BODY, "http://h/x", "text/html")


def test_the_reader_says_what_a_container_is(reader):
    """By what it holds, which the crawl does not look at; of others it says nothing new."""
    body = ole_of_many_entries(2_000)
    assert read(reader, body, media_type("", body)).mime == "application/msword"
    assert read(reader, body, "application/msword").mime == ""
    assert read(reader, b"a,b", "text/csv").mime == ""


def test_one_process_reads_one_document_after_the_other(reader):
    async def both():
        return await asyncio.gather(
            *(reader.read("text/plain", text, "http://h/", "") for text in (b"a", b"b"))
        )

    assert [page.text for page in asyncio.run(both())] == ["a", "b"]
    child = reader.child.pid
    read(reader, BODY)
    assert reader.child.pid == child
    limits = Path(f"/proc/{child}/limits")
    if limits.exists():
        assert re.search(r"^Max processes +0 +0 ", limits.read_text(), re.MULTILINE)


def test_a_document_that_takes_too_long_is_refused_and_the_next_one_read():
    reader = ExtractionProcess(0.3, MEMORY)
    try:
        with pytest.raises(ExtractionRefused, match=r"takes longer than 0\.3 s"):
            read(reader, NESTED)
        reader.seconds = 30
        assert read(reader, BODY).title == "T"
    finally:
        reader.close()


def test_a_document_that_takes_too_much_memory_is_refused(capfd):
    """The limit is for all that the process holds: 64 MB do not hold 16 MB as text and as tree."""
    small = ExtractionProcess(30, 1 << 26)
    try:
        with pytest.raises(ExtractionRefused, match=r"memory|status"):
            read(small, b"<p>x" * (4 << 20))
        assert read(small, BODY).title == "T"
        for _ in range(3):
            with pytest.raises(ExtractionRefused, match="memory"):
                read(small, b"x" * (48 << 20))
            assert read(small, b"<title>T" + b"x" * (1 << 20)).title
        assert "Traceback" not in capfd.readouterr().err
    finally:
        small.close()


def read_and(reader: ExtractionProcess, body: bytes, then: Callable[[], object]) -> Page:
    """What ``then`` does happens once the document is under way."""

    async def both() -> Page:
        reading = asyncio.ensure_future(reader.read("text/html", body, "http://h/", ""))
        await asyncio.sleep(0.3)
        then()
        return await reading

    return asyncio.run(both())


def test_a_process_that_dies_is_replaced(reader):
    read(reader, BODY)
    with pytest.raises(ExtractionRefused, match="status -11"):
        read_and(reader, NESTED, lambda: os.kill(reader.child.pid, signal.SIGSEGV))
    assert read(reader, BODY).title == "T"


def test_a_process_that_dies_with_nothing_to_do_costs_no_document(reader):
    """The system may take its memory back at any time."""
    read(reader, BODY)
    os.kill(reader.child.pid, signal.SIGKILL)
    reader.child.wait()
    assert read(reader, BODY).title == "T"


def test_what_is_sent_to_the_whole_crawl_does_not_reach_it(reader):
    """Ctrl-C, and what systemd and timeout send to each process: a page would be stored unread."""
    read(reader, BODY)
    assert os.getpgid(reader.child.pid) != os.getpgrp()
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(reader.child.pid, number)
    time.sleep(0.1)
    assert reader.child.poll() is None


def test_an_answer_that_is_cut_is_none():
    pipe = io.BytesIO()
    send(pipe, ["x" * 100])
    for size in (0, 3, 4, 50):
        with pytest.raises(EOFError):
            receive(io.BytesIO(pipe.getvalue()[:size]))


def test_closing_ends_the_process_and_what_it_reads():
    """Documents that wait for it too, and nothing is said against any of them."""
    reader = ExtractionProcess(60, MEMORY)

    async def close_meanwhile():
        reading = [
            asyncio.ensure_future(reader.read("text/html", NESTED, "http://h/", ""))
            for _ in range(3)
        ]
        while reader.child is None:
            await asyncio.sleep(0.01)
        reader.close()
        for one in reading:
            with pytest.raises(ExtractionStopped):
                await one
        reader.close()

    asyncio.run(close_meanwhile())
    assert reader.child is None


def test_closing_ends_a_process_that_is_just_being_started(monkeypatch):
    """Else the crawl would wait for its document: WALL times the seconds, at worst."""
    reader, popen = ExtractionProcess(60, MEMORY), subprocess.Popen
    closing = threading.Thread(target=reader.close)

    def slow(*args, **options):
        closing.start()
        while not reader.closed:
            time.sleep(0.001)
        return popen(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", slow)
    with pytest.raises(ExtractionStopped):
        read(reader, NESTED)
    closing.join()
    assert reader.child is None


@pytest.mark.parametrize(
    ("body", "large"),
    [
        (b"x" * MAX_BYTES, False),
        (b"x" * (MAX_BYTES + 1), True),
        (b"<b>" * MAX_TAGS, False),
        (b"<b>" * (MAX_TAGS + 1), True),
        (b"<" * (MAX_TAGS + 1), False),
    ],
    ids=["bytes", "more bytes", "tags", "more tags", "no tags"],
)
def test_what_is_large(body, large):
    assert is_large(body) is large


FAULTS = """
import ctypes, resource, sys
from larmspider.extraction.processes.helper_child import keep_memory
if sys.argv[1] == "kept":
    assert keep_memory()
else:  # as glibc has it, which else asks for more once a large buffer was freed
    ctypes.CDLL(None).mallopt(-3, 128 * 1024)
for number in range(40):
    if number == 20:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    buffers = [bytearray(1 << 20) for _ in range(4)]
    del buffers
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
def test_memory_of_a_page_stays_for_the_next_one():
    faults = {}
    for way in ("kept", "given back"):
        ran = subprocess.run(
            [sys.executable, "-c", FAULTS, way], capture_output=True, text=True, check=True
        )
        faults[way] = int(ran.stdout)
    assert faults["kept"] < 100
    assert faults["given back"] > 1_000


def test_a_text_that_is_sent_keeps_its_size():
    """Texts wait in the crawl for the index: with their UTF-8 they have three times as many bytes.
    The UTF-8 of an answer does not stay."""
    text = "ü" * 1_000
    size = sys.getsizeof(text)
    packed([text])
    assert sys.getsizeof(text) == size
    sent = io.BytesIO()
    for message in ([text], [text, "\ud800"]):
        send(sent, message)
    sent.seek(0)
    assert [receive(sent), receive(sent)] == [[text], [text, "\ud800"]]


TELL = """
import os, sys
from larmspider.extraction.processes.helper_child import receive, send
send(sys.stdout.buffer, os.environ.get(receive(sys.stdin.buffer)))
sys.stdout.buffer.flush()
"""


@pytest.mark.parametrize(
    ("own", "passed_on"),
    [
        (None, "glibc.malloc.hugetlb=1"),
        ("glibc.malloc.hugetlb=0", "glibc.malloc.hugetlb=1:glibc.malloc.hugetlb=0"),
    ],
    ids=["none", "the user's"],
)
def test_glibc_asks_for_huge_pages_unless_the_user_says_otherwise(monkeypatch, own, passed_on):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if own:
        monkeypatch.setenv("GLIBC_TUNABLES", own)
    helper = HelperProcess(TELL, "told")
    try:
        assert helper.ask("GLIBC_TUNABLES") == passed_on
    finally:
        helper.close()


STARTER = """
import subprocess, sys
from larmspider.extraction.processes.helper_child import receive, send
receive(sys.stdin.buffer)
send(sys.stdout.buffer, subprocess.Popen(["sleep", "600"]).pid)
sys.stdout.buffer.flush()
receive(sys.stdin.buffer)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="POSIX")
def test_a_process_that_is_ended_takes_along_what_it_has_started():
    """Tesseract would continue with its page, beside the next reader."""
    helper = HelperProcess(STARTER, "starts")
    try:
        started = helper.ask("")
        helper.end()
        ends = time.monotonic() + 60
        while is_running(started) and time.monotonic() < ends:
            time.sleep(0.01)
        assert not is_running(started)
    finally:
        helper.close()


def is_running(pid: int) -> bool:
    """Zombies are not: init may not have waited for them yet."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
