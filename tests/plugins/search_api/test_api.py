"""/search/_search: what OpenSearch's clients ask, answered or refused in OpenSearch's form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import opensearchpy
import pytest

from larmspider.index.version import META_NAME
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.web.auth import Guard
from tests.support.web.serving import TOKEN, Got, Served, request

BEARER = {"Authorization": f"Bearer {TOKEN}"}
VPN = {"query_string": {"query": "vpn"}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("opensearch")
    manifest = {
        "format": 2, "began": "2026", "seeds": ["http://wiki.example/"],
        "credentials": ["https://*.hr.example"], "settings": {},
    }  # fmt: skip
    (folder / "crawl.json").write_text(json.dumps(manifest))
    with IndexWriter(folder / "index") as index:
        for n in range(12):
            page = Page(f"http://h{n % 3}.example/{n}", text=f"the vpn <b>of {n}", title=f"No {n}")
            page.body, page.mime = str(n).encode(), "text/html" if n % 2 else "application/pdf"
            page.language = "de" if n < 3 else "en"
            index.add(page)
        page = Page("http://pay.hr.example/", text="canary vpn", title="canary", mime="text/csv")
        page.language = "fr"
        index.add(page)
    guard = Guard(TOKEN, closed=True, open_paths=("/search",))
    with Served(folder, guard) as running:
        yield running


def ask(site: Served, body: Any, path: str = "/search/_search", **headers: str) -> Got:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = {"Content-Type": "application/json"}
    return request(site.url + path, "POST", kind | headers, sent)


def test_hits_have_opensearchs_form(site: Served) -> None:
    """Total, window, source and highlight; text of pages is escaped between the tags."""
    body = {
        "query": VPN, "from": 2, "size": 3,
        "highlight": {"fields": {"text": {}}, "pre_tags": ["<mark>"], "post_tags": ["</mark>"]},
        "_source": ["url", "title"],
    }  # fmt: skip
    found = ask(site, body).json
    assert found["timed_out"] is False
    assert found["_shards"]["failed"] == 0
    hits = found["hits"]
    assert hits["total"] == {"value": 12, "relation": "eq"}
    assert len(hits["hits"]) == 3
    assert hits["max_score"] == hits["hits"][0]["_score"]
    hit = hits["hits"][0]
    assert set(hit["_source"]) == {"url", "title"}
    assert hit["_id"] == hit["_source"]["url"]
    assert hit["highlight"]["text"][0].startswith("the <mark>vpn</mark> &lt;b&gt;of")
    every = ask(site, {"query": VPN, "size": 12}).json["hits"]["hits"]
    assert [hit["_id"] for hit in every][2:5] == [hit["_id"] for hit in hits["hits"]]
    assert "highlight" not in every[0]
    assert every[0]["_source"]["host"].endswith(".example")


def test_aggregations_count_all_matches(site: Served) -> None:
    """By host, type and language, without hits if none are wanted."""
    body = {
        "query": VPN, "size": 0,
        "aggs": {
            "hosts": {"terms": {"field": "host.keyword", "size": 2}},
            "kinds": {"terms": {"field": "type"}}, "tongues": {"terms": {"field": "language"}},
        },
    }  # fmt: skip
    found = ask(site, body).json
    assert found["hits"]["hits"] == []
    assert found["hits"]["max_score"] is None
    hosts = found["aggregations"]["hosts"]
    assert [bucket["doc_count"] for bucket in hosts["buckets"]] == [4, 4]
    assert hosts["sum_other_doc_count"] == 4
    kinds = {b["key"]: b["doc_count"] for b in found["aggregations"]["kinds"]["buckets"]}
    assert kinds == {"html": 6, "pdf": 6}
    assert found["aggregations"]["tongues"]["buckets"][0] == {"key": "en", "doc_count": 9}


def test_get_asks_by_its_url_or_its_body(site: Served) -> None:
    assert site.get("/search/_search?q=vpn&size=1&from=1").json["hits"]["total"]["value"] == 12
    assert site.get("/search/larmspider/_search?q=title:7").json["hits"]["total"]["value"] == 1
    body = json.dumps({"query": VPN}).encode()
    found = request(f"{site.url}/search/_all/_search", "GET", {}, body).json
    assert len(found["hits"]["hits"]) == 10


@pytest.mark.parametrize("target", [
    {"query": VPN, "size": 20}, {"query": {"query_string": {"query": "canary"}}},
    {"query": VPN, "size": 0, "aggs": {"h": {"terms": {"field": "host"}},
     "t": {"terms": {"field": "type"}}, "l": {"terms": {"field": "language"}}}},
])  # fmt: skip
def test_a_page_that_is_not_seen_is_in_no_answer(site: Served, target: Any) -> None:
    """The token opens it; hits, counts and aggregations of others have nothing of it."""
    words = ("canary", "pay.hr.example", "spreadsheet", '"fr"')
    assert any(word in ask(site, target, **BEARER).text for word in words)
    got = ask(site, target)
    assert got.status == 200
    assert not any(word in got.text for word in words)


def test_without_the_token_nothing_where_the_search_is_closed(site: Served) -> None:
    with Served(site.source.path, Guard(TOKEN, closed=True)) as closed:
        got = ask(closed, {"query": VPN})
        assert (got.status, got.json["error"]["type"]) == (401, "security_exception")
        assert ask(closed, {"query": VPN}, **BEARER).status == 200


PARSING, ILLEGAL, SHARD = (
    "parsing_exception", "illegal_argument_exception", "query_shard_exception",
)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (b"{", PARSING, "not valid JSON"),
        (b"[" * 30_000, PARSING, "not valid JSON"),
        (b"[]", PARSING, "the body: expected an object"),
        (b"\xff", PARSING, "not valid JSON"),
        ({}, PARSING, "unknown query []"),
        ({"query": 1}, PARSING, "[query]: expected"),
        (
            {"query": {"match": {"title": "x"}}},
            PARSING,
            "unknown query ['match']; expected one: query_string",
        ),
        (
            {"query": {"query_string": {"query": "x", "fields": ["a"]}}},
            PARSING,
            "does not support [fields]",
        ),
        ({"query": {"query_string": {"query": 3}}}, PARSING, "expected [query], a text"),
        ({"query": VPN, "sort": ["x"]}, PARSING, "unknown key [sort] in the search request"),
        ({"query": VPN, "size": -1}, ILLEGAL, "[size]: expected"),
        ({"query": VPN, "size": True}, ILLEGAL, "[size]"),
        ({"query": VPN, "size": 1e999}, ILLEGAL, "[size]"),
        ({"query": VPN, "size": 1001}, ILLEGAL, "at most 1,000"),
        ({"query": VPN, "from": 9_995}, ILLEGAL, "Result window is too large"),
        (
            {"query": VPN, "aggs": {"a": {"avg": {"field": "size"}}}},
            PARSING,
            "unknown key [avg] in [aggs] [a]",
        ),
        (
            {"query": VPN, "aggs": {"a": {"terms": {"field": "url"}}}},
            ILLEGAL,
            "expected host, type or language",
        ),
        (
            {"query": VPN, "aggs": {"a": {"terms": {"field": "host", "size": 99}}}},
            ILLEGAL,
            "expected 1 to 20",
        ),
        ({"query": VPN, "aggs": {str(n): {} for n in range(11)}}, ILLEGAL, "at most 10"),
        ({"query": VPN, "highlight": 1}, PARSING, "[highlight]"),
        ({"query": VPN, "_source": 3}, PARSING, "[_source]"),
        (
            {"query": VPN, "highlight": {"fields": {"*": {}}, "pre_tags": ["x" * 999]}},
            PARSING,
            "[pre_tags]",
        ),
        (
            {"query": {"query_string": {"query": "x" * 1_001}}},
            SHARD,
            "at most 1000 characters are allowed",
        ),
        ({"query": {"query_string": {"query": "{0} {x} title:"}}}, SHARD, "needs a value"),
        ({"query": {"query_string": {"query": "x" * 100_000}}}, ILLEGAL, "too long"),
    ],
)
def test_what_is_not_understood_is_refused_in_opensearchs_form(
    site: Served, body: Any, kind: str, says: str
) -> None:
    got = ask(site, body)
    assert got.status == 400, got.text
    error = got.json["error"]
    assert (got.json["status"], error["type"]) == (400, kind), got.text
    assert error["root_cause"] == [{"type": kind, "reason": error["reason"]}]
    assert says in error["reason"]


def test_other_parameters_and_indexes_are_refused(site: Served) -> None:
    got = site.get("/search/_search?q=vpn&scroll=1m")
    assert (got.status, got.json["error"]["reason"]) == (
        400, "request contains unrecognized parameter: [scroll]",
    )  # fmt: skip
    got = site.get("/search/other/_search?q=vpn")
    assert (got.status, got.json["error"]["type"]) == (404, "index_not_found_exception")
    assert request(f"{site.url}/search/_search", "DELETE").status == 405


@pytest.mark.acceptance
def test_the_client_of_opensearch_asks(site: Served) -> None:
    """opensearch-py, over its own connections."""
    host, _, port = site.url.partition("//")[2].partition(":")
    client = opensearchpy.OpenSearch(
        hosts=[{"host": host, "port": int(port), "url_prefix": "search"}], headers=BEARER
    )
    try:
        body = {
            "query": VPN, "aggs": {"hosts": {"terms": {"field": "host"}}},
            "highlight": {"fields": {"text": {}}},
        }  # fmt: skip
        found = client.search(index="larmspider", body=body, size=5, from_=1)
        assert found["hits"]["total"]["value"] == 13
        assert len(found["hits"]["hits"]) == 5
        assert "<em>vpn</em>" in found["hits"]["hits"][0]["highlight"]["text"][0]
        assert len(found["aggregations"]["hosts"]["buckets"]) == 4
        assert client.search(q="title:canary")["hits"]["hits"][0]["_source"]["title"] == "canary"
        with pytest.raises(opensearchpy.exceptions.RequestError) as refused:
            client.search(body={"query": {"match_all": {}}})
        assert (refused.value.status_code, refused.value.error) == (400, PARSING)
        with pytest.raises(opensearchpy.exceptions.NotFoundError):
            client.search(index="other", body=body)
    finally:
        client.close()


@pytest.mark.parametrize("damaged", ["format", "file", "crawl"])
def test_where_an_index_lies_is_told_to_who_is_signed_in(tmp_path: Path, damaged: str) -> None:
    """All who may read the crawl see what is wrong with it."""
    (tmp_path / "crawl.json").write_text('{"format": 2, "began": "1", "settings": {}}')
    with IndexWriter(tmp_path / "index") as index:
        index.add(Page("http://open.example/", text="canteen"))
    says = tmp_path.name
    if damaged == "format":
        (tmp_path / "index" / META_NAME).write_text('{"format": 4, "stemmer": "english"}')
        says = f"{tmp_path.name}/index: the search index has format 4"
    elif damaged == "file":
        (tmp_path / "index" / "meta.json").unlink()
        says = f"{tmp_path.name}/index: "
    else:
        (tmp_path / "crawl.json").write_text("{")
    with Served(tmp_path) as site:
        for target in ("/search?q=a", "/search?q=a&format=json", "/search/_search?q=a"):
            for more in ({}, BEARER):
                got = site.get(target, **more)
                assert got.status == 404
                assert (str(tmp_path) in got.text) is bool(more), target
                assert says in got.text
