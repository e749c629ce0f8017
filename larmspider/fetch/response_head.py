"""The head of an answer, read once from its lines as libcurl hands them over.

    head = ResponseHead.parse([b"HTTP/1.1 200 OK\\r\\n", b"Server: x\\r\\n", b"\\r\\n"])
    head.status, head.protocol, head.headers["Server"]

The lines may hold several heads (1xx before the answer, 401 before a second attempt of libcurl's
own): the last one counts. Trailers come after it and do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from scrapy.http import Headers

_STATUS = re.compile(rb"(HTTP/\d(?:\.\d)?) ([1-5]\d\d)(?!\d)")
_STATUS_CHARS = 60


class BadHead(Exception):  # noqa: N818 - it becomes an error with a kind
    """A status line that is none."""


class CutHead(Exception):  # noqa: N818 - it becomes an error with a kind
    """A head without the empty line at its end."""


@dataclass(slots=True)
class ResponseHead:
    """``headers`` in order, values of one name together, as Scrapy keeps them."""

    status: int
    protocol: str
    headers: Headers

    @classmethod
    def parse(cls, lines: list[bytes]) -> Self:
        """Raises BadHead: no status line, a status outside 100 to 599, or 101 that nobody asked;
        CutHead, which libcurl takes for the whole head of an answer."""
        start = len(lines) - 1
        while start >= 0 and not (
            lines[start].startswith(b"HTTP/") and (start == 0 or lines[start - 1] in _ENDS)
        ):
            start -= 1
        match = _STATUS.match(lines[start]) if start >= 0 else None
        if match is None:
            line = lines[max(start, 0)] if lines else b""
            raise BadHead(f"bad status line: {line[:_STATUS_CHARS].rstrip()!r}")
        status = int(match[2])
        if status == 101:
            raise BadHead("status 101 without a request to switch protocols")
        headers = Headers()
        values_of: dict[bytes, list[bytes]] = {}
        for line in lines[start + 1 :]:
            name, colon, value = line.partition(b":")
            if not colon and line in _ENDS:
                break
            if line[0] in b" \t":
                _unfold(values_of, line)
            elif colon:
                values_of.setdefault(_key(name), []).append(value.strip())
        else:
            raise CutHead("the connection ended inside the head")
        dict.update(headers, values_of)  # names and values have their normal form
        return cls(status, match[1].decode(), headers)

    def length(self) -> int | None:
        """What Content-Length says."""
        text = self.headers.get(b"Content-Length")
        return int(text) if text is not None and text.isdigit() else None


def _unfold(values_of: dict[bytes, list[bytes]], line: bytes) -> None:
    """A line that goes on with the value before it (RFC 9112 5.2)."""
    if values_of:
        last = next(reversed(values_of.values()))
        last[-1] += b" " + line.strip()


@lru_cache(1024)
def _key(name: bytes) -> bytes:
    """As Headers writes names."""
    return name.strip().title()


_ENDS = (b"\r\n", b"\n", b"")
