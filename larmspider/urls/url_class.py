"""The class of a URL: URLs that one program of a server likely answers, with the same views.

    classes = UrlClasses()
    classes.of("http://wiki/doku.php?id=start&do=edit")    # /doku.php?do=edit&id=*
    classes.of("http://wiki/2026/11/23/")                  # /*/*/*/

A segment of the path counts as it is while fewer than SIBLINGS were seen beside it, and as ``*``
otherwise. Numbers and ids are always ``*``. The last segment of a URL without a query is ``*``,
except in folders that are ``*`` (``/*/raw``). A suffix that names a format stays: ``/rows/*.json``.
The names of a query count, in alphabetical order, and the values of names that mean a view. A query
without a pair (``/wiki.pl?Start``) is a value.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from typing import NamedTuple, Self
from zlib import crc32

SIBLINGS = 20
VALUES = 32
"""Values of a parameter that names a view; further values are ``*``."""
MAX_LITERALS = 20_000
"""Segments and values of a host that are remembered, 70 bytes each."""
_VIEWS = frozenset(
    ("a", "act", "action", "cmd", "command", "do", "mode", "op", "tab", "task", "view")
)
WORDS = frozenset(
    (
        "annotate",
        "atom",
        "attachment",
        "backlinks",
        "blame",
        "blob",
        "blob_plain",
        "bundle",
        "changes",
        "changeset",
        "commit",
        "compare",
        "comparison",
        "csv",
        "diff",
        "download",
        "edit",
        "export",
        "feed",
        "filelog",
        "format",
        "history",
        "info",
        "json",
        "log",
        "patch",
        "plain",
        "print",
        "printable",
        "raw",
        "raw-attachment",
        "raw-file",
        "rev",
        "revision",
        "revisions",
        "rss",
        "shortlog",
        "snapshot",
        "source",
        "src",
        "stats",
        "text",
        "txt",
        "xml",
    )
)
"""Segments of a path that name a view of the thing that the others name."""
_BEFORE_NAMES = WORDS | {"browser", "file", "files", "tree"}
"""Segments after which the last one is a file's name, even in a URL with a query."""
_LEAST_LETTERS = 4
_SEPARATOR = re.compile("[&;]")
_ID = re.compile(r"\d+$|(?:\D*\d){3}|[0-9a-f]{8,}|.{41}|\W*$")
"""An id: a number, three digits, a hash, over 40 characters, or no letter and digit."""
_SUFFIX = re.compile(r"(?<=[^.])\.[a-z][a-z0-9]{1,5}$", re.IGNORECASE)
_OF_DOCUMENTS = frozenset(
    (".html", ".htm", ".xhtml", ".shtml", ".php", ".asp", ".aspx", ".jsp", ".cgi", ".pl", ".pdf")
)
"""Suffixes of pages. A URL with another suffix is likely a view of the URL without it."""


class UrlClass(NamedTuple):
    """``path`` and ``names`` are its shape, ``view`` the values that count, as ``do=edit``;
    ``values`` are hashes of the other values, in an order that depends on the class."""

    path: str
    names: tuple[str, ...]
    view: tuple[str, ...] = ()
    values: tuple[int, ...] = ()

    @property
    def query(self) -> str:
        """``?do=edit&id=*``, or ""."""
        if not self.names and not self.view:
            return ""
        values = dict(one.split("=", 1) for one in self.view if "=" in one)
        shown = [f"{one}={values.get(one, '*')}" for one in self.names] or self.view
        return "?" + "&".join(shown) if shown else ""

    def __str__(self) -> str:
        return f"{self.path}{self.query}"


class UrlClasses:
    """The known path segments and values of one host."""

    def __init__(self) -> None:
        self._literals: set[int] = set()
        self._siblings: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._literals)

    def of(self, url: str, *, learn: bool = True) -> UrlClass:
        """The class of an absolute URL, in canonical form; it is remembered, with ``learn``.
        5 us."""
        head, _, query = url.partition("?")
        segments = head.split("/")[3:]
        last = segments.pop() if segments else ""
        path, at, values = "/", 0, list[int]()
        for segment in segments:
            is_literal = self._is_literal(at, segment, SIBLINGS, learn)
            if not is_literal:
                values.append(_hash("/", segment))
            token = segment if is_literal else "*"
            path += token + "/"
            at = crc32(token.encode("utf-8", "surrogatepass"), at + 1)
        is_program = query and not any(one.lower() in _BEFORE_NAMES for one in segments)
        may_stay = is_program or path.endswith("/*/")
        if last and not (may_stay and self._is_literal(at, last, SIBLINGS, learn)):
            stem, suffix = split_suffix(last)
            if suffix and not self._is_literal(crc32(b"*", at + 2), suffix, SIBLINGS, learn):
                suffix = ""
            values.append(_hash("/", stem if suffix else last))
            last = f"*{suffix}"
        path += last
        if not query:
            return UrlClass(path, (), (), tuple(values))
        if "=" not in query and not self._is_literal(
            crc32(path.encode("utf-8", "surrogatepass"), 1), query, SIBLINGS, learn
        ):
            return UrlClass(path, (), ("*",), (*values, _hash("/", query)))
        pairs = sorted(dict(one.partition("=")[::2] for one in _SEPARATOR.split(query)).items())
        view = []
        for name, value in pairs:
            if name in _VIEWS:
                place = crc32(f"{path}?{name}".encode("utf-8", "surrogatepass"))
                if self._is_literal(place, value, VALUES, learn):
                    view.append(f"{name}={value}")
                    continue
            values.append(_hash(name, value))
        return UrlClass(path, tuple(name for name, _ in pairs), tuple(view), tuple(values))

    def _is_literal(self, place: int, value: str, most: int, learn: bool) -> bool:
        known = place << 32 | crc32(value.encode("utf-8", "surrogatepass"))
        if known in self._literals:
            return True
        if _ID.match(value) or self._siblings[place] >= most or len(self) >= MAX_LITERALS:
            return False
        if learn:
            self._literals.add(known)
            self._siblings[place] += 1
        return True

    def pack(self) -> bytes:
        return array("Q", self._literals).tobytes()

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        classes, known = cls(), array("Q")
        known.frombytes(data)
        classes._literals = set(known)
        classes._siblings = Counter(one >> 32 for one in known)
        return classes


def split_suffix(name: str) -> tuple[str, str]:
    """``("17", ".json")``; the suffix is "" for pages (``17.html``) and for names without one."""
    found = _SUFFIX.search(name)
    if found is None or found[0].lower() in _OF_DOCUMENTS:
        return name, ""
    return name[: found.start()], found[0].lower()


def _hash(name: str, value: str) -> int:
    """The hash of a value, in any place; a small number counts for its parameter alone."""
    own = f"{name}={value}" if len(value) < _LEAST_LETTERS or value.isdigit() else value.lower()
    return crc32(own.encode("utf-8", "surrogatepass"))
