"""LARM_FIELDS from the setting to the search page: tried, crawled, found, visited again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.crawling import Ran, crawl, scrapy
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.serving import Served

pytestmark = pytest.mark.acceptance
FIELDS = json.dumps(
    {"127.0.0.1": {"room": ".room", "status": "//meta[@name='status']/@content"}, "*": {"x": "p"}}
)
PAGES = {
    "/": "<title>Rooms</title><a href=/a>a</a> <a href=/b>b</a> <a href=/c>c</a>",
    "/a": "<meta name=status content=open><title>A</title>A room <b class=room>4.12</b> for two",
    "/b": "<title>B</title>A room <b class=room>Großer Saal</b> for fifty",
    "/c": "<title>C</title>A room for nobody",
}


def _parse(url: str, folder: Path, fields: str) -> Ran:
    return scrapy("parse", "-s", f"LARM_FIELDS={fields}", url, cwd=folder)


def test_own_fields_are_tried_crawled_found_and_visited_again(tmp_path: Path) -> None:
    with ScriptedServer(PAGES) as server:
        tried = _parse(server.url("/a"), tmp_path, FIELDS)
        assert "'fields': {'room': ['4.12'], 'status': ['open']}" in tried.out, tried.err
        refused = _parse(server.url("/a"), tmp_path, '{"*": {"x": "b["}}')
        assert refused.status == 2
        assert "LARM_FIELDS: host '*': x: 'b[': expected a CSS" in refused.err.splitlines()[-1]
        assert len(server.requests("/a")) == 1
        assert list(tmp_path.iterdir()) == []

        (tmp_path / "feed").mkdir()
        wanted = {"LARM_FIELDS": FIELDS, "LARM_FACETS": "room"}
        feeds = json.dumps({f"feed/{name}": {"format": name} for name in ("jsonl", "csv", "xml")})
        ran = crawl(server.url(), tmp_path, **wanted, FEEDS=feeds)
        assert ran.status == 0, ran.err
        pages = map(json.loads, (tmp_path / "feed" / "jsonl").read_text().splitlines())
        given = {page["title"]: page["fields"] for page in pages}
        assert given == {"Rooms": {}, "A": {"room": ["4.12"], "status": ["open"]},
                         "B": {"room": ["Großer Saal"]}, "C": {}}  # fmt: skip
        assert '""room"": [""4.12""]' in (tmp_path / "feed" / "csv").read_text()
        assert "<room><value>4.12</value></room>" in (tmp_path / "feed" / "xml").read_text()

        found = scrapy("search", "room", "--field", "room=großer saal", "--json", cwd=tmp_path)
        assert [hit["title"] for hit in found.json["hits"]] == ["B"]
        assert found.json["filters"] == {"fields": {"room": ["großer saal"]}}
        assert found.json["facets"]["fields"] == {"room": {"4.12": 1, "Großer Saal": 1}}
        assert "A\n" in scrapy("search", "status:open", cwd=tmp_path).out
        said = scrapy("explain", server.url("/a"), cwd=tmp_path).out
        assert "\nroom         4.12\n" in said
        for bad in ("rom=4.12", "room", "=x"):
            refused = scrapy("search", "room", "--field", bad, cwd=tmp_path)
            assert (refused.status, refused.out) == (2, "")
            assert len(refused.err.splitlines()) == 1

        with Served(tmp_path / "crawl") as site:
            page = site.get("/search?q=room").text
            assert "<h2>Room</h2>" in page
            assert "field.room=4.12" in page
            narrowed = site.get("/search?q=room&field.room=4.12&format=json").json
            assert [hit["title"] for hit in narrowed["hits"]] == ["A"]
            assert site.get("/search?q=room&field.rom=1").status == 400

        # the text stays, an attribute is another one
        server.routes["/a"] = PAGES["/a"].replace("open", "shut")
        assert crawl(server.url(), tmp_path, **wanted, refresh="all").status == 0
        assert "A\n" in scrapy("search", "status:shut", cwd=tmp_path).out
        assert scrapy("search", "status:open", cwd=tmp_path).out.startswith("0 pages")

        # other fields of pages that are stored
        other = json.dumps({"*": {"seats": "//text()[contains(., 'for')]"}})
        by = ("-s", f"LARM_FIELDS={other}", "-s", "LARM_FACETS=seats")
        again = scrapy("reindex", *by, cwd=tmp_path)
        assert again.status == 0, again.err
        assert "LARM_FACETS=['seats']: it was ['room']" in again.err
        found = scrapy("search", 'seats:"for two"', "--json", cwd=tmp_path).json
        assert [hit["title"] for hit in found["hits"]] == ["A"]
        assert found["facets"]["fields"]["seats"] == {"for two": 1}
