"""The log of queries: what it keeps, for how long, and whom it tells what."""

from __future__ import annotations

import html
import json
import logging
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.curated import Curated
from larmspider.web.auth import Guard
from larmspider.web.query_log import QueryLog
from tests.support.crawling import scrapy
from tests.support.web.serving import TOKEN, Served, request

DAY = 86_400.0
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Clock:
    now = 20_000 * DAY + 5

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


Make = Callable[..., QueryLog]


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Make]:
    made: list[QueryLog] = []

    def log(**more: object) -> QueryLog:
        made.append(QueryLog(tmp_path / "queries.sqlite", 90, clock=clock, **more))  # type: ignore[arg-type]
        return made[-1]

    yield log
    for one in made:
        one.close()


def typed_often(log: QueryLog, clock: Clock, query: str, days: int = 3, times: int = 2) -> None:
    for _ in range(days):
        clock.now += DAY
        for _ in range(times):
            log.note(query, 1)


def test_queries_are_counted_by_day_and_kept_so_long(make: Make, clock: Clock) -> None:
    """Capitals and spaces make no difference; what another process notes counts too."""
    log, other = make(), make()
    log.note("VPN  login", 3)
    other.note("vpn login", 0)
    clock.now += 89 * DAY
    log.note("new", 1)
    (first, second) = log.rows()
    assert (first.query, first.times, first.empty, first.days) == ("vpn login", 2, 1, 1)
    assert (second.query, second.hits, str(second.last)) == ("new", 1, "2025-01-01")
    clock.now += DAY
    assert [row.query for row in log.rows()] == ["new"]
    database = sqlite3.connect(log.path or "")
    assert database.execute("SELECT count(*) FROM queries").fetchone() == (1,)
    database.close()


def test_those_without_a_hit_are_those_that_find_nothing_now(make: Make, clock: Clock) -> None:
    log = make()
    for query, hits in (("mended", 0), ("lost", 4), ("never", 0), ("never", 0)):
        log.note(query, hits)
    clock.now += DAY
    for query, hits in (("mended", 2), ("lost", 0)):
        log.note(query, hits)
    assert [row.query for row in log.rows(without_hits=True)] == ["lost", "never"]
    assert log.rows(without_hits=True)[1].empty == 2


def test_the_file_does_not_grow_without_end(make: Make, clock: Clock) -> None:
    """Queries that were typed least often go first; a long query is not noted."""
    log = make(max_rows=20)
    typed_often(log, clock, "frequent", 3)
    for number in range(100):
        log.note(f"once {number}", 1)
    log.note("x" * 201, 1)
    clock.now += DAY
    rows = log.rows(limit=1000)
    assert len(rows) == 16  # 18 rows: three of them days of one query
    assert rows[0].query == "frequent"


@pytest.mark.parametrize(("days", "times", "suggested"), [
    (3, 2, True), (2, 9, False), (3, 1, False), (5, 1, True),
])  # fmt: skip
def test_a_query_of_others_is_suggested_after_three_days_and_five_times(
    make: Make, clock: Clock, days: int, times: int, suggested: bool
) -> None:
    log = make()
    typed_often(log, clock, "VPN login", days, times)
    typed_often(log, clock, "zebra")
    assert log.suggested(" Vpn", 3) == (["vpn login"] if suggested else [])
    assert log.suggested("vpn l%", 3) == log.suggested("", 3) == []
    assert make(on=False).suggested("vpn", 3) == []


def test_accents_need_not_be_typed(make: Make, clock: Clock) -> None:
    """Where they are, queries that have them come first, as titles do; the most frequent first."""
    log = make()
    typed_often(log, clock, "uber den wolken", times=3)
    typed_often(log, clock, "\u00dcber uns")
    typed_often(log, clock, "ubuntu", times=4)
    plain, accented = "uber den wolken", "\u00fcber uns"
    assert log.suggested("Uber", 3) == [plain, accented]
    assert log.suggested("u\u0308b", 3) == [accented, "ubuntu", plain]
    assert log.suggested("\u00fc", 1) == [accented]
    assert log.suggested("uber u", 3) == [accented]
    assert log.suggested("\u00fcx", 3) == []


def test_only_its_owner_reads_the_file(make: Make) -> None:
    log = make()
    log.note("vpn", 1)
    assert log.path is not None
    for path in log.path.parent.glob("queries.sqlite*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_off_it_makes_no_file(make: Make, tmp_path: Path) -> None:
    log = make(on=False)
    log.note("vpn", 1)
    assert (log.rows(), log.suggested("vp", 3), list(tmp_path.iterdir())) == ([], [], [])


def test_a_file_that_cannot_be_used_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "queries.sqlite").write_text("this is no database, " * 100)
    log = QueryLog(tmp_path / "queries.sqlite")
    with caplog.at_level(logging.WARNING):
        log.note("vpn", 1)
        log.note("vpn", 1)
    assert [record.getMessage().count("queries are not logged") for record in caplog.records] == [1]
    assert (log.rows(), log.suggested("vp", 3)) == ([], [])
    log.close()


