"""Hosts share processes; the limit of a host whose documents fail shrinks."""

from __future__ import annotations

import asyncio
from collections import Counter
from math import inf

import pytest

from larmspider import stats
from larmspider.extraction.processes.backlog import Backlog
from larmspider.extraction.processes.helper_process import (
    ExtractionPostponed,
    ExtractionRefused,
    ExtractionStopped,
)
from larmspider.extraction.processes.process import ExtractionProcess, Readers
from larmspider.extraction.processes.reader_pool import PATIENCE, SHORTEST, ReaderPool, limit_of
from larmspider.items import Outcome, Page
from tests.support.documents import corpus

LIMIT = 32.0
HOSTILE, GOOD = "http://hostile.example/x.pdf", "http://good.example/x.pdf"
PDF = "application/pdf"


class Simulated:
    """A reader whose documents of hostile hosts take any time that they get."""

    def __init__(self) -> None:
        self.seconds, self.used = LIMIT, 0.0
        self.is_closed = False

    def read_now(
        self, mime: str, body: bytes, url: str, content_type: str, seconds: float | None = None
    ) -> Page:
        assert seconds is not None
        if b"late" in body:
            self.used = seconds
            why = f"{Outcome.TOO_LONG}: takes longer than {seconds:g} s"
            raise ExtractionRefused(why, is_costly=True)
        self.used = 0.1
        if b"raises" in body:
            raise ExtractionRefused(f"{Outcome.READER_DIED}: raised ValueError()")
        return Page(url, text="read")

    async def read(
        self, mime: str, body: bytes, url: str, content_type: str, seconds: float | None = None
    ) -> Page:
        await asyncio.sleep(0)
        if self.is_closed:
            raise ExtractionStopped("the crawl is being stopped")
        return self.read_now(mime, body, url, content_type, seconds)

    def close(self) -> None:
        self.is_closed = True


class Pool(ReaderPool[Simulated]):
    def __init__(self, places: int = 1, room: float = inf) -> None:
        backlog = Backlog(room, lambda _host, _held: None)
        super().__init__(Simulated, places, "LARM_DOCUMENT_SECS", None, backlog)
        self.counted: Counter[str] = Counter()
        self.sharing.count = lambda key: self.counted.update([key])
        self.order: list[str] = []

    async def tell(self, url: str, body: bytes) -> str:
        """The text of the page, or the reason that there is none; the URL goes to ``order``."""
        try:
            page = await self.read(PDF, body, url, "")
        except (ExtractionRefused, ExtractionPostponed) as error:
            said = str(error)
        else:
            said = page.text
        self.order.append(url)
        return said


def again(pool: Pool, *bodies: bytes, url: str = HOSTILE) -> list[str]:
    async def told() -> list[str]:
        return [await pool.tell(url, body) for body in bodies]

    return asyncio.run(told())


def test_the_limit_of_a_host_shrinks_after_some_failures_in_a_row_and_the_outcome_says_so() -> None:
    pool = Pool()
    said = again(pool, *[b"late"] * 9)
    limits = [float(one.split("longer than ")[1].split()[0]) for one in said]
    assert limits == [32, 32, 32, 16, 8, 4, 2, 2, 2]
    assert pool.counted == {stats.EXTRACTION_SHORTENED: 6}
    assert said[2] == "too-long: takes longer than 32 s"
    assert said[3] == (
        "too-long: takes longer than 16 s; the limit of its host is 16 s in place of 32"
        " (LARM_DOCUMENT_SECS), as 3 in a row took too long or too much memory, or ended their"
        " reader"
    )


def test_one_document_that_is_read_well_gives_the_limit_back() -> None:
    pool = Pool()
    said = again(pool, *[b"late"] * 5, b"good", b"late")
    assert said[-2:] == ["read", "too-long: takes longer than 32 s"]


def test_a_reader_that_raises_at_once_shrinks_nothing() -> None:
    pool = Pool()
    assert "longer than 32 s" in again(pool, *[b"raises"] * 9, b"late")[-1]


def test_other_hosts_keep_their_limit() -> None:
    pool = Pool()
    again(pool, *[b"late"] * 5)
    assert again(pool, b"late", url=GOOD) == ["too-long: takes longer than 32 s"]


