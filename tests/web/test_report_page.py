"""The report in a browser: what the web put into it is text, and it fits."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import crawl, scrapy
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.browser import Browser

HTML = {"Content-Type": "text/html; charset=utf-8"}
RUN = "document.body.id='ran'"
EVIL = [f"<script>{RUN}</script>", f'"><img src=x onerror="{RUN}">', f"'><svg onload={RUN}>"]


@pytest.fixture
def report(scripted_server: Callable[..., ScriptedServer], tmp_path: Path) -> Path:
    """Of a crawl of a site that tries its best: titles, anchors, URLs, types, reasons."""
    texts = "".join(f"<a href='/p?{n}'>{_escaped(text)}</a>" for n, text in enumerate(EVIL))
    links = "".join(
        f'<a href="/gone/{_escaped(text)}">{_escaped(text)}</a>'
        f'<a href="javascript:{_escaped(RUN)}//{n}">x</a><a href="http://x{n}.invalid/">y</a>'
        for n, text in enumerate(EVIL)
    )
    title = f"<title>{_escaped(EVIL[0])}</title>".encode()
    routes: dict[str, object] = {"/": (200, HTML, title + (texts + links).encode())}
    for n, text in enumerate(EVIL):
        odd = {"Content-Type": "text/x<b>" if n == 1 else "text/html"}
        routes[f"/p?{n}"] = (200, odd, f"<title>{_escaped(text)}</title>same".encode())
    server = scripted_server(routes)
    hosts = "|".join(f"h{n}\\.invalid" for n in range(60))
    scope = f"http://127\\.0\\.0\\.1:.*|https?://(?:{hosts})/.*"  # no place to break the line
    ran = crawl(server.url("/"), tmp_path, LARM_MONITOR_SECS="0.2", LARM_RESTRICT=scope)
    assert ran.status == 0, ran.err
    ran = scrapy("report", "--html", "report.html", cwd=tmp_path)
    assert ran.status == 0, ran.err
    return tmp_path / "report.html"


def _escaped(text: str) -> str:
    return html.escape(text)


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_of_the_web_runs_in_it(report: Path, browser: Browser, width: int) -> None:
    """Titles, link texts, URLs and the scope are there to be read; the policy is not even asked."""
    browser.look(width, dark=width == 390)
    browser.open(report.as_uri())
    assert browser.errors() == []
    assert browser.all("#ran, script, img, iframe") == []
    assert browser.overflow() <= 0
    beyond = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
    assert browser.script(f"return Math.max(...{beyond})") < width
    text = browser.text("main")
    assert EVIL[0] in text
    assert "/gone/" in text
    assert r"h59\.invalid)/.*" in text
    hrefs = [link.get_attribute("href") or "" for link in browser.all("a")]
    assert hrefs
    assert all(href.startswith(("http://", "https://")) for href in hrefs)


def test_the_pages_of_the_same_crawl_run_nothing(
    report: Path, served: Callable[..., object], browser: Browser
) -> None:
    """Hosts, links, and the page of the URL with the worst name."""
    site = served(report.parent / "crawl")
    browser.look(390)
    for target in ("/hosts", "/links", "/links?show=pages", "/links?show=hosts"):
        browser.open(site.url + target)  # type: ignore[attr-defined]
        assert browser.errors() == []
        assert browser.all("#ran, main script, main img") == []
        assert browser.overflow() <= 0, target
    for link in [link.get_attribute("href") for link in browser.all("main th a")]:
        browser.open(link or "")
        assert browser.all("#ran, main script, main img") == []
