"""/url, /view and /copy: why a page is in the crawl, and its stored copy."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from selectolax.lexbor import LexborHTMLParser

from larmspider.crawl.reader import CrawlDir
from larmspider.items import Page
from tests.support.crawling import crawl, scrapy
from tests.support.servers.scripted import ScriptedServer
from tests.support.stored_crawl import StoredCrawl
from tests.support.web.browser import Browser
from tests.support.web.serving import Got, Served

EVIL = """<!doctype html><meta charset=utf-8><title>evil</title>
<meta http-equiv=refresh content="0;url=http://evil.invalid/">
<base href="http://evil.invalid/"><link rel=stylesheet href="http://evil.invalid/x.css">
<script>document.title='ran'; document.body.id='ran'; top.document.title='ran'</script>
<script src="http://evil.invalid/x.js"></script>
<body onload="document.title='ran'"><img src=x onerror="document.title='ran'">
<svg onload="top.location='http://evil.invalid/'"></svg>
<iframe src="javascript:top.name='ran'"></iframe><form action="http://evil.invalid/">
<button autofocus onfocus="document.title='ran'">b</button></form>
<p id=text>The text of the page: \u00fcbung</p>"""
PAGES = {
    "http://h/evil": ("text/html", EVIL.encode()),
    "http://h/latin": ("text/html", "<meta charset=latin1><p>Übung".encode("latin-1")),
    "http://h/text": ("text/plain", b"<script>alert(1)</script>"),
    "http://h/image.svg": (
        "image/svg+xml",
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='x'/>",
    ),
    "http://h/data": ("application/pdf", b"%PDF-1.4 <script>alert(1)</script>"),
    "http://h/trick": ("text/html;x\r\nX-Evil: 1", b"<script>alert(1)</script>"),
}


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A crawl's directory made by hand: what the pages above are, was stored."""
    folder = tmp_path / "crawl"
    folder.mkdir()
    (folder / "crawl.json").write_text(json.dumps({"format": 2, "began": "2026-01-31T12:00:00Z"}))
    bodies, lines = b"", ""
    for url, (mime, body) in PAGES.items():
        mime = " ".join(mime.split())
        lines += f"\t{url}\t{url}\t0\t200\t{mime}\t{len(body)}\ttitle\t0\t{len(bodies)}\n"
        bodies += body
    (folder / "store.log").write_text(lines)
    (folder / "pagefile_0.pfl").write_bytes(bodies)
    return folder


def copy_of(site: Served, url: str, more: str = "") -> Got:
    return site.get(f"/copy?u={quote(url, safe='')}{more}")


def seed(crawl: Path) -> str:
    return CrawlDir(crawl).seeds[0]


@pytest.mark.parametrize(
    "url, kind, starts",
    [
        ("http://h/evil", "text/html; charset=utf-8", b"<!doctype html>"),
        ("http://h/latin", "text/html; charset=utf-8", "<meta charset=latin1><p>Übung".encode()),
        ("http://h/text", "text/plain; charset=utf-8", b"<script>"),
        ("http://h/image.svg", "text/plain; charset=utf-8", b"<svg"),
        ("http://h/data", "application/octet-stream", b"%PDF"),
        ("http://h/trick", "text/plain; charset=utf-8", b"<script>"),
    ],
)
def test_a_copy_has_a_type_of_ours_and_may_do_nothing(
    served: Callable[..., Served], stored: Path, url: str, kind: str, starts: bytes
) -> None:
    """HTML as HTML, texts as text, the rest as a download; the policy is the same for all."""
    got = copy_of(served(stored), url)
    assert (got.status, got.headers["Content-Type"]) == (200, kind)
    assert got.body.startswith(starts)
    policy = got.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox; default-src 'none';")
    assert "allow-" not in policy
    assert "script-src" not in policy
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert ("Content-Disposition" in got.headers) == (kind == "application/octet-stream")
    assert "X-Evil" not in got.headers


