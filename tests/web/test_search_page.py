"""The search page: what it finds, how it is narrowed, and that no text of anybody's breaks it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from selenium.webdriver.common.keys import Keys

from larmspider.index.unreached import UnreachedLog
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.facets import Facets
from larmspider.web.render import crumbs
from larmspider.web.views.search import is_host_each
from tests.support.web.browser import Browser
from tests.support.web.serving import TOKEN, Got, Served, request

Serve = Callable[..., Served]
HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "'><svg onload=document.title='owned'>",
    "</title></textarea></style><script>document.title='owned'</script>",
    "javascript:document.title='owned'",
    "{{ 7*7 }}{% raw %}${7*7}",
    "\u202e\x1b[31m\x00\ufffe%00%0d%0aSet-Cookie:a=b",
    "&lt;b&gt; &#60;script&#62;",
)


@pytest.fixture(scope="session")
def hostile_crawl(demo_crawl: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of 33 pages with the word "needle", a few of which mean harm."""
    folder = tmp_path_factory.mktemp("hostile")
    shutil.copy(demo_crawl / "crawl.json", folder)
    with IndexWriter(folder / "index") as index:
        for n, text in enumerate(HOSTILE):
            url = text if text.startswith("javascript:") else f"http://h.example/{n}/{text}"
            index.add(Page(url, text=f"needle {text}", title=text, mime=text, language=text))
        for n in range(25):
            index.add(Page(f"http://h{n % 2}.example/{n}", text="needle", title=f"Plain {n}"))
    return folder


@pytest.fixture
def site(served: Serve, demo_crawl: Path) -> Served:
    return served(demo_crawl)


@pytest.fixture(scope="module")
def hostile_site(hostile_crawl: Path) -> Iterator[Served]:
    with Served(hostile_crawl) as running:
        yield running


def marked(got: Got) -> set[str]:
    return {found.text().lower() for found in LexborHTMLParser(got.text).css("mark")}


def test_finds_and_highlights(site: Served, browser: Browser) -> None:
    """Who types words and Enter sees titles, addresses, and the words marked."""
    browser.look(1280)
    browser.open(f"{site.url}/search")
    browser.until(lambda: browser.script("return document.activeElement.name") == "q", "focus")
    browser.find("#q").send_keys("ro")
    shown = "return [...document.querySelectorAll('#suggested li')].map(o => o.textContent)"
    browser.until(lambda: "rotor" in browser.script(shown), "suggestions")
    browser.find("#q").send_keys("tor siren", Keys.ENTER)
    browser.until(lambda: browser.all(".hits"), "results")
    assert browser.text(".hit a") == "Rotor"
    assert browser.find(".hit a").get_attribute("href").lower().endswith("/wiki/rotor.html")
    assert {"Rotor", "sirens"} & {mark.text for mark in browser.all("mark")}
    assert "rotor siren" in browser.driver.title
    assert browser.find("#q").get_attribute("value") == "rotor siren"
    assert browser.errors() == []


def test_facets_narrow_and_widen_again(site: Served, browser: Browser) -> None:
    """The count beside a value is what a click on it finds; its chip takes it back."""
    browser.open(f"{site.url}/search?q=siren")
    everything = browser.text("[role=status]").split()[0]
    (pdf,) = [item for item in browser.all(".facet li") if item.text.startswith("PDF")]
    count = pdf.text.split()[-1]
    pdf.find_element("tag name", "a").click()
    assert browser.text("[role=status]").startswith(f"{count} page")
    assert [tag.text for tag in browser.all(".hits .tag")] == ["PDF"] * int(count)
    assert browser.text(".facet [aria-current]") == "PDF"
    browser.find("#q").submit()  # the filter stays with another query
    assert "type=pdf" in browser.driver.current_url
    assert browser.text(".chip").startswith("PDF")
    browser.find(".chip").click()
    assert browser.text("[role=status]").split()[0] == everything


