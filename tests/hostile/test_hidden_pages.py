"""The server answers a limited reader as it would without the hidden pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from urllib.parse import quote, urlencode

import pytest

from larmspider.index.schema import FILES
from tests.support.hidden_pages import HIDDEN, PAGE, TEAM, WORDS, answer, queries, served
from tests.support.web.serving import TOKEN, Served, request

pytestmark = pytest.mark.acceptance

READERS: dict[str, dict[str, str]] = {"anybody": {}, "staff": {"X-Groups": "staff"}}


@pytest.fixture(scope="module", params=["hosts", "lists"])
def sites(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[list[Served]]:
    """With the hidden pages, and without. Their hosts hide them, or access lists."""
    by_lists = request.param == "lists"
    running = [
        served(tmp_path_factory.mktemp("hidden"), hidden=hidden, by_lists=by_lists)
        for hidden in (True, False)
    ]
    with running[0], running[1]:
        yield running


def _searches() -> Iterator[str]:
    for number, query in enumerate(queries()):
        q = quote(query)
        yield f"/search?q={q}&format=json"
        yield (
            f"/search?q={q}",
            f"/search/_search?q={q}&size=50",
            f"/search?q={q}&sort=date&format=json",
            f"/search?q={q}&page=2",
            f"/search?q={q}&exact=1&format=json",
            f"/search?q={q}&copies=1&format=json",
            f"/search?q={q}&type=pdf&format=json",
            f"/search?q={q}&lang=de",
            f"/search?q={q}&since=2023-11-14&until=2023-11-15&format=json",
            f"/search?q={q}&field.room=3&format=json",
            f"/search?q={q}&host={HIDDEN}&format=json",
        )[number % 11]


def _others() -> Iterator[str]:
    yield from ("/search", "/opensearch.xml", "/healthz", "/login", "/search/suggest?q=")
    heads = {word[:length] for word in (*WORDS, "handbook paper") for length in (2, 3, 5, 11)}
    yield from (f"/search/suggest?q={quote(head)}" for head in sorted(heads))
    for url in (PAGE, f"http://{TEAM}/{WORDS[12]}/p006", f"http://{HIDDEN}/aldomar/p000"):
        yield f"/search?similar={quote(url)}"
        yield f"/search?similar={quote(url)}&format=json"
        yield f"/search/copy?u={quote(url)}&q=paper"
        yield from (f"/{path}?u={quote(url)}" for path in ("copy", "view", "diff"))
    yield from ("/", "/url", "/hosts", "/links", "/metrics", "/stats.json", "/control/why?q=paper")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("targets", [_searches, _others])
def test_a_reader_gets_what_an_index_without_hidden_pages_gives(
    sites: list[Served], targets: Callable[[], Iterator[str]], reader: str
) -> None:
    """Whatever is asked: hits and their order, counts, suggestions, corrections."""
    answers = {
        target: [answer(site, target, READERS[reader]) for site in sites] for target in targets()
    }
    differ = [target for target, (one, other) in answers.items() if one != other]
    if sites[0].source.restricted == (FILES,):  # a best bet beyond the crawl is for everybody
        differ = [target for target in differ if "q=vpn" not in target]
    assert differ == []
    assert sum(status == 200 for (status, _), _ in answers.values()) > len(answers) / 2


def test_programs_get_what_an_index_without_hidden_pages_gives(sites: list[Served]) -> None:
    for reader in READERS.values():
        for query in ("paper", "aldomar farneth", "turmalk", "handbook"):
            asked = {
                "query": {"query_string": {"query": query}},
                "aggs": {name: {"terms": {"field": name}} for name in ("host", "type")},
                "highlight": {"fields": {"text": {}}},
                "size": 30,
            }
            got = [
                request(
                    f"{site.url}/search/_search", "POST", reader, json.dumps(asked).encode()
                ).json | {"took": 0}
                for site in sites
            ]  # fmt: skip
            assert got[0] == got[1]
            assert got[0]["hits"]["max_score"] is None


def test_whoever_has_signed_in_sees_more_and_scores(sites: list[Served]) -> None:
    """The comparison above compares two different indexes."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    target = "/search?" + urlencode({"q": "paper", "format": "json"})
    one, other = (request(site.url + target, headers=headers).json for site in sites)
    assert one["total"] > other["total"] > 0
    assert one["hits"][0]["score"] > 0