def test_a_download_is_byte_for_byte_what_came(served: Callable[..., Served], stored: Path) -> None:
    """As an attachment without a type."""
    got = copy_of(served(stored), "http://h/latin", "&download=yes")
    assert got.body == PAGES["http://h/latin"][1]
    assert got.headers["Content-Disposition"].startswith("attachment")
    assert got.headers["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize(
    "asked",
    [
        "http://h/../../../etc/passwd", "file:///etc/passwd", "/etc/passwd", "../crawl.json",
        "http://h/evil/../../crawl.json", "http://h/%2e%2e/%2e%2e/crawl.json", "crawl.json", "",
        "http://h/evil\0", "http://h/nothing", "javascript:alert(1)", "http://h/\t\n", "\ud800",
        "pagefile_0.pfl", "x" * 9000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("page", ["copy", "view"])
def test_paths_lead_nowhere(
    served: Callable[..., Served], stored: Path, page: str, asked: str
) -> None:
    """Only what store.log names is looked up, by its canonical form."""
    got = served(stored).get(f"/{page}?u={quote(asked, safe='', errors='replace')}")
    if asked == "http://h/evil\0":  # NUL is left out of every parameter
        assert got.status == 200
        return
    assert got.status in (400, 404)
    assert b"root:" not in got.body
    assert b'"format"' not in got.body


def test_a_page_file_that_was_cut_short_is_an_error_page(
    served: Callable[..., Served], stored: Path
) -> None:
    """With what is missing, in one line."""
    (stored / "pagefile_0.pfl").write_bytes(b"short")
    got = copy_of(served(stored), "http://h/data")
    assert got.status == 404
    assert "ends at 5" in got.text


def test_no_script_of_a_stored_copy_runs(
    served: Callable[..., Served], stored: Path, browser: Browser
) -> None:
    """Neither in its frame nor by itself; its text is to be read in both."""
    site = served(stored)
    browser.look(1280)
    for target in ("/view?u=", "/copy?u="):
        browser.open(site.url + target + quote("http://h/evil", safe=""))
        title = "evil" if target.startswith("/copy") else "Stored copy"
        browser.until(lambda: browser.driver.title.startswith(title), title)  # noqa: B023
        if target.startswith("/view"):
            browser.driver.switch_to.frame(browser.find("iframe"))
        browser.until(lambda: browser.text("#text"), "the page's text")
        assert "übung" in browser.text("#text")
        assert browser.all("#ran") == []
        browser.driver.switch_to.default_content()
        assert browser.driver.title.startswith(title)
        assert browser.driver.current_url == site.url + target + quote("http://h/evil", safe="")


def test_scripts_run_where_no_policy_forbids_it(
    served: Callable[..., Served], browser: Browser, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This shows that the test above can fail."""
    monkeypatch.setattr(
        "larmspider.reports.stored_copy.HEADERS",
        {"Content-Security-Policy": "script-src 'unsafe-inline'", "X-Frame-Options": "DENY"},
    )
    site = served(stored)
    body = PAGES["http://h/evil"][1]
    (stored / "pagefile_0.pfl").write_bytes(
        body.replace(b"http-equiv=refresh", b"name=______") + b" " * 2000
    )
    browser.open(site.url + "/copy?u=" + quote("http://h/evil", safe=""))
    # one script renames the page, another leads to where no name resolves
    browser.until(lambda: browser.driver.title in ("ran", "evil.invalid"), "the script ran")


def test_the_page_names_the_rule_that_decided(
    served: Callable[..., Served], demo_crawl: Path, browser: Browser
) -> None:
    """Each filter's verdict, and of robots.txt the line."""
    site, start = served(demo_crawl), seed(demo_crawl)
    browser.look(1280)
    for path, stage, reason in (
        ("private/plan.html", "robots", "Disallow: /private/"),
        ("wiki/?C=M;O=A", "paths to skip", ""),
        ("a/a/a/a/a/a/", "traps", ""),
    ):
        browser.open(f"{site.url}/url?u={quote(start + path, safe='')}")
        verdict = browser.text("#verdict")
        word = "Refused by" if stage == "robots" else "Rejected at"
        assert verdict.startswith(f"{word} "), (path, verdict)
        assert stage in verdict, (path, verdict)
        assert reason in verdict
        assert stage in browser.text("tr[aria-current]")
    browser.open(f"{site.url}/url?u={quote('http://elsewhere.invalid/', safe='')}")
    assert "Rejected at “scope”" in browser.text("#verdict")
    assert browser.errors() == []


def test_the_page_says_what_is_stored_and_where_links_lead(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    """Size, type, place; the pages that link here, and what it links to."""
    site, start = served(demo_crawl), seed(demo_crawl)
    page = site.get(f"/url?u={quote(start + 'wiki/', safe='')}").text
    assert "<strong>Stored</strong>" in page
    assert "pagefile_0.pfl at" in page
    assert "view stored copy" in page
    assert "Linked from" in page
    assert "Sirens.html" in page[page.index("Links to") :]
    assert site.get(f"/view?u={quote(start + 'wiki/', safe='')}").status == 200
    pdf = site.get(f"/url?u={quote(start + 'files/siren-h4.pdf', safe='')}").text
    assert "view stored copy" not in pdf
    assert "download it" in pdf


def test_an_unknown_url_is_explained_too(served: Callable[..., Served], demo_crawl: Path) -> None:
    """And what is not a URL at all."""
    site = served(demo_crawl)
    assert "no page that it read links here" in site.get(f"/url?u={seed(demo_crawl)}nowhere").text
    assert "Rejected at “valid address”" in site.get("/url?u=mailto:a@b").text
    unasked = LexborHTMLParser(site.get("/url").text)
    assert seed(demo_crawl) in unasked.css_first("#examples").text()


def test_a_search_without_an_index_ends_in_time_and_says_so(
    served: Callable[..., Served], demo_crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a crawl whose logs are too long."""
    site = served(demo_crawl)
    monkeypatch.setattr("larmspider.web.views.url.SEARCH_SECS", 0.0)
    monkeypatch.setattr("larmspider.crawl.logs.FOLDER", "no-such-index")
    page = site.get(f"/url?u={quote(seed(demo_crawl), safe='')}").text
    assert "some entries may be missing here" in page


def test_a_charset_that_only_the_header_named(
    scripted_server: Callable[..., ScriptedServer],
    served: Callable[..., Served],
    tmp_path: Path,
) -> None:
    """By the title of a page, and by what the index has of a text; they are guessed wrongly."""
    page, text = "<title>Übung</title><p>Übung", "5 € für Größe"
    routes = {
        "/": (200, {"Content-Type": "text/html; charset=macintosh"}, page.encode("mac_roman")),
        "/text": (
            200,
            {"Content-Type": "text/plain; charset=iso-8859-15"},
            text.encode("iso-8859-15"),
        ),
    }
    server = scripted_server(routes)
    assert crawl(f"{server.url('/')} {server.url('/text')}", tmp_path).status == 0
    site = served(tmp_path / "crawl")
    assert page in copy_of(site, server.url("/")).text
    assert copy_of(site, server.url("/text")).text == text


# The report in a browser: what the web put into it is text, and it fits.


HTML = {"Content-Type": "text/html; charset=utf-8"}
RUN = "document.body.id='ran'"
EVIL_TITLE = [f"<script>{RUN}</script>", f'"><img src=x onerror="{RUN}">', f"'><svg onload={RUN}>"]


@pytest.fixture
def report(scripted_server: Callable[..., ScriptedServer], tmp_path: Path) -> Path:
    """The report of a crawl whose site tries its best: titles, anchors, URLs, types, reasons."""
    texts = "".join(f"<a href='/p?{n}'>{_escaped(text)}</a>" for n, text in enumerate(EVIL_TITLE))
    links = "".join(
        f'<a href="/gone/{_escaped(text)}">{_escaped(text)}</a>'
        f'<a href="javascript:{_escaped(RUN)}//{n}">x</a><a href="http://x{n}.invalid/">y</a>'
        for n, text in enumerate(EVIL_TITLE)
    )
    title = f"<title>{_escaped(EVIL[0])}</title>".encode()
    routes: dict[str, object] = {"/": (200, HTML, title + (texts + links).encode())}
    for n, text in enumerate(EVIL_TITLE):
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


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.acceptance)])
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
    assert EVIL_TITLE[0] in text
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


EVIL_TEXT = "</td><script>document.title='ran'</script>"


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A page of two versions, whose text is markup."""
    stored = StoredCrawl(tmp_path / "crawl", refresh=True)
    for number in (1, 2):
        body = f"Same. {EVIL_TEXT} {number} here. End.".encode()
        stored.store("http://h/", Page("http://h/", "http://h/", mime="text/plain", body=body))
    stored.end()
    return stored.path


@pytest.mark.acceptance
def test_the_history_of_a_page(changed: Path, served: Callable[..., Served]) -> None:
    """Each version can be seen, and what changed; all of it is text."""
    site = served(changed)
    page = site.get("/url?u=http://h/").text
    assert [page.count(one) for one in ('id="versions"', 'id="visits"', "what changed")] == [
        1,
        1,
        1,
    ]
    at = "1970-01-01T00:16:41.000Z"
    assert b" 1 here." in site.get(f"/copy?u=http://h/&at={at}").body
    assert b" 2 here." in site.get("/copy?u=http://h/").body
    text = site.get("/diff?u=http://h/").text
    assert f"<del>{html.escape(EVIL_TEXT)}" in text.replace("&#39;", "&#x27;")
    assert "<script>document" not in text
    assert "no version before" in site.get(f"/diff?u=http://h/&at={at}").text
    for wrong in ("nonsense", "1970-01-01T00:00"):
        assert site.get(f"/copy?u=http://h/&at={wrong}").status == 404
