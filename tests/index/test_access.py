"""A page that a reader may not see is in no answer to that reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from larmspider.index.access import Access, place_of
from larmspider.index.schema import FILES, hostname_of
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.query import Filters
from larmspider.search.searcher import Searcher
from larmspider.search.shards import Deduplicator, WorkersSearcher

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
        yield WorkersSearcher([one], lambda: nullcontext(Deduplicator()))


ROUTES: dict[str, Callable[[Searcher], object]] = {
    "hits": lambda s: [hit.url for hit in s.search("canary").hits],
    "a phrase": lambda s: s.search('"the canary"', verbatim=True).total,
    "a form of the word": lambda s: s.search("canaries", verbatim=True).total,
    "count": lambda s: s.search("canteen").total - 2,
    "count of all words": lambda s: s.search("canary canteen", verbatim=True).total_all,
    "its host": lambda s: s.search("host:pay.hr.example", verbatim=True).total,
    "its type": lambda s: s.search("canteen", filters=Filters(kinds=("pdf",))).total,
    "facets": lambda s: set(s.search("canteen", facets=True).facets.hosts) - {"wiki.example"},  # type: ignore[union-attr]
    "languages": lambda s: s.search("canteen", facets=True).facets.languages,  # type: ignore[union-attr]
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
    searcher = WorkersSearcher([one], lambda: nullcontext(Deduplicator())) if several else one
    assert [hit.copies for hit in searcher.search("canteen").hits] == [2]
    limited = searcher.seen_by(NOBODY)
    (hit,) = limited.search("canteen").hits
    assert (hit.url, hit.copies) == ("http://wiki.example/b", 1)
    count, copies = limited.copies(limited.get(hit.normalized))
    assert (count, [copy.url for copy in copies]) == (1, ["http://wiki.example/longer"])