@pytest.mark.parametrize("where", ["", "/search?q=siren", "/control"])
def test_who_signs_out_leaves_no_searches_behind(
    site: Served, browser: Browser, where: str
) -> None:
    """In the browser, the only place that has them: another person may use it next."""
    recents = "return [...document.querySelectorAll('#recent li')].map(one => one.textContent)"
    browser.open(f"{site.url}/login")
    browser.find("input[name=token]").send_keys(TOKEN, Keys.ENTER)
    browser.until(lambda: browser.all('form[action="/logout"]'), "signed in")
    browser.open(f"{site.url}/search?q=siren")
    browser.open(f"{site.url}/search")
    assert browser.script(recents) == ["siren"]
    if where:
        browser.open(f"{site.url}{where}")
    browser.find('form[action="/logout"] button').click()
    browser.until(lambda: not browser.all('form[action="/logout"]'), "signed out")
    assert browser.driver.current_url == site.url + ("/search" if where != "/control" else "/")
    browser.open(f"{site.url}/search")
    assert browser.script(recents) == []
    assert browser.errors() == []


def test_searches_are_forgotten_when_a_session_ends_by_itself(
    site: Served, browser: Browser
) -> None:
    """Earlier ones too; searches without a session stay."""
    recents = "return [...document.querySelectorAll('#recent li')].map(one => one.textContent)"
    browser.open(f"{site.url}/search?q=rotor")
    browser.open(f"{site.url}/login?next=/search%3Fq%3Dsiren")
    browser.find("input[name=token]").send_keys(TOKEN, Keys.ENTER)
    browser.until(lambda: browser.all('form[action="/logout"]'), "signed in")
    browser.open(f"{site.url}/search")
    assert browser.script(recents) == ["siren", "rotor"]
    site.site.guard.end_sessions(lambda _: True)
    browser.open(f"{site.url}/search?q=expenses")
    browser.open(f"{site.url}/search")
    assert browser.script(recents) == ["expenses"]
    browser.open(f"{site.url}/search")
    assert browser.script(recents) == ["expenses"]
    assert browser.errors() == []


def test_works_without_scripts(site: Served, browser: Browser) -> None:
    """Search, facets and pages are links and forms."""
    browser.scripts(on=False)
    try:
        browser.open(f"{site.url}/search?q=siren")
        browser.find("a[rel=next]").click()
        assert "page=2" in browser.driver.current_url
        assert browser.find(".hits").get_attribute("start") == "11"
    finally:
        browser.scripts(on=True)


def test_keys_go_to_the_box_and_from_hit_to_hit(site: Served, browser: Browser) -> None:
    """/ and j and k, but not while a user types."""
    browser.open(f"{site.url}/search?q=siren")
    at = "return [...document.querySelectorAll('.hit a')].indexOf(document.activeElement)"
    browser.find("body").send_keys("jj")
    assert browser.script(at) == 1
    browser.driver.switch_to.active_element.send_keys("kkk")  # the last one is not typed
    assert browser.script(at) == 0
    browser.driver.switch_to.active_element.send_keys("/")
    browser.driver.switch_to.active_element.send_keys("jk/")
    assert browser.find("#q").get_attribute("value") == "jk/"


def test_did_you_mean_leads_to_results(site: Served) -> None:
    """The query gets a word that some pages have in place of one that none has, at once; a click
    leads to the query as typed."""
    corrected = site.get("/search?q=expences")
    assert "Showing results for expenses" in corrected.text
    assert marked(corrected) == {"expenses"}
    exact = LexborHTMLParser(corrected.text).css_first(".note a").attributes["href"]
    page = LexborHTMLParser(site.get(exact).text)
    link = page.css_first(".note a")
    assert link.text() == "expenses"
    assert marked(site.get(link.attributes["href"])) == {"expenses"}


