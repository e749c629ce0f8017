"""OpenSearchReceiver against a real node: each document is there in its last version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from scrapy.settings import Settings

from larmspider.index.schema import ExactAnalyzer, stemmed_analyzer
from larmspider.items import Link, Part, Removed, Section
from larmspider.pipelines.outbox.receiver import AwayError, RefusedError
from larmspider.pipelines.outbox.sender import Sender
from larmspider.pipelines.outbox.spool import FOLDER
from larmspider.plugins.opensearch.documents import STORED
from larmspider.plugins.opensearch.receiver import OpenSearchReceiver
from tests.support.servers.opensearch.shared import SharedNode
from tests.support.spooled import entries, page, removed, spooled

pytestmark = pytest.mark.acceptance

TEXT = "Zahlreiche Verträge: MAX_LISTENERS=10, naïve éclairs; Привет, 北 京 x_y foo-bar's " * 2


@pytest.fixture
def name() -> str:
    return f"test-{uuid4().hex}"


def receiver_for(url: str, crawl: Path, stemmer: str = "english") -> OpenSearchReceiver:
    settings = {"LARM_OPENSEARCH_URL": url, "LARM_INDEX_STEMMER": stemmer}
    found = OpenSearchReceiver.from_settings(Settings(settings))
    found.begin(crawl / FOLDER)
    return found


@pytest.fixture
def receiver(opensearch: SharedNode, name: str, tmp_path: Path) -> Iterator[OpenSearchReceiver]:
    found = receiver_for(opensearch.url(name), tmp_path)
    found.connect()
    yield found
    found.close()


def titles(opensearch: SharedNode, name: str) -> list[str]:
    return sorted(one["page"]["title"] for one in opensearch.documents(name).values())


def texts_by_title(opensearch: SharedNode, name: str) -> dict[str, list[str]]:
    found = opensearch.documents(name).values()
    return {one["page"]["title"]: one["link_texts"]["texts"] for one in found}


def hits(opensearch: SharedNode, name: str, query: Any) -> list[str]:
    """The titles of the documents that match a query."""
    opensearch.ask("POST", f"/{name}/_refresh")
    answer = opensearch.ask("POST", f"/{name}/_search", {"query": query})
    return sorted(hit["_source"]["page"]["title"] for hit in answer["hits"]["hits"])


def test_an_index_is_made_once_behind_an_alias(
    opensearch: SharedNode, name: str, tmp_path: Path
) -> None:
    for _ in range(2):
        receiver = receiver_for(opensearch.url(name), tmp_path)
        receiver.connect()
        receiver.close()
    assert opensearch.ask("GET", f"/_alias/{name}") == {f"{name}-1": {"aliases": {name: {}}}}


@pytest.mark.parametrize("stemmer", ["english", "german", "french", "russian"])
def test_words_are_cut_as_in_our_own_index(
    opensearch: SharedNode, name: str, tmp_path: Path, stemmer: str
) -> None:
    receiver = receiver_for(opensearch.url(name), tmp_path, stemmer)
    receiver.connect()
    receiver.close()

    def cut(analyzer: str) -> list[str]:
        asked = {"analyzer": analyzer, "text": TEXT + "a" * 79 + " " + "b" * 80}
        answer = opensearch.ask("POST", f"/{name}/_analyze", asked)
        return [token["token"] for token in answer["tokens"]]

    text = TEXT + "a" * 79 + " " + "b" * 80
    assert cut("exact") == ExactAnalyzer().analyze(text)
    assert cut("stemmed") == stemmed_analyzer(stemmer).analyze(text)


def test_a_document_is_found_and_stored_as_in_our_own_index(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    one = page(
        "a", text="Menu The listeners of C++ \ud800 and --prefix", rest=[(0, 4)], modified=1e15,
        fields={"room": ["4.12"]}, language="en", mime="text/html",
        sections=[Section(5, "top", "Listeners")],
    )  # fmt: skip
    two = page("b", text="Häuser", status=404)
    assert receiver.send(entries(tmp_path, one, two)).rejected == {}
    (found,) = opensearch.documents(name).values()
    assert (found["page"]["url"], found["page"]["rest"]) == ("http://h/a", "Menu")
    assert found["page"]["body"] == "The listeners of C++ ? and --prefix"
    assert found["page"]["own"] == {"room": ["4.12"]}
    for query in (
        {"match": {"body": "listener"}},
        {"match_phrase": {"exact": "of c"}},
        {"term": {"signs": "--prefix"}},
        {"term": {"own.room": "4.12"}},
        {"term": {"own_words": "room=4.12"}},
        {"term": {"domains": "h"}},
        {"term": {"kind": "html"}},
        {"match": {"rest": "menu"}},
        {"range": {"date": {"lt": "1971-01-01"}}},
    ):
        assert hits(opensearch, name, query) == ["a"], query
    for query in ({"match_phrase": {"exact": "menu the"}}, {"term": {"key": "http://h/b"}}):
        assert hits(opensearch, name, query) == []


def test_only_the_last_version_counts(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    """In whatever order they come, and however often."""
    first = entries(tmp_path, page("a", title="a1"), page("b"), now=1000.0)
    second = entries(tmp_path, page("a", title="a2"), removed("b"), page("c"), now=2000.0)
    for batch in (first + second, first, second, first):
        sent = receiver.send(batch)
        assert not sent.rejected
        assert not sent.again
        assert titles(opensearch, name) == ["a2", "c"]


def test_parts_come_and_go_with_their_page(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    def archive(*names: str) -> Any:
        return page("zip", parts=[Part(one, text=f"text of {one}") for one in names])

    first = entries(tmp_path, archive("x", "y"), page("b"), now=1000.0)
    second = entries(tmp_path, archive("y", "z"), now=2000.0)
    receiver.send(first)
    assert titles(opensearch, name) == ["b", "x", "y", "zip"]
    for batch in (second, first, second):
        receiver.send(batch)
        assert titles(opensearch, name) == ["b", "y", "z", "zip"]
    receiver.send(entries(tmp_path, removed("zip"), now=3000.0))
    assert titles(opensearch, name) == ["b"]


def links(*texts: str) -> list[Link]:
    return [Link("http://h/t", "http://h/t", anchor=text) for text in texts]


def test_a_document_gets_the_texts_of_links_to_it(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    """At once where they double, the others at the end; and those of a URL that has moved."""
    target = page("t")
    target.links = []
    batch = entries(tmp_path, page("a"), target)
    batch[0].page["index"]["given"] = [["http://h/t", "one"]]
    receiver.send(batch)
    assert texts_by_title(opensearch, name)["t"] == ["one"]
    more = page("b")
    more.links = links("two")
    receiver.send(entries(tmp_path, more))
    assert texts_by_title(opensearch, name)["t"] == ["one", "two"]
    more = page("c")
    more.links = links("three")
    receiver.send(entries(tmp_path, more))
    assert texts_by_title(opensearch, name)["t"] == ["one", "two"]
    assert receiver.left == 1
    receiver.catch_up()
    assert receiver.left == 0
    assert texts_by_title(opensearch, name)["t"] == ["one", "three", "two"]
    assert hits(opensearch, name, {"match": {"anchors": "three"}}) == ["t"]
    assert hits(opensearch, name, {"term": {"labels": "two"}}) == ["t"]
    moved = Removed("http://h/t", "http://h/t", "moved", 2.0, successor="http://h/new")
    receiver.send(entries(tmp_path, moved, page("new"), now=2000.0))
    assert texts_by_title(opensearch, name)["new"] == ["one", "three", "two"]


def test_a_repeat_after_a_kill_changes_nothing(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    """The server has a batch, and nothing here says so."""
    more = page("b")
    more.links = links("b")
    batch = entries(tmp_path, page("t"), more)
    actions, _ = receiver._actions(batch, _NoTexts())
    receiver._write(name, actions)
    receiver.send(batch)
    receiver.catch_up()
    assert texts_by_title(opensearch, name) == {"t": ["b"], "b": []}


class _NoTexts:
    def links_to(self, keys: Any) -> Any:
        from larmspider.index.anchors import NO_LINKS

        return (NO_LINKS for _ in keys)


def test_a_fill_leaves_newer_versions_and_their_links(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    old, new = page("a", title="old"), page("a", title="new")
    old.links, new.links = links("old"), links("new")
    early, late = entries(tmp_path, old), entries(tmp_path, page("t"), new, now=2000.0)
    receiver.send(late)
    fill = receiver_for(opensearch.url(name), tmp_path)
    fill.begin(tmp_path / FOLDER / "fill" / "OpenSearchReceiver")
    fill.connect()
    fill.send(early)
    fill.catch_up()
    fill.close()
    assert texts_by_title(opensearch, name) == {"t": ["new"], "new": []}


def test_a_document_that_does_not_fit_is_rejected_alone(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    """Such as a field that somebody has forbidden."""
    strict = {"properties": {"own": {"type": "object", "dynamic": "strict"}}}
    opensearch.ask("PUT", f"/{name}-1/_mapping", strict)
    sent = receiver.send(entries(tmp_path, page("a"), page("b", fields={"room": ["1"]}), page("c")))
    assert list(sent.rejected) == [1]
    assert sent.rejected[1].startswith(
        "400 strict_dynamic_mapping_exception: mapping set to strict"
    )
    assert titles(opensearch, name) == ["a", "c"]


def test_an_index_that_was_deleted_is_made_again(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    """Ours, and not one that the server makes up."""
    opensearch.ask("DELETE", f"/{name}-1")
    batch = entries(tmp_path, page("a"))
    with pytest.raises(AwayError, match="404 index_not_found_exception"):
        receiver.send(batch)
    receiver.connect()
    receiver.send(batch)
    assert list(opensearch.ask("GET", f"/{name}*")) == [f"{name}-1"]
    assert titles(opensearch, name) == ["a"]


def kept(opensearch: SharedNode, name: str) -> dict[str, Any]:
    found = opensearch.documents(name)
    return {key: [one[field] for field in STORED] for key, one in found.items()}


def test_a_new_mapping_gets_a_new_index(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    """Written with the versions of the old one; then the alias stands for it."""
    more = page("b")
    more.links = links("b")
    first = entries(tmp_path, page("t", parts=[Part("x")]), more)
    second = entries(tmp_path, page("b", title="b2"), now=2000.0)
    receiver.send(first)
    receiver.send(second)
    receiver.catch_up()
    before = kept(opensearch, name)
    assert receiver.reindex() == (
        f"{name} is {name}-2 now, with 3 documents; {name}-1 may be deleted"
    )
    receiver.connect()
    assert list(opensearch.ask("GET", f"/_alias/{name}")) == [f"{name}-2"]
    assert kept(opensearch, name) == before
    assert len(before) == 3
    receiver.send(first[1:] + second)
    receiver.catch_up()
    assert kept(opensearch, name) == before
    assert hits(opensearch, name, {"match": {"title": "b2"}}) == ["b2"]


def test_an_index_that_is_not_ours_is_refused(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    opensearch.ask("PUT", f"/{name}-other", {"mappings": {"properties": {"key": {"type": "text"}}}})
    other = receiver_for(opensearch.url(f"{name}-other"), tmp_path)
    with pytest.raises(RefusedError, match="key is text, expected keyword"):
        other.connect()
    other.close()
    german = receiver_for(opensearch.url(name), tmp_path, "german")
    with pytest.raises(RefusedError, match="stemmed for English, not for German"):
        german.connect()
    german.close()


def test_a_sender_catches_up_at_the_end(tmp_path: Path, opensearch: SharedNode, name: str) -> None:
    pages = [page("t"), *(page(f"p{number}") for number in range(3))]
    for number, one in enumerate(pages[1:]):
        one.links = links(f"text {number}")
    end = spooled(tmp_path, *pages)
    receiver = receiver_for(opensearch.url(name), tmp_path)
    receiver.max_entries = 1
    sender = Sender(receiver, tmp_path / FOLDER, lambda _: True)
    sender.send_up_to(end.offset)
    assert sender.cursor.left == 1
    sender.catch_up()
    receiver.close()
    assert (sender.cursor.left, sender.cursor.sent, sender.cursor.trouble) == (0, 4, "")
    assert texts_by_title(opensearch, name)["t"] == ["text 0", "text 1", "text 2"]
