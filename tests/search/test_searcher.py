from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import tantivy

from larmspider.errors import CrawlDirError, QueryError
from larmspider.index import schema
from larmspider.index.copies import of_bytes
from larmspider.index.version import META_NAME
from larmspider.index.writer import IndexWriter
from larmspider.items import Page, Section
from larmspider.search import ranking
from larmspider.search import reading as module
from larmspider.search.reading import all_count
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Document, Searcher
from larmspider.search.shard import Shard
from larmspider.search.snippets import Snippet

SUITES = Path(__file__).parents[2] / ".." / "shared" / "suites"


@pytest.fixture
def pages(writer, make_page) -> None:
    """A small intranet."""
    for page in (
        make_page("paths", "Use os.path.join() to join paths.", title="Paths", language="en-US"),
        make_page("posix", "The join of a path and an os.", title="Portable"),
        make_page("cpp", "Modern C++ and a naïve café", title="Languages"),
        make_page("class", "object.__init__ initialises", title="Listeners"),
        make_page("build", "configure --enable-shared", description="How to compile"),
        make_page("init", "the init script", mime="application/pdf"),
        make_page("http://docs.other.example:8080/a_guide?page=two", "漢字の本", language="ja"),
        make_page("http://xn--strae-oqa.example/street", "of another host"),
    ):
        writer.add(page)


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize(
    "query, first",
    [
        ("os.path.join()", "paths"),
        ("C++", "cpp"),
        ("naive cafe", "cpp"),
        ("object.__init__", "class"),
        ("__init__", "class"),
        ("initialise", "class"),
        ("listener", "class"),
        ("--enable-shared", "build"),
        ("compiling", "build"),
        ("漢字", "a_guide?page=two"),
        ("guide two", "a_guide?page=two"),
        ("configrue~ sharde~", "build"),
        ("foo(init)", "init"),
    ],
)
def test_best_hit(find, query: str, first: str) -> None:
    """Names in code, accents, forms of a word, URLs and misspellings find their page."""
    assert find(query)[0] == first


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize(
    "query, found",
    [
        ('"join paths"', {"paths"}),
        ('"join of a path" "an os"', {"posix"}),
        ("join -portable", {"paths"}),
        ('join -"of a"', {"paths"}),
        ("join -title:portable", {"paths"}),
        ("title:listening", {"class"}),
        ("url:a_guide", {"a_guide?page=two"}),
        ("url:http://wiki.example/cpp", {"cpp"}),
        ("host:other.example", {"a_guide?page=two"}),
        ("host:OTHER.example/ host:docs.other.example", {"a_guide?page=two"}),
        ("host:example init", {"init", "class"}),
        ("host:ample", set()),
        ("host:Straße.example", {"street"}),
        ("host:xn--strae-oqa.example", {"street"}),
        ("lang:en", {"paths"}),
        ("lang:en-us", {"paths"}),
        ("mime:pdf", {"init"}),
        ("mime:application/pdf", {"init"}),
        ("mime:pdf join", set()),
        ("initt~1", {"init", "class"}),
        ("NOT", set()),
        ("*nit", set()),
    ],
)
def test_what_matches(find, query: str, found: set[str]) -> None:
    """Phrases and fields must match, excluded words must not."""
    assert set(find(query)) == found


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("query", ["", "title:", "a." * 65])
def test_a_query_that_means_nothing_is_a_query_error(find, query: str) -> None:
    """And nothing of Tantivy's comes through."""
    with pytest.raises(QueryError):
        find(query)


@pytest.mark.usefixtures("pages")
def test_naughty_strings_are_searched_or_refused(writer) -> None:
    """515 strings that broke other programs."""
    folder = SUITES / "naughty-strings"
    if not folder.is_dir():
        pytest.skip(f"peer test data absent: {folder}")
    strings = [s for file in folder.glob("*.json") for s in _strings(file)]
    assert len(strings) > 500
    writer.commit()
    searcher = Searcher.open(writer.directory)
    for query in strings:
        try:
            searcher.search(query)
        except QueryError as error:
            assert "\n" not in str(error)  # noqa: PT017 - either outcome is right


def _strings(file: Path) -> list[str]:
    """All strings in a JSON file, however deep."""
    found: list[str] = []
    pending = [json.loads(file.read_text(encoding="utf-8"))]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict | list):
            pending += value.values() if isinstance(value, dict) else value
    return found


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("limit, offset", [(0, 0), (1001, 0), (1, -1), (1, 10_001)])
def test_limits_are_bounded(writer, limit: int, offset: int) -> None:
    """A query cannot ask for the whole index."""
    with pytest.raises(QueryError, match="expected 1 to 1000"):
        Searcher.open(writer.directory).search(SearchRequest("join", limit, offset))