@pytest.mark.parametrize(
    ("language", "said", "title", "values"),
    [
        ("en", "not reached since 3 Mar 2026", "Reachability", ["reached", "not reached"]),
        ("de", "nicht erreicht seit 03.03.2026", "Erreichbarkeit", ["erreicht", "nicht erreicht"]),
        ("fr", "non atteinte depuis le", "Accessibilité", ["atteintes", "non atteintes"]),
    ],
)
def test_pages_that_were_not_reached(
    served: Serve, demo_crawl: Path, tmp_path: Path,
    language: str, said: str, title: str, values: list[str],
) -> None:  # fmt: skip
    """They say so, and are a choice beside the other filters."""
    shutil.copy(demo_crawl / "crawl.json", tmp_path)
    with IndexWriter(tmp_path / "index") as index:
        for n in range(3):
            index.add(Page(f"http://h/{n}", text=f"needle {n}", body=b"%d" % n))
    log = UnreachedLog(tmp_path / "index")
    log.missed("http://h/1", "missing", datetime(2026, 3, 3, 12, tzinfo=UTC).timestamp())
    log.write()
    site = served(tmp_path)

    def look(path: str) -> LexborHTMLParser:
        return LexborHTMLParser(
            request(site.url + path, headers={"Accept-Language": language}).text
        )

    page = look("/search?q=needle")
    (tag,) = page.css(".about .tag.warn")
    assert " ".join(tag.text().split()).startswith(said)
    assert [node.text() for node in page.css("#narrow h2")].count(title) == 1
    links = [a for a in page.css(".facet a") if a.text(strip=True) in values]
    assert [a.text(strip=True) for a in links] == values
    for link, number in zip(links, (2, 1), strict=True):
        narrowed = look(str(link.attributes["href"]))
        assert len(narrowed.css("h2.hit")) == number
        assert len(narrowed.css(".chip")) == 1
    assert len(look("/search?q=needle&unreachable=yes").css(".chip")) == 0
    answer = site.get("/search?q=needle&unreachable=no&format=json").json
    assert (answer["total"], answer["filters"]) == (2, {"unreachable": "no"})
    assert answer["facets"]["unreachable"] == {"no": 2, "only": 1}
    wrong = site.get("/search?q=needle&unreachable=maybe&format=json")
    assert (wrong.status, list(wrong.json)) == (400, ["error"])
    assert site.get("/search?q=needle&unreachable=maybe").status == 400


def test_similar_pages(site: Served) -> None:
    """A link at each hit; the page itself is not among them."""
    page = LexborHTMLParser(site.get("/search?q=title:rotor").text)
    link = next(a for a in page.css(".about a") if a.text() == "Similar pages")
    found = LexborHTMLParser(site.get(link.attributes["href"]).text)
    assert found.css_first("h1").text() == "Pages similar to Rotor"
    titles = [a.text() for a in found.css(".hit a")]
    assert titles
    assert "Rotor" not in titles
    assert site.get("/search?similar=http://nowhere.example/").status == 404


def test_similar_pages_in_json(site: Served, served: Serve, tmp_path: Path) -> None:
    """The hits of the page, as in the JSON of a search; also by the URL as fetched."""
    hit = site.get("/search?q=title:rotor&format=json").json["hits"][0]
    target = f"/search?similar={quote(hit['url'])}"
    page = LexborHTMLParser(site.get(target).text)
    answer = site.get(f"{target}&format=json").json
    assert [one["title"] for one in answer["hits"]] == [a.text() for a in page.css(".hit a")]
    assert set(answer) == set(site.get("/search?q=rotor&format=json").json)
    assert (answer["query"], answer["total"], answer["facets"]) == ("", len(answer["hits"]), None)
    missing = site.get("/search?similar=http://nowhere.example/&format=json")
    assert (missing.status, missing.json) == (404, {"error": "This page is not in the index."})
    unknown = site.get(f"{target}&format=xml")
    assert (unknown.status, list(unknown.json)) == (400, ["error"])
    shutil.copy(site.source.path / "crawl.json", tmp_path)
    with IndexWriter(tmp_path / "index") as index:
        for n in range(2):
            url, exact = f"http://h/%7Ea/{n}", f"http://h/~a/{n}"
            index.add(Page(url, exact, text=f"needle {n}", body=b"%d" % n))
    other = served(tmp_path)
    for url in ("http://h/%7Ea/0", "http://h/~a/0"):
        found = other.get(f"/search?similar={quote(url, safe='')}&format=json").json
        assert [one["url"] for one in found["hits"]] == ["http://h/%7Ea/1"], url


