"""Queries to OpenSearch have no syntax of a person in them, and errors are one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from larmspider.errors import (
    ConfigError,
    CrawlDirError,
    QueryError,
    SearchAwayError,
    SearchRefusedError,
)
from larmspider.index.access import EVERYTHING, Access
from larmspider.index.schema import FILES
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.plugins.opensearch import engine
from larmspider.plugins.opensearch.connection import Address, template
from larmspider.plugins.opensearch.engine import searcher_of
from larmspider.plugins.opensearch.receiver import OpenSearchReceiver
from larmspider.search.query import Filters
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from tests.support.servers.opensearch.stand_in import PASSWORD, USER, OpenSearchServer

KINDS = {
    "bool", "term", "terms", "match_phrase", "fuzzy", "range", "constant_score", "dis_max",
    "function_score", "match_all", "match_none", "ids", "wildcard", "regexp",
}  # fmt: skip
TYPED = [
    '"}}],"must":[{"match_all":{}}]', "* OR *:*", "_exists_:slot", 'body:"x" AND slot:open',
    "/.*/", "vpn^99~9 +wiki -intern", "[a TO z]", "{!join}", 'title:"a\\" OR (b)"', "a && b || !c",
    "word~ wrod~2", "host:*.example", "lang:*", "url:a?b*c", "before:2030 type:pdf", "\\u0000 <x>",
]  # fmt: skip
_SHARDS = {"type": "search_phase_execution_exception", "reason": "all shards failed"}
_FAILED = _SHARDS | {"root_cause": [{"type": "illegal_argument", "reason": "window"}]}
_FAILED_LATE = _SHARDS | {"root_cause": [], "caused_by": {"type": "too_many_buckets", "reason": 1}}
SECRET = Access(("pay.example", FILES), (), frozenset({"everyone", "user:anna"}))


class Node(OpenSearchServer):
    """Has our index, in which each word is on 3 pages, and finds no page."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[dict[str, Any]] = []
        self.hits: list[dict[str, Any]] = []
        self.version: dict[str, str] = {"number": "2.19.1", "distribution": "opensearch"}
        self.found: tuple[int, Any] | None = None
        self.mapping = template("english")

    def answer(self, method: str, target: str, kind: str, body: bytes) -> tuple[int, Any]:
        if target == "/":
            return 200, {"version": self.version}
        if target == "/intranet":
            return 200, {"intranet-1": {"mappings": self.mapping["mappings"], "settings": {
                "index": self.mapping["settings"]}}}  # fmt: skip
        wanted = json.loads(body)
        self.bodies.append(wanted)
        return self.found or (200, {
            "_shards": {"failed": 0},
            "hits": {"total": {"value": 3}, "hits": self.hits},
            "aggregations": _counts(wanted.get("aggs", {})),
        })  # fmt: skip


def _counts(wanted: dict[str, Any]) -> dict[str, Any]:
    found = dict[str, Any]()
    for name, one in wanted.items():
        if "filters" in one:
            found[name] = {"buckets": {n: {"doc_count": 3} for n in one["filters"]["filters"]}}
        elif "global" in one:
            found[name] = {"doc_count": 9, **_counts(one.get("aggs", {}))}
        elif "value_count" in one:
            found[name] = {"value": 3}
        else:
            found[name] = {"buckets": [], "sum_other_doc_count": 0}
    return found


@pytest.fixture
def node() -> Iterator[Node]:
    with Node() as server:
        yield server


def searcher(node: Node, crawl: Path, password: str = PASSWORD, **more: str) -> Searcher:
    url = {"LARM_OPENSEARCH_URL": node.url("intranet", password)}
    return searcher_of([crawl], Settings({**url, "LARM_INDEX_STEMMER": "english", **more}))


def clauses(found: Any) -> Iterator[tuple[str, Any]]:
    """Each clause of a query, those within it too."""
    if isinstance(found, list):
        for one in found:
            yield from clauses(one)
        return
    ((kind, inside),) = found.items()
    yield kind, inside
    parts = ("must", "should", "must_not", "filter", "queries", "query")
    for part in parts if kind in ("bool", "constant_score", "dis_max", "function_score") else ():
        if part in inside:
            yield from clauses(inside[part])


@pytest.mark.parametrize("typed", TYPED)
def test_no_syntax_of_a_person_reaches_it(node: Node, tmp_path: Path, typed: str) -> None:
    found = searcher(node, tmp_path).seen_by(SECRET)
    filters = Filters(hosts=(typed,), languages=(typed,), kinds=(typed,), fields=(("room", typed),))
    for one, narrow in ((typed, Filters()), (f"vpn {typed}", filters)):
        with suppress(QueryError):
            found.search(SearchRequest(one, facets=True, filters=narrow, suggest=True))
    seen = OpenSearchReceiver.seen_by([tmp_path], SECRET)
    assert node.bodies
    for body in node.bodies:
        asked = [body["query"]]
        for one in body.get("aggs", {}).values():
            asked += one.get("filters", {}).get("filters", {}).values()
        every = list(clauses(asked))
        assert {kind for kind, _ in every} <= KINDS
        assert body["query"] == seen or seen in body["query"]["bool"]["filter"]
        own = [one for one in every if one not in list(clauses([seen]))]
        for kind, inside in own:
            assert kind not in ("wildcard", "regexp")
            if kind == "match_phrase":
                ((_, params),) = inside.items()
                assert params["analyzer"] == "whitespace"
                assert all(map(str.isalnum, params["query"].split()))


