""""""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import tantivy

from larmspider.search.ranking import Boosts, salient_words, tantivys_idf
from larmspider.search.searcher import Document, Results, Searcher

VPN = "The tunnel needs a certificate. Renew the certificate before the tunnel closes."
FOOD = "The canteen serves soup on Monday and dumplings on Friday."


@pytest.fixture
def searcher(writer, make_page) -> Searcher:
    for n in range(4):
        digest = "" if n else "the same"
        writer.add(make_page(f"vpn{n}", f"{VPN} Step {n}", title=f"Tunnel {n}"), digest)
        writer.add(make_page(f"food{n}", f"{FOOD} Week {n}", title=f"Menu {n}"))
        writer.add(make_page(f"copy{n}", f"{VPN} Step 0"), digest="the same")
    writer.commit()
    return Searcher.open(writer.directory)


def document(searcher: Searcher, name: str) -> Document:
    found = searcher.get(f"http://wiki.example/{name}")
    assert found is not None
    return found


def names_of(found: Results) -> list[str]:
    return [hit.url.rpartition("/")[2] for hit in found.hits]


def test_similar_pages_share_the_salient_words(searcher) -> None:
    """Without the page itself and its copies; words that all pages have say nothing."""
    found = searcher.similar(document(searcher, "vpn0"))
    names = names_of(found)
    assert set(names[:3]) == {"vpn1", "vpn2", "vpn3"}
    assert not {"vpn0", "copy0"} & set(names)
    assert found.total == len(names)


def test_a_term_that_no_page_has_is_not_asked_for(searcher) -> None:
    """But the word as it is typed is: else it would be no word of the query."""
    ranking = searcher.shards[0].ranking(Boosts())
    with searcher.shards[0].reading():
        matching = str(ranking.build(searcher.parsed("tunnel")).matching)
        unknown = str(ranking.build(searcher.parsed("zeppelin")).matching)
    schema = json.loads((searcher.shards[0].directory / "meta.json").read_bytes())["schema"]
    fields = [each["name"] for each in schema]
    asked = [fields[int(number)] for number in re.findall(r"field=(\d+)", matching)]
    assert asked == ["exact", "title", "description"]
    assert unknown.count("zeppelin") == 1


def test_the_number_is_bounded(searcher) -> None:
    """As many as asked for."""
    assert len(searcher.similar(document(searcher, "food1"), 2).hits) == 2


@pytest.mark.parametrize("text", ["", "1 2 3 ! ?", "unheard-of wording"])
def test_a_page_that_says_nothing_is_like_nothing(searcher, text: str) -> None:
    """And it is no error."""
    page = Document("u", "u", "h", "", text, "", "", "", 0, 0, "", 0.0)
    assert searcher.similar(page).hits == []


def test_pages_that_were_indexed_again_are_no_harm(searcher, writer, make_page) -> None:
    """Words are then counted more often than there are pages."""
    for _ in range(3):
        for n in range(4):
            writer.add(make_page(f"vpn{n}", f"{VPN} Step {n}", title=f"Tunnel {n}"))
        writer.commit()
    assert set(names_of(searcher.similar(document(searcher, "vpn0")))) >= {"vpn1", "vpn2", "vpn3"}


@pytest.mark.parametrize(
    "words, salient",
    [
        ("the the the the tunnel tunnel soup", ["tunnel", "soup"]),
        ("tunnel soup soup soup", ["soup", "tunnel"]),
        ("apple zebra", ["zebra", "apple"]),
        ("alone 2026 ab", []),
    ],
)
def test_salient_words(words: str, salient: list[str]) -> None:
    """Often here and seldom elsewhere; neither what all pages have nor what no other has."""
    having = {
        "the": 100,
        "tunnel": 5,
        "soup": 5,
        "alone": 1,
        "2026": 5,
        "ab": 5,
        "apple": 40,
        "zebra": 5,
    }
    assert salient_words(words.split(), having.__getitem__, 100) == salient


# findability


BENCHMARKS = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def findability() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("benchmarks.findability")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.acceptance
def test_python_documentation_is_found(findability: ModuleType, tmp_path: Path) -> None:
    """100 entries of its own index, beside plain BM25."""
    manual = next((m for m in findability.installed() if m.name == "python"), None)
    if manual is None:
        pytest.skip("package python3.11-doc is not installed")
    pages = list(manual.pages())
    entries = manual.entries(page.url for page in pages)
    typed = findability.cases("entry", entries, manual, 100)
    product = findability.product(findability.build(tmp_path / "index", pages))
    scores = findability.measure(typed, product)
    plain = findability.measure(typed, findability.baseline(pages))
    assert scores.success >= 0.95
    assert scores.mrr >= 0.85
    assert scores.mrr > plain.mrr


