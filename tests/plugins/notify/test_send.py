"""LARM_NOTIFY: a command or a webhook, however hostile, holds no crawl up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest

from larmspider.extensions import notify
from larmspider.extensions.notify import NotifyExtension
from larmspider.learned.deletes.notes import LOGIN, Notice
from larmspider.plugins.notify import send
from larmspider.redaction import keep_secrets_of
from tests.support.servers.raw import RawServer


def slowly(start: bytes) -> Iterator[bytes]:
    yield start
    while True:
        time.sleep(0.05)
        yield b"x"


WEBHOOKS: dict[str, Callable[[], Iterable[bytes]]] = {
    "a head that comes slowly": lambda: slowly(b"HTTP/1.1 200 OK\r\nX: "),
    "a flood of 100": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "many headers": lambda: chain([b"HTTP/1.1 200 OK\r\n"], repeat(b"X: y\r\n" * 1_000)),
    "no HTTP": lambda: [b"\xff\xfe\x1b[31m\r\n\r\n"],
    "its secret": lambda: [b"HTTP/1.1 500 hook-c4nary\r\nContent-Length: 0\r\n\r\n"],
}


def notified(target: str, caplog: pytest.LogCaptureFixture) -> str:
    """The last line of the log after a notice."""
    keep_secrets_of("LARM_NOTIFY", target)
    extension = NotifyExtension(SimpleNamespace(), target, Path())  # type: ignore[arg-type]
    asyncio.run(extension._send(Notice(LOGIN, "h:80", "x" * 100_000)))
    return caplog.messages[-1] if caplog.messages else ""


@pytest.mark.parametrize("what", WEBHOOKS)
def test_a_hostile_webhook_is_an_error_in_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    """No thread goes on to read, for which the crawl would wait at its end."""
    monkeypatch.setattr(notify, "TIMEOUT_SECS", 0.3)
    monkeypatch.setattr(send, "TIMEOUT_SECS", 0.3)
    with RawServer(WEBHOOKS[what]) as server:
        begun = time.monotonic()
        said = notified(f"http://joe:hook-c4nary@127.0.0.1:{server.port}/x", caplog)
        assert time.monotonic() < begun + 5
    assert said.startswith("LARM_NOTIFY failed: ")
    assert "c4nary" not in said
    assert said.isprintable()


def test_a_webhook_sends_nobody_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    """A redirect is no way for the message, nor for what the URL holds."""
    with RawServer(lambda: [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]) as other:
        line = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{other.port}/\r\n"
        with RawServer(lambda: [line.encode() + b"Content-Length: 0\r\n\r\n"]) as server:
            said = notified(f"http://127.0.0.1:{server.port}/x?token=hook-c4nary", caplog)
        assert other.asked == []
    assert said == "LARM_NOTIFY failed: HTTP Error 302: Found"


def test_a_webhook_answer_is_not_read(caplog: pytest.LogCaptureFixture) -> None:
    with RawServer(lambda: chain([b"HTTP/1.1 200 OK\r\n\r\n"], repeat(b"x" * 100_000))) as server:
        assert notified(f"http://127.0.0.1:{server.port}/x", caplog) == ""


def test_what_a_command_says_is_cut_and_redacted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its arguments are not shown: they may hold a secret."""
    script = tmp_path / "tell"
    script.write_text('#!/bin/sh\necho "password=$1" >&2\nhead -c 5000000 /dev/zero >&2\nexit 3\n')
    script.chmod(0o700)
    said = notified(f"{script} hook-c4nary", caplog)
    assert "c4nary" not in said
    assert f"{script}: status 3: password=***" in said
    assert len(said) < 400
