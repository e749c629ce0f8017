"""A broken view gives up no host; a host that is down is parked as ever."""

from collections import Counter
from math import inf

import pytest

from larmspider.frontier.frontier import CrawlLimits
from larmspider.frontier.hosts import HostState
from larmspider.frontier.own_fetch import FetchKind
from larmspider.frontier.politeness import Limits, failure_kind
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.frontier.strategies import Backlinks
from larmspider.learned.broken_views import MAX_VIEWS, NOTE, RETRIES, HostViews, views_in_words
from larmspider.learned.learning import Learning
from larmspider.learned.traps.trap_watch import LEARN, OFF
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.simulation import Clock, build

LIMITS = Limits(response_factor=0.0, backoff=10.0, jitter=0.0, park=600.0)


class Server:
    """Answers by ``kinds``: what fails, by a part of its URL. "" fits all."""

    def __init__(self, kinds, *, traps=True, **options):
        self.kinds, self.disk, self.clock = kinds, Disk(), Clock()
        self.options = {"limits": LIMITS, "crawl_limits": CrawlLimits(retry_times=2), **options}
        self.asked, self.traps, self.parked = [], traps, 0
        self.start()

    def start(self):
        learning = Learning(traps=LEARN if self.traps else OFF)
        backend = MemoryBackend(self.disk)
        self.frontier = build(backend, self.clock, learning=learning, **self.options)

    def add(self, *urls):
        found = [self.frontier.entry(url, url, from_page="http://a/") for url in urls]
        self.frontier.add(found)

    def kind_of(self, url):
        return next((kind for part, kind in self.kinds.items() if part in url), "")

    def crawl(self, fetches=inf, links=lambda url: ()):
        """Until nothing is left in this run."""
        frontier, end = self.frontier, self.clock.now + 1e6
        while len(self.asked) < fetches and self.clock.now < end:
            out = []
            while (lease := frontier.pop()) is not None:
                out.append(lease)
            for lease in out:
                self.answer(lease, links)
                self.parked += self.record.state is HostState.PARKED
            if not out:
                at = frontier.next_ready_time()
                if at is None:
                    return self.asked
                self.clock.now = max(self.clock.now, at)
        return self.asked

    def answer(self, lease, links):
        frontier = self.frontier
        if lease.kind is FetchKind.ROBOTS:
            frontier.robots_loaded(lease, b"", 0.0)
            return
        self.asked.append(lease.url)
        kind = self.kind_of(lease.url)
        if lease.own is not None:
            frontier.own_ended(lease, kind or "http-200")
        elif kind and failure_kind(kind).blames_host:
            frontier.failed(lease, kind, 0.1)
        else:
            frontier.answered(lease, 0.1)
            self.add(*links(lease.url))
            visit = FetchRecord(UrlState.STORED, self.clock.now, 200)
            frontier.acknowledge(lease, visit)

    @property
    def record(self):
        return self.frontier.hosts["a:80"].record

    @property
    def stored(self):
        return self.frontier.backend.counts().stored


GOOD = [f"http://a/page/{number}" for number in range(20)]
BROKEN = [f"http://a/broken/{number}" for number in range(12)]
ORDERS = {
    "first": BROKEN + GOOD,
    "last": GOOD + BROKEN,
    "in the middle": GOOD[:5] + BROKEN + GOOD[5:],
    "by turns": [url for pair in zip(BROKEN, GOOD, strict=False) for url in pair] + GOOD[12:],
}


