"""Who searches, and that no page of the search shows a word of what they may not see."""

from __future__ import annotations

import http.client
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
from scrapy.settings import Settings

from larmspider.access.lists import AccessList
from larmspider.access.rights import Rights
from larmspider.errors import ConfigError
from larmspider.index.version import note_restricted_of
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.curated import Curated
from larmspider.status.crawl_view import Source
from larmspider.web.auth import Guard
from larmspider.web.readers import Readers
from larmspider.web.server import Binding
from tests.support import hidden_pages
from tests.support.stored_crawl import StoredCrawl
from tests.support.web.serving import TOKEN, Served, request

SECRET, SECRET_PAGE = "http://pay.hr.example/a", "http://pay.hr.example/b"
BODY = b"<title>Gehalt</title><p>kanarienvogel <b>canteen</b>"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("restricted")
    manifest = {
        "format": 2, "began": "2026", "seeds": ["http://wiki.example/"],
        "credentials": ["https://*.hr.example"], "settings": {},
    }  # fmt: skip
    (folder / "crawl.json").write_text(json.dumps(manifest))
    with IndexWriter(folder / "index") as index:
        index.add_anchors("http://pay.hr.example/b", {(SECRET, "Lohn kanarienvogel")})
        index.commit()
        index.add(Page("http://wiki.example/", text="public canteen opens", mime="text/html"))
        text = "kanarienvogel canteen opens"
        page = Page(SECRET, text=text, title="Gehalt", mime="application/pdf", body=b"1")
        index.add(page)
        index.add(Page(SECRET_PAGE, text="canteen opens", title="Gehalt", mime="text/html"))
    note_restricted_of(folder / "index", ["https://*.hr.example", "file://"])
    lines = (
        f"\t{url}\t{url}\t0\t200\ttext/html\t{len(BODY)}\tGehalt\t0\t0\n"
        for url in (SECRET, SECRET_PAGE)
    )
    (folder / "store.log").write_text("".join(lines))
    (folder / "pagefile_0.pfl").write_bytes(BODY)
    return folder


@pytest.fixture(scope="module")
def site(directory: Path) -> Iterator[Served]:
    readers = Readers({"staff": ("pay.hr.example",)}, "X-Groups", (ip_network("127.0.0.1"),))
    guard = Guard(TOKEN, closed=True, open_paths=("/search", "/copy", "/view", "/diff"))
    bets = directory / "best_bets.txt"
    bets.write_text(f"canteen => {SECRET}\ncanteen => http://wiki.example/ Menu\n")
    (directory / "synonyms.txt").write_text("lunch, kanarienvogel\n")
    curated = Curated(directory / "synonyms.txt", bets)
    with Served(directory, guard, readers=readers, curated=curated) as running:
        yield running


ROUTES = {
    "hits, counts and facets": "/search?q=canteen",
    "the type": "/search?q=canteen&type=pdf",
    "the host": "/search?q=canteen&host=pay.hr.example",
    "did you mean": "/search?q=kanarjenvogel&exact=1",
    "searched instead": "/search?q=kanarjenvogel",
    "JSON": "/search?q=canteen&format=json",
    "JSON, did you mean": "/search?q=kanarjenvogel&format=json",
    "suggestions": "/search/suggest?q=Loh",
    "best bets": "/search?q=canteen&host=wiki.example",
    "JSON, best bets": "/search?q=canteen&host=wiki.example&format=json",
    "similar pages": f"/search?similar={quote('http://wiki.example/')}",
    "pages like it": f"/search?similar={quote(SECRET)}",
    "the text of a copy": f"/search/copy?u={quote(SECRET)}&q=canteen",
    "the text of a page's copy": f"/search/copy?u={quote(SECRET_PAGE)}&q=canteen",
    "a copy": f"/copy?u={quote(SECRET)}",
    "a copy to keep": f"/copy?u={quote(SECRET_PAGE)}&download=yes",
}


