"""Rules that are held, and rules that are parsed again."""

from __future__ import annotations

from larmspider.frontier.robots import RobotsCache
from tests.support.frontier.memory_backend import MemoryBackend
from tests.support.frontier.simulation import AllowAll


def test_how_many_are_held_goes_by_the_length_of_the_files() -> None:
    """A thousand of half a megabyte would be 20 GB of rules."""
    cache = RobotsCache(MemoryBackend(), lambda body: AllowAll(), held_bytes=10_000)
    for number in range(20):
        cache.put(f"h{number}:80", b"")
    assert len(cache) == 10
    cache.put("large:80", b"#" * 8_000)
    assert len(cache) == 3
    cache.put("larger:80", b"#" * 80_000)
    assert len(cache) == 1
    for number in range(20):
        cache.of(f"h{number}:80")
    assert len(cache) == 10


def test_the_least_used_are_dropped_and_parsed_again() -> None:
    parsed: list[bytes] = []

    def parse(body: bytes) -> AllowAll:
        parsed.append(body)
        return AllowAll()

    cache = RobotsCache(MemoryBackend(), parse, held_bytes=2_000)
    cache.put("a:80", b"a")
    cache.put("b:80", b"b")
    kept = cache.of("a:80")
    cache.put("c:80", b"c")
    assert cache.of("a:80") is kept
    cache.of("b:80")
    assert parsed == [b"a", b"b", b"c", b"b"]