@pytest.mark.parametrize("kind", ["http-500", "http-502", "http-503", "timeout", "reset"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_host_with_a_broken_view_is_crawled_whole_and_never_parked(order, kind):
    server = Server({"/broken/": kind})
    server.add("http://a/start/", *ORDERS[order])
    server.crawl()
    assert server.stored == len(GOOD) + 1
    assert (server.parked, server.frontier.backend.counts().queued) == (0, 0)


@pytest.mark.parametrize("kind", ["http-500", "http-503", "timeout", "reset"])
@pytest.mark.parametrize(
    ("view", "known"),
    [("/wiki/{}?do=chart", "/wiki/*?do=chart"), ("/wiki/{}/chart", "/wiki/*/*")],
)
def test_a_broken_view_of_pages_with_names_is_one_view_from_its_second_failure(view, known, kind):
    names = [f"{a}{b}" for a in ("goat", "sheep", "cow") for b in ("herd", "milk", "barn", "farm")]
    server = Server({"chart": kind})
    server.add("http://a/start/", *[f"http://a{view.format(name)}" for name in names])
    server.add(*[f"http://a/wiki/{name}/" for name in names])
    server.crawl()
    assert (server.stored, server.parked) == (len(names) + 1, 0)
    views = server.frontier.views.views_of("a:80")
    assert [(name, one.broken) for name, one in views.records.items()] == [(known, True)]


def test_views_that_differ_in_one_segment_are_not_one_view_if_another_works():
    server = Server({"/one/stat": "http-500", "/one/hist": "http-500"})
    views = [f"http://a/one/{view}?id={n}" for n in range(9) for view in ("stat", "hist", "text")]
    server.add("http://a/start/", *views, *GOOD)
    server.crawl()
    assert (server.stored, server.parked) == (len(GOOD) + 1 + 9, 0)
    known = server.frontier.views.views_of("a:80")
    assert known.split == {"/one/*?id=*"}
    assert {name for name, one in known.records.items() if one.broken} == {
        "/one/stat?id=*",
        "/one/hist?id=*",
    }


@pytest.mark.parametrize("connections", [1, 8])
def test_links_to_a_broken_view_that_nothing_came_before_give_up_no_host(connections):
    server = Server({"/broken/": "http-500"}, connections=connections, delay=0.0)
    server.add(*BROKEN, *GOOD)
    server.crawl()
    assert (server.stored, server.parked) == (len(GOOD), 0)


def test_flat_urls_of_which_some_are_broken_give_up_no_host():
    server = Server({"/broken": "http-500"})
    server.add("http://a/", *[f"http://a/broken{n}" for n in range(9)])
    server.add(*[f"http://a/page{n}" for n in range(9)])
    server.crawl()
    assert (server.stored, server.parked) == (10, 0)


def test_several_broken_views_give_up_no_host_whose_start_page_works():
    server = Server({"/broken/": "http-500", "/edit": "http-502", "do=diff": "http-500"})
    server.add("http://a/start/")
    server.crawl()
    views = ("broken/{}", "edit?id={}", "x?do=diff&id={}")
    server.add(*[f"http://a/{view.format(n)}" for n in range(9) for view in views], *GOOD)
    server.crawl()
    assert (server.stored, server.parked) == (len(GOOD) + 1, 0)


def test_a_broken_start_page_gives_up_no_host_whose_other_pages_work():
    server = Server({"/start": "http-500"})
    server.add("http://a/start", *GOOD)
    server.crawl()
    assert (server.stored, server.parked) == (len(GOOD), 0)


def test_a_broken_view_that_waits_behind_is_asked_last():
    server = Server({"/broken/": "http-500"})
    server.add("http://a/start/", *BROKEN, *GOOD)
    server.crawl()
    last_good = max(server.asked.index(url) for url in GOOD)
    before = [url for url in server.asked[:last_good] if "/broken/" in url]
    assert len(before) <= 12, before


@pytest.mark.parametrize("strategy", [None, Backlinks()])
def test_many_broken_links_are_asked_once_each_and_few_of_them_again(strategy):
    server = Server({"/broken/": "http-500"}, delay=0.0, strategy=strategy)
    links = [f"http://a/broken/{n}" for n in range(150)]
    server.add("http://a/start/", *links, *GOOD)
    server.crawl()
    asked = Counter(url for url in server.asked if "/broken/" in url)
    assert (len(asked), server.stored, server.parked) == (150, len(GOOD) + 1, 0)
    assert asked.total() - 150 <= RETRIES + 20
    assert len(server.asked) <= 150 + len(GOOD) + RETRIES + 80


@pytest.mark.parametrize("kind", ["http-500", "http-503", "timeout", "refused", "dns", "http-429"])
@pytest.mark.parametrize("worked", [True, False])
def test_a_host_that_is_down_is_parked_at_once_and_given_up(kind, worked):
    server = Server({} if worked else {"": kind})
    server.add("http://a/start/", *GOOD[:4])
    if worked:
        server.crawl()
        server.kinds = {"": kind}
    server.asked.clear()
    server.add(*GOOD[4:], *[f"http://a/list?page={n}" for n in range(9)])
    while not server.parked:
        server.crawl(fetches=len(server.asked) + 1)
    assert len(server.asked) <= 6
    server.crawl()
    assert (server.record.state, server.record.until) == (HostState.PARKED, inf)
    assert len(server.asked) <= 9


def test_a_server_that_names_a_time_to_wait_is_about_the_host():
    server = Server({})
    server.add("http://a/start/", *BROKEN)
    server.crawl(fetches=1)
    for number in range(5):
        while (lease := server.frontier.pop()) is None:
            server.clock.now = server.frontier.next_ready_time()
        server.frontier.failed(lease, "http-503", 0.1, retry_after=30.0)
        expected = HostState.PARKED if number == 4 else HostState.SNOOZED
        assert server.record.state is expected


def test_a_host_that_goes_down_while_only_a_broken_view_is_left_is_found_out():
    server = Server({"/broken/": "http-500"}, delay=0.0)
    server.add("http://a/start/", *[f"http://a/broken/{n}" for n in range(120)])
    server.crawl(fetches=60)
    assert not server.parked
    server.kinds = {"": "http-500"}
    server.crawl()
    assert server.parked


def test_a_view_that_works_again_has_its_retries_again():
    server = Server({"/broken/": "http-500"})
    server.add("http://a/start/", *BROKEN)
    server.crawl(fetches=20)
    server.kinds = {}
    server.crawl()
    assert not any(one.broken for one in server.frontier.views.views_of("a:80").records.values())


def test_a_parked_host_is_probed_by_a_page_that_worked():
    server = Server({})
    server.add("http://a/start/")
    server.crawl()
    server.kinds = {"": "http-500"}
    server.add(*BROKEN, *GOOD)
    while not server.parked:
        server.crawl(fetches=len(server.asked) + 1)
    server.kinds, before = {"/broken/": "http-500"}, len(server.asked)
    server.crawl()
    assert server.asked[before] == "http://a/start/"
    assert server.stored == len(GOOD) + 1


@pytest.mark.parametrize("traps", [True, False])
def test_what_is_known_of_views_survives_a_kill(traps):
    server = Server({"/broken/": "http-500"}, traps=traps)
    server.add("http://a/start/", *BROKEN)
    server.crawl(fetches=12)
    server.frontier.checkpoint({})
    server.start()
    (known,) = server.frontier.views.views_of("a:80").records.values()
    assert known.broken
    server.add(*GOOD)
    server.crawl()
    assert (server.stored, server.parked) == (len(GOOD) + 1, 0)


def test_a_host_without_failures_has_no_record():
    server = Server({})
    server.add(*GOOD)
    server.crawl()
    assert server.frontier.views.views_of("a:80") is None
    assert server.frontier.backend.note(NOTE.format(host="a:80")) is None


def test_failing_views_of_a_host_are_bounded():
    views = HostViews()
    views.record("/broken/*")[1].broken = True
    for number in range(5 * MAX_VIEWS):
        views.record(f"/{number}/*?name{number}=*")
    assert len(views.records) == MAX_VIEWS
    assert "/broken/*" in views.records


def test_a_broken_view_is_said_in_words():
    server = Server({"/broken/": "http-500"})
    server.add("http://a/start/", *BROKEN)
    server.crawl()
    server.frontier.checkpoint({})
    (words,) = views_in_words(server.frontier.backend.note(NOTE.format(host="a:80")))
    number = sum("/broken/" in url for url in server.asked)
    assert words == (
        f"view /broken/*: {number} of {number} failed with 500; the rest of the host works"
    )
