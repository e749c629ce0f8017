"""Rights that a server sends, in a header or a meta element, from hosts that are trusted for it.

    LARM_ACCESS_SENT = {"cms.example": "X-Read-Access", "*.wiki.example": "meta:readers"}

The value names principals, separated by commas: ``group:hr, user:anna``. A page of such a host
without it, or with text that is not a principal, is seen by operators only. A meta element
counts only in the head of a page, because editors write its body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Self
from urllib.parse import urlsplit

from larmspider.access.lists import MAX_ENTRIES, AccessList, UnreadableError
from larmspider.access.rights import Document, Rights
from larmspider.errors import ConfigError
from larmspider.urls.host_pattern import HostPattern
from larmspider.urls.schemes import DEFAULT_PORTS

META = "meta:"
HEAD_BYTES = 65_536
"""Bytes of a page that are searched for its meta element."""
MAX_VALUE = 100_000
"""Characters of all values together."""
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_META_NAME = re.compile(r"[A-Za-z0-9:._-]{1,100}")
_OF_HEAD = frozenset(
    {"html", "head", "title", "meta", "link", "script", "style", "base", "noscript", "template"}
)

_WITH_TEXT = frozenset({"title", "script", "style", "noscript", "template"})


@dataclass(frozen=True)
class Sent:
    """``places``: by host pattern, the header or meta element with the rights."""

    places: tuple[tuple[HostPattern, str], ...] = ()

    @classmethod
    def of(cls, table: Mapping[str, Any], name: str = "LARM_ACCESS_SENT") -> Self:
        """Parse the setting. ``name``: its name in messages. Raises ConfigError."""
        found = []
        for host, place in table.items():
            try:
                pattern = HostPattern.parse(host)
            except ConfigError as error:
                raise ConfigError(f"{name}: {host:.80}: {error}") from None
            text = place if isinstance(place, str) else ""
            bare = text.removeprefix(META)
            if not (_META_NAME if bare != text else _HEADER).fullmatch(bare):
                raise ConfigError(
                    f"{name}: {host:.80}: {place!r:.80}: expected the name of a header such as"
                    f" X-Read-Access, or of a meta element such as {META}readers"
                )
            found.append((pattern, text))
        return cls(tuple(found))

    @property
    def hosts(self) -> list[str]:
        return [f"{pattern} {place}" for pattern, place in self.places]

    def place_of(self, url: str) -> str:
        """The header or meta element with a page's rights; "" if its host is not trusted."""
        if not self.places:
            return ""
        parts = urlsplit(url)
        try:
            port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
        except ValueError:
            return ""
        host = (parts.hostname or "").rstrip(".")
        for pattern, place in self.places:
            if pattern.matches(parts.scheme, host, port):
                return place
        return ""

    def access_of(self, document: Document) -> Rights | None:
        """Raises UnreadableError."""
        place = self.place_of(document.name)
        if not place or document.headers is None:
            return None
        if place.startswith(META):
            values = _meta(document.body, place.removeprefix(META))
        else:
            name = place.lower().encode()
            values = [
                _text(value)
                for key, found in document.headers.items()
                if key.lower() == name
                for value in found
            ]
        if not values:
            raise UnreadableError(f"the server has not sent {place}")
        if sum(map(len, values)) > MAX_VALUE:
            raise UnreadableError(f"{place} has more than {MAX_VALUE:,} characters")
        named = [one for value in values for part in value.split(",") if (one := part.strip())]
        if len(named) > MAX_ENTRIES:
            raise UnreadableError(f"{place} has more than {MAX_ENTRIES:,} entries")
        try:
            return Rights(AccessList.simple(sorted(set(named))))
        except ConfigError as error:
            raise UnreadableError(f"{place}: {error}") from None


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise UnreadableError("the rights that the server sent are not UTF-8") from None


def _meta(body: bytes, name: str) -> list[str]:
    head = _Head(name.lower())
    head.feed(body[:HEAD_BYTES].decode("utf-8", "replace"))
    return head.values


class _Head(HTMLParser):
    """Collects the content of the meta elements of one name, up to the first element of a body."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name, self._ended, self._inside = name, False, ""
        self.values: list[str] = []

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """``<![if !IE]>`` is a comment for browsers; an unknown word in it raises AssertionError
        otherwise."""
        return self.parse_bogus_comment(i, report)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._inside:
            return
        self._ended |= tag not in _OF_HEAD
        self._inside = tag if tag in _WITH_TEXT else ""
        if self._ended or tag != "meta":
            return
        found = {key: value or "" for key, value in reversed(attrs)}  # the first of two counts
        if found.get("name", "").lower() == self._name:
            self.values.append(found.get("content", ""))

    def handle_endtag(self, tag: str) -> None:
        if self._inside in ("", tag):
            self._ended |= tag == "head"
            self._inside = ""

    def handle_data(self, data: str) -> None:
        # text ends the head, as browsers have it
        self._ended |= bool(data.strip()) and not self._inside
