"""OpenSearchReceiver against a real node: each document is there in its last version."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest
from scrapy.settings import Settings

from larmspider.pipelines.outbox.receiver import RefusedError
from larmspider.plugins.opensearch.receiver import OpenSearchReceiver
from tests.support.servers.opensearch.shared import SharedNode
from tests.support.spooled import entries, page, removed

pytestmark = pytest.mark.acceptance


@pytest.fixture
def name() -> str:
    return f"test-{uuid4().hex}"


def receiver_for(url: str) -> OpenSearchReceiver:
    return OpenSearchReceiver.from_settings(Settings({"LARM_OPENSEARCH_URL": url}))


@pytest.fixture
def receiver(opensearch: SharedNode, name: str) -> Iterator[OpenSearchReceiver]:
    found = receiver_for(opensearch.url(name))
    found.connect()
    yield found
    found.close()


def titles(opensearch: SharedNode, name: str) -> list[str]:
    return sorted(found["title"] for found in opensearch.documents(name).values())


def test_an_index_is_made_once_behind_an_alias(opensearch: SharedNode, name: str) -> None:
    for _ in range(2):
        receiver = receiver_for(opensearch.url(name))
        receiver.connect()
        receiver.close()
    assert opensearch.ask("GET", f"/_alias/{name}") == {f"{name}-1": {"aliases": {name: {}}}}


def test_a_document_has_what_the_mapping_says(
    tmp_path: Path, opensearch: SharedNode, name: str, receiver: OpenSearchReceiver
) -> None:
    one = page("a", text="t \ud800", fields={"room": ["1"]}, modified=1e15, language="de")
    assert receiver.send(entries(tmp_path, one)).rejected == {}
    (found,) = opensearch.documents(name).values()
    assert found["links"] == ["http://h/N", "http://h/next"]
    assert (found["host"], found["status"], found["fetched"][:19], found["language"]) == (
        "h", 200, "1970-01-01T00:00:01", "de",
    )  # fmt: skip
    assert "modified" not in found


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


def test_each_document_is_judged_by_itself(
    tmp_path: Path, opensearch: SharedNode, name: str
) -> None:
    """One that does not fit the mapping of somebody's own index is rejected alone."""
    receiver = receiver_for(opensearch.url(name))
    receiver.connect()
    opensearch.ask(
        "PUT",
        f"/{name}-1/_mapping",
        {"properties": {"fields": {"type": "object", "dynamic": "strict"}}},
    )
    batch = entries(tmp_path, page("a"), page("b", fields={"room": ["1"]}), page("c"))
    sent = receiver.send(batch)
    receiver.close()
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
    assert list(receiver.send(batch).again) == [0]
    receiver.connect()
    receiver.send(batch)
    assert list(opensearch.ask("GET", f"/{name}*")) == [f"{name}-1"]
    assert titles(opensearch, name) == ["a"]


def test_a_new_mapping_gets_a_new_index(tmp_path: Path, opensearch: SharedNode, name: str) -> None:
    """Copied with its versions; then the alias stands for it."""
    mappings = {"properties": {"url": {"type": "keyword"}, "title": {"type": "text"}}}
    made = {"aliases": {name: {}}, "mappings": mappings}
    opensearch.ask("PUT", f"/{name}-1", made)
    batch = entries(tmp_path, page("a"), page("b"))
    receiver = receiver_for(opensearch.url(name))
    with pytest.raises(RefusedError, match="normalized is missing, expected keyword"):
        receiver.connect()
    first = sha256(batch[0].url.encode()).hexdigest()
    version = f"version={batch[0].stamp}&version_type=external&refresh=true"
    document = {"url": batch[0].url, "title": "a"}
    opensearch.ask("PUT", f"/{name}-1/_doc/{first}?{version}", document)
    assert receiver.reindex() == (
        f"{name} is {name}-2 now, with 1 documents; {name}-1 may be deleted"
    )
    receiver.connect()
    receiver.send(batch)
    receiver.close()
    assert titles(opensearch, name) == ["a", "b"]
    assert list(opensearch.ask("GET", f"/_alias/{name}")) == [f"{name}-2"]
    assert len(opensearch.documents(f"{name}-1")) == 1