@pytest.mark.parametrize(("name", "value"), [
    ("LARM_QUERY_LOG_DAYS", "0"), ("LARM_QUERY_LOG_DAYS", "x"), ("LARM_QUERY_LOG", "perhaps"),
])  # fmt: skip
def test_a_bad_setting_is_refused(name: str, value: str) -> None:
    settings = Settings()
    settings.setmodule("larmspider.settings", priority="default")
    assert not QueryLog.from_settings(settings).on
    settings.set(name, value)
    with pytest.raises(ConfigError, match=f"{name}={value}: expected"):
        QueryLog.from_settings(settings)


# On the pages.


@pytest.fixture
def site(tmp_path: Path, make: Make) -> Iterator[Served]:
    manifest = {
        "format": 2, "began": "2026", "seeds": ["http://wiki.example/"],
        "credentials": ["https://*.hr.example"], "settings": {},
    }  # fmt: skip
    (tmp_path / "crawl.json").write_text(json.dumps(manifest))
    with IndexWriter(tmp_path / "index") as index:
        index.add(Page("http://wiki.example/", text="public canteen opens"))
        index.add(Page("http://pay.hr.example/", text="canary sings", body=b"1"))
    guard = Guard(TOKEN, closed=True, open_paths=("/search",))
    (tmp_path / "synonyms.txt").write_text("the of, how do I\ncanteen, lunch room\n")
    curated = Curated(tmp_path / "synonyms.txt")
    with Served(tmp_path, guard, query_log=make(), curated=curated) as running:
        yield running


def test_what_is_typed_on_the_page_is_noted(site: Served) -> None:
    """Once: not its further pages, filters and corrections, nor what programs ask. The order makes
    no difference, for the box keeps it."""
    request(f"{site.url}/search?q=canteen", "HEAD")
    for target in (
        "q=opens&sort=date", "q=opens&sort=date&page=2", "q=canteen&copies=1",
        "q=canteen", "q=canteen&page=2", "q=canteen&type=html", "q=canteen&exact=1",
        "q=canteen&format=json", "q=zzz", "q=", "q=canten", "q=title:",
    ):  # fmt: skip
        site.get(f"/search?{target}", User_Agent="canary-agent")
    found = site.get("/control/queries?format=json", **BEARER).json
    assert [(row["query"], row["hits"]) for row in found["frequent"]] == [
        ("canteen", 1), ("canten", 0), ("opens", 1), ("zzz", 0),
    ]  # fmt: skip
    assert {row["times"] for row in found["frequent"]} == {1}
    assert [row["query"] for row in found["without_hits"]] == ["canten", "zzz"]
    assert set(found["frequent"][0]) == {"query", "times", "empty", "days", "hits", "last"}
    page = site.get("/control/queries", **BEARER).text
    assert page.index("Without a hit") < page.index("zzz") < page.index("Most frequent")
    kept = b"".join(path.read_bytes() for path in site.source.path.glob("queries.sqlite*"))
    assert b"canteen" in kept
    assert b"canary-agent" not in kept
    assert b"127.0.0.1" not in kept


def test_a_frequent_query_is_suggested_to_those_who_find_something(
    site: Served, clock: Clock
) -> None:
    """Not to others, however often it was typed; nor is the log shown to them."""
    log = site.site.query_log
    typed_often(log, clock, "canary sings")
    typed_often(log, clock, "canteen opens")
    typed_often(log, clock, "canceled flights")
    typed_often(log, clock, "ópens canteen")
    assert site.get("/search/suggest?q=op").json == ["op", ["ópens canteen"]]
    assert site.get("/search/suggest?q=Can").json == ["Can", ["canteen opens"]]
    assert site.get("/search/suggest?q=can", **BEARER).json[1] == ["canary sings", "canteen opens"]
    for query in ("-canary", "-url:canary", "host:wiki.example host:canary", "canary" * 20):
        typed_often(log, clock, f"canteen {query}")
    assert site.get("/search/suggest?q=canteen").json[1] == ["canteen opens"]
    assert site.get("/control/queries").status == 401
    assert "canary" not in site.get("/control/queries", Accept="text/html").text


@pytest.mark.parametrize("path", ["queries", "why?q=canteen&u=http://wiki.example/"])
def test_a_program_without_the_token_is_told_so_in_json(site: Served, path: str) -> None:
    """Where all may read, too: the form to sign in is for people."""
    mark = "&" if "?" in path else "?"
    with Served(site.source.path, Guard(TOKEN)) as open_site:
        got = open_site.get(f"/control/{path}{mark}format=json")
        assert (got.status, got.json) == (401, {"error": "Sign in with the token first."})
        assert open_site.get(f"/control/{path}").status == 200


