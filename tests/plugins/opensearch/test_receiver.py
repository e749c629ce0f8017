"""OpenSearchReceiver against a strict stand-in: what a real node cannot be made to answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.items import Link
from larmspider.pipelines.outbox.receiver import AwayError, BatchError, RefusedError
from larmspider.pipelines.outbox.sender import Sender
from larmspider.pipelines.outbox.spool import FOLDER
from larmspider.plugins.opensearch.receiver import OpenSearchReceiver, _Action, _judge
from tests.support.servers.opensearch.stand_in import Index, OpenSearchServer
from tests.support.spooled import entries, page, spooled


@pytest.fixture
def server() -> Iterator[OpenSearchServer]:
    with OpenSearchServer() as server:
        yield server


def receiver_for(url: str) -> OpenSearchReceiver:
    settings = {"LARM_OPENSEARCH_URL": url, "LARM_INDEX_STEMMER": "english"}
    return OpenSearchReceiver.from_settings(Settings(settings))


@pytest.fixture
def receiver(tmp_path: Path, server: OpenSearchServer) -> Iterator[OpenSearchReceiver]:
    found = receiver_for(server.url())
    found.begin(tmp_path / FOLDER)
    found.connect()
    yield found
    found.close()


def titles(server: OpenSearchServer) -> list[str]:
    return sorted(found["title"] for found in server.documents("intranet").values())


def test_each_document_is_judged_by_itself(
    tmp_path: Path, server: OpenSearchServer, receiver: OpenSearchReceiver
) -> None:
    batch = entries(tmp_path, page("a"), page("b"), page("c"))
    server.faults = ["item-429", "item-full"]
    sent = receiver.send(batch)
    assert (dict(sent.rejected), list(sent.again)) == ({}, [0])
    assert titles(server) == ["b", "c"]
    with pytest.raises(AwayError, match="403 cluster_block_exception"):
        receiver.send(batch[:1])
    assert not receiver.send(batch[:1]).again
    assert titles(server) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("fault", "kind", "secs", "said"),
    [
        ("429", AwayError, 7, "429 es_rejected_execution_exception"),
        ("503", AwayError, 7, "503"),
        ("cut", AwayError, 0, "ended before its end|bytes read"),
        ("html", AwayError, 0, "something else than JSON"),
    ],
)
def test_what_goes_wrong_with_a_batch_is_said_and_tried_again(
    tmp_path: Path, server: OpenSearchServer, receiver: OpenSearchReceiver,
    fault: str, kind: type[AwayError], secs: float, said: str,
) -> None:  # fmt: skip
    batch = entries(tmp_path, page("a"))
    server.faults = [fault]
    with pytest.raises(kind, match=said) as error:
        receiver.send(batch)
    assert error.value.secs == secs
    receiver.connect()
    receiver.send(batch)
    assert titles(server) == ["a"]


def test_a_document_that_cannot_be_read_now_is_not_taken_for_deleted(
    tmp_path: Path, server: OpenSearchServer, receiver: OpenSearchReceiver
) -> None:
    """It gets the texts of new links once its shard is back."""
    receiver.send(entries(tmp_path, page("t")))
    more = page("b")
    more.links = [Link("http://h/t", "http://h/t", anchor="new")]
    batch = entries(tmp_path, more)
    server.is_shard_away = True
    with pytest.raises(AwayError, match="no_shard_available"):
        receiver.send(batch)
    server.is_shard_away = False
    receiver.send(batch)
    found = {one["title"]: one["anchors"] for one in server.documents("intranet").values()}
    assert found == {"t": ["new"], "b": []}


def test_an_answer_about_other_documents_is_none() -> None:
    action = _Action(0, "a", 1)
    for body in ({}, {"items": []}, {"items": [{"index": {"_id": "b", "status": 201}}]}, []):
        with pytest.raises(AwayError, match="does not fit the batch"):
            _judge(body, [action])


def test_all_goes_wrong_and_all_arrives(tmp_path: Path) -> None:
    """The sender halves what is too large, waits and tries again."""
    with OpenSearchServer(max_bytes=9_000) as server:
        end = spooled(tmp_path, *(page(str(number), text="x" * 500) for number in range(20)))
        server.faults = ["", "429", "cut", "item-429", "html", "503", "item-full", "cut"] * 3
        receiver = receiver_for(server.url())
        sender = Sender(receiver, tmp_path / FOLDER, lambda _: True)
        sender.send_up_to(end.offset)
        receiver.close()
        assert len(titles(server)) == sender.cursor.sent == 20
        assert (sender.cursor.dead, sender.cursor.offset) == (0, end.offset)
        receiver.connect()
        batch = entries(tmp_path, page("large", text="x" * 9_000))
        with pytest.raises(BatchError, match="413"):
            receiver.send(batch)
        receiver.close()


def test_what_cannot_be_used_is_refused(server: OpenSearchServer) -> None:
    """In one line, without the password."""
    server.indexes["other"] = Index({"mappings": {"properties": {"url": {"type": "keyword"}}}})
    for url, kind, said in (
        (server.url(password="wrong"), RefusedError, "401 security_exception"),
        (server.url("other"), RefusedError, "key is missing, expected keyword"),
        (server.url().replace(str(server.port), "1"), AwayError, "127.0.0.1:1: .*refused"),
    ):
        receiver = receiver_for(url)
        with pytest.raises(kind, match=said) as error:
            receiver.connect()
        receiver.close()
        assert "s3cr3t" not in str(error.value)


@pytest.mark.parametrize(
    "url", ["", "h:9200/x", "http://h:9200/", "http://u:pw@h:x/i", "http://h/A", "http://h/a/b"]
)
def test_bad_urls_are_refused_without_saying_them(url: str) -> None:
    with pytest.raises(ConfigError, match=r"LARM_OPENSEARCH_URL=.*: expected https://") as refused:
        receiver_for(url)
    assert "pw" not in str(refused.value)