def test_total_limit_and_offset(writer, make_page) -> None:
    """Pages of results follow one another."""
    for n in range(25):
        writer.add(make_page(f"{n}", "word"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    parts = [searcher.search(SearchRequest("word", 10, offset)) for offset in (0, 10, 20)]
    assert [(part.total, len(part.hits)) for part in parts] == [(25, 10), (25, 10), (25, 5)]
    assert len({hit.url for part in parts for hit in part.hits}) == 25


def test_hit_and_document_carry_the_page(writer, make_page) -> None:
    """All that the index has of a page comes back, in the units of Page."""
    page = make_page("a", "the text", title="A\x1b title", language="de", depth=3, description="d")
    page.normalized = "http://wiki.example/canonical"
    writer.add(page, digest="abc")
    writer.commit()
    searcher = Searcher.open(writer.directory)
    (hit,) = searcher.search("text").hits
    assert (hit.url, hit.title, hit.host) == (page.url, "A  title", "wiki.example")
    assert (hit.mime, hit.language, hit.size) == ("text/html", "de", len(page.body))
    assert (hit.fetched, hit.depth) == (1_700_000_000.5, 3)
    assert searcher.get("http://wiki.example/canonical") == Document(
        url=page.url,
        normalized="http://wiki.example/canonical",
        host="wiki.example",
        title="A\x1b title",
        text="the text",
        description="d",
        mime="text/html",
        language="de",
        depth=3,
        size=len(page.body),
        digest="abc",
        fetched=1_700_000_000.5,
        likeness=of_bytes("abc"),
    )
    assert searcher.get(page.url) is None
    assert searcher.get("\ud800") is None


def test_sees_the_commits_of_another_process(tmp_path: Path, make_page) -> None:
    """An open searcher follows a crawl that goes on elsewhere."""
    index = tmp_path / "index"
    IndexWriter(index).close()
    searcher = Searcher.open(index)
    assert searcher.count() == 0
    program = (
        "import sys; from pathlib import Path; from larmspider.items import Page\n"
        "from larmspider.index.writer import IndexWriter\n"
        "with IndexWriter(Path(sys.argv[1])) as w: w.add(Page('http://h/', text='word'))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(index)], check=True)
    assert (searcher.count(), searcher.search("word").total) == (1, 1)


def test_no_index_is_a_crawl_dir_error(tmp_path: Path) -> None:
    """An empty directory, and files that are not ours."""
    with pytest.raises(CrawlDirError, match="no search index"):
        Searcher.open(tmp_path)
    (tmp_path / META_NAME).write_text("{")
    with pytest.raises(CrawlDirError, match="cannot be read"):
        Searcher.open(tmp_path)


@pytest.mark.parametrize("record", ['"format": 99', '"schema": 9'])
def test_another_format_is_refused(writer: IndexWriter, record: str) -> None:
    """Reader and writer say what to do. Before 1.0 the number had another name."""
    writer.close()
    (writer.directory / META_NAME).write_text(f'{{{record}, "stemmer": "english"}}')
    for opened in (Searcher.open, IndexWriter):
        with pytest.raises(CrawlDirError, match=r"has format 9+, .*: scrapy reindex rebuilds it"):
            opened(writer.directory)


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("the cafe\u0301 here", "café", "the *cafe\u0301* here"),
        ("the café here", "cafe\u0301", "the *café* here"),
        ("we co\u00adop\u00aderate now", "cooperate", "we *co\u00adop\u00aderate* now"),
        ("the pass\u200bword is", '"password is"', "the *pass\u200bword* *is*"),
        ("a \ufb01le here", "file", "a *\ufb01le* here"),
        ("Java\u2122 Platform", '"java platform"', "*Java*\u2122 *Platform*"),
        ("5\u338f of it", "kg", "5*\u338f* of it"),
        ("ガギ here", "ｶﾞｷﾞ", "*ガギ* here"),
    ],
)
def test_words_are_found_in_any_spelling(
    writer: IndexWriter, make_page, text: str, query: str, shown: str
) -> None:
    """With accents apart (NFD), soft hyphens, zero-width spaces and compatibility characters, in
    the page or in the query; the index stores and shows the page's own text."""
    writer.add(make_page("a", text, title=text, description=text))
    writer.add(make_page("b", "other words"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    (hit,) = searcher.search(query).hits
    assert hit.snippet.marked("*", "*") == shown
    page = searcher.get("http://wiki.example/a")
    assert page is not None
    assert (page.text, page.title, page.description) == (text, text, text)
    assert searcher.suggestion(query) is None


def test_link_texts_and_urls_are_normalized_too(writer: IndexWriter, make_page, find) -> None:
    writer.add(make_page("Cafe%CC%81/menu", "soup"))
    writer.add_anchors("http://h/", [("http://wiki.example/Cafe%CC%81/menu", "de\u0301jeuner")])
    assert find("url:café") == ["menu"]
    writer.refresh_all_anchors()
    assert find("déjeuner") == ["menu"]


def test_a_page_without_canonical_form_is_kept_by_its_url(find, writer) -> None:
    """`normalized` is None where the URL has no canonical form."""
    writer.add(Page("http://h/x", text="word"))
    assert find("word") == ["x"]


def test_all_words_and_neighbours_rank_first(find, writer, make_page) -> None:
    """Before pages that have one of the words more often."""
    writer.add(make_page("often", "remote " * 50))
    writer.add(make_page("apart", "access to what is far away and remote, " + "filler " * 20))
    writer.add(
        make_page("together", "what is far away and to filler: remote access " + "filler " * 20)
    )
    assert find("remote access") == ["together", "apart", "often"]


def test_a_panic_of_tantivy_is_an_error_of_ours(writer, make_page) -> None:
    """It is no Exception, and would end a server's thread."""
    writer.add(make_page("a", "word"))
    writer.commit()
    shard = Shard.open(writer.directory)
    with pytest.raises(CrawlDirError, match="cannot answer this"), shard.reading():
        tantivy.Query.phrase_query(shard.schema, "exact", ["alone"])


# what a person means


def test_a_flag_is_no_minus_where_pages_have_it(find, writer, make_page) -> None:
    """``-Wall`` beside other words is a flag; ``-draft`` excludes."""
    writer.add(make_page("flags", "gcc -Wall shows all warnings"))
    writer.add(make_page("house", "gcc and the wall of a house, a draft"))
    assert find("gcc -Wall") == ["flags", "house"]
    assert find("gcc -draft") == ["flags"]


@pytest.mark.parametrize("flag", ["-std=c11", "-std=<value>", "-std=", "-std[=VALUE]"])
def test_a_flag_with_a_value_is_one_too(find, writer, make_page, flag: str) -> None:
    """Whatever stands behind its name."""
    writer.add(make_page("flags", "gcc takes the language: -std=c17"))
    writer.add(make_page("house", "gcc and the std of a house"))
    assert find(f"gcc {flag}") == ["flags", "house"]


def test_a_flag_is_found_as_it_is(find, writer, make_page) -> None:
    """Before pages that have only its word, however often."""
    writer.add(make_page("prefix", "prefix prefix: the prefix of a word", title="Prefix"))
    many = " ".join(f"--option{n}" for n in range(200))
    writer.add(make_page("options", f"{many} --prefix {many}"))
    assert find("--prefix")[0] == "options"
    assert find("prefix")[0] == "prefix"


def test_a_phrase_typed_again_counts_once(writer, make_page) -> None:
    writer.add(make_page("a", "Where to log in"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    once, again = (searcher.search(query).hits for query in ('"log in"', '"log in" ' * 30))
    assert [hit.score for hit in again] == [hit.score for hit in once]


def test_question_words_do_not_decide(find, writer, make_page) -> None:
    """A page full of them is not the answer."""
    for n in range(5):
        writer.add(make_page(f"page{n}", "Nothing of it."))
    writer.add(make_page("faq", "How do I do this? How do I use that?", title="How do I ..."))
    writer.add(make_page("queues", "A queue holds messages."))
    assert find("how do I use a queue")[0] == "queues"


def test_a_link_text_that_is_the_query_comes_first(find, writer, make_page) -> None:
    """Among pages with the same words."""
    for name in ("first", "second", "third"):
        writer.add(make_page(name, "the mode of a file and its owner"))
    writer.add_anchors(
        "http://h/", [("http://wiki.example/third", "mode"), ("http://wiki.example/first", "file")]
    )
    writer.commit()
    writer.refresh_all_anchors()
    assert find("mode")[0] == "third"
    assert find("file")[0] == "first"


def test_other_forms_of_a_word_count_half(find, writer, make_page) -> None:
    writer.add(make_page("plural", "the listeners are here"))
    writer.add(make_page("same", "the listener is here"))
    assert find("listener") == ["same", "plural"]
    assert find("listening") == find("listen")


def test_pages_that_many_link_to_come_before_others(find, writer, make_page) -> None:
    """Where they are alike in all else; lists that programs make come last."""
    for name in ("one", "two", "genindex.html"):
        writer.add(make_page(name, "holiday request"))
    links = [("http://wiki.example/two", "form"), ("http://wiki.example/genindex.html", "form")]
    for n in range(20):
        writer.add_anchors(f"http://h/{n}", links)
    writer.commit()
    writer.refresh_all_anchors()
    assert find("holiday") == ["two", "one", "genindex.html"]


def searched(writer, query: str, **options: object):
    writer.commit()
    return Searcher.open(writer.directory).search(SearchRequest(query, **options))


def test_a_mistake_is_corrected_where_next_to_nothing_is_found(writer, make_page) -> None:
    """And it is said; who means it can say so."""
    for n in range(4):
        writer.add(make_page(f"page{n}", f"The license server {n}"))
    found = searched(writer, "lisence server")
    assert (found.instead, found.total_all) == ("license server", 4)
    found = searched(writer, "lisence server", verbatim=True)
    assert (found.instead, found.total, found.total_all) == (None, 4, 0)
    assert searched(writer, "license server").instead is None


@pytest.mark.parametrize("query", [
    "getPrefxLength", "how do I call getPrefxLength", "toMultivariateDiferentiableFunction",
])  # fmt: skip
def test_where_nothing_is_found_a_correction_that_one_page_has_will_do(
    writer, make_page, query: str
) -> None:
    """A name stands on its own page alone, and may be a long one."""
    writer.add(make_page("a", "call getPrefixLength toMultivariateDifferentiableFunction"))
    writer.add(make_page("b", "how do I call home"))
    found = searched(writer, query)
    assert (found.total_all, found.hits[0].url[-2:]) == (1, "/a")
    assert found.instead is not None
    assert searched(writer, query, verbatim=True).total_all == 0


@pytest.mark.parametrize(
    ("query", "instead"),
    [
        ("compact", None),  # two letters
        ("lease", "please"),  # alone it finds nothing
        ("lease server", None),  # the first letter
        ("pleese server", "please server"),
        ("stay server", None),  # a short word
        ("sqlte3", "sqlite3"),
        ("sqlite4", None),  # another number
    ],
)
def test_a_word_is_replaced_unasked_where_that_is_likely(
    writer, make_page, query: str, instead: str | None
) -> None:
    """Other likely words are offered."""
    for number in range(3):
        writer.add(make_page(f"{number}", "please say which company's server has sqlite3"))
    writer.add(make_page("server", "server"))
    found = searched(writer, query)
    assert found.instead == instead
    if not (instead or query == "sqlite4"):
        assert Searcher.open(writer.directory).suggestion(query) is not None


def test_a_phrase_that_nothing_has_gives_its_words(writer, make_page) -> None:
    """One that some page has is taken exactly."""
    writer.add(make_page("page", "join paths"))
    found = searched(writer, '"paths join"')
    assert (found.instead, found.total) == ("paths join", 1)
    assert searched(writer, '"join paths"').instead is None
    assert searched(writer, '"paths join"', verbatim=True).total == 0
    assert searched(writer, 'title:"paths join"').total == 0, "a field stays"
    found = searched(writer, '"paths join" -title:"a b"')
    assert (found.instead, found.total) == ('paths join -title:"a b"', 1)


def test_pages_with_all_words_that_matter_are_counted(writer, make_page) -> None:
    """Beside those with any of the words."""
    writer.add(make_page("both", "a backup of the database"))
    writer.add(make_page("one", "the database of users"))
    writer.add(make_page("none", "how do I get home"))
    found = searched(writer, "how do I get a backup of a database")
    assert (found.total, found.total_all) == (3, 1)


BAD = ["x" * 100_000, "the of and " * 30, '"' * 999, '"a ' * 30, "* " * 499, "a* ?b " * 160]
WORSE = ["~ " * 400, "-" * 900, "a-" * 400, "__" * 400, "operator" * 100, "C-" * 400]


@pytest.mark.parametrize("query", BAD + WORSE)
def test_what_cannot_be_searched_is_an_answer_or_an_error(writer, make_page, query: str) -> None:
    """Whatever is typed or pasted."""
    writer.add(make_page("page", "the of and a b"))
    with suppress(QueryError):
        searched(writer, query, facets=True)


def test_a_query_may_have_64_words(writer, make_page) -> None:
    """As words, as a phrase that a page has, and as one of no page, then without quotes."""
    words = [f"word{number}" for number in range(64)]
    writer.add(make_page("all", " ".join(words)))
    assert searched(writer, " ".join(words)).total_all == 1
    assert searched(writer, f'"{" ".join(words)}"').instead is None
    turned = " ".join(reversed(words))
    found = searched(writer, f'"{turned}"')
    assert (found.total_all, found.instead) == (1, turned)
    with pytest.raises(QueryError, match="65 words, at most 64 are allowed"):
        searched(writer, f'"{turned} more"')


def test_curly_quotes_are_taken_off_where_no_page_has_the_phrase(writer, make_page) -> None:
    """As straight ones are."""
    writer.add(make_page("page", "the log is in there"))
    found = searched(writer, "\u201clog in\u201d")
    assert (found.total, found.instead) == (1, "log in")


@pytest.mark.parametrize("phrase", ["title: page", "a~ b~ c~ d~ e~", "page " + "- " * 70])
def test_a_phrase_that_is_no_query_without_quotes_finds_nothing(
    writer, make_page, phrase: str
) -> None:
    """No page has it, and that is the answer."""
    writer.add(make_page("other", "another one"))
    found = searched(writer, f'"{phrase}"')
    assert (found.total, found.instead) == (0, None)


def test_what_stands_around_the_main_text_counts_little(writer, make_page) -> None:
    """It is found, and neither shown in a snippet nor compared with other pages."""
    text = "Home Zebras Imprint All about lions and what they do all day. And more of them."
    rest = [(0, text.index("All"))]
    writer.add(make_page("menu", text, rest=rest))
    writer.add(make_page("zebras", text.replace("lions", "zebras"), rest=rest))
    writer.add(make_page("alike", text.replace("lions", "lynxes"), rest=[]))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    results = searcher.search("zebras")
    assert [hit.title for hit in results.hits][-1] == "menu"
    assert results.hits[0].title == "zebras"
    shown = results.hits[-1].snippet.text
    assert shown == "All about lions and what they do all day. And more of them."
    assert searcher.search('"home zebras"').total == 3
    page = searcher.get("http://wiki.example/menu")
    assert page is not None
    assert page.rest == "Home Zebras Imprint"
    assert page.text.startswith("All about lions")


def test_a_table_of_contents_is_searched_as_the_text_and_shown_for_its_own_words(
    writer, make_page
) -> None:
    table = "1. Zebras 2. Lions at night"
    text = "All about animals of the savanna, and what they eat."
    listed = make_page("listed", f"Home {table} {text}", rest=[(0, 5), (5, 6 + len(table))])
    listed.contents = [1]
    writer.add(listed)
    writer.add(make_page("around", f"{table} {text}", rest=[(0, len(table) + 1)]))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    hits = {hit.title: hit for hit in searcher.search("zebras animals").hits}
    assert hits["around"].score < hits["listed"].score
    assert hits["listed"].snippet.text == text
    hit = searcher.search("zebras").hits[0]
    assert (hit.title, hit.snippet.text) == ("listed", table)
    assert hit.section is None
    page = searcher.get("http://wiki.example/listed")
    assert page is not None
    assert (page.text, page.rest) == (text, "Home")


TABLE = "1. The deep wombats 2. The flag --prefix 3. All that is listed"
SENTENCE = "Here wombats sleep, and a prefix of them runs."


@pytest.mark.parametrize(("query", "shown"), [
    ("wombats", SENTENCE),
    ("flag wombats", SENTENCE),
    ('"deep wombats"', TABLE),
    ("--prefix", TABLE),
    ("flag", TABLE),
    ("listed", "Wombats are listed."),
    ("how are the flags", TABLE),
    ("is of a sleep", SENTENCE),
])  # fmt: skip
def test_a_table_of_contents_is_shown_for_what_it_has_alone(query, shown, writer, make_page):
    """Phrases and flags as well as words, except those that the description has too."""
    page = make_page("a", f"{TABLE} {SENTENCE}", rest=[(0, len(TABLE) + 1)])
    page.contents, page.description = [0], "Wombats are listed."
    writer.add(page)
    writer.commit()
    (hit,) = Searcher.open(writer.directory).search(query).hits
    assert hit.snippet.text == shown


def test_no_phrase_goes_on_in_the_table_of_contents(writer, make_page) -> None:
    page = make_page("a", f"{TABLE} {SENTENCE}", rest=[(0, len(TABLE) + 1)])
    page.contents = [0]
    writer.add(page)
    writer.commit()
    searcher = Searcher.open(writer.directory)
    assert searcher.search('"deep wombats"').instead is None
    assert searcher.search('"runs 1 the"').instead is not None


def test_all_of_a_long_table_of_contents_is_searched(writer, make_page) -> None:
    table = " ".join(f"entry{n}x" for n in range(20_000))
    page = make_page(
        "a", f"{SENTENCE} {table}", rest=[(len(SENTENCE), len(SENTENCE) + 1 + len(table))]
    )
    page.contents = [0]
    writer.add(page)
    writer.commit()
    assert Searcher.open(writer.directory).search("entry19999x wombats").total_all == 1


def test_what_is_done_to_a_hit_changes_no_other(writer, make_page) -> None:
    writer.add(make_page("a", "of the canteen", fields={"room": ["7"]}))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    for _ in range(2):
        (hit,) = searcher.search("canteen").hits
        assert hit.fields == {"room": ["7"]}
        hit.fields["room"].append("8")


def test_a_short_main_text_is_shown_and_not_the_menu_before_it(writer, make_page) -> None:
    """Where a word of the query is in it, or nowhere; all of the page is found, as it was."""
    core = "Siren H4 It has four rotors."
    text = f"Home | Wiki | Sirens | People {core} Imprint"
    headings = [Section(text.index(core), "", "Siren H4")]
    writer.add(make_page("h4", text, core=core, title="Loud", sections=headings))
    parted = core.replace("H4 It", "H4 · It")
    for query, shown in {
        "siren": parted,
        "rotors imprint": "It has four rotors.",
        "loud": parted,
        "people": text.replace(f" {core}", f" · {parted}"),
    }.items():
        (hit,) = searched(writer, query).hits
        assert hit.snippet.text.strip() == shown, query
    page = Searcher.open(writer.directory).get("http://wiki.example/h4")
    assert page is not None
    assert page.text == text


def test_hits_without_snippets_are_the_same_hits(writer, make_page) -> None:
    """In the same order, of one index and of several."""
    for n in range(30):
        writer.add(make_page(f"{n}", "siren " * (n + 1) + f"rotor {n}"))
    writer.commit()
    one = Searcher.open(writer.directory)
    workers = Searcher.of_workers([one], all_count)
    for searcher in (one, workers, Searcher.of_collections([("a", one)])):
        hits = searcher.search(SearchRequest("siren rotor", 30)).hits
        bare = searcher.search(SearchRequest("siren rotor", 30, snippets=False)).hits
        assert len(hits) == 30
        assert bare == [replace(hit, snippet=Snippet(""), section=None) for hit in hits]


def test_an_operator_alone_finds_pages_that_name_it(writer, make_page, find) -> None:
    """As an operator; one that none has is a query that finds nothing, in several indexes too."""
    writer.add(make_page("json", "The operator ->> gives text, the operator -> an object."))
    writer.add(make_page("cpp", "bool operator!=(const T&) and bool operator==(const T&)"))
    writer.add(make_page("other", "if a != b -> nothing"))
    assert find("->>") == ["json"]
    assert find("->") == ["json"]
    assert sorted(find("!= ->")) == ["cpp", "json"]
    assert find("!= host:nowhere.example") == []
    assert find("<=>") == []
    one = Searcher.open(writer.directory)
    workers = Searcher.of_workers([one, one], all_count)
    assert {hit.url for hit in workers.search("!=").hits} == {"http://wiki.example/cpp"}
    assert one.search(SearchRequest("!= ->", facets=True)).total_all == 0
    for query in ("operator !=", "Operator !=", "the operator !="):
        results = one.search(query)
        assert results.hits[0].url.endswith("cpp")
        assert results.hits[0].score > 2 * results.hits[1].score
    assert one.search(SearchRequest("operator -gives", verbatim=True)).total == 1
    assert one.search("->>").hits[0].snippet.marked("*", "*").startswith("The *operator* ->> gives")
    for query in ("*", "-", "~ ~~", "= , *"):
        assert one.search(query).hits == []


def test_a_page_without_a_title_has_that_of_its_links(writer, make_page) -> None:
    """Else the name of its file, also when it is indexed again."""
    for name in ("named.pdf", "%C3%9Cber%20uns.pdf", "folder/"):
        writer.add(make_page(name, "zebra"))
    writer.commit()
    links = [("http://wiki.example/named.pdf", "Annual report")]
    writer.add_anchors("http://wiki.example/a", links)
    writer.commit()
    writer.refresh_all_anchors()
    hits = Searcher.open(writer.directory).search("zebra").hits
    assert {hit.title for hit in hits} == {"Annual report", "Über uns.pdf", ""}


def test_the_newest_first(writer, make_page) -> None:
    """By the document's date, Last-Modified, or when it was fetched; of pages with all words if
    there are any."""
    day = 86_400.0
    for name, text, fields in (
        ("old", "leave form leave form", {"modified": 10_000 * day}),
        ("header", "form of leave", {"last_modified": "Tue, 14 Nov 2023 00:00:00 GMT"}),
        ("fetched", "a leave form", {}),
        ("new", "form", {"fetched": 19_800 * day}),
    ):
        writer.add(make_page(name, text, **fields))
    writer.commit()
    searcher = Searcher.open(writer.directory)

    def newest(query: str, **more: int) -> list[str]:
        found = searcher.search(SearchRequest(query, newest=True, **more))
        return [hit.url.rpartition("/")[2] for hit in found.hits]

    assert newest("leave form") == ["fetched", "header", "old"]
    assert newest("leave form", limit=1, offset=2) == ["old"]
    assert newest("form") == ["new", "fetched", "header", "old"]
    assert newest("form zzyzzx", limit=2) == ["new", "fetched"]
    found = searcher.search(SearchRequest("leave form", newest=True))
    assert (found.total, found.total_all) == (4, 3)
    assert found.hits[2].score == 10_000 * day


def test_titles_and_link_texts_complete_what_is_typed(writer, make_page) -> None:
    """Labels of most pages first; of a title the part before the name of the site."""
    texts = {(f"http://wiki.example/{name}", "Travel (by train)") for name in "bc"}
    writer.add_anchors("http://wiki.example/", texts)
    writer.commit()
    writer.add(make_page("a", title="Travel expenses \u2014 Intranet"))
    writer.add(make_page("b", title="Travel agency"))
    writer.add(make_page("c", title="Trips | Intranet"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    assert searcher.completions("TRAVEL") == [
        ("travel (by train)", 2),
        ("travel agency", 1),
        ("travel expenses", 1),
    ]
    assert searcher.completions("intranet") == []


@pytest.mark.parametrize("several", [False, True])
def test_accents_need_not_be_typed(writer, make_page, monkeypatch, several) -> None:
    """Suggestions are written as on the page. A user who types accents, as one character or two,
    first gets words with these accents, also from pages of older indexes."""
    writer.add(make_page("a", title="Über uns", body=b"a"))
    writer.add(make_page("b", title="Über uns", body=b"b"))
    for n in "cde":
        writer.add(make_page(n, title="Uber den Wolken", body=n.encode()))
    writer.add(make_page("f", title="Straße"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    if several:
        searcher = Searcher.of_workers([searcher], all_count)
    plain, accented = ("uber den wolken", 3), ("über uns", 2)
    assert searcher.completions("uber") == [plain, accented]
    assert searcher.completions("uber u") == [accented]
    for typed in ("ÜBER", "U\u0308ber"):
        assert searcher.completions(typed) == [accented, plain]
        assert searcher.completions(typed, limit=1) == [accented]
    assert searcher.completions("strass") == [("straße", 1)]
    monkeypatch.setattr(schema, "without_accents", lambda text: text)
    writer.add(make_page("g", title="Übersicht"))
    writer.add(make_page("h", title="Über uns", body=b"h"))
    writer.commit()
    assert searcher.completions("über") == [("über uns", 3), ("übersicht", 1), plain]


def test_a_phrase_that_a_page_is_called_by_finds_it_first(writer, make_page) -> None:
    """A link text that is the phrase counts as it does without quotes; words around the text count
    little with quotes, too."""
    writer.add_anchors("http://wiki.example/", {("http://wiki.example/it", "Log in")})
    writer.commit()
    writer.add(make_page("it", f"You log in with a card. {'And so on and on. ' * 90}"))
    for n in range(9):
        links = {("http://wiki.example/other", f"how to log in on {n}")}
        writer.add_anchors(f"http://wiki.example/{n}", links)
        writer.add(make_page(f"{n}", "The canteen opens."))
    writer.add(make_page("other", "log in, log in, to log in"))
    beside = make_page("beside", "log in", language="en")
    beside.rest = [(0, 6)]
    beside.text = f"log in {'The canteen opens. ' * 20}"
    writer.add(beside)
    writer.commit()
    hits = Searcher.open(writer.directory).search('"log in"').hits
    assert [hit.url.rpartition("/")[2] for hit in hits] == ["it", "other", "beside"]


WORDS = (
    "tunnel",
    "soup",
    "monday",
    "the tunnel",
    "soup of the day",
    "renew tunnel",
    "day soup renew",
)


@pytest.fixture
def many(writer, make_page) -> Searcher:
    texts = ["the soup of the day", "renew the tunnel", "the tunnel on monday", "soup, day by day"]
    for number in range(40):
        text = f"{texts[number % 4]} {texts[number * 7 % 3]} {number} " + "filler " * (number % 5)
        writer.add(make_page(f"p{number}", text, title=f"Page {number}"))
    writer.commit()
    return Searcher.open(writer.directory)


@pytest.mark.parametrize("query", [*WORDS, "tunnel soup -monday", 'day "the soup" title:page'])
def test_an_index_of_many_pages_answers_as_one_of_few(
    many, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """It first looks for the pages with all words."""
    few = many.search(SearchRequest(query, 30, facets=True))
    monkeypatch.setattr(ranking, "MANY_PAGES", 0)
    monkeypatch.setattr(ranking, "WIDESPREAD_SHARE", 1.0)
    split = many.search(SearchRequest(query, 30, facets=True))
    assert [(hit.url, round(hit.score, 3)) for hit in split.hits] == [
        (hit.url, round(hit.score, 3)) for hit in few.hits
    ]
    assert (split.total, split.total_all, split.facets) == (few.total, few.total_all, few.facets)
    behind = many.search(SearchRequest(query, 5, 5))
    assert [hit.url for hit in behind.hits] == [hit.url for hit in few.hits[5:10]]


def test_a_word_of_very_many_pages_is_looked_for_as_typed(
    writer, make_page, find, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In other forms in titles and link texts alone."""
    for name in ("one", "two", "three"):
        writer.add(make_page(name, "the reports of the year"))
    writer.add(make_page("text", "a report", description="A report"))
    writer.add(make_page("german", "ein Report", language="de"))
    writer.add(make_page("titled", "figures", title="Report"))
    writer.add(make_page("linked", "figures"))
    writer.add_anchors("http://h/", [("http://wiki.example/linked", "report")])
    writer.commit()
    writer.refresh_all_anchors()
    assert set(find("reports")) > {"text", "german", "titled", "linked"}
    monkeypatch.setattr(ranking, "MANY_PAGES", 0)
    assert set(find("reports")) == {"one", "two", "three", "titled", "linked"}
    monkeypatch.setattr(ranking, "WIDESPREAD_SHARE", 0.5)
    assert set(find("reports")) > {"text", "german", "titled", "linked"}


def test_where_many_pages_have_all_words_they_come_first(
    writer, make_page, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.add(make_page("rare", "zebra " * 50, title="Zebra"))
    for number in range(20):
        writer.add(make_page(f"other{number}", f"soup {number}"))
    for number in range(15):
        writer.add(
            make_page(f"both{number}", "filler " * 200 + f"soup {number} filler " * 9 + "zebra")
        )
    writer.commit()
    searcher = Searcher.open(writer.directory)
    monkeypatch.setattr(ranking, "MANY_PAGES", 0)
    monkeypatch.setattr(ranking, "ALL_WORDS_BONUS", 0.0)
    assert searcher.search(SearchRequest("zebra soup", 1)).hits[0].title == "Zebra"
    monkeypatch.setattr(module, "MANY", 10)
    found = searcher.search(SearchRequest("zebra soup", 50))
    assert all("both" in hit.url for hit in found.hits[:15])
    assert found.hits[15].title == "Zebra"
    assert (found.total, found.total_all, len(found.hits)) == (36, 15, 36)


def test_where_some_pages_have_all_words_others_need_the_rarer_half(
    writer, make_page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that lack one of it come behind, though their scores are better."""
    writer.add(make_page("rare", "zebra " * 50, title="Zebra"))
    writer.add(make_page("often", "soup " * 50, title="Soup"))
    for number in range(40):
        writer.add(make_page(f"other{number}", f"{'soup' if number < 5 else 'bread'} {number}"))
    for number in range(15):
        writer.add(
            make_page(f"both{number}", "filler " * 200 + f"soup {number} filler " * 9 + "zebra")
        )
    writer.commit()
    searcher = Searcher.open(writer.directory)
    monkeypatch.setattr(ranking, "MANY_PAGES", 0)
    monkeypatch.setattr(ranking, "WIDESPREAD_SHARE", 1.0)
    monkeypatch.setattr(ranking, "ALL_WORDS_BONUS", 0.0)
    for query in ("zebra soup", "soup zebra", "zebra soup host:wiki.example"):
        monkeypatch.setattr(module, "SOME", 15)
        places = [hit.title for hit in searcher.search(SearchRequest(query, 50)).hits]
        assert {*places[:2]} == {"Zebra", "Soup"}
        monkeypatch.setattr(module, "SOME", 14)
        found = searcher.search(SearchRequest(query, 50))
        places = [hit.title for hit in found.hits]
        assert (places[0], places[16]) == ("Zebra", "Soup")
        assert (found.total, found.total_all, len(found.hits)) == (22, 15, 22)


def test_pages_that_have_a_word_of_very_many_pages_alone_come_behind(
    writer, make_page, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        writer.add(make_page(f"other{number}", f"day {number}"))
    for number in range(3):
        writer.add(make_page(f"soup{number}", f"soup {number}", title="Soup"))
    writer.add(make_page("rare", "filler " * 500 + "zebra"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    for each in ("reading", "searcher"):
        monkeypatch.setattr(f"larmspider.search.{each}.RERANKED", 1)
    assert searcher.search("zebra soup").hits[0].title == "Soup"
    monkeypatch.setattr(ranking, "MANY_PAGES", 0)
    for query in ("zebra soup", "how is the zebra soup"):
        found = searcher.search(query)
        assert found.hits[0].url.endswith("rare")
        assert (found.total, len(found.hits)) == (4, 4)
    examined = searcher.examined(SearchRequest("zebra soup"), ["http://wiki.example/soup1"])
    assert examined["http://wiki.example/soup1"].score > 0


def test_two_words_of_most_pages_are_not_looked_for_side_by_side(
    writer, make_page, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.add(make_page("apart", "soup and then the tunnel opens again"))
    writer.add(make_page("beside", "and then the soup tunnel opens again"))
    writer.commit()
    searcher = Searcher.open(writer.directory)

    def scores(query: str) -> set[float]:
        (shard,) = searcher.shards
        with shard.reading() as reader:
            built = shard.ranking(ranking.Boosts()).build(searcher.parsed(query))
            return {round(score, 3) for score, _ in reader.search(built.ranked[0], 2).hits}

    assert len(scores("soup tunnel")) == 2
    monkeypatch.setattr(ranking, "FREQUENT_PAGES", 0)
    assert len(scores("soup tunnel")) == 1
    assert len(scores("soup.tunnel")) == 2


def test_a_name_of_several_words_is_found_whole(writer, make_page, tmp_path: Path) -> None:
    """Other pages with one of its words are found, too; only pages with all of them count."""
    writer.add(make_page("both", "call read_csv to begin"))
    writer.add(make_page("apart", "to read what is no csv"))
    for n in range(5):
        writer.add(make_page(f"one{n}", f"a csv {n}"))
    writer.commit()
    searcher = Searcher.open(tmp_path / "index")
    several = Searcher.of_collections([("a", searcher)])
    for index in (searcher, several):
        found = index.search("read_csv")
        assert (found.total, found.total_all) == (7, 2)
        assert found.hits[0].url.endswith("both")
        assert index.totals("read_csv") == (7, 2)
        assert index.search("csv").total_all == 7
        assert index.search("csv call_read").total_all == 1
        found = index.search("raed_csv")
        assert (found.instead, found.total_all) == ("read_csv", 2)
        found = index.search("zzzqqq_csv")
        assert (found.instead, found.total, found.total_all) == (None, 7, 0)


def test_a_name_that_one_page_has_is_no_mistake(
    writer, make_page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("larmspider.search.spelling._RARE", 3)
    writer.add(make_page("files", "fseek with SEEK_END"))
    for n in range(4):
        writer.add(make_page(f"{n}", f"see the end {n}"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    found = searcher.search("SEEK_END")
    assert (found.instead, found.total_all) == (None, 1)
    assert searcher.suggestion("SEEK_END").query == "SEE_END"


def test_digits_and_letters_of_other_scripts_are_found(writer, make_page) -> None:
    writer.add(make_page("a", "کتاب ۱۲۳۴"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    for query in ("کتاب", "۱۲۳۴", "كتاب", "1234", "١٢٣٤"):
        assert searcher.search(query).total == 1, query