def leaks(text: str, target: str) -> bool:
    """Whether the answer has a word of the page, or its host outside the echoed request."""
    for asked in (unquote(target), target.replace("&", "&amp;"), 'value="pay.hr.example"'):
        text = text.replace(asked, "")
    return "kanarienvogel" in text or "Gehalt" in text


@pytest.mark.parametrize("route", ROUTES)
def test_only_those_who_may_see_it(site: Served, route: str) -> None:
    """The token and the group open it; others get no word of it."""
    target = ROUTES[route]
    assert leaks(site.get(target, **BEARER).text, target)
    assert leaks(site.get(target, X_Groups="guests, staff").text, target)
    assert not leaks(site.get(target).text, target)
    assert not leaks(site.get(target, X_Groups="guests").text, target)


def test_no_count_of_what_is_hidden(site: Served) -> None:
    """Counts, filters and languages are of what is shown."""
    found = site.get("/search?q=canteen&format=json").json
    assert (found["total"], list(found["facets"]["host"])) == (1, ["wiki.example"])
    assert site.get("/search?q=kanarienvogel&format=json").json["total"] == 0
    assert not re.search(r"\d+ pages?\b", site.get("/search").text), "the start counts nothing"
    assert site.get("/search", **BEARER).text.count("3 pages") == 1


def test_a_synonym_opens_nothing(site: Served) -> None:
    """It is the operator's word; what it finds is the reader's."""
    target = "/search?q=lunch&format=json"
    assert site.get(target, **BEARER).json["total"] == 1
    assert site.get(target).json["total"] == 0


def test_a_copy_is_not_there_for_others(site: Served) -> None:
    """Not even that there is one is said."""
    for path in ("/view", "/copy", "/diff", "/search/copy"):
        target = f"{path}?u={quote(SECRET_PAGE)}"
        assert site.get(target, **BEARER).status == 200, path
        assert site.get(target, X_Groups="staff").status == 200, path
        for headers in ({}, {"X_Groups": "guests"}):
            refused = site.get(target, **headers)
            missing = site.get(f"{path}?u={quote('http://pay.hr.example/none')}", **headers)
            assert refused.status == missing.status == 404
            assert not leaks(refused.text, target)
            assert refused.text.replace("/b ", "/none ") == missing.text


def test_the_menu_of_the_crawl_is_the_operators(site: Served) -> None:
    """Who only searches sees no other page, nor where the crawl lies; signing in is a link, which
    leads back to what was found."""
    for target, behind in (("/search", "/"), ("/search?q=canteen", "/search%3Fq%3Dcanteen")):
        text = site.get(target).text
        assert 'href="/hosts"' not in text
        assert "/url?" not in text  # it asks for the token
        assert str(site.source.path) not in text
        assert f'href="/login?next={behind}"' in text
        assert 'href="/hosts"' in site.get(target, **BEARER).text


def test_a_group_searches_without_the_token_and_nothing_else(directory: Path) -> None:
    """The proxy has asked for a password already; the crawl stays the operator's."""
    readers = Readers({"staff": ("pay.hr.example",)}, "X-Groups", (ip_network("127.0.0.1"),))
    with Served(directory, Guard(TOKEN, closed=True), readers=readers) as site:
        assert site.get("/search?q=canteen", X_Groups="staff").status == 200
        for target in ("/", "/searching", "/url", "/hosts", "/copy?u=http://wiki.example/"):
            assert site.get(target, X_Groups="staff").status == 401
        assert site.get("/search?q=canteen").status == 401
        assert site.get("/opensearch.xml", X_Groups="staff").status == 200
        assert site.get("/opensearch.xml").status == 401


def test_who_may_only_search_comes_to_the_search(site: Served, directory: Path) -> None:
    """By the address of the server alone, and can add it to the browser's own; a closed search asks
    for the token."""
    asked = {"Accept": "text/html"}
    assert site.get("/", **asked).headers["Location"] == "/search"
    assert site.get("/hosts", **asked).headers["Location"] == "/login?next=/hosts"
    assert "/search/suggest" in site.get("/opensearch.xml").text
    with Served(directory, Guard(TOKEN, closed=True)) as closed:
        assert closed.get("/", **asked).headers["Location"] == "/login?next=/"
        assert closed.get("/opensearch.xml").status == 401


