"""The hosts' rules as parsed objects, for as many hosts as memory should hold.

The robots.txt bodies are notes of the backend, so they survive a restart and a host whose rules
were dropped here is parsed again, not asked again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

from larmspider.frontier.storage.backend import Backend

HELD_BYTES = 4 << 20
"""Of robots.txt bodies whose rules are held; the rules take up to 75 times as much memory."""
_LEAST_BYTES = 1_000  # what a host counts with, however short its file


class Rules(Protocol):
    """As robots.RobotsRules."""

    @property
    def crawl_delay(self) -> float | None: ...

    @property
    def sitemaps(self) -> Sequence[str]: ...

    def allowed(self, url: str) -> bool: ...


class RobotsCache:
    """``parse`` makes rules of a body; of ``held_bytes`` of them the rules are held, the least used
    are dropped."""

    def __init__(
        self, backend: Backend, parse: Callable[[bytes], Rules], held_bytes: int = HELD_BYTES
    ) -> None:
        self._backend, self._parse, self._room = backend, parse, held_bytes
        self._held: OrderedDict[str, tuple[Rules, int]] = OrderedDict()

    def __len__(self) -> int:
        """Hosts whose rules are held."""
        return len(self._held)

    def of(self, host: str) -> Rules:
        """Of a host whose robots.txt was put here in this or an earlier run."""
        held = self._held.get(host)
        if held is None:
            return self._hold(host, self._backend.note(f"robots {host}") or b"")
        self._held.move_to_end(host)
        return held[0]

    def put(self, host: str, body: bytes) -> Rules:
        """A fresh robots.txt; b"" where everything is allowed."""
        self._backend.put_note(f"robots {host}", body)
        return self._hold(host, body)

    def forget(self, host: str) -> None:
        """What is held may soon be older than what the backend has."""
        _, size = self._held.pop(host, (None, 0))
        self._room += size

    def _hold(self, host: str, body: bytes) -> Rules:
        self.forget(host)
        rules, size = self._parse(body), max(_LEAST_BYTES, len(body))
        self._held[host] = rules, size
        self._room -= size
        while self._room < 0 and len(self._held) > 1:
            self.forget(next(iter(self._held)))
        return rules
