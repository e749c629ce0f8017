"""Transfer encodings of mails (RFC 2045 6), of damaged and truncated bodies too, and files that
stand uuencoded in a text."""

from __future__ import annotations

import re
from binascii import Error as BinasciiError
from binascii import a2b_base64, a2b_qp, a2b_uu
from collections.abc import Iterator

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_NO_BASE64 = bytes(byte for byte in range(256) if byte not in _ALPHABET)
_FOOTER = re.compile(rb"^--|[^\s][ \t]+[^\s]", re.MULTILINE)
"""Where a mailing list has added its own text after base64."""
_HEAD, _FEW, _LONG = 2_000, 20, 20
"""The first 2,000 bytes may have 1 in 20 outside base64. Words but the last have 20 bytes
or more."""
_MISSPELT = {"base64": "base64", "quotedprintable": "quoted-printable"}
_UUENCODED = re.compile(
    rb"^begin [0-7]{3,4} ([^\r\n]{1,255})\r?\n(?:[ -`]{0,100}\r?\n)++end[ \t]*(?:\r?\n|\Z)",
    re.MULTILINE,
)
"""A file within a text (POSIX uuencode)."""
_UU_BEGIN = re.compile(rb"^begin [0-7]{3,4} [^\r\n]*\r?\n", re.MULTILINE)


def coding_of(header: str) -> str:
    """The encoding that a Content-Transfer-Encoding header names."""
    name = header.partition(";")[0].partition("(")[0].strip(" \t\r\n\"'").lower()
    return _MISSPELT.get(re.sub(r"[\s_-]+", "", name), name)


def decoded(data: bytes, coding: str) -> bytes:
    """The body of a part in ``coding``."""
    if coding == "base64":
        return from_base64(data) if is_base64(data) else data
    if coding == "quoted-printable":
        return a2b_qp(data)
    if coding in ("x-uuencode", "uuencode", "uue", "x-uue"):
        return _from_uu(data)
    return data


def is_base64(data: bytes) -> bool:
    """Whether a body that is declared as base64 really is. Some programs declare plain text so,
    which would decode to nonsense."""
    head = data.lstrip()[:_HEAD]
    strange = len(head.translate(None, _ALPHABET + b" \t\r\n"))
    words = head.partition(b"\n")[0].split()
    return strange * _FEW <= len(head) and all(len(word) >= _LONG for word in words[:-1])


def from_base64(data: bytes) -> bytes:
    """All bytes that can be decoded; other characters between and after them are skipped."""
    if footer := _FOOTER.search(data):
        data = data[: data.rfind(b"\n", 0, footer.start() + 1) + 1] or data
    data = data.translate(None, _NO_BASE64)
    out = []
    for piece in re.split(rb"=+", data):
        piece = piece[:-1] if len(piece) % 4 == 1 else piece
        out.append(a2b_base64(piece + b"=" * (-len(piece) % 4)))
    return b"".join(out)


def uuencoded(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and bytes of the uuencoded files in a text."""
    for found in _UUENCODED.finditer(text):
        yield found[1].strip(), _from_uu(found[0])


def without_uuencoded(text: bytes) -> bytes:
    return _UUENCODED.sub(b"", text) if b"\nend" in text else text


def _from_uu(data: bytes) -> bytes:
    out = []
    begin = _UU_BEGIN.search(data)
    for line in data[begin.end() if begin else 0 :].splitlines():
        if line == b"end":
            break
        try:
            out.append(a2b_uu(line))
        except BinasciiError:  # a length that the line does not have
            size = (((line[0] - 32) & 63) * 4 + 5) // 3 if line else 0
            try:
                out.append(a2b_uu(line[:size]))
            except BinasciiError:
                break
    return b"".join(out)
