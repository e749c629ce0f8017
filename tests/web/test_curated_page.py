"""/control/search: an operator edits synonyms and best bets; others neither see nor change them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.curated import Curated
from larmspider.web.auth import cookie_name
from tests.support.web.serving import TOKEN, Got, Served, request

pytestmark = pytest.mark.acceptance
BEARER = {"Authorization": f"Bearer {TOKEN}"}
EMPTY = "e4a6a0577479b2b4"  # the digest of a file that is not there


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    manifest = {"format": 2, "began": "2026", "seeds": ["http://wiki.example/"], "settings": {}}
    (tmp_path / "crawl.json").write_text(json.dumps(manifest))
    with IndexWriter(tmp_path / "index") as index:
        index.add(Page("http://wiki.example/vpn", text="the tunnel", title="Far <b>away"))
        index.add(Page("http://wiki.example/b", text="the vpn tunnel", title="Another"))
    files = (tmp_path / f"{name}.txt" for name in ("synonyms", "best_bets", "labels"))
    with Served(tmp_path, curated=Curated(*files)) as running:
        yield running


def save(site: Served, name: str, text: str, seen: str = EMPTY) -> Got:
    form = {name: text, "seen": seen}
    return request(f"{site.url}/control/{name}", "POST", BEARER, form)


def test_what_is_saved_counts_at_once(site: Served) -> None:
    """On the page, in JSON, and in the file; the page shows what the file has."""
    assert save(site, "synonyms", "Homeoffice, vpn").status == 200
    bets = "vpn => http://wiki.example/vpn\nvpn => http://wiki.example/x Out of <i>town"
    assert "is saved" in save(site, "best-bets", bets).json["done"]
    found = site.get("/search?q=homeoffice&format=json").json
    assert (found["total"], found["also"], found["instead"]) == (2, ["vpn"], None)
    assert "Searched too: vpn" in site.get("/search?q=homeoffice").text
    found = site.get("/search?q=vpn&format=json").json
    assert found["best_bets"] == [
        {"url": "http://wiki.example/vpn", "title": "Far <b>away"},
        {"url": "http://wiki.example/x", "title": "Out of <i>town"},
    ]
    text = site.get("/search?q=tunnel").text
    assert "Recommended" not in text
    text = site.get("/search?q=VPN").text
    assert text.index("Far &lt;b&gt;away") < text.index("Out of &lt;i&gt;town")
    assert text.index("Out of") < text.index("Another")
    assert text.count('href="http://wiki.example/vpn"') == 1  # above, and not among the hits again
    page = site.get("/control/search", **BEARER).text
    assert "Homeoffice, vpn" in page
    assert "http://wiki.example/x Out of &lt;i&gt;town" in page


def test_bad_lines_are_refused_and_nothing_typed_is_lost(site: Served) -> None:
    """The form shows them again; the file stays as it was."""
    got = save(site, "synonyms", "vpn, tunnel\nalone")
    assert got.status == 409
    assert "line 2: 'alone': expected 2 to 16 different words" in got.json["error"]
    session = site.guard.begin_session(site.url.partition("//")[2])
    form = {
        "synonyms": "alone<", "seen": EMPTY, "next": "/control/search",
        "csrf": next(iter(site.guard._sessions.values())).csrf,
    }  # fmt: skip
    cookie = f"{cookie_name(site.url.partition('//')[2])}={session}"
    got = request(f"{site.url}/control/synonyms", "POST", {"Cookie": cookie}, form)
    page = request(site.url + got.headers["Location"], headers={"Cookie": cookie}).text
    assert "line 1: &#39;alone&lt;&#39;: expected" in page
    assert re.search(r'<textarea name="synonyms"[^>]*>\s*alone&lt;</textarea>', page)
    assert not (site.source.path / "synonyms.txt").exists()


def test_two_operators_do_not_overwrite_each_other(site: Served) -> None:
    save(site, "synonyms", "a, b")
    got = save(site, "synonyms", "c, d")
    assert (got.status, "has been changed since" in got.json["error"]) == (409, True)


def test_only_an_operator_sees_and_changes_them(site: Served) -> None:
    """Token and CSRF, as for all that changes something."""
    (site.source.path / "synonyms.txt").write_text("canary, bird\n")
    assert "canary" not in site.get("/control/search").text
    for headers, status in (({}, 401), (BEARER | {"Origin": "http://evil.example"}, 403)):
        got = request(f"{site.url}/control/synonyms", "POST", headers, {"synonyms": "a, b"})
        assert got.status == status
    assert (site.source.path / "synonyms.txt").read_text() == "canary, bird\n"


def test_a_file_too_long_for_a_form_is_edited_elsewhere(site: Served) -> None:
    """And one with bad lines says which."""
    (site.source.path / "synonyms.txt").write_text("x\n" + "vpn, Fernzugriff\n" * 5_000)
    page = site.get("/control/search", **BEARER).text
    assert "too long for this page" in page
    assert "Ignored: line 1:" in page


def test_a_label_narrows_the_search_once_it_is_saved(site: Served) -> None:
    assert "is saved" in save(site, "labels", "Far => http://wiki.example/vpn").json["done"]
    found = site.get("/search?q=tunnel&format=json").json
    assert (found["total"], found["facets"]["label"]) == (2, {"Far": 1})
    found = site.get("/search?q=tunnel&label=far&format=json").json
    assert (found["total"], found["filters"]) == (1, {"label": ["Far"]})
    page = site.get("/search?q=tunnel").text
    assert "label=Far" in page
    assert "Remove the filter Label: far" in site.get("/search?q=tunnel&label=far").text
    wrong = site.get("/search?q=tunnel&label=none&format=json")
    assert (wrong.status, wrong.json["error"]) == (400, "label 'none' is unknown")
    refused = save(site, "labels", "HR wiki", seen="x")
    assert "expected label => URL" in refused.json["error"]
