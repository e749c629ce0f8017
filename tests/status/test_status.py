"""How old a status may be that is computed once for all viewers."""

from __future__ import annotations

import fcntl
import json
import shutil
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from larmspider import stats
from larmspider.errors import CrawlDirError
from larmspider.status.forecast import Forecast, HostForecast
from larmspider.status.refreshing import STALE, RefreshingCache
from larmspider.status.snapshot import Gauges
from larmspider.status.status import CURVES_SECS, UNCOMMITTED, CrawlStatus
from larmspider.workdir.manifest import LOCK
from tests.support.web.serving import TOKEN, Served, request


@pytest.mark.parametrize("wait", [True, False], ids=["waits", "is given the old one first"])
def test_a_forecast_is_not_of_older_hosts_than_itself(
    demo_crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: bool
) -> None:
    """A crawl that runs: its first checkpoint shows as soon as the forecast is due again."""
    crawl, now = tmp_path / "crawl", [0.0]
    shutil.copytree(demo_crawl, crawl)
    source = Served(crawl).source
    crawl_status = CrawlStatus(source)
    for one in (*vars(source).values(), *vars(crawl_status).values()):
        if isinstance(one, RefreshingCache):
            monkeypatch.setattr(one, "_clock", lambda: now[0])
    with (crawl / LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with monkeypatch.context() as before:
            before.setattr(source._hosts, "_make", dict)
            assert crawl_status.status(None).forecast.reasons == [
                "No forecast yet; it comes with the first checkpoint."
            ]
        now[0] = CURVES_SECS
        crawl_status.status(None, wait=wait)
        with crawl_status._forecast._making:
            found = crawl_status.status(None, wait=wait)
        assert found.forecast.reasons == ["Nothing is queued that this run would fetch."]


def test_hosts_are_counted_before_the_first_checkpoint(
    demo_crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of hosts lacks them then, while pages are stored; all numbers are the same."""
    source = Served(demo_crawl).source
    gauges = Gauges(1.0, 0.0, 107, 0, 0, 0, 0, 0, paused=False, waiting="", broken="", hosts=3)
    before = CrawlStatus(source).status(gauges)
    assert (before.host_count, dict(before.hosts)) == (3, {"ready": 1, UNCOMMITTED: 2})
    assert Gauges.from_json(gauges.as_json()).hosts == 3
    known = CrawlStatus(source).status(None).host_count
    assert known == CrawlStatus(source).status(replace(gauges, hosts=0)).host_count > 0


def test_the_end_comes_nearer_while_the_forecast_stays(
    demo_crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages that LARM_MAX_PAGES still allows are those that every page counts."""
    crawl, now, most = tmp_path / "crawl", [0.0], []
    shutil.copytree(demo_crawl, crawl)

    def foreseen(*_: object, **given: object) -> Forecast:
        most.append(given["most"])
        return Forecast(30.0, [], [HostForecast("slow:80", 3, 29.0, "")])

    monkeypatch.setattr("larmspider.status.status.forecast", foreseen)
    source = Served(crawl).source
    source.settings.set("LARM_MAX_PAGES", 110, priority="cmdline")
    crawl_status = CrawlStatus(source, clock=lambda: now[0])
    gauges = Gauges(1.0, 0.0, 107, 0, 0, 0, 0, 0, paused=False, waiting="", broken="")
    with (crawl / LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert crawl_status.status(gauges).forecast.seconds == 30
        now[0] = 4.0
        later = crawl_status.status(gauges).forecast
        assert (later.seconds, [one.seconds for one in later.slowest]) == (26, [25])
    assert most == [110 - 63]


def test_queued_urls_out_of_a_new_scope_are_no_links(demo_crawl: Path, tmp_path: Path) -> None:
    """They were links once, which no filter rejected."""
    crawl = tmp_path / "crawl"
    shutil.copytree(demo_crawl, crawl)
    crawl_status = CrawlStatus(Served(crawl).source)
    before = crawl_status.status(None).rejected
    path = crawl / "totals.json"
    totals = json.loads(path.read_text())
    totals["counters"] |= {stats.LAST_CHECK_REJECTED: 7, "larm/mine/rejected": 1}
    path.write_text(json.dumps(totals))
    assert crawl_status.status(None).rejected == before | {"mine": 1}


class Obedient:
    """A crawl that carries out every act and reports no gauges."""

    async def gauges(self) -> None:
        return None

    async def act(self, name: str, form: Mapping[str, str], who: str) -> str:
        return f"{name} is done"


def test_after_an_act_nothing_is_shown_as_before(
    demo_crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint has the act before it is answered, so the hosts are read again at once."""
    with Served(demo_crawl, controller=Obedient()) as site:

        def hosts() -> object:
            return site.get("/stats.json").json["hosts"]

        kept = site.source._hosts
        kept._seconds = 1000.0
        before = hosts()
        monkeypatch.setattr(kept, "_make", dict)
        assert hosts() == before != {}
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert request(f"{site.url}/control/slow", "POST", headers, {"factor": "2"}).status == 200
        assert hosts() == {}


# Values that take long to make.


class Maker:
    """Counts; takes ``seconds`` by the clock."""

    def __init__(self) -> None:
        self.now, self.seconds, self.made, self.error = 0.0, 0.0, 0, False
        self.done = threading.Event()

    def clock(self) -> float:
        return self.now

    def __call__(self) -> int:
        self.now += self.seconds
        if self.error:
            raise CrawlDirError("gone")
        self.made += 1
        self.done.set()
        return self.made


def test_it_is_made_once_then_in_the_background() -> None:
    """The old one is given while the new one is made, unless it is much too old."""
    maker = Maker()
    kept = RefreshingCache(maker, 5.0, maker.clock)
    assert [kept.get(), kept.get()] == [1, 1]
    maker.now = 5.0
    maker.done.clear()
    assert kept.get() == 1
    assert maker.done.wait(10)
    with kept._making:
        assert kept.get() == 2
    maker.now += 5.0 * STALE
    assert kept.get() == 3
    kept.forget()
    assert kept.get() == 4


def test_what_is_forgotten_while_it_is_made_is_made_again() -> None:
    """It was begun before the change for which it was forgotten."""
    maker = Maker()

    def make() -> int:
        if not maker.made:
            kept.forget()
        return maker()

    kept = RefreshingCache(make, 5.0, maker.clock)
    assert [kept.get(), kept.get(), kept.get()] == [1, 2, 2]


def test_who_waits_is_given_none_that_is_older_than_it_may_be() -> None:
    """Also through a value that is made of another one: the sum of both is no older than one."""
    maker = Maker()
    kept = RefreshingCache(maker, 5.0, maker.clock)
    made_of_it = RefreshingCache(lambda: kept.get(wait=True), 5.0, maker.clock)
    assert [kept.get(wait=True), made_of_it.get(wait=True)] == [1, 1]
    maker.now = 4.9
    assert made_of_it.get(wait=True) == 1
    maker.now = 5.0
    assert made_of_it.get(wait=True) == 2


def test_what_takes_long_is_made_seldom() -> None:
    """2% of the time at most: 1 s of work each 50 s."""
    maker = Maker()
    maker.seconds = 1.0
    kept = RefreshingCache(maker, 5.0, maker.clock, cpu=maker.clock)
    kept.get()
    maker.now += 49.0
    assert kept.get() == 1
    assert maker.made == 1


def test_what_waited_long_is_made_as_often_as_ever() -> None:
    """For a busy machine, say: it took no CPU."""
    maker = Maker()
    maker.seconds = 60.0
    kept = RefreshingCache(maker, 5.0, maker.clock)
    kept.get()
    maker.now += 5.0 * STALE
    assert kept.get() == 2


def test_errors_are_told_to_who_asks() -> None:
    """And the next one tries again."""
    maker = Maker()
    maker.error = True
    kept = RefreshingCache(maker, 5.0, maker.clock)
    for _ in range(2):
        with pytest.raises(CrawlDirError):
            kept.get()
    maker.error = False
    assert kept.get() == 1
