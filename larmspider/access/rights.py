"""The contract between the table of an index and the sources of rights.

    source.access_of(Document("http://wiki.example/hr/a", headers={...}))
    # Rights(AccessList.simple(["group:hr"]), name="rule /hr/*")

A source that says nothing about a document returns None. A source that ought to know, and cannot
read the rights, returns `UNREADABLE`: only operators see the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from larmspider.access.lists import OPERATORS_ONLY, AccessList


@dataclass(frozen=True, slots=True)
class Document:
    """``name`` is the key of the document in the index. Without ``headers`` there was no answer: a
    source that needs one says nothing then."""

    name: str
    headers: Mapping[bytes, Sequence[bytes]] | None = None
    body: bytes = b""
    mime: str = ""


class Rights(NamedTuple):
    """``above``: the folders and the share that a reader has to enter first, the outermost first,
    each with a name. Documents share a slot of the table: by ``name``, if the source has one for
    them, else by the list."""

    list: AccessList
    name: str = ""
    above: Sequence[tuple[str, AccessList]] = ()


UNREADABLE = Rights(OPERATORS_ONLY)


class Checked(NamedTuple):
    """A document in the pass over rights. ``why``: why they cannot be read, else "". ``mark``: the
    ETag that an answer would have, "" if the document never changes."""

    name: str
    list: AccessList
    why: str = ""
    mark: str = ""


def mark_of(mtime_ns: int, size: int) -> str:
    """The ETag of a file: a file with another ETag has other contents."""
    return f'"{mtime_ns:x}-{size:x}"'


class Source(Protocol):
    def access_of(self, document: Document) -> Rights | None: ...


@dataclass
class Problems:
    """Documents whose rights could not be read: their number, and the first of them."""

    number: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: str, why: str) -> None:
        self.number += 1
        if len(self.first) < MOST_NAMED:
            self.first.append(f"{name}: {why}")


MOST_NAMED = 5