def test_programs_get_errors_as_json(directory: Path, tmp_path: Path) -> None:
    """Where the crawl lies is not said to those who may not read it."""
    shutil.copytree(directory, tmp_path / "crawl", ignore=shutil.ignore_patterns("meta.json"))
    with Served(directory, Guard(TOKEN, closed=True)) as closed:
        refused = closed.get("/search?q=canteen&format=json")
        assert (refused.status, refused.json) == (401, {"error": "Sign in with the token first."})
    guard = Guard(TOKEN, closed=True, open_paths=("/search",))
    with Served(tmp_path / "crawl", guard) as broken:
        for target in ("/search?q=canteen&format=json", "/search/_search?q=canteen"):
            got = broken.get(target)
            assert got.status == 404
            assert str(tmp_path) not in got.text
            assert str(tmp_path) in broken.get(target, **BEARER).text


def test_the_header_of_a_stranger_is_not_believed(directory: Path) -> None:
    readers = Readers({"staff": ("pay.hr.example",)}, "X-Groups", (ip_network("10.0.0.0/8"),))
    guard = Guard(TOKEN, closed=True, open_paths=("/search",))
    with Served(directory, guard, readers=readers) as site:
        assert site.get("/search?q=canteen&format=json", X_Groups="staff").json["total"] == 1


def test_a_header_that_comes_twice_is_not_believed(site: Served) -> None:
    """One of them is the browser's own."""
    parts = urlsplit(site.url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=120)
    connection.putrequest("GET", "/search?q=canteen&format=json")
    connection.putheader("X-Groups", "staff")
    connection.putheader("X-Groups", "guests")
    connection.endheaders()
    try:
        assert json.loads(connection.getresponse().read())["total"] == 1
    finally:
        connection.close()


def test_a_manifest_without_hosts_restricts_all(directory: Path, tmp_path: Path) -> None:
    """It does not say which hosts had credentials."""
    shutil.copytree(directory, tmp_path / "crawl")
    manifest = json.loads((directory / "crawl.json").read_text()) | {"credentials": True}
    (tmp_path / "crawl" / "crawl.json").write_text(json.dumps(manifest))
    with Served(tmp_path / "crawl", Guard(TOKEN, closed=True, open_paths=("/search",))) as site:
        assert site.get("/search?q=canteen&format=json").json["total"] == 0


def test_several_crawls_each_by_its_own_rules(directory: Path, tmp_path: Path) -> None:
    """A host behind a login in one crawl and open in another: what is open is found."""
    (tmp_path / "crawl.json").write_text('{"format": 2, "began": "1", "settings": {}}')
    with IndexWriter(tmp_path / "index") as index:
        index.add(Page("http://open.example/", text="canteen of another crawl"))
        index.add(Page("http://pay.hr.example/open", text="canteen, all may read this"))
    guard = Guard(TOKEN, closed=True, open_paths=("/search",))
    with Served(directory, guard, others=[tmp_path]) as site:
        found = site.get("/search?q=canteen&format=json").json
        assert found["facets"]["collection"] == {"0": 2, "first": 1}
        assert {hit["url"] for hit in found["hits"]} == {
            "http://wiki.example/", "http://open.example/", "http://pay.hr.example/open",
        }  # fmt: skip
        page = site.get("/search?q=canteen")
        assert "Collection" in page.text
        assert "collection=first" in page.text
        assert site.get("/search?q=canteen&format=json", **BEARER).json["total"] > 3
        one = site.get("/search?q=canteen&collection=first&format=json").json
        assert (one["total"], one["filters"]) == (1, {"collection": ["first"]})
        assert one["hits"][0]["collection"] == "first"
        other = site.get("/search?q=canteen&collection=foo&format=json")
        says = "collection 'foo' is unknown; expected one of first, 0"
        assert (other.status, other.json) == (400, {"error": says})
        other = site.get("/search?q=canteen&collection=foo")
        assert (other.status, says.replace("'", "&#39;") in other.text) == (400, True)
        for target in ROUTES.values():
            assert not leaks(site.get(target).text, target), target
        why = "/control/why?q=canteen&u=http://open.example/&format=json"
        assert site.get(why, **BEARER).json["verdict"].startswith("hit ")