def test_a_copy_has_the_words_marked(site: Served) -> None:
    """A link at each hit; of a PDF page by page. Nothing of the page's markup is in it."""
    page = LexborHTMLParser(site.get("/search?q=title:rotor%20siren").text)
    link = next(a for a in page.css(".about a") if a.text() == "Stored copy")
    got = site.get(str(link.attributes["href"]))
    assert {"siren", "sirens"} & marked(got)
    found = LexborHTMLParser(got.text)
    assert found.css_first("h1").text() == "Rotor"
    assert found.css_first(".cached p") is not None
    assert found.css(".cached a, .cached img, .cached script, .cached [style]") == []
    back = next(a for a in found.css(".note a"))
    assert back.attributes["href"] == "/search?q=title%3Arotor%20siren"
    hit = site.get("/search?q=siren&type=pdf&format=json").json["hits"][0]
    paged = site.get(f"/search/copy?u={quote(hit['url'])}&q=siren")
    assert "siren" in " ".join(marked(paged))
    assert site.get("/search/copy?u=http://nowhere.example/").status == 404
    assert site.get("/search/copy").status == 404


def test_nothing_found_says_what_to_do(site: Served) -> None:
    """With a filter: how many there are without it."""
    text = site.get("/search?q=siren&type=archive").text
    assert "No page was found" in text
    assert "Search without the filters" in text
    plain = site.get("/search?q=qqqqqqqq").text
    assert "Search without" not in plain
    assert "Leave out quotes" not in plain
    for query in ("title:qqqqqqqq", "qqqqqqqq+-siren", "%22qqqqqqqq+wwwwwww%22"):
        assert "Leave out quotes" in site.get(f"/search?q={query}").text, query


@pytest.mark.parametrize("query", ["=>", ":=", "<<>>", "\N{PARTY POPPER}"])
def test_signs_alone_are_a_search_with_help(site: Served, query: str) -> None:
    """And no error."""
    got = site.get(f"/search?{urlencode({'q': query})}")
    assert got.status == 200
    assert "No page was found" in got.text
    assert "How to search" in got.text


def test_what_was_not_understood_is_said(site: Served) -> None:
    """A word that looks like a filter, and a code that no page has."""
    text = LexborHTMLParser(site.get("/search?q=colour:red+siren").text).text()
    assert "colour: is not a filter. Searched for colour:red as a word." in text
    text = LexborHTMLParser(site.get("/search?q=siren.10.2.1").text).text()
    assert "No page has siren.10.2.1 as typed; " in text
    assert "found in" not in text


@pytest.mark.parametrize(
    "collections, hosts, same",
    [
        ({"a": 5, "b": 2}, {"b.example": 2, "a.example": 5}, True),
        ({"a": 5, "b": 2}, {"b.example": 2, "a.example": 4, "c.example": 1}, False),
        ({"a": 5}, {"a.example": 5}, False),
        ({}, {"a.example": 5, "b.example": 5}, False),
    ],
)
def test_hosts_are_left_out_beside_equal_collections(collections, hosts, same) -> None:
    assert is_host_each(Facets(hosts=hosts, collections=collections)) == same


@pytest.mark.parametrize(
    "target, message",
    [
        ("q=title:", "title: needs a value"),
        ("q=" + "x" * 1001, "too long: at most 1,000 characters are allowed"),
        ("q=" + "word+" * 20_000, "too long: at most 1,000 characters are allowed"),
        ("q=" + "x%20" * 65, "65 words, at most 64 are allowed"),
        ("q=-draft%20-old:", ""),
        ("q=siren&type=exe", "type &#39;exe&#39; is unknown"),
        ("q=siren&since=never", "date &#39;never&#39; is unknown"),
        ("q=siren&since=2026-02-02&until=2026-02-01", "the wrong way round"),
        ("q=siren&lang=%3Cb%3E", "is not a language"),
        ("q=siren&collection=foo", "collection &#39;foo&#39; is unknown; one crawl is searched"),
    ],
)
def test_what_means_nothing_is_told_beside_the_box(site: Served, target: str, message: str) -> None:
    """In words, with the query still in the box; as JSON too."""
    got = site.get(f"/search?{target}")
    if not message:
        assert got.status == 200
        return
    assert got.status == 400
    assert message in got.text
    assert 'name="q"' in got.text
    assert 'type="hidden"' not in got.text  # nor does the box send a bad filter again
    answer = site.get(f"/search?{target}&format=json")
    assert (answer.status, list(answer.json)) == (400, ["error"])


