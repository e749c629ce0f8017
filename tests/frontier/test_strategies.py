"""Orders inside a host."""

from array import array

import pytest

from larmspider.frontier.storage.records import MAX_PRIORITY, url_key
from larmspider.frontier.strategies import (
    FIRST,
    LATER,
    Backlinks,
    BreadthFirst,
    LinkTable,
    PageRank,
    PathWords,
    page_ranks,
    rank_priority,
)
from tests.support.frontier.memory_backend import MemoryBackend
from tests.support.frontier.simulation import Clock, build


@pytest.mark.parametrize(
    "depth, priority", [(0, FIRST), (3, FIRST + 3), (99_999, FIRST + LATER - 1)]
)
def test_breadth_first_goes_by_depth(depth, priority):
    assert BreadthFirst().priority("http://h/a/b", depth, 9) == priority


@pytest.mark.parametrize(
    "url, level",
    [
        ("http://h", 1),
        ("http://h/", 1),
        ("http://h/a", 2),
        ("http://h/a/", 2),
        ("http://h//a//b", 3),
        ("http://h/a?x=/b/c", 2),
        ("http://h/1/2/3/4/5/6/7/8", 9),
        ("http://h/1/2/3/4/5/6/7/8/9", 10),
        ("http://h/1/2/3/4/5/6/7/8/9/10/11", 10),
    ],
)
def test_path_words_has_ten_levels(url, level):
    assert PathWords().priority(url, 5, 5) == FIRST + level


def test_backlinks_never_rank_more_links_later_and_move_rarely():
    priorities = [Backlinks().priority("http://h/", 3, links) for links in range(1, 5000)]
    assert priorities == sorted(priorities, reverse=True)
    assert len(set(priorities[:16])) == 16
    assert len(set(priorities[:1000])) < 70
    assert 0 <= Backlinks().priority("", 0, 2**32 - 1) < priorities[-1]


CHAIN = ([0, 1, 2, 2], [2, 2, 0, 1], 4)


def test_ranks_add_up_and_the_most_linked_leads():
    table = LinkTable()
    keys = [url_key(f"http://h/{n}") for n in range(4)]
    for source, target in zip(CHAIN[0], CHAIN[1], strict=True):
        table.add(keys[source], [keys[target], keys[target]])
    table.add(keys[0], [keys[3]])
    numbers = table.ranks()
    ranks = dict(zip((key for key, _ in table.priorities(numbers)), numbers, strict=True))
    assert sum(ranks.values()) == pytest.approx(4.0)
    assert max(ranks, key=ranks.get) == keys[2]
    assert min(ranks, key=ranks.get) == keys[3]


def test_a_known_answer():
    """Two pages that link to each other and one that links to the first."""
    first = page_ranks(bytes(array("I", [0, 1, 2])), bytes(array("I", [1, 0, 0])), 3)
    assert first == pytest.approx([1.4595, 1.3905, 0.15], abs=0.01)


def test_a_full_link_table_leaves_new_urls_out():
    table = LinkTable(max_urls=2)
    table.add(b"a", [b"b", b"c"])
    table.add(b"d", [b"a"])
    assert len(table) == 1
    assert [key for key, _ in table.priorities(table.ranks())] == [b"a", b"b"]


def test_a_higher_rank_goes_first_within_range():
    priorities = [rank_priority(rank) for rank in (1e9, 10.0, 1.0, 0.15, 0.0)]
    assert priorities == sorted(priorities)
    assert priorities[2] == 32_768
    assert priorities[0] >= 0
    assert priorities[-1] <= MAX_PRIORITY


def test_ranks_reorder_what_is_queued():
    frontier = build(MemoryBackend(), Clock(), strategy=PageRank(), robots=False, delay=0.0)
    urls = [f"http://h/{n}" for n in range(3)]
    frontier.add([frontier.entry(url, url) for url in urls])
    table = LinkTable()
    for page in ("http://h/x", "http://h/y"):
        table.add(url_key(page), [url_key("http://h/2")])
    frontier.reprioritize(table.priorities(table.ranks()))
    assert frontier.pop().url == "http://h/2"
