"""Headers of a mail as people read them: encoded words, raw bytes, parameters.

    text_of_header(b"=?gb2312?B?1uzpRrv5?= x")              # "\u6731\u9555\u57fa x"
    parameters(b"a/b; name*0*=utf-8''%C3%9C; name*1=1.txt")  # {"name": b"..."}

Encoded words (RFC 2047) are decoded by WHATWG labels; two that share a character are joined first.
Raw bytes beyond ASCII are UTF-8 if they decode, else in the charset ``near`` by, else guessed.
"""

from __future__ import annotations

import re
from binascii import a2b_qp
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from larmspider.extraction.documents.labels import fits, text_of
from larmspider.extraction.documents.mails.mail_coding import from_base64

_WORD = re.compile(rb"=\?([^?\s]{1,100})\?([bBqQ])\?((?:[^?]|\?(?!=)){0,4000}+)\?=")
_PARAMETER = re.compile(
    rb";\s*([^\s=;*\"]{1,100})(?:\*(\d{1,3}))?(\*)?\s*=\s*(?:\"((?:[^\"\\]|\\.)*+)\"?|([^;]*))",
    re.DOTALL,
)
_EXTENDED = re.compile(rb"([\w.:-]*)'[^']*'(.*)", re.DOTALL)


class Near(NamedTuple):
    """The rest of a mail helps to read raw bytes in its headers."""

    label: str = ""
    sample: bytes = b""


def text_of_header(raw: bytes, near: Near = Near()) -> str:  # noqa: B008 - it is a tuple
    """``raw`` decoded, on one line."""
    at, pieces = 0, list[tuple[str, bytes]]()
    words: list[tuple[bytes, bytes, bytes]] = []
    for found in _WORD.finditer(raw):
        if (between := raw[at : found.start()]).strip() or not words:
            pieces += *_joined(words), ("", between)
            words = []
        label, coding, text = found[1].partition(b"*")[0].lower(), found[2].lower(), found[3]
        if words and words[-1][:2] == (label, coding) and not words[-1][2].endswith(b"="):
            text = words.pop()[2] + text
        words.append((label, coding, text))
        at = found.end()
    pieces += *_joined(words), ("", raw[at:])
    shown = "".join(text_of(data, label) if label else _raw(data, near) for label, data in pieces)
    return " ".join(shown.split())


def _joined(words: list[tuple[bytes, bytes, bytes]]) -> list[tuple[str, bytes]]:
    """Bytes of adjacent words by label: a character may begin in one and end in the next."""
    joined: list[tuple[str, bytes]] = []
    for label, coding, text in words:
        data = from_base64(b"".join(text.split())) if coding == b"b" else a2b_qp(text, header=True)
        name = label.decode("latin-1")
        if joined and joined[-1][0] == name:
            data = joined.pop()[1] + data
        joined.append((name, data))
    return joined


def _raw(data: bytes, near: Near) -> str:
    if data.isascii():
        return text_of(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return text_of(data, near.label if fits(data, near.label) else "", near.sample)


def parameters(raw: bytes) -> dict[str, tuple[str, bytes]]:
    """Label and bytes of each parameter of a header, by its name in lower case. Pieces and
    percent-encoded ones are put together (RFC 2231)."""
    found: dict[str, dict[int, tuple[bool, bytes]]] = {}
    for name, number, extended, quoted, bare in _PARAMETER.findall(raw):
        value = re.sub(rb"\\([\"\\])", rb"\1", quoted) if quoted else bare.strip()
        value = re.sub(rb"\r?\n[ \t]*", b" " if quoted else b"", value)
        part = int(number) if number else 0 if extended else -1
        found.setdefault(name.decode("latin-1").lower(), {}).setdefault(
            part, (extended != b"", value)
        )
    return {name: _whole(pieces) for name, pieces in found.items()}


def _whole(pieces: dict[int, tuple[bool, bytes]]) -> tuple[str, bytes]:
    if 0 not in pieces:
        return "", pieces[min(pieces)][1]
    label, data = "", b""
    for number in sorted(pieces.keys() - {-1}):
        extended, value = pieces[number]
        if extended and number == 0 and (named := _EXTENDED.fullmatch(value)):
            label, value = named[1].decode("latin-1"), named[2]
        data += unquote_to_bytes(value) if extended else value
    return label, data


def parameter(raw: bytes, name: str, near: Near = Near()) -> str:  # noqa: B008 - as above
    """A parameter as text, "" without one. Programs write encoded words there too."""
    label, data = parameters(raw).get(name, ("", b""))
    return text_of(data, label) if label else text_of_header(data, near)
