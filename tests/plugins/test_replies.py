"""Hostile answers of receivers: each is an error of one line in time, and nothing is lost."""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from larmspider.pipelines.outbox import replies, sender
from larmspider.pipelines.outbox.outbox import tried
from larmspider.pipelines.outbox.receiver import AwayError, BatchError, Receiver, RefusedError
from larmspider.pipelines.outbox.sender import Sender
from larmspider.pipelines.outbox.spool import FOLDER, Cursor
from larmspider.plugins.dynamodb import receiver as dynamodb
from larmspider.plugins.dynamodb.receiver import DynamoDbReceiver
from larmspider.plugins.opensearch import receiver as opensearch
from larmspider.plugins.opensearch.connection import Address
from larmspider.plugins.opensearch.receiver import _DONE, OpenSearchReceiver, _Action, _judge
from larmspider.plugins.streams.receiver import StreamReceiver
from tests.support.servers.raw import RawServer
from tests.support.spooled import entries, page, removed, spooled

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Parts = Callable[[], Iterable[bytes]]


def body(content: bytes, more: bytes = b"", status: bytes = b"200 OK") -> Parts:
    head = b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n" % len(content)
    return lambda: [head + more + b"\r\n" + content]


def slowly(start: bytes) -> Parts:
    def parts() -> Iterator[bytes]:
        yield start
        while True:
            time.sleep(0.05)
            yield b"x"

    return parts


