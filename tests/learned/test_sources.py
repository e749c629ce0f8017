"""When sitemaps and feeds are asked, and how far they are trusted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from larmspider.frontier.part import NotesMemory
from larmspider.learned.sources import EVERY_SECS, MAX_FEEDS, MAX_SOURCES, ROBOTS, Sources
from tests.support.frontier.memory_backend import MemoryBackend

NOW = 1.8e9
HOST = "wiki:80"
MAP = "http://wiki/sitemap.xml"


def allowed(_url: str) -> bool:
    return True


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def sources(backend: MemoryBackend) -> Sources:
    return Sources(NotesMemory(backend), lambda: NOW)


def everything(sources: Sources, now: float, may: Callable[[str], bool] = allowed) -> list[str]:
    """What is asked at a time, one after the other."""
    found = []
    while (own := sources.next_fetch(HOST, now, may)) is not None:
        assert sources.next_time(HOST) is None  # one at a time
        found.append(own.url)
        sources.asked(own.url, now, "200", entries=1)
    return found


def test_a_source_is_asked_once_a_day_and_after_the_first_page(
    backend: MemoryBackend, sources: Sources
) -> None:
    """Over restarts, too."""
    sources.found(HOST, ["http://wiki/a.xml"], "robots.txt")
    assert everything(sources, NOW) == []
    sources.host_answered(HOST, "http")
    assert everything(sources, NOW) == ["http://wiki/a.xml", MAP]
    assert everything(sources, NOW + EVERY_SECS / 2) == []
    sources.save()
    later = Sources(NotesMemory(backend), lambda: NOW + EVERY_SECS)
    later.host_answered(HOST, "http")
    assert everything(later, NOW + EVERY_SECS / 2) == []
    assert len(everything(later, NOW + EVERY_SECS)) == 2


@pytest.mark.parametrize("how, asked", [(ROBOTS, [MAP]), (f"{ROBOTS} of other:80", [])])
def test_what_another_host_names_is_asked_where_robots_txt_allows_it(
    sources: Sources, how: str, asked: list[str]
) -> None:
    """A host's own robots.txt, which names a sitemap, need not allow it, too."""
    sources.found(HOST, [MAP], how)
    sources.host_answered(HOST, "http")
    assert everything(sources, NOW, lambda url: False) == asked


def test_a_clock_that_was_ahead_delays_no_source_by_more_than_a_day(
    backend: MemoryBackend, sources: Sources
) -> None:
    sources.host_answered(HOST, "http")
    assert everything(sources, NOW + 400 * EVERY_SECS) == [MAP]
    sources.save()
    later = Sources(NotesMemory(backend), lambda: NOW)
    later.host_answered(HOST, "http")
    assert everything(later, NOW + EVERY_SECS / 2) == []
    assert everything(later, NOW + EVERY_SECS) == [MAP]


def test_a_request_that_was_not_made_is_made_again(sources: Sources) -> None:
    sources.host_answered(HOST, "http")
    own = sources.next_fetch(HOST, NOW, allowed)
    assert own is not None
    own.released()
    again = sources.next_fetch(HOST, NOW, allowed)
    assert again is not None
    assert again.url == own.url == MAP


def test_sources_of_other_hosts_and_too_many_are_not_asked(sources: Sources) -> None:
    sources.found(HOST, ["http://elsewhere/sitemap.xml"], "robots.txt")
    sources.found(HOST, [f"http://wiki/feed/{n}" for n in range(99)], "feed")
    assert len(list(sources.of(HOST))) == MAX_FEEDS
    sources.found(HOST, [f"http://wiki/{n}.xml" for n in range(999)], "robots.txt")
    assert len(list(sources.of(HOST))) == MAX_SOURCES
    sources.found(HOST, ["http://wiki/deep.xml"], "http://wiki/index.xml", depth=3)
    assert "http://wiki/deep.xml" not in {one.url for one in sources.of(HOST)}


def test_robots_txt_may_forbid_what_it_does_not_name(sources: Sources) -> None:
    sources.found(HOST, ["http://wiki/named.xml"], "robots.txt")
    sources.host_answered(HOST, "http")
    assert everything(sources, NOW, lambda _url: False) == ["http://wiki/named.xml"]


def test_a_sitemap_that_its_index_calls_unchanged_is_not_asked_again(sources: Sources) -> None:
    sources.host_answered(HOST, "http")
    assert everything(sources, NOW) == [MAP]
    sources.found(HOST, ["http://wiki/1.xml", "http://wiki/2.xml"], MAP, depth=1)
    for number in (1, 2):
        sources.index_says(f"http://wiki/{number}.xml", NOW - 99)
    assert len(everything(sources, NOW)) == 2
    sources.index_says("http://wiki/2.xml", NOW + 99)
    assert set(everything(sources, NOW + EVERY_SECS)) == {MAP, "http://wiki/2.xml"}


def test_a_source_with_nothing_in_it_is_asked_once_a_month(sources: Sources) -> None:
    sources.host_answered(HOST, "http")
    asked = 0
    for day in range(30):
        if sources.next_fetch(HOST, NOW + day * 86_400, allowed):
            sources.asked(MAP, NOW + day * 86_400, "http-404")
            asked += 1
    assert asked == 3 + (30 - 3) // 30


def test_trust_is_learned_from_what_pages_turned_out_to_be(
    backend: MemoryBackend, sources: Sources
) -> None:
    sources.found(HOST, [MAP], "robots.txt")
    assert sources.precision(MAP) == 0.5
    keys = [bytes([n]) * 16 for n in range(10)]
    sources.signalled(keys, MAP)
    for key in keys:
        sources.judged(key, changed=key > keys[7])
        sources.judged(key, changed=True)  # visited once more, and nobody had named it
    assert sources.precision(MAP) == pytest.approx(3 / 12)
    sources.save()
    assert Sources(NotesMemory(backend), lambda: NOW).precision(MAP) == pytest.approx(3 / 12)


def test_what_a_host_remembers_of_its_sitemaps_has_a_limit(
    monkeypatch: pytest.MonkeyPatch, backend: MemoryBackend, sources: Sources
) -> None:
    """Beyond it a sitemap tells of no page that it does not name any more."""
    monkeypatch.setattr("larmspider.learned.sources.MAX_NAMED", 3)
    other = "http://wiki/b.xml"
    sources.found(HOST, [MAP, other], ROBOTS)
    keys = [bytes([number]) * 16 for number in range(5)]
    assert sources.named(MAP, keys[:3]) == sources.named(other, keys[3:]) == []
    assert sources.named(other, []) == []
    later = Sources(NotesMemory(backend), lambda: NOW)
    later.found(HOST, [MAP, other], ROBOTS)
    assert later.named(MAP, keys[1:3]) == keys[:1]
    assert later.named("http://wiki/unknown.xml", keys) == []
