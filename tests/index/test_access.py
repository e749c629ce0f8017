"""A page that a reader may not see is in no answer to that reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tantivy import DocAddress

from larmspider.index.access import Access, place_of
from larmspider.index.schema import FILES, hostname_of
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.match import Match, evened
from larmspider.search.query import Filters
from larmspider.search.reading import all_count
from larmspider.search.request import SearchRequest
from larmspider.search.results import results_json
from larmspider.search.searcher import Searcher
from tests.support import hidden_pages
from tests.support.hidden_pages import HIDDEN, STAFF, WORDS

RESTRICTED = ("https://*.hr.example", FILES)
NOBODY = Access(RESTRICTED)
SECRETS = ("https://pay.hr.example:8443/a", "file:///srv/plans/a.txt")


@pytest.mark.parametrize(
    "url, host",
    [
        ("http://Wiki.example:80/a/b", "wiki.example"),
        ("http://wiki.example.", "wiki.example"),
        ("https://me:secret@h/?q=http://other/", "h"),
        ("http://h?a=/b", "h"),
        ("http://[::1]:80/", "::1"),
        ("http://" + "h" * 400 + "/", "h" * 400),
        ("file:///srv/a", ""),
    ],
)
def test_a_url_has_the_host_that_urlsplit_finds(url: str, host: str) -> None:
    assert hostname_of(url) == (urlsplit(url).hostname or "").rstrip(".") == host


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("access") / "index"
    with IndexWriter(folder) as index:
        index.add_anchors("https://pay.hr.example:8443/", {(SECRETS[0], "Canary salaries")})
        index.commit()
        for name in "ab":
            text = f"the public canteen {name} opens"
            url = f"http://wiki.example/{name}"
            index.add(Page(url, text=text, mime="text/html", body=url.encode()))
        for url in SECRETS:
            text = "the canary of the canteen sings canaries kanarienvogel"
            page = Page(url, text=text, title="canary", mime="application/pdf", body=url.encode())
            page.language = "de"
            index.add(page)
    return folder


@pytest.fixture(params=["one", "several"])
def searcher(request: pytest.FixtureRequest, directory: Path) -> Iterator[Searcher]:
    one = Searcher.open(directory)
    if request.param == "one":
        yield one
    else:
        yield Searcher.of_workers([one], all_count)


ROUTES: dict[str, Callable[[Searcher], object]] = {
    "hits": lambda s: [hit.url for hit in s.search("canary").hits],
    "a phrase": lambda s: s.search(SearchRequest('"the canary"', verbatim=True)).total,
    "a form of the word": lambda s: s.search(SearchRequest("canaries", verbatim=True)).total,
    "count": lambda s: s.search("canteen").total - 2,
    "count of all words": lambda s: (
        s.search(SearchRequest("canary canteen", verbatim=True)).total_all
    ),
    "its host": lambda s: s.search(SearchRequest("host:pay.hr.example", verbatim=True)).total,
    "its type": lambda s: s.search(SearchRequest("canteen", filters=Filters(kinds=("pdf",)))).total,
    "facets": lambda s: (
        set(s.search(SearchRequest("canteen", facets=True)).facets.hosts) - {"wiki.example"}
    ),  # type: ignore[union-attr]
    "languages": lambda s: s.search(SearchRequest("canteen", facets=True)).facets.languages,  # type: ignore[union-attr]
    "did you mean": lambda s: s.suggestion("canery"),
    "did you mean, two letters": lambda s: s.suggestion("kanarjenvogal"),
    "instead": lambda s: s.search("canery").instead,
    "completions": lambda s: s.completions(" CAN"),
    "occurrences": lambda s: s.occurrences("canary"),
    "occurrences of a form": lambda s: s.occurrences("canaries"),
    "the page": lambda s: s.get(SECRETS[0]) or s.get(SECRETS[1]),
    "pages": lambda s: s.count() - 2,
    "languages by host": lambda s: s.languages(10),
    "similar": lambda s: (
        {h.host for h in s.similar(s.get("http://wiki.example/a")).hits}  # type: ignore[arg-type]
        - {"wiki.example"}
    ),
}


@pytest.mark.parametrize("route", ROUTES)
def test_nothing_of_a_hidden_page(searcher: Searcher, route: str) -> None:
    """Who may see it finds it, who may not finds nothing of it."""
    assert ROUTES[route](searcher)
    assert not ROUTES[route](searcher.seen_by(NOBODY))


def test_a_group_sees_its_hosts_alone(searcher: Searcher) -> None:
    """``allowed`` opens what it names; a new reader is not taken for the last one."""
    for allowed, found in (
        (("pay.hr.example",), [SECRETS[0]]), ((FILES,), [SECRETS[1]]), (("hr.example",), []),
    ):  # fmt: skip
        hits = searcher.seen_by(Access(RESTRICTED, allowed)).search("canary").hits
        assert [hit.url for hit in hits] == found


def test_a_hidden_copy_is_not_counted(tmp_path: Path) -> None:
    """Nor shown in place of the page that is seen."""
    with IndexWriter(tmp_path / "index") as index:
        for url in ("http://wiki.example/a/long/way", "http://b.hr.example/"):
            index.add(Page(url, text="hello", body=b"hello"))
    searcher = Searcher.open(tmp_path / "index")
    assert searcher.search("hello").hits[0].copies == 1
    (hit,) = searcher.seen_by(NOBODY).search("hello").hits
    assert (hit.host, hit.copies) == ("wiki.example", 0)


def test_a_page_that_comes_later_is_hidden_too(tmp_path: Path) -> None:
    with IndexWriter(tmp_path / "index") as index:
        index.add(Page("http://wiki.example/", text="hello"))
        index.commit()
        searcher = Searcher.open(tmp_path / "index").seen_by(NOBODY)
        assert searcher.count() == 1
        index.add(Page("http://b.hr.example/", text="canary"))
        index.commit()
        assert searcher.count() == 1
        assert searcher.search("canary").total == 0


@pytest.mark.parametrize(("patterns", "host", "seen"), [
    (("*",), "wiki.example", False), (("10.1.*",), "10.1.2.3", False), ((), "wiki", True),
    (("[::1]",), "::1", False), (("hr.example:8443",), "hr.example", False),
    (("hr.example",), "hr.example.", False), (("10.1.*",), "10.1.example", True),
])  # fmt: skip
def test_hosts_match_whatever_their_port(patterns: tuple[str, ...], host: str, seen: bool) -> None:
    assert Access(patterns).host(host) is seen


def test_a_file_has_no_host() -> None:
    """A share's server is not the web server of that name."""
    assert place_of("file://hr/a") == FILES
    assert Access((FILES,)).host("hr")
    assert not Access((FILES,)).page("file://hr/a")


