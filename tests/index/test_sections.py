"""Deep hits: long pages are found by their sections."""

from __future__ import annotations

import pytest

from larmspider.extraction.pages.html import extract
from larmspider.index.likeness import _move
from larmspider.index.schema import indexed_page
from larmspider.index.sections import breaks_of, ends_heading, kept_breaks, kept_sections, parted
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.results import hit_json
from larmspider.search.searcher import Searcher

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
    """In a text, in its main text, and in the rest without learned navigation."""
    page = extract(BODY, "http://wiki.example/q", "text/html; charset=utf-8")
    assert [s.anchor for s in page.sections] == ["top", "filter", "old", "GUC a/b"]
    heads = ["Query sets", "filter()", "Ordering", "max_x (integer)"]
    assert [
        page.text[s.start :][: len(h)] for s, h in zip(page.sections, heads, strict=True)
    ] == heads
    main = kept_sections(page.text, page.rest, page.sections)
    assert [page.main[at:][: len(h)] for (at, *_), h in zip(main, heads, strict=True)] == heads
    span = (page.main.index("filter()"), page.main.index("Ordering"))
    text = indexed_page(page, "")
    text.sections = main
    _move(text, [(0, 11), span])
    assert text.body[text.sections[0][0] :].startswith("Ordering")
    assert [anchor for _, anchor, _ in text.sections] == ["old", "GUC a/b"]


def test_headings_part_the_text_of_any_page(writer: IndexWriter) -> None:
    """A short page has no sections to lead to; a long page has its sections with an anchor."""
    short = (
        b"<title>T</title><nav>Up</nav><h1 id=a>What a siren is</h1><p>It chops air.<h2>Use</h2>"
    )
    long = BODY.replace(b"<h2>filter()", b"<h2>filter()</h2><h3>Plain words</h3><h2>")
    stored = {}
    for name, body in (("short", short + FILL.encode()[:300]), ("long", long)):
        page = extract(body, f"http://wiki.example/{name}", "text/html; charset=utf-8")
        page.normalized, page.mime, page.fetched = page.url, "text/html", 1.7e9
        stored[name] = indexed_page(page, "")
        writer.add(page)
    writer.commit()
    lines = parted(stored["short"].body, stored["short"].breaks).splitlines()
    assert lines[:3] == ["What a siren is", "It chops air.", "Use"]
    assert stored["short"].sections is None
    assert "Plain words" in parted(stored["long"].body, stored["long"].breaks).splitlines()
    assert [anchor for _, anchor, _ in stored["long"].sections] == [
        "top",
        "filter",
        "old",
        "GUC a/b",
    ]
    searcher = Searcher.open(writer.directory)
    assert searcher.search("plain words").hits[0].section.anchor == "filter"
    assert searcher.search("siren chops").hits[0].section is None
    document = searcher.get("http://wiki.example/long")
    assert len(document.sections) == 4


def test_only_what_is_a_heading_parts_a_text() -> None:
    text = f"One two three four {'five ' * 30}six"
    headings = [
        *((0, "", "One"), (4, "", "two three"), (4, "", "two"), (8, "", "other")),
        *((19, "", ("five " * 24).strip()), (len(text) - 3, "", "six"), (4_000, "", "x")),
    ]
    breaks = breaks_of(text, headings)
    assert [at // 2 for at in breaks] == [3, 7, 13, 18, len(text) - 4]
    assert [at % 2 for at in breaks] == [1, 1, 1, 0, 0]  # not behind what may have been cut off
    assert [ends_heading(breaks, at) for at in (3, 7, 8, 18)] == [True, True, False, False]
    assert parted(text, breaks).split("\n") == [
        "One",
        "two",
        "three",
        "four",
        ("five " * 30).strip(),
        "six",
    ]
    assert parted(text, []) == text
    for start in range(len(text)):
        assert (
            parted(text[start : start + 9], breaks, start)
            == parted(text, breaks)[start : start + 9]
        )


def test_breaks_stay_where_they_are_when_navigation_goes() -> None:
    text = f"Menu Up Guns They fire. Use {FILL}Menu Down"
    breaks = breaks_of(text, [(8, "", "Guns"), (24, "", "Use"), (len(text) - 9, "", "Menu")])
    down = (len(text) - 10, len(text))
    left = kept_breaks(text, [(0, 7), (13, 24), down], breaks)
    assert parted("Guns Use Aim", left) == "Guns\nUse\nAim"
    moved = indexed_page(Page("http://wiki.example/", text=text), "")
    moved.breaks = breaks
    _move(moved, [(0, 7), down])
    lines = parted(moved.body, moved.breaks).splitlines()
    assert lines == ["Guns", "They fire.", "Use", FILL.strip()]
