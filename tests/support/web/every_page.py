"""The pages that every test of looks, safety and speed opens: one line each, for the demo crawl."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from larmspider.crawl.reader import CrawlDir

LOOKS = {
    "overview": "/",
    "search": "/search",
    "search-results": "/search?q=siren%20wiki",
    "search-nothing": "/search?q=zzyzzx&type=pdf",
    "control": "/control",
    "login": "/login",
    "hosts": "/hosts?sort=stored",
    "host": "/host?u={site}private/plan.html",
    "links": "/links",
    "most-linked": "/links?show=pages",
    "linked-hosts": "/links?show=hosts",
    "url": "/url?u={site}wiki/",
    "url-refused": "/url?u={site}private/plan.html",
    "url-unknown": "/url",
    "view": "/view?u={site}",
}
"""By the name of the screenshot: a target that shows the page with something on it; ``{site}`` is
the demo server's URL, quoted for a query."""
QUERIES = (
    "/?q={text}",
    "/search?q={text}",
    "/search?q=siren&host={text}&lang={text}",
    "/search?q=siren&since={text}",
    "/search?similar={text}",
    "/control?host={text}&restrict={text}&said={text}",
    "/login?next={text}",
    "/{text}",
    "/static/{text}",
    "/hosts?q={text}&state={text}",
    "/hosts?sort={text}&page={text}",
    "/hosts/{text}",
    "/url?u={text}",
    "/url?u=http://h/{text}",
    "/view?u={text}",
    "/copy?u={text}",
    "/links?show={text}&format={text}&page={text}",
)
"""Targets that take text from a user; ``{text}`` is quoted for a query."""


def shown(target: str, directory: Path) -> str:
    """The target over the crawl in a directory."""
    return target.replace("{site}", quote(CrawlDir(directory).seeds[0], safe=""))


def asked(target: str, text: str) -> str:
    """The target with what a user wrote."""
    return target.replace("{text}", quote(text.encode("utf-8", "replace"), safe=""))