ANSWERS: dict[str, Parts] = {
    "a flood": lambda: chain([HEAD + b"\r\n"], repeat(b"x" * 100_000)),
    "a flood in chunks": lambda: chain(
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n"],
        repeat(b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
    ),
    "a flood of 100": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "a long header": lambda: chain([HEAD], repeat(b"X-Long: " + b"x" * 100_000)),
    "many headers": lambda: chain([HEAD], repeat(b"X: y\r\n" * 1_000)),
    "a head that comes slowly": slowly(HEAD + b"X-Slow: "),
    "a body that comes slowly": slowly(HEAD + b"\r\n"),
    "a chunk that comes slowly": slowly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n99999\r\n"),
    "a trailer without end": lambda: chain(
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"], repeat(b"X: y\r\n" * 1_000)
    ),
    "deep JSON": body(b"[" * 200_000 + b"]" * 200_000),
    "JSON that is rather deep": body(b'{"a":' * 900 + b"1" + b"}" * 900),
    "gzip": body(gzip.compress(bytes(10_000_000)), b"Content-Encoding: gzip\r\n"),
    "no JSON": body(b"\xff\xfe<html>"),
    "nothing": list,
    "half": lambda: [HEAD + b"Content-Length: 100\r\n\r\n{"],
    "a list": body(b"[]"),
    "a number": body(b"9" * 10_000),
    "NaN": body(b'{"items": NaN}'),
    "a redirect": body(b"", b"Location: http://127.0.0.1:1/x\r\n", b"307 Temporary Redirect"),
    "a switch": body(b"", b"Upgrade: x\r\n", b"101 Switching Protocols"),
    "a proxy's 400": body(b"<h1>Bad Request</h1>", b"", b"400 Bad Request"),
}


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of 0.2 s and 200 KB."""
    monkeypatch.setattr(opensearch, "TIMEOUT_SECS", 0.2)
    monkeypatch.setattr(dynamodb, "REPLY_SECS", 0.2)
    monkeypatch.setattr(dynamodb, "REPLY_BYTES", 200_000)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "s3cret-of-aws",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)


def of_opensearch(port: int) -> Receiver:
    url = f"http://larm:s3cret-word@127.0.0.1:{port}/intranet"
    return OpenSearchReceiver(Address.of(url), "english")


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("what", ANSWERS)
def test_opensearch_that_is_hostile(tmp_path: Path, what: str) -> None:
    """Both as answer to the question for the mapping, and to a batch."""
    batch = entries(tmp_path, page("a"))
    with RawServer(ANSWERS[what]) as server:
        begun = time.monotonic()
        receiver = of_opensearch(server.port)
        receiver.begin(tmp_path / FOLDER)
        with pytest.raises((AwayError, RefusedError)) as error:
            receiver.connect()
        receiver._open(0.2)  # type: ignore[attr-defined]
        with pytest.raises((AwayError, RefusedError)):
            receiver.send(batch)
        receiver.close()
        assert time.monotonic() < begun + 8
        assert len(str(error.value)) <= 300
        assert str(error.value).isprintable()
        assert len(server.asked) >= 2
        assert all(b"Host: 127.0.0.1:%d" % server.port in one for one in server.asked[:1])


ID = sha256(b"http://h/a").hexdigest()


@pytest.mark.parametrize(
    "item",
    [
        {"_id": ID}, {"_id": ID, "status": "201"}, {"_id": ID, "status": True},
        {"_id": ID, "status": 0}, {"_id": ID, "status": 100}, {"_id": ID, "status": -201},
        {"_id": ID, "status": float("nan")}, {"_id": ID, "status": float("inf")},
        {"_id": ID, "status": 201.5}, {"_id": ID, "status": [201]}, {"_id": ID, "status": 10**30},
        {"_id": [ID], "status": 201}, {"_id": "b", "status": 201}, [], None, "x", 1,
    ],
    ids=str,
)  # fmt: skip
def test_an_item_that_is_none_counts_as_nothing(item: Any) -> None:
    """No page is taken for sent by it."""
    writing = _Action(0, "http://h/a", 1, b"{}")
    (done,) = _judge({"items": [{"index": {"_id": ID, "status": 201}}]}, [writing])
    assert done.kind == _DONE
    for items in ([{"index": item}], [item], item, [{"index": item}] * 2, {"0": item}):
        with pytest.raises(AwayError, match="does not fit the batch"):
            _judge({"items": items}, [writing])


def test_a_page_is_not_taken_by_the_answer_to_a_delete(tmp_path: Path) -> None:
    """404 means that there is nothing to delete; of a page that the index is gone."""
    said = {"items": [{"delete": {"_id": ID, "status": 404}}]}
    with pytest.raises(AwayError):
        _judge(said, [_Action(0, "http://h/a", 1, b"{}")])
    (done,) = _judge(said, [_Action(0, "http://h/a", 1)])
    assert done.kind == _DONE


DYNAMO = (
    "a flood", "a body that comes slowly", "deep JSON", "gzip", "no JSON", "nothing", "half",
    "a list", "NaN", "a redirect", "a long header", "many headers",
)  # fmt: skip


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("what", DYNAMO)
def test_dynamodb_that_is_hostile(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    with RawServer(ANSWERS[what]) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        receiver = DynamoDbReceiver("intranet")
        begun = time.monotonic()
        with pytest.raises((AwayError, RefusedError)):
            receiver.connect()
        receiver.close()
        assert time.monotonic() < begun + 8


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "answer",
    [
        {"Items": [{"row": {"S": "h:http/b"}, "time": {"S": "1"}}]},
        {"Items": [{"row": {"S": "h:http/a"}}]},
        {"Items": [], "LastEvaluatedKey": {"row": {"S": "h:http/a"}, "time": {"S": "1"}}},
        {"UnprocessedItems": {"intranet": [{"PutRequest": {"Item": {"row": {"S": "x"}}}}]}},
    ],
    ids=["another row", "half a key", "no last page", "what was not sent"],
)
def test_dynamodb_that_answers_about_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    """It causes no deletes of other rows, and no endless questions."""
    (batch,) = [entries(tmp_path, removed("a"))]
    monkeypatch.setattr(dynamodb, "REPLY_SECS", 60.0)
    reply = body(json.dumps(answer).encode(), b"Connection: close\r\n")  # else it is used again
    with RawServer(reply) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        receiver = DynamoDbReceiver("intranet")
        monkeypatch.setattr(receiver, "_found", lambda: {"TableStatus": "ACTIVE"})
        receiver.connect()
        with pytest.raises(AwayError, match="does not fit the question"):
            receiver.send(batch)
        receiver.close()
        assert len(server.asked) < 10


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda: repeat(b"*1\r\n" * 1_000), Exception),
        (lambda: [b"+stream\r\n" * 9, b":1\r\n" * 9], AwayError),
        (lambda: [b"$-1\r\n" * 20], Exception),
        (lambda: [b"$3\r\nab"], AwayError),
        (lambda: [b"-ERR s3cret-redis is wrong\r\n" * 20], AwayError),
    ],
    ids=["deep", "numbers", "nothing", "half", "an error"],
)
def test_redis_that_is_hostile(tmp_path: Path, answer: Parts, kind: type[Exception]) -> None:
    batch = entries(tmp_path, page("a"))
    with RawServer(answer) as server:
        receiver = StreamReceiver(f"redis://:s3cret-redis@127.0.0.1:{server.port}/0", "pages")

        def use() -> None:
            receiver.connect()
            receiver.send(batch)

        with pytest.raises(kind):
            use()
        receiver.close()


def test_nothing_is_lost_by_a_hostile_server(tmp_path: Path) -> None:
    """Whatever it answers the cursor stays, no page becomes a dead letter, and it says why."""
    end = spooled(tmp_path, page("a"), page("b")).offset
    for name in ("a proxy's 400", "no JSON", "deep JSON", "a list"):
        with RawServer(ANSWERS[name]) as server:
            receiver = of_opensearch(server.port)
            receiver.connect = lambda one=receiver: one._open(5)  # type: ignore
            sending = Sender(receiver, tmp_path / FOLDER, lambda secs: not secs)
            with pytest.raises(sender.StoppedError):
                sending.send_up_to(end)
            cursor = Cursor.read(tmp_path / FOLDER, "OpenSearchReceiver")
            assert cursor is not None
            assert (cursor.offset, cursor.sent, cursor.dead) == (0, 0, 0)
            assert cursor.trouble


class Deep(Receiver):
    @classmethod
    def from_settings(cls, settings: Any) -> Deep:
        return cls()

    def connect(self) -> None:
        json.loads("[" * 100_000)

    def send(self, batch: Any) -> Any:
        raise AssertionError


class Greedy(Deep):
    def connect(self) -> None:
        bytearray(10**10)


class Gone(Deep):
    def connect(self) -> None:
        import os

        os.abort()


@pytest.mark.parametrize(
    ("receiver", "why"),
    [
        (Deep, "its answer is nested too deeply"),
        (Greedy, "its answer takes too much memory"),
        (Gone, "its answer ends the process that reads it (-6)"),
    ],
)
def test_the_crawl_asks_a_receiver_in_another_process(receiver: type[Receiver], why: str) -> None:
    """Whatever its library does with what a server answers."""
    assert tried(receiver, Settings()) == ("refused", why)


class Killed(Deep):
    settings = ("KILLED_FILE",)

    def __init__(self, file: str) -> None:
        self.file = Path(file)

    @classmethod
    def from_settings(cls, settings: Any) -> Killed:
        return cls(settings["KILLED_FILE"])

    def connect(self) -> None:
        with self.file.open("a") as times:
            times.write("x")
        if self.file.stat().st_size <= int(self.file.name):
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.acceptance
def test_a_receiver_is_asked_once_more_by_another_process(tmp_path: Path) -> None:
    """If the first one is killed from outside; it is away if the second one is, too."""
    once, always = tmp_path / "1", tmp_path / "9"
    assert tried(Killed, Settings({"KILLED_FILE": str(once)})) == ("", "")
    away = ("away", "the process that asks it was killed")
    assert tried(Killed, Settings({"KILLED_FILE": str(always)})) == away
    assert always.read_text() == "xx"


def test_json_has_a_depth() -> None:
    assert replies.parsed(b'{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
    deepest = b"[" * replies.DEPTH + b"]" * replies.DEPTH
    assert replies.parsed(deepest) is not None
    assert replies.parsed(b"[" + deepest + b"]") is None
    assert replies.parsed(b"[1, [" + deepest + b"]]") is None


def test_an_error_of_the_batch_needs_the_servers_word(tmp_path: Path) -> None:
    batch = entries(tmp_path, page("a"))
    said = b'{"error": {"type": "parse_exception", "reason": "s3cret-word"}}'
    with RawServer(body(said, b"", b"400 Bad Request")) as server:
        receiver = of_opensearch(server.port)
        receiver.begin(tmp_path / FOLDER)
        receiver._open(5)  # type: ignore[attr-defined]
        with pytest.raises(BatchError, match="parse_exception"):
            receiver.send(batch)
        receiver.close()


def of_redis(port: int) -> Receiver:
    return StreamReceiver(f"redis://:s3cret-word@127.0.0.1:{port}/0", "pages")


@pytest.mark.parametrize("receiver", [of_opensearch, of_redis])
def test_a_server_that_repeats_the_password_is_not_quoted(
    receiver: Callable[[int], Receiver],
) -> None:
    said = b"s3cret-word bGFybTpzM2NyZXQtd29yZA== Basic bGFybTpzM2NyZXQtd29yZA=="
    http = b"HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n" % len(said)
    redis = b"-ERR " + said + b"\r\n"
    with RawServer(lambda: [http + said if receiver is of_opensearch else redis * 9]) as server:
        one = receiver(server.port)
        with pytest.raises((AwayError, RefusedError)) as error:
            one.connect()
        one.close()
    assert "*** *** Basic ***" in str(error.value)