def test_json_has_the_documented_fields(site: Served) -> None:
    """docs/search-api.md names each of them."""
    got = site.get("/search?q=rotor&type=html&since=2020-01-31&format=json")
    assert got.headers["Content-Type"].startswith("application/json")
    answer = got.json
    assert set(answer) == {
        "query", "total", "total_all", "instead", "offset", "seconds", "suggestion", "filters",
        "hits", "facets", "more", "also", "best_bets", "no_filters", "not_typed",
        "left_out",
    }  # fmt: skip
    assert answer["filters"] == {"type": ["html"], "since": "2020-01-31T00:00:00.000Z"}
    hit = answer["hits"][0]
    assert set(hit) == {
        "url", "title", "score", "snippet", "host", "type", "mime", "language", "size", "fetched",
        "modified", "depth", "author", "page", "target", "container",
        "copies", "fields", "other_pages", "collection", "section", "missing_since",
    }  # fmt: skip
    assert set(answer["facets"]) == {
        "host",
        "other_hosts",
        "type",
        "language",
        "date",
        "fields",
        "collection",
        "label",
        "unreachable",
    }
    documented = Path(__file__).parents[2].joinpath("docs", "search-api.md").read_text("utf-8")
    for name in (*answer, *hit, *answer["facets"]):
        assert f"`{name}`" in documented, name
    assert site.get("/search?q=siren&page=3&format=json").json["offset"] == 20


@pytest.mark.parametrize(
    "query",
    [
        "q=siren",
        "q=siren+wiki+rotor",
        "q=siren&type=pdf",
        "q=siren&since=2001-01-01",
        "q=sirne",
        "q=%22siren+zz9%22",
        "q=siren+zz-9-plural",
        "q=siren&copies=1",
    ],
)
def test_facets_count_the_pages_of_the_headline(site: Served, query: str) -> None:
    """With another word, narrowed, corrected, not as typed, and each copy by itself."""
    got = site.get(f"/search?{query}&format=json").json
    narrowed = "type" if "type=" not in query else "host"
    counts = got["facets"][narrowed]
    assert sum(counts.values()) == got["total"] > 0
    page = LexborHTMLParser(site.get(f"/search?{query}").text)
    headline = [
        int(number.replace(",", ""))
        for number in re.findall(
            r"([\d,]+) (?:pages?|with)", page.css_first("p[role=status]").text()
        )
    ]
    assert headline[-1] == got["total"]
    assert (page.css_first("#counted") is not None) == (got["total_all"] < got["total"])


def test_copies_are_one_hit_that_says_so(served: Serve, demo_crawl: Path, tmp_path: Path) -> None:
    """The number leads to the page of the URL; each may be shown, and pages of hits end in time."""
    shutil.copy(demo_crawl / "crawl.json", tmp_path)
    with IndexWriter(tmp_path / "index") as index:
        for n in range(24):
            index.add(Page(f"http://h/{n}", text="needle", body=b"%d" % (n % 12)))
    site = served(tmp_path)
    page = LexborHTMLParser(site.get("/search?q=needle").text)
    link = page.css_first(".about details a")
    assert (link.text(), link.attributes["href"]) == ("1 copy", "/url?u=http%3A%2F%2Fh%2F0#copies")
    assert "24 pages found" in page.text()
    last = LexborHTMLParser(site.get("/search?q=needle&page=2").text)
    assert (len(last.css(".hit")), last.css("a[rel=next]")) == (2, [])
    each = LexborHTMLParser(site.get("/search?q=needle&page=2&copies=1").text)
    assert (len(each.css(".hit")), len(each.css("a[rel=next]"))) == (10, 1)
    assert "copies=1" in each.css_first("a[rel=next]").attributes["href"]


def test_the_newest_first(site: Served) -> None:
    """A link away, and so it stays with other filters and pages."""
    page = LexborHTMLParser(site.get("/search?q=siren&type=html").text)
    link = str(page.css_first(".sort a").attributes["href"])
    assert link == "/search?q=siren&type=html&sort=date"
    page = LexborHTMLParser(site.get(link).text)
    shown = [str(one.attributes["datetime"]) for one in page.css(".hits time")]
    assert shown == sorted(shown, reverse=True)
    assert page.css_first(".sort strong").text() == "date"
    assert "sort=date" in str(page.css_first("a.chip").attributes["href"])
    assert "sort=date" in str(page.css_first("a[rel=next]").attributes["href"])
    assert page.css_first("form.search input[name=sort]").attributes["value"] == "date"
    found = site.get(f"{link}&format=json").json["hits"]
    assert [hit["score"] for hit in found] == sorted((h["score"] for h in found), reverse=True)


