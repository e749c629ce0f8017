"""Deep hits: long pages are found by their sections."""

from __future__ import annotations

import pytest

from larmspider.extraction.html import extract
from larmspider.index.sections import kept_sections
from larmspider.index.writer import IndexWriter, _move
from larmspider.search.searcher import Searcher, hit_json

FILL = "Nothing of interest stands here at all. " * 30
BODY = f"""<title>Query sets</title><nav>{FILL}</nav><main><h1 id=top>Query sets</h1> {FILL}
<section id=filter><h2>filter()<a href=#filter>\u00b6</a></h2>{FILL} It takes zebras.</section>
<a name="old"></a><h2>Ordering</h2>{FILL} Sorted by zebras or quaggas.
<dl><dt id="GUC a/b"><code>max_x</code> (integer)<dd>{FILL} Most okapis.</dl></main>""".encode()


@pytest.fixture
def search(writer: IndexWriter):  # type: ignore[no-untyped-def]
    page = extract(BODY, "http://wiki.example/q", "text/html; charset=utf-8")
    page.normalized, page.mime, page.fetched = page.url, "text/html", 1.7e9
    writer.add(page)
    writer.commit()
    return lambda query: Searcher.open(writer.directory).search(query).hits[0]


@pytest.mark.parametrize(
    ("query", "anchor", "heading"),
    [
        ("query set filter", "filter", "filter()"),  # what the title has not is in a heading
        ("how do I use ordering", "old", "Ordering"),
        ("okapis", "GUC%20a/b", "max_x (integer)"),  # where the words stand
        ("quaggas", "old", "Ordering"),
        ("query sets", "", ""),  # the page itself
        ("interest", "", ""),  # at its head
    ],
)
def test_a_hit_is_about_a_section(search, query: str, anchor: str, heading: str) -> None:
    hit = search(query)
    assert hit.target == "http://wiki.example/q" + (f"#{anchor}" if anchor else "")
    assert (hit.section.heading if hit.section else "") == heading
    said = hit_json(hit)["section"]
    assert (said is None) is (anchor == "")
    if query == "okapis":
        assert said == {"anchor": "GUC a/b", "heading": "max_x (integer)"}
        assert "okapis" in hit.snippet.text


def test_sections_stay_where_they_are_when_navigation_goes() -> None:
    """Of a text, of its main text, and of what learned navigation leaves of that."""
    page = extract(BODY, "http://wiki.example/q", "text/html; charset=utf-8")
    assert [s.anchor for s in page.sections] == ["top", "filter", "old", "GUC a/b"]
    heads = ["Query sets", "filter()", "Ordering", "max_x (integer)"]
    assert [
        page.text[s.start :][: len(h)] for s, h in zip(page.sections, heads, strict=True)
    ] == heads
    main = kept_sections(page.text, page.rest, page.sections)
    assert [page.main[at:][: len(h)] for (at, *_), h in zip(main, heads, strict=True)] == heads
    span = (page.main.index("filter()"), page.main.index("Ordering"))
    text = {"body": page.main, "sections": main, "description": ""}
    _move(text, [(0, 11), span])
    assert text["body"][text["sections"][0][0] :].startswith("Ordering")
    assert [anchor for _, anchor, _ in text["sections"]] == ["old", "GUC a/b"]
