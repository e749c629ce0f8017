"""Pages and deletes in a spool, and receivers that show what they were sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from larmspider.items import Link, Page, Removed
from larmspider.pipelines.outbox.facts import IndexFacts
from larmspider.pipelines.outbox.receiver import Receiver, Sent
from larmspider.pipelines.outbox.spool import FOLDER, Entry, Position, Spool, read_entries


def page(name: str, body: bytes = b"body", **values: Any) -> Page:
    """``http://h/name`` with a link."""
    links = [Link("http://h/next", "http://h/next", anchor="on"), Link("http://h/N", "http://h/n")]
    more = {"title": name, "fetched": 1.5} | values
    return Page(f"http://h/{name}", body=body, links=links, **more)


def removed(name: str, reason: str = "gone") -> Removed:
    url = f"http://h/{name}"
    return Removed(url, url, reason, 2.0)


def spooled(crawl: Path, *items: Page | Removed, now: float = 1000.0) -> Position:
    """Append them to the spool of a crawl; where it ends then."""
    crawl.mkdir(exist_ok=True)
    spool = Spool(crawl / FOLDER)
    found = list(read_entries(crawl / FOLDER, 0, _size(crawl / FOLDER)))
    last = found[-1] if found else None
    spool.end = Position(last.end, len(found), last.stamp) if last else Position()
    spool.open()
    for item in items:
        spool.append(item, now, body=True, facts=IndexFacts())
    spool.close()
    return spool.end


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.spool"))


def entries(crawl: Path, *items: Page | Removed, now: float = 1000.0) -> list[Entry]:
    """They, as a receiver gets them."""
    start = _size(crawl / FOLDER)
    end = spooled(crawl, *items, now=now).offset
    return list(read_entries(crawl / FOLDER, start, end))


class ShelfReceiver(Receiver):
    """Keeps what it is sent; ``answer`` says what becomes of a batch, or raises."""

    max_entries = 4

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.answer: Callable[[Sequence[Entry]], Sent] = lambda _: Sent()
        self.connects = 0

    @classmethod
    def from_settings(cls, settings: Any) -> Self:
        return cls()

    def connect(self) -> None:
        self.connects += 1

    def send(self, batch: Sequence[Entry]) -> Sent:
        self.batches.append([entry.url[9:] for entry in batch])
        return self.answer(batch)
