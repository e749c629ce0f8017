"""Documents signed in one piece (CMS, RFC 5652): smime.p7m of a mail (RFC 8551 3.5.2), a.pdf.p7m.

The document within is a part (parts.py). Read are DER and BER, as bytes or as base64; no signature
is checked. Data encrypted for their recipients are ``encrypted``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from larmspider.extraction.documents.mails.mail_coding import from_base64
from larmspider.extraction.documents.parts import Budget, Member
from larmspider.extraction.documents.reading import Unread
from larmspider.items import Outcome, Page

MAIL = "message/rfc822"
ENTITY = re.compile(rb"\s*(?:content-|mime-version)[\w-]*[ \t]*:", re.IGNORECASE)
"""How a part of a mail begins."""
_SIGNED = bytes.fromhex("2a864886f70d010702")
_ENCRYPTED = tuple(
    map(bytes.fromhex, ("2a864886f70d010703", "2a864886f70d010706", "2a864886f70d0109100117"))
)
"""Object identifiers of content types (RFC 5652 5 and 6, RFC 5083)."""
_SEQUENCE, _OID = 0x30, 0x06
_CONSTRUCTED = 0x20
_DEEP = 8  # nested octet strings
_ARMOUR = re.compile(rb"\s*(?:-----BEGIN [A-Z0-9 ]{1,40}-----|[A-Za-z0-9+/=\s]{40,100})")
_LINE = re.compile(rb"-----[A-Z0-9 ]{1,60}-----")


class _Element(NamedTuple):
    """An element of BER (X.690 8.1): its tag, and where its contents and the next one begin."""

    tag: int
    start: int
    end: int
    next: int


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    """The Page of a signed mail or document. Its text is only the name of its part."""
    return Page(url)


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    """Raises Unread."""
    try:
        data = _content(_plain(body))
    except (IndexError, ValueError, RecursionError) as error:
        why = f"its ASN.1 cannot be read: {error!r}"[:500]
        raise Unread(Outcome.DAMAGED, why) from None
    is_mail = ENTITY.match(data) is not None
    inside = name[:-4] if name.lower().endswith(".p7m") else name
    yield Member(inside or "content", budget.take(data), MAIL if is_mail else "")


def _plain(body: bytes) -> bytes:
    if body[:1] == bytes((_SEQUENCE,)) and not _ARMOUR.match(body):
        return body
    return from_base64(_LINE.sub(b"", body))


def _content(data: bytes) -> bytes:
    """The signed bytes. Raises Unread."""
    kind, signed = _inside(data, _element(data, 0))[:2]
    oid = data[kind.start : kind.end]
    if oid in _ENCRYPTED:
        raise Unread(Outcome.ENCRYPTED, "it is encrypted for its recipients")
    if oid != _SIGNED or kind.tag != _OID:
        raise Unread(Outcome.NO_READER, "it is neither signed nor encrypted")
    fields = _inside(data, _inside(data, signed)[0])
    about = _inside(data, fields[2])  # after the version and the algorithms
    if len(about) < 2:
        raise Unread(Outcome.NO_TEXT, "it has a signature alone")
    return b"".join(_octets(data, _inside(data, about[1])[0], _DEEP))


def _octets(data: bytes, element: _Element, deep: int) -> Iterator[bytes]:
    if not element.tag & _CONSTRUCTED:
        yield data[element.start : element.end]
        return
    if not deep:
        raise ValueError("octet strings are nested too deep")
    for inner in _inside(data, element):
        yield from _octets(data, inner, deep - 1)


def _inside(data: bytes, element: _Element) -> list[_Element]:
    found = []
    at = element.start
    while at < element.end:
        found.append(_element(data, at))
        at = found[-1].next
    return found


def _element(data: bytes, at: int) -> _Element:
    tag, length = data[at], data[at + 1]
    start = at + 2
    if length == 0x80:  # it ends with two zeros
        at = start
        while data[at : at + 2] != b"\0\0":
            at = _element(data, at).next
        return _Element(tag, start, at, at + 2)
    if length > 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[at + 2 : start], "big")
    end = start + length
    if end > len(data):
        raise ValueError("it is cut off")
    return _Element(tag, start, end, end)
