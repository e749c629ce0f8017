"""/api/v1/search and /api/v1/page: hits, pages as Markdown, rights, limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from larmspider.access.lists import AccessList
from larmspider.access.rights import Rights
from larmspider.index.writer import IndexWriter
from larmspider.items import Page, Section
from larmspider.server.api.api import BASE, OPERATIONS, sender_of
from larmspider.server.api.rate import MAX_SENDERS, Rate
from larmspider.web.auth import SEARCH, Identity
from tests.server.test_app import SEEDS, Console, check_answer
from tests.server.test_people import Person
from tests.server.test_principals import indexed
from tests.support.stored_crawl import StoredCrawl
from tests.support.web.serving import Got

OWN = "http://wiki.example/own"
GUIDE, TAPE = "http://wiki.example/guide", "http://wiki.example/tape.pdf"
BODY = b"""<!doctype html><title>Pump guide</title><nav>menu</nav><h1>Pump guide</h1><p>All pumps.
<ol><li>Open.<li>Close.</ol><h2 id=oil>Oil</h2><p>Black.</p><pre>oil --fill
  5</pre><h3 id=sorts>Sorts</h3><p>Three sorts.</p><h2 id=water>Water</h2><p>Clear water."""
TEXT = "Pump guide All pumps. Open. Close. Oil Black. oil --fill 5 Sorts Three sorts. "
TEXT += "All matter. " * 150 + "Water Clear water flows."
SECTIONS = [Section(TEXT.index(one), one.lower(), one) for one in ("Oil", "Sorts", "Water")]


def guide(folder: Path) -> None:
    """A crawl with a page of HTML and a document of three pages."""
    crawl = StoredCrawl(folder, refresh=False)
    crawl.clock = 1.7e9
    crawl.store(
        GUIDE,
        Page(
            GUIDE, GUIDE, mime="text/html", body=BODY, title="Pump guide", text=TEXT,
            language="en", exact=GUIDE, modified=1e9, sections=list(SECTIONS),
        ),
    )  # fmt: skip
    pages = "First page.\fSecond page of tape.\fThird."
    crawl.store(
        TAPE,
        Page(TAPE, TAPE, mime="application/pdf", body=b"%PDF", title="Tape", text=pages,
             exact=TAPE),
    )  # fmt: skip
    crawl.end()


class Asking(Console):
    """A server with two crawls: wiki, with credentials for one of its hosts, and guide."""

    def get(self, name: str, headers: dict[str, str], status: int = 200, **query: str) -> Any:
        """A checked answer."""
        operation = next(one for one in OPERATIONS if one.name == name)
        got = self.ask(f"{BASE}{operation.path}?{urlencode(query)}", headers=headers)
        check_answer(operation, got, status)
        return got.json


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    home = tmp_path_factory.mktemp("home")
    with Asking(home, sessions={}) as running:
        data = home / "data"
        data.mkdir(exist_ok=True)
        for name in ("wiki", "guide"):
            running.manager.home.write(name, f"seeds = {SEEDS['seeds']}\n", new=True)
        indexed(data / "wiki")
        with IndexWriter(data / "wiki" / "index") as index:
            index.access.give(OWN, Rights(AccessList.simple(["user:anna"])))
            index.add(Page(OWN, text="canteen card", title="own", mime="text/plain"))
        guide(data / "guide")
        yield running


def test_hits_of_all_crawls(asking: Asking) -> None:
    """The answer of the search page as JSON, with what leads to the section."""
    read = asking.token("read")
    found = asking.get("search", read, q="sorts of oil", size="1")
    [hit] = found["hits"]
    assert (hit["url"], hit["title"], hit["collection"]) == (GUIDE, "Pump guide", "guide")
    assert (hit["type"], hit["language"], hit["modified"]) == ("html", "en", 1e9)
    assert "<b>" in hit["snippet"]
    assert found["facets"]["collection"] == {"guide": 2}
    water = asking.get("search", read, q="water")["hits"][0]
    assert water["section"] == {"anchor": "water", "heading": "Water"}
    assert water["target"] == f"{GUIDE}#water"
    assert asking.get("search", read, q="page", type="pdf")["hits"][0]["url"] == TAPE
    first = asking.get("search", read, q="canteen OR water OR tape", size="2")
    assert (first["more"], len(first["hits"])) == (True, 2)
    second = asking.get("search", read, q="canteen OR water OR tape", size="2", page="2")
    assert second["offset"] == 2
    assert not {one["url"] for one in first["hits"]} & {one["url"] for one in second["hits"]}


def test_a_page_as_markdown(asking: Asking) -> None:
    """Whole, by section, and piece by piece."""
    read = asking.token("read")
    found = asking.get("page", read, url=GUIDE)
    assert (found["title"], found["language"], found["modified"]) == ("Pump guide", "en", 1e9)
    assert (found["collection"], found["next"], found["cut"]) == ("guide", None, False)
    shown = [(one["anchor"], one["level"], one["heading"]) for one in found["sections"]]
    assert shown == [
        (None, 1, "Pump guide"), ("oil", 2, "Oil"), ("sorts", 3, "Sorts"), ("water", 2, "Water"),
    ]  # fmt: skip
    texts = [one["text"] for one in found["sections"]]
    assert texts[0] == "# Pump guide\n\nAll pumps.\n\n1. Open.\n2. Close."
    assert texts[1] == "## Oil\n\nBlack.\n\n```\noil --fill\n  5\n```"
    assert found["chars"] == len("\n\n".join(texts))
    assert found["sections"][1]["target"] == f"{GUIDE}#oil"
    oil = asking.get("page", read, url=f"{GUIDE}#oil")
    assert [one["text"] for one in oil["sections"]] == texts[1:3]
    assert asking.get("page", read, url=GUIDE, section="oil") == oil
    tape = asking.get("page", read, url=TAPE, section="page=2")
    assert [one["text"] for one in tape["sections"]] == ["Second page of tape."]
    assert tape["sections"][0]["target"] == f"{TAPE}#page=2"
    read_on, start = "", 0
    while start is not None:
        part = asking.get("page", read, url="HTTP://wiki.example:80/guide", chars="200",
                          start=str(start))  # fmt: skip
        read_on, start = read_on + "".join(one["text"] for one in part["sections"]), part["next"]
    assert read_on == "".join(texts)


def test_who_sees_what(asking: Asking) -> None:
    """A person's token finds and reads what this person's search page shows; all other pages are
    404, as if they were not there."""
    asking.users.add("anna", "reader", "correct horse")
    asking.users.add("ada", "operator", "correct horse")
    hidden, public = "http://pay.hr.example/a", "http://wiki.example/"
    tokens = {
        name: {"Authorization": f"Bearer {asking.tokens.make(f'of-{name}', scope, user=name)}"}
        for name, scope in (("anna", "search"), ("ada", "read"))
    }
    tokens["all"] = asking.token("operate")
    for name, token, sees in (
        ("anna", tokens["anna"], False), ("ada", tokens["ada"], False), ("", tokens["all"], True),
    ):  # fmt: skip
        found = {hit["url"] for hit in asking.get("search", token, q="canteen")["hits"]}
        assert (hidden in found, public in found) == (sees, True), name
        if name == "anna":
            page = Person(asking, name).get("/search?q=canteen&format=json").json
            assert {hit["url"] for hit in page["hits"]} == found
            assert asking.get("search", token, q="canteen")["total"] == page["total"]
        assert (OWN in found) == (name != "ada"), name
        asking.get("page", token, 200 if name != "ada" else 404, url=OWN)
        assert asking.get("page", token, url=public)["sections"][0]["text"].startswith("canteen")
        secret = asking.get("page", token, 200 if sees else 404, url=hidden)
        missing = asking.get("page", token, 404, url=f"{hidden}/nothing")
        assert sees or secret == missing
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        asking.get("search", headers, 401, q="canteen")
        asking.get("page", headers, 401, url=public)
    push = asking.token("push")
    asking.get("search", push, 403, q="canteen")
    asking.get("page", push, 403, url=public)


def test_an_open_search_is_for_everybody(tmp_path: Path) -> None:
    """Without a token; a wrong one is refused nevertheless."""
    with Asking(tmp_path) as asking:
        asking.manager.home.write("wiki", f"seeds = {SEEDS['seeds']}\n", new=True)
        indexed(tmp_path / "data" / "wiki")
        found = asking.get("search", {}, q="canteen")
        assert [hit["title"] for hit in found["hits"]] == ["public"]
        asking.get("page", {}, url="http://wiki.example/")
        asking.get("page", {}, 404, url="http://pay.hr.example/a")
        asking.get("search", {"Authorization": "Bearer wrong"}, 401, q="canteen")


@pytest.mark.parametrize(
    ("name", "query", "said"),
    [
        ("search", {}, "q: expected a query"),
        ("search", {"q": "a", "size": "0"}, "size '0': expected a whole number from 1 to 100"),
        ("search", {"q": "a", "size": ""}, "size '': expected"),
        ("search", {"q": "a", "page": "101"}, "page '101' is none"),
        ("search", {"q": "a", "sort": "size"}, "sort 'size' is unknown"),
        ("search", {"q": "a", "colour": "red"}, "colour: expected q, "),
        ("search", {"q": "a", "collection": "x"}, "collection 'x' is unknown"),
        ("search", {"q": "a", "host": "h" * 256}, "host has 256 characters"),
        ("search", {"q": "a" * 1_001}, "the query is too long"),
        ("search", {"q": "a", "since": "never"}, "never"),
        ("page", {}, "url: expected the URL of a page"),
        ("page", {"url": "http://h/", "chars": "1"}, "chars '1': expected"),
        ("page", {"url": "http://h/", "start": "-1"}, "start '-1': expected"),
        ("page", {"url": "http://h/", "q": "x"}, "q: expected url, section, start, chars"),
        ("page", {"url": GUIDE, "start": "99999"}, "start 99,999: expected less than"),
    ],
)
def test_requests_that_cannot_be(asking: Asking, name: str, query: Any, said: str) -> None:
    """Each gets one line and 400."""
    error = asking.get(name, asking.token("read"), 400, **query)["error"]
    assert said in error
    assert "\n" not in error


def test_sections_and_pages_that_are_not_there(asking: Asking) -> None:
    read = asking.token("read")
    error = asking.get("page", read, 404, url=GUIDE, section="gone")["error"]
    assert error == "This page has no section 'gone'."
    assert (
        asking.get("page", read, 404, url="http://h/")["error"] == "This page is not in the index."
    )


def test_each_sender_has_a_rate(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """429 says when to ask again; another token may ask."""
    monkeypatch.setattr(asking.crawls.searches, "_most", 2)
    one, other = asking.token("read"), asking.token("read")

    def ask(headers: dict[str, str]) -> Got:
        return asking.ask(f"{BASE}/page?url={quote(GUIDE)}", headers=headers)

    assert [ask(one).status for _ in range(3)] == [200, 200, 429]
    assert 1 <= int(ask(one).headers["Retry-After"]) <= 60
    assert "More than 2 searches and pages a minute" in ask(one).json["error"]
    assert ask(other).status == 200


def test_people_of_one_provider_are_counted_each() -> None:
    anna, eve = (Identity(name, SEARCH, mark="oidc") for name in ("anna", "eve"))
    token = Identity("anna", SEARCH, mark="token:notes")
    names = [sender_of(one, "192.0.2.1") for one in (anna, eve, token, None)]
    assert names == ["person:anna", "person:eve", "token:notes", "address:192.0.2.1"]


def test_few_senders_are_remembered() -> None:
    rate = Rate(1)
    for number in range(MAX_SENDERS + 5):
        rate.took(str(number))
    assert len(rate._left) == MAX_SENDERS
