"""larmspider/learned/script_watch.py: hosts whose pages are empty without JavaScript."""

from __future__ import annotations

from larmspider.frontier.part import NotesMemory
from larmspider.items import Link, Page
from larmspider.learned.script_watch import NOTE, ScriptWatch, in_words, noted
from tests.support.frontier.memory_backend import Disk, MemoryBackend

SHELL = b"<div id=app></div><script src=/app.js></script>"


def page(body: bytes = SHELL, text: str = "", links: int = 0, mime: str = "text/html") -> Page:
    to = [Link(f"http://app/{number}") for number in range(links)]
    return Page("http://app/", body=body, text=text, links=to, mime=mime)


def test_hosts_are_named_by_the_share_of_their_pages_that_are_empty() -> None:
    backend = MemoryBackend(Disk())
    watch = ScriptWatch(NotesMemory(backend))
    for host, found in {
        "app:80": [page()] * 3 + [page(text="x" * 300)],
        "wiki:80": [page(), page(text="x" * 300), page(links=1)],
        "data:80": [page(b"{}"), page(mime="application/json"), page(b"<p>short</p>")],
    }.items():
        for one in found:
            watch.saw(host, one)
    assert watch.hosts() == ["app:80 (3 of 4 pages)"]
    watch.save()
    notes = ((host, backend.note(NOTE.format(host=host))) for host in ("app:80", "data:80"))
    assert list(in_words(noted(*one) for one in notes)) == ["app:80 (3 of 4 pages)"]
