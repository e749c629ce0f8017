"""Pages with the same text, or nearly: one hit, all of them counted, none lost."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tantivy

from larmspider.extraction.pages.html import extract
from larmspider.extraction.texts.fingerprint import simhash
from larmspider.extraction.texts.simhasher import Compared
from larmspider.index import copies
from larmspider.index.access import Access
from larmspider.index.copies import NEAR, Groups, blocks, like, near
from larmspider.index.outside_links import outside_links
from larmspider.index.rebuild import rebuild
from larmspider.index.writer import IndexWriter
from larmspider.items import Link, Page, Part
from larmspider.search import reading as module
from larmspider.search.query import Filters
from larmspider.search.reading import Deduplicator
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher

WORDS = [f"word{n}" for n in range(400)]
TEXT = " ".join(WORDS)
NEARLY = " ".join(["other", *WORDS[1:]])
DIFFERENT = " ".join(reversed(WORDS))
MENU = [f"Menu {n} of all" for n in range(120)]


def simhashes(texts: Sequence[tuple[str, str]]) -> Future[list[Compared]]:
    """Text between two bars is navigation."""
    done: Future[list[Compared]] = Future()
    bars = [[(m.start(), m.end()) for m in re.finditer(r"\|.*?\|", text)] for _, text in texts]
    hashes = [simhash(text) for _, text in texts]
    done.set_result(list(zip(hashes, bars, strict=True)))
    return done


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[IndexWriter]:
    with IndexWriter(tmp_path / "index", simhashes=simhashes) as index:
        yield index


def hits(writer: IndexWriter, query: str = "word7", **options: object) -> dict[str, int]:
    writer.commit()
    found = Searcher.open(writer.directory).search(SearchRequest(query, **options)).hits  # type: ignore[arg-type]
    return {hit.url.removeprefix("http://wiki.example/"): hit.copies for hit in found}


@pytest.mark.parametrize("differing", range(NEAR + 1))
def test_likenesses_that_are_near_share_a_term(differing: int) -> None:
    """As they are, four blocks of 16 bits have none in common for 38% of those with 6 bits between
    them."""
    chance = random.Random(differing)
    for _ in range(500):
        one = other = chance.getrandbits(64)
        for bit in chance.sample(range(64), differing):
            other ^= 1 << bit
        assert near(one, other)
        assert not set(like(one)).isdisjoint(blocks(other))


def test_a_group_is_what_is_near_its_first_page() -> None:
    groups = Groups()
    assert [groups.place(one) for one in (0, 1 << 40, 0b111, None, -1, 0, None)] == [
        *(0, 0, 0, 1, 2, 0, 3)
    ]


def test_the_best_of_copies_is_a_hit_and_all_are_counted(writer, make_page) -> None:
    for name, text in {"a": TEXT, "longer": TEXT, "nearly": NEARLY, "far": DIFFERENT}.items():
        writer.add(make_page(name, text))
    writer.add(make_page("print", TEXT, canonical="http://wiki.example/a"))
    assert hits(writer) == {"a": 3, "far": 0}
    assert hits(writer, copies=True).keys() == {"a", "longer", "nearly", "far", "print"}
    searcher = Searcher.open(writer.directory)
    found = searcher.search(SearchRequest("word7", facets=True))
    assert (found.total, found.total_all, found.more) == (5, 5, False)
    assert found.facets.hosts == {"wiki.example": 5}
    (count, copies) = searcher.copies(searcher.get("http://wiki.example/a"), limit=2)
    assert (count, [hit.url.rpartition("/")[2] for hit in copies]) == (3, ["longer", "nearly"])
    assert [hit.url for hit in searcher.similar(searcher.get("http://wiki.example/a")).hits] == [
        "http://wiki.example/far"
    ]


def with_menu(name: str, own: str, *, title: str = "Intranet", between: str = "") -> Page:
    """A page whose menu nothing gives away, fetched now."""
    links = between.join(f"<div><a href='/{n}'>{entry}</a></div>" for n, entry in enumerate(MENU))
    markup = f"<title>{title}</title><div class=left>{links}</div><h1>{name[:1]}</h1><p>{own}</p>"
    return fetched(name, markup)


def fetched(name: str, markup: str) -> Page:
    page = extract(markup.encode(), f"http://wiki.example/{name}", "text/html")
    page.mime, page.fetched = "text/html", 1_700_000_000.5
    return page


def own_words(seed: int, number: int = 40) -> str:
    return " ".join(["word7", *random.Random(seed).sample(WORDS, number)])


@pytest.mark.parametrize("between", ["", " | "])
def test_pages_with_a_longer_menu_are_copies_if_what_is_their_own_is_the_same(
    writer, between: str
) -> None:
    """With any markup, and after the index was rebuilt."""
    for n in range(9):
        for name in (f"{n}", f"{n}print"):
            page = with_menu(name, own_words(n), between=between)
            page.body += b"<!-- sid=1 -->" * name.endswith("print")
            writer.add(page)
    expected = {f"{n}": 1 for n in range(9)}
    assert hits(writer) == expected
    writer.close()
    rebuild(writer.directory, simhashes=simhashes)
    searcher = Searcher.open(writer.directory)
    assert {hit.url[20:]: hit.copies for hit in searcher.search("word7").hits} == expected
    assert near(*(searcher.get(f"http://wiki.example/{n}").likeness for n in ("1", "1print")))


def test_pages_that_are_asked_for_twice_have_one_likeness(tmp_path: Path) -> None:
    """While a commit waits for that page's likeness, the crawl's thread asks for 32 pages, that one
    among them."""

    class Late(Future[list[Compared]]):
        def result(self, timeout: float | None = None) -> list[Compared]:
            for page in later:
                writer.add(page)
            later.clear()
            return super().result(timeout)

    def answered(texts: Sequence[tuple[str, str]]) -> Future[list[Compared]]:
        found = Late()
        found.set_result(simhashes(texts).result())
        return found

    later = [
        with_menu("aprint", own_words(0)),
        *(with_menu(f"{n}", own_words(n)) for n in range(1, 31)),
    ]
    with IndexWriter(tmp_path / "index", simhashes=answered) as writer:
        writer.add(with_menu("a", own_words(0)))
        writer.commit()
        found = hits(writer, limit=100)
    assert sorted(found.values()) == [0] * 30 + [1]


def test_lists_of_other_links_are_no_copies_if_all_else_is_the_same(writer) -> None:
    for n in range(5):
        entries = random.Random(n).sample(WORDS, 120)
        links = " ".join(f"<a href=/{entry}>{entry} {n}</a>" for entry in ["word7", *entries])
        writer.add(fetched(f"{n}", f"<title>Index</title><p>In this order: {links}</p>"))
    assert hits(writer) == {f"{n}": 0 for n in range(5)}


def test_the_title_of_a_page_that_is_mostly_links_counts(writer) -> None:
    """Where it says nothing else."""
    for name, title in {"a": "Printers", "aa": "Printers", "ab": "Scanners"}.items():
        writer.add(with_menu(name, "word7", title=title))
    assert hits(writer) == {"a": 1, "ab": 0}


def test_what_is_no_link_of_a_page_that_is_mostly_links() -> None:
    """The title of a link element, images, strokes between links, and what stands around the main
    text are none of it."""
    menu = " ".join(
        f"<li><a href=/{entry}><img src=x alt=icon></a><a href=/x>{entry}</a>" for entry in MENU
    )
    link = f"<link rel=next title='{MENU[20]}' href=/next>"
    nav = f"<nav><a href=/>{MENU[7]}</a> around it</nav>"
    page = fetched("a", f"<title>A</title>{link}{nav}<div>{menu}</div>{nav}what it says {MENU[9]}")
    assert " ".join(outside_links(page)).split() == f"A what it says {MENU[9]}".split()
    page = fetched("a", f"<title>A</title>what it says <ul>{menu}</ul> of it")
    assert " ".join(outside_links(page)).split() == ["A", "what", "it", "says", "of", "it"]
    page = with_menu("a", "what it says", title="A", between=" | ")
    assert " ".join(outside_links(page)).split() == ["A", "a", "what", "it", "says"]


@pytest.mark.parametrize(
    "page",
    [
        Page("http://a.example/", text=TEXT),
        with_menu("most is its own", own_words(1, 380)),
        Page("http://a.example/", text="short list", links=[Link("", anchor="short list")]),
        fetched(
            "all around it", f"<main>{TEXT}</main><nav><a href=/>{TEXT[:400]}</a> {TEXT}</nav>"
        ),
    ],
)
def test_of_other_pages_nothing_is_asked_for(page: Page) -> None:
    assert outside_links(page) == []


def test_links_that_a_long_text_does_not_have_cost_little() -> None:
    """0.01 s; 11 s if it was gone through for each."""
    links = [Link("", anchor="a" * 255 + "b" + "a" * 255)] * 10_000
    page = Page("http://a.example/", text="a" * 400_000, links=links)
    began = time.process_time()
    assert outside_links(page) == []
    assert time.process_time() - began < 1


def test_short_parts_with_the_same_bytes_are_copies(writer, make_page) -> None:
    """Copies of each other and of pages, in any archive."""
    for name in ("one.zip", "two.zip"):
        page = make_page(name, "names")
        page.parts = [Part("a.txt", "text/plain", 5, text="word7", digest="ab12")]
        writer.add(page)
    writer.add(make_page("a.txt", "word7"), "ab12")
    assert sorted(hits(writer).values()) == [2]


def test_what_only_a_copy_has_is_found_there(writer, make_page) -> None:
    """By a word, and by a filter that the best one does not pass."""
    writer.add(make_page("http://a.example/", TEXT))
    writer.add(make_page("http://mirror.example/longer", NEARLY))
    assert hits(writer) == {"http://a.example/": 1}
    assert hits(writer, "other") == {"http://mirror.example/longer": 1}
    only = Filters.of(hosts=["mirror.example"])
    assert hits(writer, filters=only) == {"http://mirror.example/longer": 1}


def test_a_copy_that_changes_or_goes_is_none_any_more(writer, make_page) -> None:
    """Also where the first page of the group does, and after a page's link texts have changed."""
    for name in ("a", "bb", "ccc"):
        writer.add(make_page(name, TEXT))
    assert hits(writer) == {"a": 2}
    writer.add_anchors("http://wiki.example/x", {("http://wiki.example/bb", "hello")})
    writer.commit()
    writer.refresh_all_anchors()
    assert list(hits(writer).values()) == [2]
    writer.add(make_page("a", DIFFERENT))
    assert hits(writer) == {"a": 0, "bb": 1}
    writer.remove("http://wiki.example/bb")
    assert hits(writer) == {"a": 0, "ccc": 0}


