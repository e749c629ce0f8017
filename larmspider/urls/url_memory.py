"""Answers that depend on a URL alone are found once: navigation stands on each page of a site.

canonical = UrlMemory(canonicalize)
canonical["http://H/a#b"], canonical["http://H/a#b"]     # the second without canonicalize
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

CACHE_SIZE = 16_384
"""URLs; about 7 MB with answers if they are 100 characters long."""
LONGEST_CACHED = 1024
"""Characters; longer URLs are not remembered, so that hostile ones cannot fill the memory."""


class UrlMemory(dict[str, T]):
    """``memory[url]`` is ``ask(url)``, or what it was before; what it raises is not remembered.

    With ``size`` answers it begins anew. An lru_cache forgets better and costs three times as much
    in a crawl: it moves each answer that it gives, in a list that no processor's cache holds.
    """

    def __init__(self, ask: Callable[[str], T], size: int = CACHE_SIZE) -> None:
        super().__init__()
        self._ask, self._size = ask, size

    def __missing__(self, url: str) -> T:
        answer = self._ask(url)
        if len(url) <= LONGEST_CACHED:
            if len(self) >= self._size:
                self.clear()
            self[url] = answer
        return answer
