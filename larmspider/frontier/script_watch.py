"""Which hosts have pages that are empty without JavaScript: they need ``render`` (docs/sites.md).

    watch.saw("app:80", page)      # each page that is stored
    watch.hosts()                  # ["app:80 (12 of 12 pages)"]

A page is empty that has scripts, next to no text and no link. What a run has seen of a host is its
note, ``scripts app:80``.
"""

from __future__ import annotations

from collections.abc import Iterator

from larmspider.formatting import counted
from larmspider.frontier.storage.backend import Backend
from larmspider.items import Page

NOTE = "scripts {host}"
LEAST_TEXT = 200
"""Characters: a shell says "Loading ...", or that it needs JavaScript."""
LEAST_SHARE = 0.5
"""Of the pages of a host."""


def is_empty(page: Page) -> bool:
    """Whether scripts make the page. 0.1 us for a page with text."""
    return (
        len(page.text) < LEAST_TEXT
        and not page.links
        and page.status == 200
        and b"<script" in page.body
        and "html" in page.mime
    )


class ScriptWatch:
    """Counts in this run."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._seen: dict[str, tuple[int, int]] = {}
        """Pages, and empty ones."""
        self._changed: set[str] = set()

    def saw(self, host: str, page: Page) -> None:
        pages, empty = self._seen.get(host, (0, 0))
        empty += is_empty(page)
        self._seen[host] = (pages + 1, empty)
        if empty:
            self._changed.add(host)

    def save(self) -> None:
        """Into notes of the backend, before a batch is sealed."""
        for host in self._changed:
            self._backend.put_note(NOTE.format(host=host), b"%d %d" % self._seen[host])
        self._changed.clear()

    def hosts(self) -> list[str]:
        return list(in_words((host, *seen) for host, seen in self._seen.items()))


def noted(host: str, note: bytes | None) -> tuple[str, int, int]:
    """Host, its pages, and how many of them were empty."""
    pages, empty = (note or b"0 0").split()
    return host, int(pages), int(empty)


def in_words(seen: Iterator[tuple[str, int, int]]) -> Iterator[str]:
    """Those whose pages are made by scripts."""
    for host, pages, empty in seen:
        if empty and empty >= LEAST_SHARE * pages:
            yield f"{host} ({empty:,} of {counted(pages, 'page')})"
