"""The hosts' rules as parsed objects, for as many hosts as memory should hold.

The robots.txt bodies are notes of the backend, so they survive a restart and a host whose rules
were dropped here is parsed again, not asked again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

from larmspider.frontier.backend import Backend


class Rules(Protocol):
    """As robots.RobotsRules."""

    @property
    def crawl_delay(self) -> float | None: ...

    @property
    def sitemaps(self) -> Sequence[str]: ...

    def allowed(self, url: str) -> bool: ...


class RobotsCache:
    """``parse`` makes rules of a body; ``size`` hosts are held, the least used are dropped."""

    def __init__(self, backend: Backend, parse: Callable[[bytes], Rules], size: int = 1000) -> None:
        self._backend, self._parse, self._size = backend, parse, size
        self._held: OrderedDict[str, Rules] = OrderedDict()

    def of(self, host: str) -> Rules:
        """Of a host whose robots.txt was put here in this or an earlier run."""
        rules = self._held.get(host)
        if rules is None:
            rules = self._hold(host, self._backend.note(f"robots {host}") or b"")
        else:
            self._held.move_to_end(host)
        return rules

    def put(self, host: str, body: bytes) -> Rules:
        """A fresh robots.txt; b"" where everything is allowed."""
        self._backend.put_note(f"robots {host}", body)
        return self._hold(host, body)

    def forget(self, host: str) -> None:
        """What is held may soon be older than what the backend has."""
        self._held.pop(host, None)

    def _hold(self, host: str, body: bytes) -> Rules:
        rules = self._held[host] = self._parse(body)
        self._held.move_to_end(host)
        if len(self._held) > self._size:
            self._held.popitem(last=False)
        return rules