def test_stored_documents_are_read_again_within_the_same_limits() -> None:
    """`scrapy reindex` reads them one after the other."""
    pool = Pool()
    for _ in range(PATIENCE):
        with pytest.raises(ExtractionRefused):
            pool.read_now(PDF, b"late", HOSTILE, "")
    with pytest.raises(ExtractionRefused, match="the limit of its host is 16 s"):
        pool.read_now(PDF, b"late", HOSTILE, "")
    assert pool.read_now(PDF, b"good", HOSTILE, "").text == "read"
    with pytest.raises(ExtractionRefused, match=r"longer than 32 s$"):
        pool.read_now(PDF, b"late", HOSTILE, "")


def test_a_limit_is_never_shorter_than_a_part_of_the_setting() -> None:
    assert limit_of(30.0, 10**6) == 30.0 / SHORTEST


def test_thirty_good_documents_are_read_before_three_limits_of_hostile_ones() -> None:
    pool = Pool()

    async def read_all() -> None:
        hostile = [pool.tell(HOSTILE, b"late") for _ in range(30)]
        good = [pool.tell(GOOD, b"good") for _ in range(30)]
        await asyncio.gather(*hostile, *good)

    asyncio.run(read_all())
    last = max(at for at, url in enumerate(pool.order) if url == GOOD)
    assert sum(url == HOSTILE for url in pool.order[:last]) <= 3
    assert len(pool.order) == 60


def test_a_second_process_begins_only_where_another_host_waits() -> None:
    pool = Pool(2)

    async def read(*urls: str) -> None:
        await asyncio.gather(*(pool.tell(url, b"good") for url in urls))

    asyncio.run(read(GOOD, GOOD, GOOD))
    assert len(pool._all) == 1
    asyncio.run(read(GOOD, HOSTILE))
    assert len(pool._all) == 2


def test_a_document_without_room_is_given_back() -> None:
    pool = Pool(room=100_000)

    async def read_all() -> list[str]:
        bodies = [(HOSTILE, b"good".ljust(60_000))] * 3 + [(GOOD, b"good".ljust(60_000))]
        return await asyncio.gather(*(pool.tell(*one) for one in bodies))

    assert asyncio.run(read_all()) == [
        "read",
        "no room for documents that wait",
        "no room for documents that wait",
        "read",
    ]
    assert pool.counted[stats.EXTRACTION_POSTPONED] == 2


def test_closing_stops_those_that_wait() -> None:
    pool = Pool()

    async def close() -> list[BaseException | Page]:
        reading = [asyncio.ensure_future(pool.read(PDF, b"good", GOOD, "")) for _ in range(3)]
        await asyncio.sleep(0)
        pool.close()
        found = await asyncio.gather(*reading, return_exceptions=True)
        with pytest.raises(ExtractionStopped):
            await pool.read(PDF, b"good", HOSTILE, "")
        return found

    assert all(isinstance(one, ExtractionStopped) for one in asyncio.run(close()))


def test_what_a_document_cost_is_known_also_if_its_reader_was_ended() -> None:
    reader = ExtractionProcess(30, 1 << 30)
    try:
        assert reader.read_now("text/plain", b"x", GOOD, "").text == "x"
        quick = reader.used
        with pytest.raises(ExtractionRefused, match="too-long") as refused:
            reader.read_now(PDF, corpus.slow_pdf(), HOSTILE, "", 0.2)
        assert refused.value.is_costly
        assert quick > 0
        assert 0.2 <= reader.used < 2.0
    finally:
        reader.close()


def test_a_pdf_of_700_bytes_takes_any_time() -> None:
    """Else the tests with it show nothing."""
    assert len(corpus.slow_pdf()) < 780
    assert len(corpus.slow_pdf(20_000)) > 20_000


@pytest.mark.parametrize("places", [1, 3])
def test_there_are_as_many_readers_as_the_setting_says(places: int) -> None:
    with Readers(places=places) as readers:
        assert readers.documents.turns.queue.places == places
        assert readers.documents.turns.queue.each == max(1, places - 1)


def test_two_readers_from_two_cores_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, places in ((1, 1), (2, 2), (16, 2)):
        monkeypatch.setattr(
            "larmspider.extraction.processes.process.cores", lambda cores=cores: cores
        )
        with Readers() as readers:
            assert readers.documents.turns.queue.places == places