def test_only_an_operator_learns_why(site: Served) -> None:
    """A page and JSON; others learn nothing of it, as of all below /control."""
    target = "/control/why?q=canary&u=http://pay.hr.example/"
    found = site.get(f"{target}&format=json", **BEARER).json
    assert (found["verdict"], found["page"]["position"]) == ("hit 1 of 1", 1)
    page = site.get(target, **BEARER).text
    assert "hit 1 of 1" in page
    assert "&#34;canary&#34; in the text" in page
    assert 'href="/control/why?u=' in site.get("/search?q=canary", **BEARER).text
    assert site.get(target).status == 401
    assert "/control/why" not in site.get("/search?q=canteen").text
    for bad in ("q=canary", "q=title:&u=x", f"q={'x' * 1001}&u=x"):
        assert site.get(f"/control/why?{bad}&format=json", **BEARER).status == 400
    for text in ("<b>", "javascript:alert(1)", "http://[", "a b", ""):
        got = site.get(f"/control/why?q=zzz&u={quote(text)}", **BEARER)
        assert got.status == 200
        assert "<b>" not in got.text


@pytest.mark.parametrize(("target", "says"), [
    *((f"{path}format=xml", "format 'xml' is unknown; expected html or json")
      for path in ("queries?", "why?q=canary&u=http://pay.hr.example/&", "why?")),
    ("why?q=canary&u=http://pay.hr.example/&sort=x", "sort 'x' is unknown; expected date or"),
    ("why?q=canary&u=http://pay.hr.example/&exact=yes", "exact 'yes' is unknown; expected 0 or 1"),
    ("why?q=canary&u=http://pay.hr.example/&copies=2", "copies '2' is unknown; expected 0 or 1"),
])  # fmt: skip
def test_unknown_values_are_refused(site: Served, target: str, says: str) -> None:
    """As JSON and, where the format is right, on the page."""
    for form in ("",) if "format" in target else ("", "&format=json"):
        got = site.get(f"/control/{target}{form}", **BEARER)
        assert got.status == 400
        if form or "format" in target:
            assert got.json["error"].startswith(says)
        else:
            assert says in html.unescape(got.text)
            assert "hit 1 of 1" not in got.text


@pytest.mark.parametrize("more", ["format=", "format=html", "sort=date&exact=0&copies=1", "exact="])
def test_known_values_are_taken(site: Served, more: str) -> None:
    for target in ("queries?", "why?q=canary&u=http://pay.hr.example/&"):
        assert site.get(f"/control/{target}{more}", **BEARER).status == 200


def test_why_says_which_places_it_means(demo_crawl: Path) -> None:
    """Where the list had another order, or copies: on the page, in JSON and in a terminal. And each
    score has a name of its own."""
    with Served(demo_crawl) as running:
        hit = running.get("/search?q=siren&format=json").json["hits"][3]
        target = f"/control/why?q=siren&u={quote(hit['url'], safe='')}"
        says = "Places are those by relevance, with copies folded"
        assert says not in running.get(target, **BEARER).text
        assert running.get(f"{target}&format=json", **BEARER).json["note"] == ""
        for more in ("&sort=date", "&copies=1"):
            page = running.get(target + more, **BEARER).text
            assert says in page, more
            told = running.get(f"{target}{more}&format=json", **BEARER).json["note"]
            assert told.startswith(says), more
            names = re.findall(r'role="region" aria-label="([^"]*)"', page)
            assert len(names) == len(set(names)) == 3
    for option in (["--sort", "date"], ["--copies"], []):
        command = ("search", "--dir", str(demo_crawl), "siren", "--why", hit["url"], *option)
        assert (says in scrapy(*command, cwd=demo_crawl).out) == bool(option)


ODD = (
    "x" * 100_000, "word " * 20_000, "x" * 1_001, "how do I the of", "the of", "?" * 500,
    '"canteen opens', '"""', '"" "', "* " * 499, "*canteen*", "canteen~ " * 30, "*" * 1_000,
    "? " * 2_000, "-canteen", "title:", "a:b" * 300, "\u0130" * 900, "(" * 999, "\ud800",
)  # fmt: skip


@pytest.mark.acceptance
@pytest.mark.parametrize("entrance", [
    "/search?q={}", "/search?q={}&format=json", "/search/suggest?q={}", "/search/_search?q={}",
    "/control/why?u=http://wiki.example/&q={}", "/control/why?u={}&q=canteen&format=json", "body",
])  # fmt: skip
def test_odd_queries_are_answered_or_refused_with_400(
    site: Served, entrance: str, caplog: pytest.LogCaptureFixture
) -> None:
    """At each entrance, with a reason, and no traceback in the log."""
    for query in ODD:
        if entrance == "body":
            body = json.dumps({"query": {"query_string": {"query": query}}}).encode()
            got = request(f"{site.url}/search/_search", "POST", BEARER, body)
        else:
            text = quote(query.encode("utf-8", "replace"))
            got = site.get(entrance.replace("{}", text), **BEARER)
        assert got.status in (200, 400), (query[:20], got.status)
        if got.status == 400:
            assert len(got.body) > 20
    assert not [record for record in caplog.records if record.exc_info]
