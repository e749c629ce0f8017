"""Answers of receivers, with limits of bytes, seconds and levels of JSON.

    with reply_within(connection, 60):
        response = connection.getresponse()
        said = read_reply(response)
    found = parsed(said)          # None for what is not JSON, or nested too deeply

A server that sends without end, a byte a second, or nothing, costs its sender no more than that.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from typing import Any

from larmspider.pipelines.outbox.receiver import AwayError

REPLY_BYTES = 4_000_000
"""Limit of an answer: one about 500 entries has 0.1 MB, with a reason for each 1 MB."""
DEPTH = 50
"""Nested lists and objects."""


class LongReplyError(AwayError):
    """An answer has more bytes than its limit."""


@contextmanager
def reply_within(connection: HTTPConnection, seconds: float) -> Iterator[None]:
    """Cut off the connection if the answer, head and body, takes more than ``seconds``. Raises
    AwayError then."""
    late, sock = threading.Event(), connection.sock  # getresponse() may drop it, and reads on

    def cut() -> None:
        late.set()
        if sock is not None:
            with suppress(OSError):  # not SSLSocket's: another thread is reading there
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
        if late.is_set():  # what was read ends in the middle
            raise AwayError(f"its answer was not there after {seconds:g} s")
    except (OSError, HTTPException):
        if late.is_set():
            raise AwayError(f"its answer was not there after {seconds:g} s") from None
        raise
    finally:
        timer.cancel()
        if late.is_set() and sock is not None and (number := sock.detach()) >= 0:
            os.close(number)  # http.client leaves it open where it was in the middle of a head


def read_reply(response: HTTPResponse, limit: int = REPLY_BYTES) -> bytes:
    """The body. Raises LongReplyError, OSError, HTTPException."""
    said = bytearray()
    while part := response.read(min(65_536, limit + 1 - len(said))):
        said += part
        if len(said) > limit:
            raise LongReplyError(f"its answer has more than {limit:,} bytes")
    if response.length:  # read() says nothing of half a body
        raise IncompleteRead(bytes(said), response.length)
    return bytes(said)


def parsed(said: bytes) -> Any:
    """The parsed JSON; None if the text is not JSON, or is nested deeper than DEPTH."""
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        return None
    level = [found] if isinstance(found, dict | list) else []
    for _ in range(DEPTH):
        level = [
            one
            for outer in level
            for one in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(one, dict | list)
        ]
        if not level:
            break
    return None if level else found