@pytest.mark.parametrize("several", [False, True])
def test_copies_that_are_not_seen_are_not_counted(tmp_path: Path, several: bool) -> None:
    """The page that is seen is the hit, whichever is the best of all."""
    with IndexWriter(tmp_path) as index:
        for url in ("http://h.hr.example/", "http://wiki.example/longer", "http://wiki.example/b"):
            index.add(Page(url, text="canteen", body=b"same"))
    one = Searcher.open(tmp_path)
    searcher = Searcher.of_workers([one], all_count) if several else one
    assert [hit.copies for hit in searcher.search("canteen").hits] == [2]
    limited = searcher.seen_by(NOBODY)
    (hit,) = limited.search("canteen").hits
    assert (hit.url, hit.copies) == ("http://wiki.example/b", 1)
    count, copies = limited.copies(limited.get(hit.normalized))
    assert (count, [copy.url for copy in copies]) == (1, ["http://wiki.example/longer"])


@pytest.fixture(scope="module")
def with_and_without(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same pages with others that are hidden from staff, and alone."""
    folder = tmp_path_factory.mktemp("numbers")
    for hidden in (True, False):
        hidden_pages.write(folder / str(hidden), hidden=hidden)
    return [folder / "True", folder / "False"]


def _one(directory: Path) -> Searcher:
    return Searcher.open(directory)


def _workers(directory: Path) -> Searcher:
    shards = [Searcher.open(directory), Searcher.open(directory)]
    return Searcher.of_workers(shards, all_count)


def _collections(directory: Path) -> Searcher:
    return Searcher.of_collections([("a", Searcher.open(directory)), ("b", _workers(directory))])


ATTACKS = (
    *WORDS[::4], WORDS[-1], *(f"{one} {WORDS[9]}" for one in WORDS[10:16]), "paper -turmalk",
    "elvaron farneth golmide", '"walking home"', "walk", "time stamp", "-Wall", "treiber", "haus",
    "caldurem", "kaldurens", "turmalq", "how to change the password", "grade:a", "papertray",
    "handbook paper",
)  # fmt: skip
"""One query of each kind; tests/hostile/test_hidden_pages.py has more."""


@pytest.mark.parametrize("opened", [_one, _workers, _collections])
def test_a_reader_gets_what_an_index_of_the_pages_seen_gives(
    with_and_without: list[Path], opened: Callable[[Path], Searcher]
) -> None:
    """Hits in their order, snippets, counts, facets, corrections: whatever the others have."""
    searchers = [opened(directory).seen_by(STAFF) for directory in with_and_without]
    _answer_alike(searchers, ATTACKS if opened is _one else ATTACKS[::4])


@pytest.mark.parametrize("opened", [_one, _collections])
def test_access_lists_hide_pages_as_hosts_do(
    tmp_path: Path, opened: Callable[[Path], Searcher]
) -> None:
    for hidden in (True, False):
        hidden_pages.write(tmp_path / str(hidden), hidden=hidden, by_lists=True)
    limited = [
        opened(tmp_path / name).seen_by(hidden_pages.STAFF_BY_LISTS) for name in ("True", "False")
    ]
    _answer_alike(limited, ATTACKS if opened is _one else ATTACKS[::4])
    of_all = 1 if opened is _one else 3
    assert limited[0].count() == hidden_pages.PAGES * of_all
    guest = opened(tmp_path / "True").seen_by(hidden_pages.BY_LISTS)
    assert 0 < guest.count() < limited[0].count()
    assert opened(tmp_path / "True").count() > limited[0].count()
    assert {hit.score for hit in guest.search("paper").hits} == {None}


def _answer_alike(searchers: list[Searcher], queries: Iterable[str]) -> None:
    for query in queries:
        found = [
            one.search(SearchRequest(query, 20, facets=True, verbatim=True, suggest=True))
            for one in searchers
        ]
        answers = [
            results_json(results) | {"seconds": 0}
            for one, results in zip(searchers, found, strict=True)
        ]
        assert answers[0] == answers[1], query
    heads = ("ha", "handbook", "walking", "al", "turm", "ti")
    assert len({str([one.completions(head) for head in heads]) for one in searchers}) == 1


def test_no_score_and_depth_for_a_reader_who_does_not_see_all(
    with_and_without: list[Path],
) -> None:
    """Also where no page of the hidden host is in the index, so that its coming is not told."""
    for directory in with_and_without:
        for searcher in (_one(directory), _workers(directory)):
            hits = searcher.seen_by(STAFF).search("paper").hits
            assert {(hit.score, hit.depth) for hit in hits} == {(None, None)}
            assert all(hit.score for hit in searcher.search("paper").hits)
            assert {hit.depth for hit in searcher.search("paper").hits} != {None}
            (page,) = (hit.normalized for hit in searcher.search(SearchRequest("paper", 1)).hits)
            document = searcher.seen_by(STAFF).get(page)
            similar = document and searcher.seen_by(STAFF).similar(document).hits
            assert {(hit.score, hit.depth) for hit in similar or ()} <= {(None, None)}
            seen = searcher.seen_by(STAFF).examined(SearchRequest("paper"), [page]).get(page)
            assert seen is None or (seen.score, seen.prior, seen.parts) == (1.0, 1.0, {})


@pytest.mark.parametrize(("allowed", "limited"), [
    ((), True), (("a.example",), True), (("a.example:*", "b.example"), False), (("*",), True),
])  # fmt: skip
def test_whoever_may_see_all_hosts_is_not_limited(allowed: tuple[str, ...], limited: bool) -> None:
    """As far as the patterns say; each restricted one has to be allowed."""
    assert Access(("https://a.example", "b.example:8443", FILES), allowed).is_limited is limited


def test_scores_are_there_for_whoever_sees_all_pages(with_and_without: list[Path]) -> None:
    """Files are restricted in each crawl, and most have none."""
    searcher = _one(with_and_without[1])
    for access in (Access((FILES,)), Access((HIDDEN,), (HIDDEN,))):
        assert searcher.seen_by(access).search("paper").hits == searcher.search("paper").hits


def test_pages_with_a_word_are_counted_among_those_seen(tmp_path: Path) -> None:
    """Also where pages were replaced and removed, which Tantivy's own numbers still have."""
    with IndexWriter(tmp_path / "index") as index:
        for n in range(30):
            host = "b.hr.example" if n % 3 else "wiki.example"
            index.add(Page(f"http://{host}/{n}", text="canteen soup" if n % 2 else "canteen"))
        index.commit()
        searcher = Searcher.open(tmp_path / "index").seen_by(NOBODY)
        assert (searcher.documents(), searcher.frequencies(["canteen", "soup"])) == (
            10, {"canteen": 10, "soup": 5},
        )  # fmt: skip
        index.add(Page("http://wiki.example/0", text="soup canteens"))
        index.add(Page("http://b.hr.example/1", text="soup soups"))
        index.remove("http://wiki.example/3")
        index.commit()
        counted = searcher.frequencies(["canteen", "canteens", "soup", "soups"])
        assert (searcher.documents(), counted) == (9, {"canteen": 8, "canteens": 1, "soup": 5})
        with searcher.shards[0].reading() as reader:
            found = reader.terms_with_prefix("exact", "canteen")
            assert found == [("canteen", 8), ("canteens", 1)]


def test_scores_that_differ_by_rounding_are_in_no_order() -> None:
    """The order of two pages with one word each would tell which word more hidden pages have."""

    def match(score: float, doc: int) -> Match:
        return Match(score, 0, DocAddress(0, doc), None)

    stream = [match(9.0, 5), match(8.0000002, 7), match(8.0000001, 3), match(7.9, 1), match(0.0, 2)]
    found = [(score, address.doc) for score, _, address, *_ in evened(stream)]
    assert found == [(9.0, 5), (8.0000002, 3), (8.0000002, 7), (7.9, 1), (0.0, 2)]


TIED = 268
"""Pages that are seen: with fewer no score of the queries below is rounded otherwise."""


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Equal pages with one of two words each; what differs is how many hidden ones have a word. All
    pages have equal numbers of words in each field, and so the same average lengths."""
    folder = tmp_path_factory.mktemp("tied")
    for canteen, library in ((0, 0), (7, 0)):
        with IndexWriter(folder / f"{canteen}-{library}") as index:
            for n in range(TIED):
                word = ("canteen", "library")[n // 2 % 2]
                index.add(_page_with("wiki.example", n, word, word))
            for n in range(40):
                words = ("canteen" if n < canteen else "a1", "library" if n < library else "a2")
                index.add(_page_with("paye.example", n, *words))
    return sorted(folder.iterdir())


def _page_with(host: str, number: int, word: str, other: str) -> Page:
    url = f"http://{host}/{word}/{number:04}"
    text = f"{word} opens number{number:04} today {other} near {other}"
    body = f"{host} {number}".encode()
    return Page(url, title=f"page {word}", description=f"{other} of ours", text=text, body=body)


@pytest.mark.parametrize("opened", [_one, _collections])
def test_more_tied_pages_than_are_shown_are_in_the_same_order(
    tied: list[Path], opened: Callable[[Path], Searcher]
) -> None:
    searchers = [opened(directory).seen_by(STAFF) for directory in tied]
    for query in ("canteen library", "canteen library page"):
        found = [one.search(SearchRequest(query, 20, verbatim=True)).hits for one in searchers]
        assert len({tuple(hit.url for hit in hits) for hits in found}) == 1, query


def test_whether_pages_are_hidden_is_not_told_by_the_order_of_collections(tmp_path: Path) -> None:
    """Texts are worth the same in each of them, but for how the rarity of words is rounded."""
    orders = set()
    for hidden in (0, 2):
        shards = []
        for name, pages in (("a", 13), ("b", 17), ("c", 29)):
            with IndexWriter(tmp_path / f"{name}{hidden}") as index:
                for n in range(pages):
                    word = "canteen" if n < 4 else "nothing"
                    index.add(_page_with("wiki.example", ord(name) * 100 + n, word, word))
                for n in range(hidden):
                    index.add(_page_with("paye.example", n, "a1", "a2"))
            shards.append((name, Searcher.open(tmp_path / f"{name}{hidden}").seen_by(STAFF)))
        hits = (
            Searcher.of_collections(shards)
            .search(SearchRequest("canteen today", verbatim=True))
            .hits
        )
        orders.add(tuple(hit.url for hit in hits))
    assert len(orders) == 1


@pytest.mark.parametrize("number", [3, 40, 700])
def test_terms_are_counted_among_the_visible_pages(tmp_path: Path, number: int) -> None:
    """One by one, together, and by listing the visible pages."""
    with IndexWriter(tmp_path) as writer:
        for n in range(number):
            host = "hr.example" if n % 3 == 0 else "wiki.example"
            writer.add(Page(f"http://{host}/{n}", text=f"canary{n} canary{n // 7}", body=b"%d" % n))
    shard = Searcher.open(tmp_path).seen_by(Access(("hr.example",))).shards[0]
    expected = {
        f"canary{one}": sum(one in (n, n // 7) for n in range(number) if n % 3)
        for one in range(number)
    }
    with shard.reading() as reader:
        found = reader.terms_with_prefix("exact", "canary")
        assert dict(found) == {word: pages for word, pages in expected.items() if pages}
        assert {word: reader.doc_freq("exact", word) for word in expected} == expected
        assert reader.terms_with_prefix("exact", "canary", limit=2) == found[:2]
