"""Pages below a path of a proxy: no link, form, redirect or description leads out of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from larmspider.web.auth import Guard
from tests.support.web.serving import LOOKS, TOKEN, Served, shown

BELOW = {"X_Forwarded_Prefix": "/suche", "X_Forwarded_Proto": "https"}
_NAMED = re.compile(r'(?:href|src|action|template)="([^"#][^"]*)"')


def leaving(text: str, path: str) -> list[str]:
    """The links of a page that lead to its server, and not below the path."""
    here = f"https://proxy.example/suche{path}"
    found = [urlsplit(urljoin(here, url)) for url in _NAMED.findall(text)]
    own = [url for url in found if url.netloc in ("proxy.example", "127.0.0.1")]
    return [url.geturl() for url in own if not url.path.startswith("/suche/")]


@pytest.mark.parametrize("target", [*LOOKS.values(), "/opensearch.xml", "/login", "/nothing"])
def test_no_link_leaves_the_prefix(
    served: Callable[..., Served], demo_crawl: Path, target: str
) -> None:
    site = served(demo_crawl)
    path = shown(target, demo_crawl)
    page = site.get(path, **BELOW)
    assert page.status in (200, 404)
    assert "/suche/" in page.text
    assert leaving(page.text, path) == []


def test_redirects_stay_and_scripts_know_the_prefix(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    site = served(demo_crawl, guard=Guard(TOKEN, closed=True))
    got = site.get("/hosts", Accept="text/html", **BELOW)
    assert got.headers["Location"].startswith("/suche/login?")
    assert '<body data-base="/suche">' in site.get("/login", **BELOW).text


NO_PATHS = ["/", "suche", "//other.example", "/a//b", "/a/../b", "/./a", '/a"b', "/a b", "/a?b"]


@pytest.mark.parametrize("prefix", [*NO_PATHS, "", "/" + "a" * 200, "https://other.example/"])
def test_a_prefix_that_is_no_path_counts_for_nothing(
    served: Callable[..., Served], demo_crawl: Path, prefix: str
) -> None:
    site = served(demo_crawl)
    page = site.get("/login", X_Forwarded_Prefix=prefix)
    assert page.text == site.get("/login").text
