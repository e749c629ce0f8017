"""The root element of an XML file, by its first bytes. Nothing is parsed.

root_of(b'<?xml version="1.0"?><!-- x --><rss version="2.0">')    # ("rss", b' version="2.0"', True)
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TAG = re.compile(rb"<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)/?>?")
_DOCTYPE = re.compile(rb"<!DOCTYPE\b[^\[>]*(\[)?", re.IGNORECASE)
_SUBSET_END = re.compile(rb"\]\s*>")
_WIDE = (b"\xff\xfe", b"\xfe\xff")


class Root(NamedTuple):
    """``name`` is without its prefix. ``is_declared``: the file begins with ``<?xml``."""

    name: str
    attributes: bytes
    is_declared: bool


def root_of(head: bytes) -> Root:
    """The root element. Its name is "" if ``head``, the first bytes of a file, has no element."""
    head = _narrow(head).removeprefix(b"\xef\xbb\xbf")
    at, is_declared = _past_space(head, 0), False
    while head.startswith((b"<?", b"<!"), at):
        is_declared |= head.startswith(b"<?xml", at)
        if head.startswith(b"<!--", at):
            end = head.find(b"-->", at) + 3
        elif head.startswith(b"<?", at):
            end = head.find(b"?>", at) + 2
        else:
            end = _past_doctype(head, at)
        if end <= at:
            break
        at = _past_space(head, end)
    found = _TAG.match(head, at)
    return Root(found[1].decode() if found else "", found[2] if found else b"", is_declared)


def _past_doctype(head: bytes, at: int) -> int:
    """The place after a document type with its declarations; -1 if its end is not there."""
    begun = _DOCTYPE.match(head, at)
    if begun is None:
        return -1
    if begun[1] is None:
        return head.find(b">", at) + 1
    end = _SUBSET_END.search(head, begun.end())
    return end.end() if end else -1


def _past_space(head: bytes, at: int) -> int:
    while at < len(head) and head[at] in b"\t\n\f\r ":
        at += 1
    return at


def _narrow(head: bytes) -> bytes:
    """UTF-16 as UTF-8."""
    if head.startswith(_WIDE):
        return head[: len(head) & ~1].decode("utf-16", "replace").encode("utf-8", "replace")
    for start, charset in ((b"<\0?\0", "utf-16-le"), (b"\0<\0?", "utf-16-be")):
        if head.startswith(start):
            return head[: len(head) & ~1].decode(charset, "replace").encode("utf-8", "replace")
    return head
