"""A host with nothing wrong with it, crawled beside the others: they must not cost it a page."""

from __future__ import annotations

from tests.support.hostile.running import Found, page
from tests.support.hostile.server import Case, HostileServer, pages

PAGES = 30


def _links(target: str) -> list[str]:
    """A binary tree: /healthy leads to /1 and /2, /1 to /3 and /4, ..."""
    if target == "/robots.txt":
        return []
    number = 0 if target == "/healthy" else int(target[1:])
    return [f"/{child}" for child in (2 * number + 1, 2 * number + 2) if child < PAGES]


HEALTHY = Case("healthy", pages(_links), page(200, links=2))


def is_complete(server: HostileServer, found: Found) -> bool:
    """Whether each page of it was stored."""
    urls = [server.url("healthy"), *(server.url("healthy", f"/{n}") for n in range(1, PAGES))]
    return all(found.results.get(url) == "200" for url in urls)