def test_a_cached_copy_is_for_those_whom_all_crawls_show_its_host(
    directory: Path, tmp_path: Path
) -> None:
    """Like /copy and /view, whichever crawl's copy the user requests; no link leads to a copy that
    is not there."""
    url = "http://pay.hr.example/open"
    (tmp_path / "crawl.json").write_text('{"format": 2, "began": "1", "settings": {}}')
    with IndexWriter(tmp_path / "index") as index:
        index.add(Page("http://open.example/", text="canteen of another crawl"))
        index.add(Page(url, text="canteen, all may read this"))
    readers = Readers({"staff": ("pay.hr.example",)}, "X-Groups", (ip_network("127.0.0.1"),))
    guard = Guard(TOKEN, closed=True, open_paths=("/search",))
    with Served(directory, guard, readers=readers, others=[tmp_path]) as site:
        for more in ("", "&collection=0"):
            target = f"/search/copy?u={quote(url)}{more}"
            refused = site.get(target)
            assert (refused.status, "all may read" in refused.text) == (404, False), more
            assert site.get(target, X_Groups="guests").status == 404
            assert "all may read this" in site.get(target, X_Groups="staff").text
            assert "all may read this" in site.get(target, **BEARER).text
        assert site.get("/search/copy?u=http://open.example/&collection=0").status == 200
        link = f"/search/copy?u={quote(url, safe='')}"
        assert link not in site.get("/search?q=canteen").text
        assert link in site.get("/search?q=canteen", X_Groups="staff").text


@pytest.mark.parametrize(("name", "value", "says"), [
    ("LARM_SEARCH_GROUPS_HEADER", "X-Groups", "set LARM_TRUSTED_PROXIES"),
    ("LARM_SEARCH_GROUPS_HEADER", "X Groups", "expected the name of a header"),
    ("LARM_TRUSTED_PROXIES", "proxy.example", "expected an address such as"),
    ("LARM_SEARCH_GROUPS", '{"staff": 3}', "staff: expected a list of hosts"),
    ("LARM_SEARCH_GROUPS", '{"staff": ["http://a/b"]}', "staff: 'http://a/b' is not a pattern"),
    ("LARM_SEARCH_GROUPS", '{"staff": ["pay:8443"]}', r"staff: .* port, pay or pay:\*$"),
    ("LARM_SEARCH_GROUPS", '{"staff": ["https://pay"]}', "staff: .* without scheme and port"),
    ("LARM_SEARCH_GROUPS", '{"staff": ["https://pay:*"]}', "staff: .* without scheme and port"),
    ("LARM_SEARCH_GROUPS", "staff", "expected a mapping"),
    (
        "LARM_SEARCH_GROUPS",
        '{"staff": ["pay.hr.example"]}',
        r'LARM_SEARCH_GROUPS={"staff": \["pay.hr.example"\]}: .* set LARM_SEARCH_GROUPS_HEADER to',
    ),
])  # fmt: skip
def test_a_bad_setting_says_what_is_expected(name: str, value: str, says: str) -> None:
    settings = Settings()
    settings.setmodule("larmspider.settings", priority="default")
    settings.set(name, value)
    with pytest.raises(ConfigError, match=says):
        Readers.from_settings(settings)


