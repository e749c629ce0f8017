"""The second parser: deep pages in linear time, ordinary pages as the first parser reads them."""

import time
from pathlib import Path

import pytest

from larmspider.extraction.pages import deep_html, html
from larmspider.extraction.pages.page_builder import PageBuilder
from larmspider.items import Page

URL = "http://wiki.example/docs/start"
ORDINARY_PAGES = [
    "",
    "plain text &amp; more",
    "<!DOCTYPE html><html lang=de-AT><head><title> a <b </title><base href=/b/>"
    "<meta name=description content='d e'><meta name=robots content=noindex>"
    "<link rel=canonical href=c><link rel=next href=n title=N></head><body>"
    "<h1>H</h1><p>a<b>b</b>c <a href=x>l<i>i</i>nk</a>!<p>d<br>e</body></html>",
    "<title>one</title><title>two</title><body>x<svg><title>s</title></svg>",
    "<body>x<svg><title>s</title></svg><title>t</title>",
    "<frameset><frame src=a name=A><frame src=b title=B></frameset>",
    "<ul><li>a<li><a href=1>b</a></ul><table><tr><td>c<td>d</table><dl><dt>e<dd>f</dl>g",
    "<a href=1><div>a</div><div>b</div></a>c<a href=2><img alt='A B'></a><a href=3 title=T></a>",
    "<a href=1>never closed",
    "<a href=1>x<a href=2 rel=nofollow>y</a>z",
    "<script>'<a href=x>'</script>a<style>b</style><template><a href=t>c</a><template>d"
    "</template>e</template>f<noscript><a href=n>N</a></noscript>",
    "<iframe src=i name=I><a href=x>y</a></iframe>a<textarea><b>c</textarea>",
    "<map><area href=1 alt=A></map><meta http-equiv=refresh content='0; url=r'>",
    "<select><option>a<option>b</select><button>c</button>d<img alt=x>e<hr>f",
    "<body>what is seen is most of it<p hidden>a<b>b</b></p><script hidden>x</script><img hidden>c"
    "<i style='display:none'>d</i><div hidden><div hidden>e</div>f</div><a href=1><b hidden>g</b>h"
    "</a>i",
    f"a<select>{'<option>some label' * 30}</select>b",
    "<p>Gr\u00fc\u00dfe \u0417\u0434\u0440 \U0001f600 a\u00a0b<!-- c -->d",
]


def as_page(findings: PageBuilder) -> Page:
    page = Page(URL)
    findings.fill(page)
    page.sections = []  # which only the first parser finds
    return page


def assert_same(markup: bytes) -> None:
    assert as_page(deep_html.read(markup)) == as_page(html.read(markup))


@pytest.mark.parametrize("markup", ORDINARY_PAGES)
def test_both_parsers_agree_on_written_pages(markup):
    assert_same(markup.encode())


def sample(folder: str, size: int) -> list[Path]:
    paths = sorted(Path(folder).glob("*.html"))
    return paths[:: max(1, len(paths) // size)]


DOCUMENTATION = [
    *sample("/usr/share/doc/python3.11-doc/html", 40),
    *sample("/usr/share/doc/postgresql-doc-15/html", 100),
]


@pytest.mark.acceptance
@pytest.mark.skipif(
    not DOCUMENTATION,
    reason="neither of the Debian packages python3.11-doc and postgresql-doc-15 is installed",
)
def test_both_parsers_agree_on_documentation():
    for path in DOCUMENTATION:
        ours, theirs = (as_page(read(path.read_bytes())) for read in (html.read, deep_html.read))
        assert ours.links == theirs.links, path
        assert ours == theirs, path


@pytest.mark.parametrize("tags", ["<div>", "<section>", "<ul><li>", "<dl><dd>", "<span>", "<b>"])
@pytest.mark.parametrize("depth", [20_000, 100_000])
def test_deep_nesting_gives_links_and_text(tags, depth):
    """In linear time: lexbor needs 0.4 s and 27 s for the divs."""
    markup = f"<title>t</title><a href=first>a</a> {tags * depth}<a href=last>deep</a>".encode()
    start = time.process_time()
    page = html.extract(markup, URL, None)
    assert time.process_time() - start < 3
    assert [link.url.rpartition("/")[2] for link in page.links] == ["first", "last"]
    assert (page.title, page.text, page.links[1].anchor) == ("t", "a deep", "deep")


def test_end_tags_of_nothing_do_not_hang(monkeypatch):
    """Each is looked for among all open elements; reading ends when that was done too often."""
    monkeypatch.setattr(deep_html, "MAX_LOOK_UPS", 10_000_000)
    markup = b"<a href=x>y</a>" + b"<g>" * 20_000 + b"</x>" * 60_000 + b"<a href=late>"
    assert [link.url for link in as_page(deep_html.read(markup)).links] == [
        "http://wiki.example/docs/x"
    ]


@pytest.mark.parametrize(
    "body", [b"", b"\0", b"<", b"<a href=x", b"<title>x", b"<!--", b"\xff\xfe"]
)
def test_garbage_is_read(body):
    assert isinstance(deep_html.read(body), PageBuilder)
