from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tantivy

from larmspider.errors import CrawlDirError, QueryError
from larmspider.index.search import Document, Searcher
from larmspider.index.version import META_NAME
from larmspider.index.writer import IndexWriter
from larmspider.items import Page

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
        ('"paths join"', set()),
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
        ("initt~1", {"init"}),
        ("NOT", set()),
        ("*nit", set()),
    ],
)
def test_what_matches(find, query: str, found: set[str]) -> None:
    """Phrases and fields must match, excluded words must not."""
    assert set(find(query)) == found


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("query", ["", ":)", "~ ~~", "url:--", "title:", "\ud800", "a." * 65])
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
        Searcher.open(writer.directory).search("join", limit, offset)


def test_total_limit_and_offset(writer, make_page) -> None:
    """Pages of results follow one another."""
    for n in range(25):
        writer.add(make_page(f"{n}", "word"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    parts = [searcher.search("word", 10, offset) for offset in (0, 10, 20)]
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
    assert (hit.mime, hit.language, hit.size) == ("text/html", "de", 8)
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
        size=8,
        digest="abc",
        fetched=1_700_000_000.5,
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


@pytest.mark.parametrize(
    ("version", "advice"),
    [(99, "use the larmspider that wrote it"), (1, "scrapy reindex makes")],
)
def test_another_version_is_refused(writer: IndexWriter, version: int, advice: str) -> None:
    """Reader and writer say what to do."""
    writer.close()
    (writer.directory / META_NAME).write_text(f'{{"schema": {version}, "stemmer": "english"}}')
    for opened in (Searcher.open, IndexWriter):
        with pytest.raises(CrawlDirError, match=f"version {version}.*{advice}"):
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
    the page or in the query; what is stored and shown is the page's own text."""
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
    searcher = Searcher.open(writer.directory)
    with pytest.raises(CrawlDirError, match="cannot answer this"), searcher.reading():
        tantivy.Query.phrase_query(searcher._index.schema, "exact", ["alone"])
