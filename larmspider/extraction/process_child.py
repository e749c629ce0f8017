"""The process that reads large documents, started by process.py; no part of the crawl runs here.

Standard input has requests, each followed by the body, standard output has answers: length (4
bytes, big endian) and msgpack. The process ends with its input, so it does not outlive the crawl.
"""

from __future__ import annotations

import signal
import struct
import sys
from contextlib import suppress
from typing import IO, Any

import msgpack

from larmspider.extraction.formats import extractor_for
from larmspider.items import Page

LENGTH = struct.Struct(">I")
FIELDS = ("charset", "title", "text", "description", "language", "canonical", "noindex", "nofollow",
          "moved")  # fmt: skip
"""The fields of a Page that extraction sets, without the links."""


def send(pipe: IO[bytes], message: Any) -> None:
    data = msgpack.packb(message, unicode_errors="surrogatepass")
    pipe.write(LENGTH.pack(len(data)))
    pipe.write(data)


def receive(pipe: IO[bytes]) -> Any:
    """The next message. Raises EOFError where there is none, or only a part."""
    head = pipe.read(LENGTH.size)
    size = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 0
    data = pipe.read(size)
    if not data or len(data) < size:
        raise EOFError
    return msgpack.unpackb(data, unicode_errors="surrogatepass")


def _read(mime: str, body: bytes, url: str, content_type: str) -> dict[str, Any]:
    extract = extractor_for(mime)
    page = Page(url) if extract is None else extract(body, url, content_type)
    found = {name: getattr(page, name) for name in FIELDS}
    found["links"] = [(link.url, link.type, link.anchor, link.nofollow) for link in page.links]
    return found


def main(memory_bytes: int) -> None:
    """Read documents until the input ends; more than ``memory_bytes`` for one is an error."""
    _ignore_signals()
    _limit(memory_bytes)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        answer: dict[str, Any] = {}
        while "ended" not in answer:
            request = receive(source)
            try:
                mime, size, url, content_type, seconds = request
                body = source.read(size)
                _limit_time(seconds)
                answer = _read(mime, body, url, content_type)
                _limit_time(0)
            except MemoryError:
                # the body may not have been read whole, and not all memory is given back
                answer = {"refused": f"needs more than {memory_bytes} bytes of memory", "ended": 1}
            except Exception as error:  # noqa: BLE001 - the crawl says so in its log
                answer = {"refused": f"raised {error!r}"}
            send(sink, answer)
            sink.flush()


def _ignore_signals() -> None:
    """Signals that stop a crawl may be sent to all of its processes; the crawl ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _limit_time(seconds: float) -> None:
    """Seconds of CPU, after which SIGPROF ends this process; 0: no limit. Not on Windows."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit(memory_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # no POSIX
        return
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