@pytest.mark.parametrize("language", ["", "de", "fr"])
def test_a_page_of_results_is_light(site: Served, language: str) -> None:
    """With all that it loads less than 60 kB, so that it comes quickly; also for users who are
    signed in, who can sign out there."""
    got = request(f"{site.url}/login", "POST", {}, {"token": TOKEN})
    cookie = got.headers["Set-Cookie"].partition(";")[0]
    names = {"": "Sign out", "de": "Abmelden", "fr": "Se déconnecter"}
    for headers in ({}, {"Cookie": cookie}):
        got = site.get("/search?q=siren", Accept_Language=language, **headers)
        page = LexborHTMLParser(got.text)
        assert len(page.css(".hit")) == 10
        links = page.css("link[rel=stylesheet], link[rel=icon]")
        loaded = [one.attributes["href"] for one in links]
        loaded += [one.attributes["src"] for one in page.css("script, img")]
        assert len(got.body) + sum(len(site.get(str(path)).body) for path in loaded) < 60_000
        out = [one.text() for one in page.css('form[action="/logout"] button')]
        assert out == [names[language]] * bool(headers)


def test_pages_of_results_follow_one_another(hostile_site: Served) -> None:
    """Each hit is on one of them; far down there is a way back."""
    pages = [hostile_site.get(f"/search?q=needle&page={n}").text for n in (1, 2, 3, 4)]
    urls = [p.text() for text in pages for p in LexborHTMLParser(text).css(".hits .url")]
    assert len(urls) == len(set(urls)) == 33
    assert "fewer results than that" in hostile_site.get("/search?q=needle&page=9").text


def test_a_browser_can_add_the_search(site: Served) -> None:
    """Each page names a description whose template finds things under the name that was asked."""
    link = LexborHTMLParser(site.get("/").text).css_first("link[rel=search]")
    assert link.attributes["type"] == "application/opensearchdescription+xml"
    got = site.get(str(link.attributes["href"]))
    assert got.headers["Content-Type"].startswith("application/opensearchdescription+xml")
    space = "{http://a9.com/-/spec/opensearch/1.1/}"
    root = ElementTree.fromstring(got.text)
    assert len(root.findtext(f"{space}ShortName", "")) in range(1, 17)
    template = root.find(f"{space}Url[@type='text/html']").attrib["template"]  # type: ignore[union-attr]
    assert template.startswith(f"{site.url}/")
    found = site.get(template.removeprefix(site.url).replace("{searchTerms}", "rotor"))
    assert "rotor" in marked(found)
    behind_tls = site.get("/opensearch.xml", X_Forwarded_Proto="https").text
    assert "https://127.0.0.1" in behind_tls
    assert "javascript" not in site.get("/opensearch.xml", X_Forwarded_Proto="javascript").text


@pytest.mark.parametrize(
    "name",
    [
        "q",
        "since",
        *(
            pytest.param(one, marks=pytest.mark.acceptance)
            for one in ("host", "type", "lang", "until", "similar")
        ),
    ],
)
def test_hostile_parameters_do_nothing(hostile_site: Served, browser: Browser, name: str) -> None:
    """Every parameter with every payload: no script runs, nothing is asked of anybody."""
    for text in HOSTILE:
        target = urlencode({"q": "needle", name: text})
        assert hostile_site.get(f"/search?{target}").status in (200, 400, 404)
        browser.open(f"{hostile_site.url}/search?{target}")
        assert "owned" not in browser.driver.title.replace(text, "")
        assert [e for e in browser.errors() if "the server responded with" not in e] == []


def test_hostile_pages_do_nothing(hostile_site: Served, browser: Browser) -> None:
    """Titles, texts, addresses, types and languages are text; no link leads to a script."""
    for n in (1, 2, 3, 4):
        browser.open(f"{hostile_site.url}/search?q=needle%20owned&page={n}")
        assert browser.driver.title.startswith("needle owned")
        links = [a.get_attribute("href") for a in browser.all("main a")]
        assert all(link.startswith("http") for link in links)
        assert browser.all("main img, main svg:not(.icon), main script") == []
        assert browser.overflow() <= 0
        assert browser.errors() == []


