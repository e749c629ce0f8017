"""Bodies that wait for readers: their room, and whose hosts are not asked for more meanwhile."""

from __future__ import annotations

from math import inf

from larmspider.extraction.processes.backlog import LEAST_BYTES, SHARE, Backlog, Waiting

ROOM = 100 * LEAST_BYTES


class Tried:
    """A Backlog, the hosts that are held, and the bodies that were given back."""

    def __init__(self, most: float = ROOM) -> None:
        self.held: set[str] = set()
        self.given_back: list[str] = []
        self.backlog = Backlog(most, self.hold)

    def hold(self, host: str, held: bool) -> None:
        (self.held.add if held else self.held.remove)(host)

    def enter(self, host: str, share: float, name: str = "", debt: float = 0.0) -> Waiting:
        return self.backlog.enter(
            host,
            int(ROOM * share),
            lambda: self.given_back.append(name or host),
            lambda: debt,
        )


def test_a_host_with_much_that_waits_is_held_until_it_is_read() -> None:
    tried = Tried()
    bodies = [tried.enter("a", 0.9 / SHARE), tried.enter("a", 0.2 / SHARE)]
    assert tried.held == {"a"}
    tried.backlog.begin(bodies[0])
    assert tried.held == set()
    for body in bodies:
        tried.backlog.leave(body)
    assert not tried.given_back


def test_small_bodies_count_too() -> None:
    tried = Tried()
    for _ in range(ROOM // LEAST_BYTES // SHARE + 1):
        tried.enter("a", 0)
    assert tried.held == {"a"}


def test_what_has_no_room_is_given_back_by_the_host_that_has_most() -> None:
    tried = Tried()
    tried.enter("a", 0.6, "old")
    newest = tried.enter("a", 0.3, "new")
    good = tried.enter("good", 0.2)
    assert tried.given_back == ["new"]
    tried.backlog.leave(newest)  # as its coroutine ends
    assert "good" not in tried.held
    tried.backlog.leave(good)


def test_one_body_may_always_wait() -> None:
    tried = Tried()
    tried.enter("a", 3.0)
    assert not tried.given_back


def test_the_host_that_has_used_most_gives_back_first() -> None:
    """A host of large documents that has used nothing keeps them."""
    tried = Tried()
    tried.enter("hostile", 0.3, debt=60.0)
    tried.enter("good", 0.9)
    assert tried.given_back == ["hostile"]


def test_a_host_goes_on_for_each_body_that_is_read() -> None:
    tried = Tried()
    read = tried.backlog.enter("x", 0, lambda: None, begun=True)
    more = tried.backlog.enter("x", 0, lambda: None, begun=True)
    bodies = [tried.enter(host, 0.6) for host in ("a", "b", "c")]
    assert len(tried.given_back) == 2
    given = [body for body in bodies if body.host in tried.given_back]
    assert tried.held == {"a", "b", "c"}, "two gave back, and one fills its part"
    tried.backlog.leave(read)
    assert len(tried.held) == 2
    for body in given:
        tried.backlog.leave(body)
    tried.backlog.leave(more)
    for body in bodies:
        if body not in given:
            tried.backlog.begin(body)
            tried.backlog.leave(body)
    assert tried.held == set()


def test_a_body_that_was_given_back_brings_no_other_fetch() -> None:
    """Or two hosts whose bodies have no room are fetched in turns, as fast as they answer."""
    tried = Tried()
    read = tried.backlog.enter("x", 0, lambda: None, begun=True)
    waits = tried.enter("large", 1.0)
    fetches = 0
    bodies = [tried.enter(host, 0.1, debt=1.0) for host in ("a", "b")]
    assert tried.given_back == ["a", "b"]
    while bodies and fetches < 100:
        tried.backlog.leave(bodies.pop())
        for host in {"a", "b"} - tried.held:
            fetches += 1
            bodies.append(tried.enter(host, 0.1, debt=1.0))
    assert fetches == 0
    tried.backlog.begin(waits)
    tried.backlog.leave(read)
    assert tried.held == {"b"}, "one goes on for the reader that is free"
    tried.backlog.leave(waits)
    assert tried.held == set()


def test_hosts_go_on_when_what_was_given_back_leaves_last() -> None:
    tried = Tried()
    read = tried.enter("large", 1.0)
    given = [tried.enter(host, 0.1, debt=1.0) for host in ("a", "b", "c")]
    tried.backlog.leave(read)
    for body in given:
        tried.backlog.leave(body)
    assert tried.held == set()


def test_without_a_limit_nothing_is_held() -> None:
    tried = Tried(inf)
    for _ in range(10):
        tried.enter("a", 100.0)
    assert not tried.held
    assert not tried.given_back