def test_a_group_names_whole_hosts() -> None:
    """With any port or without one, and files."""
    settings = Settings()
    settings.setmodule("larmspider.settings", priority="default")
    hosts = ("127.0.0.2", "127.0.0.2:*", "*.hr.example", "[::1]:*", "file://")
    settings.set("LARM_SEARCH_GROUPS", {"staff": list(hosts)})
    settings.set("LARM_SEARCH_GROUPS_HEADER", "X-Groups")
    settings.set("LARM_TRUSTED_PROXIES", ["127.0.0.1"])
    assert Readers.from_settings(settings).groups == {"staff": hosts}


COMPARED = (
    "/search", "/search?q=aldomar%20farneth&format=json", "/search?q=caldurem",
    "/search/_search?q=elvaron%20golmide", "/search/suggest?q=handbook",
    f"/search?similar={quote(hidden_pages.PAGE)}&format=json", "/search?q=vpn",
)  # fmt: skip


@pytest.mark.parametrize("by_lists", [False, True])
def test_hidden_pages_change_no_answer(tmp_path: Path, by_lists: bool) -> None:
    """A reader gets of each route what an index without these pages gives; the rest is in
    tests/hostile/test_hidden_pages.py."""
    running = [
        hidden_pages.served(tmp_path / str(n), hidden=not n, by_lists=by_lists) for n in (0, 1)
    ]
    with running[0], running[1]:
        for target in COMPARED:
            staff = {"X-Groups": "staff"}
            one, other = (hidden_pages.answer(site, target, staff) for site in running)
            assert one[0] == 200, target
            if by_lists and target.endswith("vpn"):  # a best bet beyond the crawl is for everybody
                assert hidden_pages.HIDDEN not in one[1]
                assert hidden_pages.HIDDEN in other[1]
                continue
            assert one == other, target
        told = running[0].get("/search/_search?q=paper").json["hits"]
        assert {told["max_score"], *(hit["_score"] for hit in told["hits"])} == {None}
        asked = running[0].get("/search/_search?q=paper", **BEARER).json["hits"]
        assert asked["max_score"] == max(hit["_score"] for hit in asked["hits"]) > 0


def test_pages_of_a_crawl_with_access_lists(tmp_path: Path) -> None:
    """The search shows each reader what this reader may see; all other pages show URLs and titles
    of all pages, and need the token."""
    folder = tmp_path / "crawl"
    crawl = StoredCrawl(folder, refresh=False)
    url = "http://wiki.example/hr/plan"
    crawl.store(url, Page(url, url, mime="text/html", title="Redundancies", text="b", exact=url))
    crawl.end()
    settings = Settings()
    settings.setmodule("larmspider.settings")
    source = Source(folder, lambda _: settings)
    guard = Binding.from_settings(settings).guard(TOKEN, source)
    with Served(folder, guard) as site:
        assert "Redundancies" in request(f"{site.url}/url?u={url}").text
        with IndexWriter(folder / "index") as index:
            index.access.give(url, Rights(AccessList.simple(["group:hr"])))
            index.commit()
        for path in (f"/url?u={url}", "/links", "/hosts", "/", "/stats.json"):
            got = request(site.url + path)
            assert (got.status, "Redundancies" in got.text) == (401, False), path
            assert request(site.url + path, headers=BEARER).status == 200, path
        for path in ("/search?q=b", "/search/suggest?q=b", "/opensearch.xml"):
            got = request(site.url + path)
            assert (got.status, "Redundancies" in got.text) == (200, False), path


def test_the_address_of_an_operator_behind_a_proxy(directory: Path) -> None:
    """The log of actions has the address that the proxy names, as all limits do."""

    class Acting:
        seen = ""

        async def gauges(self) -> None:
            return None

        async def act(self, name: str, form: Mapping[str, str], address: str) -> str:
            self.seen = address
            return "done"

    readers = Readers({}, "", (ip_network("127.0.0.1"),))
    acting = Acting()
    with Served(directory, Guard(TOKEN), acting, readers=readers) as site:
        sent = BEARER | {"X-Forwarded-For": "198.51.100.7"}
        assert request(f"{site.url}/control/pause", "POST", sent, {"a": "b"}).status == 200
    assert acting.seen == "198.51.100.7"