def test_figures_are_what_they_say(findability: ModuleType) -> None:
    """success@10 counts right pages, MRR@10 their ranks."""
    right = frozenset({"r"})
    found = {"first": ["r", "x"], "fourth": ["x", "x", "x", "r"], "never": ["x"], "empty": []}
    scores = findability.measure([(query, right) for query in found], found.__getitem__)
    assert (scores.mrr, scores.success) == ((1 + 0.25) / 4, 0.5)


INDEXES = {
    "genindex": """<table class="indextable genindextable"><tbody><tr><td><ul>
        <li><a href="a.html#join">join() (Queue method)</a>, <a href="b.html">[1]</a><ul>
        <li><a href="c.html">(str method)</a></li></ul></li></ul></td></tr></tbody></table>""",
    "bookindex": """<div class="index"><dl><dt>join,
        <a class="indexterm" href="a.html">A</a></dt><dd><dl><dt>left,
        <a class="indexterm" href="c.html">C</a></dt></dl></dd></dl></div>""",
    "index-all": """<dl class="index"><dt><a class="member-name-link" href="a.html#join">
        join(String)</a> - Method in class org.<a href="b.html">Queue</a></dt></dl>""",
    "index-all, JDK 8": """<dl><dt><a href="c.html"><span class="typeNameLink">Queue</span></a> -
        Class in <a href="d.html">org</a></dt><dt><span class="memberNameLink"><a
        href="a.html#join">join(String)</a></span> - Method in class org.<a
        href="b.html">Queue</a></dt></dl>""",
    "gimp-help-index": """<div class="index"><div class="indexdiv"><dl><dt>join,
        <a class="indexterm" href="a.html">A</a></dt></dl></div></div>""",
    "Function-Index": """<table><tr><td><a href="a.html#index-join">join</a>:</td>
        <td><a href="a.html">Lists</a></td></tr></table>""",
    "Macro-index": """<table><tr><td></td><td><a href="a.html#index-join">join</a>:</td>
        <td><a href="a.html">Lists</a></td></tr></table>""",
    "manual_377": """<table class="index-fn" border="0"><tr><td></td><td><a
        href="a.html#index-join">join</a>:</td><td><a href="a.html">Lists</a></td></tr></table>""",
    "api-index-full": """<div class="index"><dl><dt><a class="link" href="a.html#join">join</a>,
        function in <a class="link" href="b.html">Queue</a></dt></dl></div>""",
    "index-all, GTK-Doc": """<div class="index"><dl><dt id="x">join, <a class="indexterm"
        href="a.html#join">join ()</a></dt></dl></div>""",
    "functions_j": """<ul><li>join() : <a class="el" href="a.html#1">std::list&lt; T &gt;</a>
        , <a class="el" href="c.html">std::deque</a></li></ul>""",
}


@pytest.mark.parametrize(
    "index, entries",
    [
        ("genindex", {("join()", "Queue method", "ab"), ("join()", "str method", "c")}),
        ("bookindex", {("join", "", "a"), ("join", "left", "c")}),
        ("index-all", {("join", "Queue", "a")}),
        ("index-all, JDK 8", {("join", "Queue", "a")}),
        ("gimp-help-index", {("join", "", "a")}),
        ("Function-Index", {("join", "", "a")}),
        ("Macro-index", {("join", "", "a")}),
        ("manual_377", {("join", "", "a")}),
        ("api-index-full", {("join", "function in Queue", "a")}),
        ("index-all, GTK-Doc", {("join", "", "a")}),
        ("functions_j", {("join()", "std::list", "a"), ("join()", "std::deque", "c")}),
    ],
)
def test_an_index_is_read(
    findability: ModuleType, tmp_path: Path, index: str, entries: set[tuple[str, str, str]]
) -> None:
    """Each kind of index; the index itself is not a page to be found."""
    for name in "abc":
        (tmp_path / f"{name}.html").write_text(f"<title>{name}</title>text")
    (tmp_path / f"{index.partition(',')[0]}.html").write_text(INDEXES[index])
    manual = findability.Manual.of("m", tmp_path)
    urls = [page.url for page in manual.pages()]
    assert urls == [f"http://m.example/{name}.html" for name in "abc"]
    found = {
        (entry.name, entry.qualifier, "".join(sorted(url[-6] for url in entry.urls)))
        for entry in manual.entries(urls)
    }
    assert found == entries


def test_the_page_of_a_header_is_no_index(findability: ModuleType, tmp_path: Path) -> None:
    """Doxygen's functions_8hpp.html is about functions.hpp, functions_h.html is an index at "h"."""
    (tmp_path / "functions_8hpp.html").write_text("<title>functions.hpp</title>text")
    assert findability.Manual.of("m", tmp_path) is None
    (tmp_path / "functions_h.html").write_text(INDEXES["functions_j"])
    manual = findability.Manual.of("m", tmp_path)
    assert [page.url for page in manual.pages()] == ["http://m.example/functions_8hpp.html"]


