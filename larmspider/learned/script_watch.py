"""Which hosts have pages that are empty without JavaScript: they need ``render`` (docs/sites.md).

    watch.saw("app:80", page)      # each page that is stored
    watch.hosts()                  # ["app:80 (12 of 12 pages)"]

A page is empty if it has scripts, next to no text and no link. A host with an empty page has a
note, ``scripts app:80``, of this run.
"""

from __future__ import annotations

from collections.abc import Iterator

from larmspider.formatting import counted
from larmspider.frontier.part import HostNotes, Note, NotesMemory, Part
from larmspider.items import Page

NOTE = "scripts {host}"
LEAST_TEXT = 200
"""Characters: a shell says "Loading ...", or that it needs JavaScript."""
LEAST_SHARE = 0.5
"""Share of a host's pages."""


def is_empty(page: Page) -> bool:
    """Whether scripts make the page. 0.1 us for a page with text."""
    return (
        len(page.text) < LEAST_TEXT
        and not page.links
        and page.status == 200
        and b"<script" in page.body
        and "html" in page.mime
    )


class Scripts(Note):
    """``pages`` of a host in a run, and how many of them were ``empty``."""

    least_bytes = 200
    pages: int = 0
    empty: int = 0


class ScriptWatch(Part):
    """Counts in this run."""

    def __init__(self, notes: NotesMemory) -> None:
        self._backend = notes.backend
        self._hosts = HostNotes(notes, "scripts", Scripts, of_run=True)
        self._found: dict[str, None] = {}
        """Hosts with an empty page."""
        self._changed: set[str] = set()

    def saw(self, host: str, page: Page) -> None:
        scripts = self._hosts.of(host)
        scripts.pages += 1
        if is_empty(page):
            scripts.empty += 1
            self._found[host] = None
            self._changed.add(host)

    def save(self) -> None:
        for host in self._changed:
            self._backend.put_note(NOTE.format(host=host), self._hosts.of(host).pack())
        self._changed.clear()

    def forget(self, host: str) -> None:
        self._hosts.forget(host)
        self._found.pop(host, None)
        self._changed.discard(host)

    def hosts(self) -> list[str]:
        found = ((host, self._hosts.of(host)) for host in self._found)
        return list(in_words((host, one.pages, one.empty) for host, one in found))


def noted(host: str, note: bytes | None) -> tuple[str, int, int]:
    """Host, its pages, and how many of them were empty."""
    scripts = Scripts.unpack(note)
    return host, scripts.pages, scripts.empty


def in_words(seen: Iterator[tuple[str, int, int]]) -> Iterator[str]:
    """The hosts whose pages are made by scripts, each with its numbers of pages."""
    for host, pages, empty in seen:
        if empty and empty >= LEAST_SHARE * pages:
            yield f"{host} ({empty:,} of {counted(pages, 'page')})"