def test_nothing_is_asked_if_the_rights_cannot_be_read(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenSearchReceiver, "seen_by", staticmethod(fails))
    with pytest.raises(CrawlDirError, match="access lists cannot be read"):
        searcher(node, tmp_path).seen_by(SECRET).search("vpn")
    assert not node.bodies


@pytest.mark.parametrize(
    ("answer", "error", "line"),
    [
        ((503, "red"), SearchAwayError, "503"),
        ((429, "busy"), SearchAwayError, "429"),
        ((404, {"error": "index_not_found"}), SearchRefusedError, "no index intranet"),
        ((403, {"error": {"type": "security_exception"}}), SearchRefusedError, "403 security"),
        ((400, {"error": {"reason": "too_many_clauses"}}), QueryError, "too many words"),
        ((400, {"error": {"reason": "bad\nline"}}), SearchRefusedError, "400 bad line"),
        ((302, "<html>"), SearchRefusedError, "302, a redirect"),
        ((400, {"error": _FAILED}), SearchRefusedError, "400 illegal_argument: window"),
        ((503, {"error": _FAILED_LATE}), SearchAwayError, "503 too_many_buckets: 1"),
        ((200, "<html>"), SearchAwayError, "something else than JSON"),
        ((200, {"hits": {}}), SearchAwayError, "some of its shards"),
        ((200, {"timed_out": True, "hits": {"hits": []}}), SearchAwayError, "some of its shards"),
        ((-200, {"hits": {"hits": []}}), SearchAwayError, "127.0.0.1"),
        ((200, "x" * 5_000), SearchAwayError, "more than 1,000 bytes"),
    ],
)
def test_an_error_is_one_line(
    node: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: tuple[int, Any],
    error: type[Exception],
    line: str,
) -> None:
    if "bytes" in line:
        monkeypatch.setattr(engine, "_BYTES", 1_000)
    node.found = answer
    with pytest.raises(error, match=line) as found:
        searcher(node, tmp_path).search("vpn")
    assert "\n" not in str(found.value)
    assert PASSWORD not in str(found.value)


@pytest.mark.parametrize("source", [{}, {"page": "x"}, {"page": {"key": "http://wiki/vpn"}}])
def test_a_document_of_another_program_is_refused(
    node: Node, tmp_path: Path, source: dict[str, Any]
) -> None:
    node.hits = [{"_id": "one", "_score": 1.0, "_source": source}]
    with pytest.raises(SearchRefusedError, match=r"the document one .* not written by larmspider"):
        searcher(node, tmp_path).search("vpn")


@pytest.mark.parametrize("answer", [(503, "red"), (403, {"error": {"type": "denied"}}), None])
def test_the_other_crawls_answer_meanwhile(
    node: Node, tmp_path: Path, answer: tuple[int, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If OpenSearch is away, refuses, or the access lists of its crawl cannot be read."""
    if answer is None:
        monkeypatch.setattr(OpenSearchReceiver, "seen_by", staticmethod(fails))
    node.found = answer
    with IndexWriter(tmp_path / "index") as index:
        index.add(Page("http://wiki/vpn", title="Harbour", text="harbour", mime="text/plain"))
    own, away = Searcher.open(tmp_path / "index"), searcher(node, tmp_path)
    both = Searcher.of_collections([("own", own), ("away", away)])
    for request in ("harbour", SearchRequest("harbour", facets=True), "harbuor"):
        results = both.search(request)
        assert [hit.url for hit in results.hits] == ["http://wiki/vpn"]
        [error] = results.left_out
        assert "red" in str(error) or "denied" in str(error) or "cannot be read" in str(error)
    assert both.count() == 1


def fails(*_: Any) -> None:
    raise PermissionError("slots.json")


def test_wrong_password_version_and_mapping_are_refused(node: Node, tmp_path: Path) -> None:
    with pytest.raises(SearchRefusedError, match="401 security_exception"):
        searcher(node, tmp_path, "wrong").search("vpn")
    node.version = {"number": "1.3.0", "distribution": "opensearch"}
    with pytest.raises(SearchRefusedError, match=r"unknown version opensearch 1\.3\.0"):
        searcher(node, tmp_path).search("vpn")
    node.version = {"number": "7.17.0"}
    del node.mapping["mappings"]["properties"]["anchors"]["fields"]
    with pytest.raises(SearchRefusedError, match=r"anchors\.stems is missing"):
        searcher(node, tmp_path).search("vpn")
    assert not node.bodies


def test_a_login_may_be_in_a_file(node: Node, tmp_path: Path) -> None:
    login = tmp_path / "login"
    login.write_text(f"{USER}:{PASSWORD}\n")
    url = f"http://127.0.0.1:{node.port}/intranet"
    more = {"LARM_OPENSEARCH_URL": url, "LARM_OPENSEARCH_LOGIN": str(login)}
    assert searcher(node, tmp_path, **more).search("vpn").total == 3
    for bad, line in (("name", "expected one line"), ("", "expected one line")):
        login.write_text(bad)
        with pytest.raises(ConfigError, match=line):
            searcher(node, tmp_path, **more)
    with pytest.raises(ConfigError, match="cannot be read"):
        Address.of(url, str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="file of certificates"):
        Address.of("https://h/x", ca=str(login))


def test_what_it_cannot_give_is_empty(node: Node, tmp_path: Path) -> None:
    found = searcher(node, tmp_path).seen_by(EVERYTHING)
    assert found.completions("vp") == []
    assert found.few_beginning_with("vp", 10) is None
    assert found.get("http://wiki.example/") is None
    assert found.count() == 3
