"""DynamoDbReceiver against dynalite: a row has the versions of its page, the last one last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.pipelines.outbox.receiver import AwayError, RefusedError
from larmspider.pipelines.outbox.sender import Sender
from larmspider.pipelines.outbox.spool import FOLDER
from larmspider.plugins.dynamodb import receiver as dynamodb
from larmspider.plugins.dynamodb.receiver import DynamoDbReceiver, items, row_of
from tests.support.recovery.receivers import of_dynamodb, sha1
from tests.support.servers.stores import DynaliteServer
from tests.support.spooled import entries, page, removed, spooled


@pytest.fixture(scope="module")
def dynalite() -> Iterator[DynaliteServer]:
    if not DynaliteServer.is_installed():
        pytest.skip("dynalite is not installed (npm install -g --prefix .venv dynalite@4.0.0)")
    with DynaliteServer() as server:
        yield server


@pytest.fixture
def receiver(
    dynalite: DynaliteServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DynamoDbReceiver]:
    """With a table of its own."""
    for name, value in dynalite.environment.items():
        monkeypatch.setenv(name, value)
    name = "".join(filter(str.isalnum, request.node.name))[:255]
    found = DynamoDbReceiver.from_settings(Settings({"LARM_DYNAMODB_TABLE": name}))
    found.connect()
    yield found
    found.close()


def pages(receiver: DynamoDbReceiver) -> dict[str, str]:
    """Names and titles."""
    found = of_dynamodb(receiver._client, receiver.table)
    return {url[9:]: title for url, (_, title, _) in found.items()}


@pytest.mark.parametrize(
    ("url", "row"),
    [
        ("http://wiki.example/", "example.wiki:http/"),
        ("https://a.b.example:8443/A?b=c:d/e", "example.b.a:https:8443/A?b=c:d/e"),
        ("http://127.0.0.1:80/x", "127.0.0.1:http:80/x"),
        ("http://[::1]:8080/x", "[::1]:http:8080/x"),
        ("file:///srv/a", ":file/srv/a"),
    ],
)
def test_rows_are_sorted_by_domain(url: str, row: str) -> None:
    assert row_of(url) == row


def test_no_item_is_larger_than_400_kilobytes(tmp_path: Path) -> None:
    """A larger one is split into pieces, whose keys begin with the key of the first item."""
    body, text = b"b" * 900_000, "ü" * 150_000
    (entry,) = entries(tmp_path, page("large", body, text=text), now=1.25)
    head, *pieces = items(entry)
    assert (head["row"], head["time"]) == ("h:http/large", "1970-01-01T00:00:01.250000Z")
    assert (head["body_pieces"], head["text"], head["size"]) == (3, text, 900_000)
    assert b"".join(piece["piece"] for piece in pieces) == body
    assert [piece["time"] for piece in pieces] == [
        f"{head['time']} body 000{number}" for number in range(3)
    ]


@pytest.mark.parametrize("table", ["", "a", "intra net", "http://h:1/x"])
def test_bad_names_of_tables_are_refused(table: str) -> None:
    with pytest.raises(ConfigError, match=r"LARM_DYNAMODB_TABLE=.*: expected the name of a table"):
        DynamoDbReceiver(table)


@pytest.mark.acceptance
def test_only_the_last_version_counts(tmp_path: Path, receiver: DynamoDbReceiver) -> None:
    """In whatever order they come, and however often; a removal takes away what was before it."""
    first = entries(tmp_path, page("a", title="a1"), page("b", b"x" * 500_000), now=1000.0)
    second = entries(tmp_path, page("a", title="a2"), removed("b"), page("c"), now=2000.0)
    for batch in (first + second, second, first[:1], first[:1] + second):
        sent = receiver.send(batch)
        assert not sent.rejected
        assert not sent.again
        assert pages(receiver) == {"a": "a2", "c": "c"}
    query = {":row": {"S": "h:http/b"}}
    found = receiver._client.query(
        TableName=receiver.table,
        KeyConditionExpression="#row = :row",
        ExpressionAttributeNames={"#row": "row"},
        ExpressionAttributeValues=query,
    )
    assert [item["removed"]["S"] for item in found["Items"]] == ["gone"]
    receiver.send(first)  # late, from another worker
    assert pages(receiver) == {"a": "a2", "c": "c"}
    receiver.send(entries(tmp_path, page("b", title="back"), now=3000.0))
    assert pages(receiver) == {"a": "a2", "b": "back", "c": "c"}


@pytest.mark.acceptance
def test_a_row_has_all_of_a_page(tmp_path: Path, receiver: DynamoDbReceiver) -> None:
    """Large ones in pieces; a key that is too long is a dead letter by itself."""
    large, long = page("large", b"\x00\xff" * 3_000_000), page("x" * 2048)
    odd = page(
        "odd", b"", text="nul \0 \ud800", fields={"room": ["1"]}, modified=1e15, noindex=True
    )
    sent = receiver.send(entries(tmp_path, large, long, odd, *(page(str(n)) for n in range(30))))
    assert sent.rejected == {1: "its row key has 2,055 bytes, more than 2,048"}
    assert not sent.again
    found = of_dynamodb(receiver._client, receiver.table)
    assert len(found) == 32
    assert found["http://h/large"] == (200, "large", sha1(large.body))
    assert found["http://h/odd"] == (200, "odd", sha1(b""))


class _Throttled:
    """A client whose table takes ``room`` writes in all, then ``more`` with each request."""

    def __init__(self, client: Any, room: int, more: int) -> None:
        self._client, self.room, self.more = client, room, more
        self.left: list[int] = []

    def batch_write_item(self, RequestItems: Any) -> Any:  # noqa: N803
        ((table, requests),) = RequestItems.items()
        room, self.room = self.room, self.more
        if not room:
            raise self._client.exceptions.ProvisionedThroughputExceededException(
                {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow"}}
                | {"ResponseMetadata": {"HTTPStatusCode": 400}},
                "BatchWriteItem",
            )
        if requests[:room]:
            self._client.batch_write_item(RequestItems={table: requests[:room]})
        self.left.append(len(requests[room:]))
        return {"UnprocessedItems": {table: requests[room:]} if requests[room:] else {}}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@pytest.mark.acceptance
def test_a_table_that_takes_less_gets_the_rest_again(
    tmp_path: Path, receiver: DynamoDbReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamodb, "PAUSES", (0.0, 0.0))
    batch = entries(tmp_path, *(page(str(number)) for number in range(20)))
    receiver._client = _Throttled(receiver._client, room=5, more=7)
    sent = receiver.send(batch)
    assert list(sent.again) == list(range(12, 20))
    assert len(pages(receiver)) == 12
    receiver._client.room = receiver._client.more = 0
    with pytest.raises(AwayError, match="it is busy: ProvisionedThroughputExceededException: slow"):
        receiver.send(batch)
    receiver._client.room = receiver._client.more = 25
    assert not receiver.send(batch).again
    assert len(pages(receiver)) == 20


@pytest.mark.acceptance
def test_a_table_that_was_deleted_is_made_again(tmp_path: Path, receiver: DynamoDbReceiver) -> None:
    receiver._client.delete_table(TableName=receiver.table)
    receiver._client.get_waiter("table_not_exists").wait(
        TableName=receiver.table, WaiterConfig={"Delay": 1}
    )
    end = spooled(tmp_path, page("a"))
    sender = Sender(receiver, tmp_path / FOLDER, lambda _: True)
    sender._connected = True
    sender.send_up_to(end.offset)
    assert pages(receiver) == {"a": "a"}


@pytest.mark.acceptance
def test_what_cannot_be_used_is_refused(
    dynalite: DynaliteServer, receiver: DynamoDbReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line: another program's table, no server there, no region, no credentials."""
    receiver._client.create_table(
        TableName="others",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )

    def refused(kind: type[Exception], said: str) -> None:
        with closing(DynamoDbReceiver("others")) as one, pytest.raises(kind, match=said) as error:
            one.connect()
        assert "\n" not in str(error.value)
        assert "s3cr3t" not in str(error.value)

    refused(RefusedError, r"the table others has the key id \(N\), expected row \(S\), time \(S\)")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
    refused(AwayError, "Could not connect to the endpoint URL: .*127.0.0.1:1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    with monkeypatch.context() as patched:
        patched.delenv("AWS_DEFAULT_REGION")
        refused(RefusedError, r"You must specify a region. \(AWS_DEFAULT_REGION")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    refused(RefusedError, "Partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    refused(RefusedError, r"Unable to locate credentials \(AWS_DEFAULT_REGION")