@pytest.mark.parametrize("url, shown", [
    ("http://wiki.example/", "wiki.example"),
    ("https://wiki.example:8443/a//%C3%9Cber%20uns/?q=%2F", "wiki.example:8443 › a › Über uns"),
    ("http://wiki.example/a.zip#b/c.txt", "wiki.example › a.zip #b/c.txt"),
    ("file:///srv/a%20b.txt", "srv › a b.txt"),
    ("http://[bad/", "http://[bad/"),
])  # fmt: skip
def test_the_way_to_a_page(url: str, shown: str) -> None:
    """In place of a URL, which is the title of the line."""
    assert crumbs(url) == shown


@pytest.mark.parametrize("query, status", [
    ("the of and", 200), ('"never closed', 200), ('""" "', 200), ("* " * 1_000, 400),
    ("a" * 5_000, 400), ("a* " * 1_000, 400), ("w" * 100_000, 400), ("-" * 900, 200),
    ("word " * 20_000, 400),
])  # fmt: skip
def test_monstrous_queries(site: Served, query: str, status: int) -> None:
    """Only stop words, odd quotes, far too long: an answer, or an error that says what is wrong."""
    for target in ("/search?q={}", "/search?format=json&q={}"):
        got = site.get(target.format(quote(query)))
        assert got.status == status
        assert "when reading" not in got.text  # what the HTTP library says
        assert len(got.text) < 20_000


@settings(max_examples=60)
@given(
    st.text(
        st.one_of(st.sampled_from("\"'-~: *()\\<>&;%{}"), st.characters(exclude_categories=["Cs"])),
        max_size=40,
    )
)
def test_any_query_is_answered_or_refused(hostile_site: Served, query: str) -> None:
    """No string of letters is an error of the server, and markup of the query is never markup."""
    got = hostile_site.get(f"/search?q={quote(query)}")
    assert got.status in (200, 400)
    assert LexborHTMLParser(got.text).css_first("html").css("main script") == []
    assert hostile_site.get(f"/search?format=json&q={quote(query)}").status in (200, 400)


def test_nul_is_a_space(site: Served) -> None:
    """On the page, in JSON, for OpenSearch's clients and in Python."""
    queries = ["siren%00rotor", "siren%20rotor"]
    assert 'value="siren rotor"' in site.get(f"/search?q={queries[0]}").text
    as_json, as_opensearch = (
        [site.get(f"{path}&q={query}").json for query in queries]
        for path in ("/search?format=json", "/search/_search?size=10")
    )
    assert as_json[0]["query"] == "siren rotor"
    assert as_json[0]["total"] == as_json[1]["total"] > 0
    assert as_opensearch[0]["hits"] == as_opensearch[1]["hits"]


@pytest.mark.parametrize(("asked", "says"), [
    ("sort=foo", "sort 'foo' is unknown; expected date or relevance"),
    *((f"page={page}", f"page '{page}' is none; expected a whole number from 1 to 100")
      for page in ("x", "-1", "0", "101", "1001", "1.5")),
    *((f"{name}={value}", f"{name} '{value}' is unknown; expected 0 or 1")
      for name, value in (("exact", "foo"), ("exact", "true"), ("copies", "2"))),
    ("format=xml", "format 'xml' is unknown; expected html or json"),
])  # fmt: skip
def test_what_the_page_ignores_is_refused_in_json(site: Served, asked: str, says: str) -> None:
    """A program that asks for it is mistaken."""
    form = "" if "format" in asked else "&format=json"
    got = site.get(f"/search?q=siren{form}&{asked}")
    assert (got.status, got.json) == (400, {"error": says})
    if form:
        assert site.get(f"/search?q=siren&{asked}").status == 200


@pytest.mark.parametrize("asked", ["sort=date", "sort=relevance", "sort=", "page=", "page=100",
                                   "page=01", "collection=", "exact=0", "exact=1", "copies=0",
                                   "copies=1", "exact=", "copies="])  # fmt: skip
def test_what_json_takes(site: Served, asked: str) -> None:
    assert site.get(f"/search?q=siren&format=json&{asked}").status == 200
