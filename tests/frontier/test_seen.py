"""URLs that were seen lately are remembered for a while, and forgotten in halves."""

from larmspider.frontier.links import RecentlySeen


def test_what_was_added_is_among_them():
    seen = RecentlySeen()
    seen.add("a")
    assert seen.among(["b", "a", "a"]) == [False, True, True]


def test_what_is_asked_for_stays():
    """Each full half replaces the other; what was asked for meanwhile is in the younger one."""
    seen = RecentlySeen(size=3)
    for url in "abc":
        seen.add(url)
    assert seen.among(["a", "x"]) == [True, False]
    for url in "de":
        seen.add(url)
    assert seen.among(["a", "d", "e", "b", "c"]) == [True, True, True, False, False]