def test_an_index_that_is_not_understood_is_named(
    findability: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.html").write_text("<title>a</title>text")
    (tmp_path / "index-all.html").write_text("<h1>Index</h1><a href='a.html'>join</a>")
    assert findability.main(["--docs", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path}/index-all.html: this index was not understood" in said


def test_entries_are_typed_in_many_ways(findability: ModuleType, tmp_path: Path) -> None:
    """The same queries each time."""
    manual = findability.Manual(
        "m", tmp_path, importlib.import_module("benchmarks.manuals").KINDS["sphinx"]
    )
    names = ["--prefix", "listeners", "join()"]
    entries = [findability.Entry(name, "os.path method", frozenset({name})) for name in names]

    def typed(form: str) -> set[str]:
        found = findability.cases(form, entries, manual, 10)
        assert found == findability.cases(form, entries, manual, 10)
        return {query for query, _ in found}

    assert typed("name") == set(names)
    assert "join() os.path method" in typed("entry")
    assert "os.path.join()" in typed("code")
    assert typed("flag") == {"--prefix"}
    assert typed("inflected") == {"listener"}
    assert '"join()"' in typed("quoted")
    assert typed("question").isdisjoint(names)
    assert len(typed("typo") - set(names)) == 2


def test_a_word_with_many_forms_counts_little_more_than_one_with_few(writer, make_page) -> None:
    """A page with five forms of a word earns 1.5 times what one with it does, not 1.8 times."""
    forms = "install installs installed installing installations"
    writer.add(make_page("forms", f"{forms} once"))
    writer.add(make_page("word", "install a thing, and another one"))
    for name in "abcdef":
        writer.add(make_page(name, f"something else that is in {name}"))
    writer.commit()
    first, second = Searcher.open(writer.directory).search("install").hits
    assert first.url.endswith("/forms")
    assert first.score < 1.65 * second.score


def test_a_page_whose_title_is_another_form_of_the_word_is_first(writer, make_page) -> None:
    """The user types a name in the plural."""
    writer.add(make_page("page", "of the offsets of places " * 40 + "timezone", title="TimeZone"))
    for name in "abcdefgh":
        writer.add(make_page(name, f"timezone timezone {name}", title=f"timezone {name}"))
    for number in range(40):
        writer.add(make_page(f"other{number}", "something else"))
    writer.commit()
    found = Searcher.open(writer.directory).search("timezones")
    assert (found.total, found.instead) == (9, None)
    assert found.hits[0].url.endswith("/page")
    asked = Searcher.open(writer.directory).search("timezones?")
    assert asked.hits[0].score == pytest.approx(found.hits[0].score)


def test_a_phrase_counts_more_in_title_and_url(writer, make_page) -> None:
    """The other pages have it in their text."""
    writer.add(make_page("backup-plan", "a backup plan of ours"))
    writer.add(make_page("b", "a backup plan of ours too", title="Backup plan"))
    writer.add(make_page("c", "a backup plan of theirs"))
    writer.add(make_page("backup-plan/no", "nothing of the kind"))
    writer.commit()
    found = Searcher.open(writer.directory).search('"backup plan"')
    assert found.total == 3
    assert found.hits[-1].url.endswith("/c")


def test_a_title_of_several_words_that_is_the_query_counts_for_each(writer, make_page) -> None:
    """Else shorter pages with the same words in longer titles come before it."""
    for n in range(300):
        writer.add(make_page(f"other{n}", f"Something else {n}", title=f"Other {n}"))
    for n in range(12):
        text = f"{'wide paper style table ' * 2}{n}"
        writer.add(make_page(f"part{n}", text, title=f"Wide Paper Style Table {n}x"))
    text = "The wide paper style table. " + "Much else is said here of this and that. " * 8
    writer.add(make_page("whole", text, title="Wide Paper Style Table"))
    writer.commit()
    assert names_of(Searcher.open(writer.directory).search("wide paper style table"))[0] == "whole"


@pytest.mark.parametrize("having", [1, 2, 60, 199, 200])
def test_idf_is_rounded_as_tantivy_does(having: int) -> None:
    """By it a boost takes back what Tantivy multiplies a score by."""
    builder = tantivy.SchemaBuilder()
    schema = builder.add_text_field("text").build()
    index = tantivy.Index(schema)
    writer = index.writer(15_000_000, 1)
    for n in range(200):
        writer.add_document(tantivy.Document(text="word" if n < having else "other"))
    writer.commit()
    index.reload()
    query = tantivy.Query.term_query(schema, "text", "word")
    searcher = index.searcher()
    ((_, address),) = searcher.search(query, 1).hits
    inside = json.loads(query.explain(searcher, address).to_json())["details"]
    (found,) = (part["value"] for part in inside if part["description"].startswith("idf"))
    assert found == pytest.approx(tantivys_idf(200, having), rel=1e-6)