def test_how_many_copies_a_page_has_is_asked_once_a_commit(
    writer, make_page, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()
    copies_in = module.copies_in

    def noting(*args: Any, **more: Any) -> list[Any]:
        asked.append(args[2])
        return copies_in(*args, **more)

    monkeypatch.setattr(module, "copies_in", noting)
    for name in ("a", "bb", "ccc"):
        writer.add(make_page(name, TEXT))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    assert [searcher.search("word7").hits[0].copies for _ in range(3)] == [2, 2, 2]
    writer.remove("http://wiki.example/ccc")
    writer.commit()
    assert [searcher.search("word7").hits[0].copies for _ in range(3)] == [1, 1, 1]
    assert len(asked) == 2


def test_pages_with_little_text_are_compared_by_their_bytes(writer, make_page) -> None:
    """Menus with the same words lead elsewhere; what has no bytes is no copy."""
    writer.add(make_page("a", "home back", body=b"<a href=1>home <a href=2>back"))
    writer.add(make_page("b", "home back", body=b"<a href=3>home <a href=4>back"))
    writer.add(make_page("cc", "home back", body=b"<a href=3>home <a href=4>back"))
    for name in ("empty", "empty2"):
        writer.add(make_page(name, "home back", body=b""))
    assert hits(writer, "home") == {"a": 0, "b": 1, "empty": 0, "empty2": 0}


def test_pages_of_hits_go_on_where_the_last_one_ended(writer, make_page) -> None:
    for n in range(30):
        writer.add(make_page(f"{n}", f"needle {n % 15}", body=b"%d" % (n % 15)))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    parts = [searcher.search(SearchRequest("needle", 6, offset)) for offset in (0, 6, 12)]
    assert [(len(part.hits), part.more, part.total) for part in parts] == [
        *((6, True, 30), (6, True, 30), (3, False, 30))
    ]
    assert len({hit.url for part in parts for hit in part.hits}) == 15


def test_a_much_longer_page_is_no_copy(writer, make_page, tmp_path: Path) -> None:
    """Of a page that repeats one row of words, as it does itself."""

    @contextmanager
    def all_count(_: object) -> Iterator[Deduplicator]:
        yield Deduplicator()

    row = "offset of dates "
    writer.add(make_page("short", row * 20 + "for easter"))
    writer.add(make_page("long", " ".join(f"{row * 20} freq{n} easter" for n in range(40))))
    writer.add(make_page("print", row * 20 + "for easter"))
    assert hits(writer, "easter") == {"long": 0, "print": 1}
    searcher = Searcher.open(writer.directory)
    short, long = (searcher.get(f"http://wiki.example/{name}") for name in ("short", "long"))
    assert not near(short.likeness, long.likeness)
    for one in (searcher, Searcher.of_workers([searcher], all_count)):
        found = {hit.url[-5:]: hit.copies for hit in one.search("easter").hits}
        assert found == {"/long": 0, "print": 1}
        assert (one.copies(short)[0], one.copies(long)[0]) == (1, 0)
        assert [hit.url[-5:] for hit in one.similar(short).hits] == ["/long"]


def test_copies_are_found_in_the_indexes_of_all_workers(tmp_path: Path, make_page) -> None:
    @contextmanager
    def all_count(_: object) -> Iterator[Deduplicator]:
        yield Deduplicator()

    searchers = []
    for worker, names in {"w1": ("a", "bb"), "w2": ("ccc", "a")}.items():
        with IndexWriter(tmp_path / worker, simhashes=simhashes) as index:
            for name in names:
                index.add(make_page(name, TEXT))
            index.add(make_page(f"far-{worker}", f"{DIFFERENT} {worker} " + worker * 99))
        searchers.append(Searcher.open(tmp_path / worker))
    both = Searcher.of_workers(searchers, all_count)
    found = both.search(SearchRequest("word7", 5))
    names = [hit.url.rpartition("/")[2] for hit in found.hits]
    assert (sorted(names), {hit.copies for hit in found.hits}) == (["a", "far-w1"], {2, 1})
    page = both.get("http://wiki.example/a")
    assert both.copies(page)[0] == 2
    assert [hit.copies for hit in both.similar(page).hits] == [1]


def test_navigation_is_no_main_text(writer, make_page) -> None:
    """It is found, and in no snippet and no similar page; a text that is nothing else stays."""
    for n in range(4):
        text = "|menu of all things| " + " ".join(f"w{n}x{m}" for m in range(99))
        writer.add(make_page(f"{n}", text, rest=[]))
    writer.add(make_page("map", "short |" + "site map of things " * 20 + "|"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    found = searcher.search("menu")
    assert found.total == 4
    assert not any("menu" in hit.snippet.text for hit in found.hits)
    page = searcher.get("http://wiki.example/0")
    assert (page.rest, page.text[:5]) == ("|menu of all things|", "w0x0 ")
    assert searcher.similar(page).hits == []
    assert "site map" in searcher.get("http://wiki.example/map").text


def test_navigation_is_learned_in_tables_of_contents_too(writer, make_page) -> None:
    """As a menu in any other element."""
    menu, own = "|menu of all things|", "What the page is about in so many words "
    for n in range(3):
        text = f"{own}{menu} 1. Item{n} " + " ".join(f"w{n}x{m}" for m in range(99))
        listed = (len(own), text.index(f" w{n}x0"))
        page = make_page(f"{n}", text, rest=[listed])
        page.contents = [0]
        writer.add(page)
    writer.commit()
    searcher = Searcher.open(writer.directory)
    assert searcher.search("menu").total == 3
    assert not any("menu" in hit.snippet.text for hit in searcher.search("menu").hits)
    page = searcher.get("http://wiki.example/0")
    assert page.rest == menu
    assert page.text.startswith(f"{own} w0x0 ")
    (hit,) = searcher.search("item2").hits
    assert hit.snippet.text == "1. Item2"


def test_pages_with_other_tables_of_contents_are_no_copies(writer, make_page) -> None:
    head = " ".join(WORDS[:60])
    for name, table in (("a", WORDS[100:160]), ("b", WORDS[200:260]), ("c", WORDS[100:160])):
        page = make_page(name, f"{head} {' '.join(table)}", rest=[(len(head), 2_000)])
        page.contents = [0]
        writer.add(page)
    assert sorted(hits(writer).values()) == [0, 1]


def test_among_many_pages_copies_that_differ_everywhere_are_not_found_quickly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All are, where one of the others has an equal block."""
    monkeypatch.setattr(copies, "MANY_PAGES", 0)
    fields = tantivy.SchemaBuilder().add_integer_field("likeness", fast=True)
    index = tantivy.Index(fields.add_text_field("blocks", tokenizer_name="raw").build())
    writer = index.writer(15_000_000, 1)
    one, near_by, everywhere = 0x0123_4567_89AB_CDEF, 0b11, 0x0001_0001_0001_0001
    for difference in (0, near_by, everywhere, 0xFF):
        likeness = one ^ difference
        writer.add_document(tantivy.Document(likeness=likeness, blocks=blocks(likeness)))
    writer.commit()
    index.reload()

    def found(difference: int, *, quickly: bool) -> int:
        likeness = one ^ difference
        searcher = index.searcher()
        return len(copies.copies_in(searcher, index.schema, likeness, 4, quickly=quickly))

    assert found(0, quickly=True) == found(0, quickly=False) == 3
    assert (found(everywhere, quickly=True), found(everywhere, quickly=False)) == (1, 3)
    assert found(0xFF, quickly=True) == found(0xFF, quickly=False) == 2


def test_the_likenesses_of_all_pages_say_the_same(
    writer, make_page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To each reader of the pages that he may see."""
    for name in ("a", "bb", "ccc", "http://hidden.example/d"):
        writer.add(make_page(name, TEXT))
    writer.add(make_page("near", NEARLY))
    writer.add(make_page("else", DIFFERENT))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    limited = searcher.seen_by(Access(("hidden.example",), ()))

    def counted() -> list[dict[str, int]]:
        return [
            {hit.url: hit.copies for hit in one.search(SearchRequest("word7", copies=True)).hits}
            for one in (searcher, limited, searcher)
        ]

    one_by_one = counted()
    assert [set(found.values()) for found in one_by_one] == [{0, 4}, {0, 3}, {0, 4}]
    monkeypatch.setattr(module, "FEW_LOOKED_UP", 1)
    writer.add(make_page("other", "nothing"))
    writer.commit()
    assert counted() == one_by_one
    for one in (searcher, limited):
        assert one.shards[0].known.likenesses is not None
