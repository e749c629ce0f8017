"""What becomes of a URL: what a case promises, and what a crawl's logs say happened."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tests.support.crawling import body_of, records


@dataclass(frozen=True)
class Outcome:
    """``result`` is the HTTP status of a page or the kind of a failure, as in fetch.log.

    None is not compared. ``body`` are a page's bytes, ``size`` their number. ``links`` is the
    number of its links in links.log. ``says`` is a part of fetch.log's message.
    """

    result: str
    body: bytes | None = None
    size: int | None = None
    links: int | None = None
    says: str = ""


def page(
    status: int = 200,
    body: bytes | None = None,
    *,
    size: int | None = None,
    links: int | None = None,
    says: str = "",
) -> Outcome:
    """A page was stored."""
    return Outcome(str(status), body, len(body) if body is not None else size, links, says)


def fails(kind: str, says: str = "") -> Outcome:
    """The fetch failed, in one of the ways of larmspider/fetch/errors.py."""
    return Outcome(kind, says=says)


@dataclass(frozen=True)
class Found:
    """All that the logs of a crawl say about its URLs, by URL."""

    results: dict[str, str]
    messages: dict[str, str]
    bodies: dict[str, bytes]
    links: dict[str, list[str]]

    def differs(self, url: str, wanted: Outcome) -> str:
        """In what the crawl differs from ``wanted``, "" if in nothing."""
        result = self.results.get(url, "no line in fetch.log")
        message = self.messages.get(url, "")
        if result != wanted.result:
            return f"{result} ({message}) instead of {wanted.result}"
        if wanted.says not in message:
            return f"says {message!r} and not {wanted.says!r}"
        body = self.bodies.get(url, b"")
        if wanted.size is not None and len(body) != wanted.size:
            return f"{len(body)} bytes instead of {wanted.size}"
        if wanted.body is not None and body != wanted.body:
            return f"body {body[:100]!r} instead of {wanted.body[:100]!r}"
        links = len(self.links.get(url, ()))
        if wanted.links is not None and links != wanted.links:
            return f"{links} links instead of {wanted.links}"
        return ""


def read(crawl: Path) -> Found:
    """The logs of the crawl directory ``crawl``. A URL with two lines in fetch.log is an error."""
    fetched = records(crawl / "fetch.log")
    results = {line["url"]: line["result"] for line in fetched}
    assert len(results) == len(fetched), "a URL was fetched twice"
    stored = records(crawl / "store.log")
    links: dict[str, list[str]] = defaultdict(list)
    for line in records(crawl / "links.log"):
        links[line["from-page"]].append(line["to-page"])
    return Found(
        results,
        {line["url"]: line["message"] for line in fetched},
        {line["url"]: body_of(crawl, line) for line in stored},
        links,
    )
