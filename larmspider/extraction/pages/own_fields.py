"""Own fields: values that CSS selectors and XPaths find on the pages of some hosts (LARM_FIELDS).

    own = OwnFields.parse({"shop*.example": {"price": ".price", "room": "//td[@id='room']"}})
    own.of_page(b"<b class=price>12</b>", "http://shop.example/1", "")      # {"price": ["12"]}

The process that reads large pages (process.py) looks for them, because a selector may take seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.extraction.pages.page_builder import BLOCKS, BREAKS, one_line
from larmspider.extraction.texts.charset import to_utf8
from larmspider.urls.host_pattern import host_matcher
from larmspider.urls.media_types import reader_of
from larmspider.urls.schemes import DEFAULT_PORTS

if TYPE_CHECKING:
    from parsel import Selector

    from larmspider.options import Settings

MAX_NAMES = 32
"""Fields in all."""
MAX_CHARS = 50_000
"""Characters of all patterns, names and XPaths, CSS selectors as XPaths among them."""
MAX_VALUES = 20
"""Values of one field on one page."""
MAX_VALUE = 200
"""Characters of a value; the rest is cut off."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_RESERVED = frozenset(("title", "url", "host", "lang", "mime", "author"))
"""Names that have another meaning in a query (search/query.py)."""
_PATTERN = re.compile(r"[^\x00-\x20\x7f-\U0010ffff/\\@#%]+")
_XPATH = re.compile(r"\s*(?:\.{0,2}/|\(|[a-z-]+\()")
"""How no CSS selector begins."""
_APART = BLOCKS | BREAKS

Rules = Mapping[str, Mapping[str, str]]


class OwnFields:
    """``rules``: the XPath of each field, by the pattern of hosts and the field's name. The first
    pattern that sets a field counts."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._of_host = lru_cache(maxsize=1_024)(self._combined)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """``given`` as in LARM_FIELDS. Raises ConfigError."""
        rules: dict[str, dict[str, str]] = {}
        for pattern, fields in given.items():
            where = f"LARM_FIELDS: host {pattern!r:.100}"
            if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
                raise ConfigError(f"{where}: expected host or host:port, with * and ?")
            if not isinstance(fields, Mapping) or not fields:
                raise ConfigError(
                    f'{where}: {fields!r:.100}: expected fields as {{"price": ".price"}}'
                )
            rules[pattern] = {name: _xpath(where, name, text) for name, text in fields.items()}
        names = {name for fields in rules.values() for name in fields}
        chars = sum(
            len(pattern) + sum(len(name) + len(fields[name]) for name in fields)
            for pattern, fields in rules.items()
        )
        if len(names) > MAX_NAMES or chars > MAX_CHARS:
            raise ConfigError(
                f"LARM_FIELDS: {len(names)} names and {chars:,} characters of XPaths: expected at"
                f" most {MAX_NAMES} and {MAX_CHARS:,}"
            )
        return cls(rules)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """LARM_FIELDS. Raises ConfigError, also if LARM_FACETS names a field that is not in it."""
        own = cls.parse(options.mapping(settings, "LARM_FIELDS"))
        for name in options.strings(settings, "LARM_FACETS"):
            if name not in own.names:
                raise ConfigError(
                    f"LARM_FACETS={name}: expected fields of LARM_FIELDS"
                    f" ({', '.join(own.names) or 'there are none'})"
                )
        return own

    @property
    def names(self) -> list[str]:
        return sorted({name for fields in self.rules.values() for name in fields})

    def of_url(self, url: str) -> Mapping[str, str]:
        """The XPath of each field of pages of this host."""
        try:
            parts = urlsplit(url)
            return self._of_host(
                parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme)
            )
        except ValueError:  # no URL
            return {}

    def are_on(self, mime: str, url: str) -> bool:
        """Whether a page of this type is searched for fields."""
        return bool(self.rules) and reader_of(mime).endswith(".html") and bool(self.of_url(url))

    def _combined(self, host: str, port: int | None) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for pattern, fields in self.rules.items():
            matches = host_matcher(pattern)
            if matches(host) or matches(f"{host}:{port}"):
                found = {**fields, **found}
        return found

    def of_page(self, body: bytes, url: str, content_type: str | None) -> dict[str, list[str]]:
        """The values of each field that ``body``, a page of HTML, has."""
        from parsel import Selector

        wanted = self.of_url(url)
        page = Selector(body=to_utf8(body, content_type)[0], encoding="utf-8", base_url=url)
        found = ((name, islice(_values(page, xpath), MAX_VALUES)) for name, xpath in wanted.items())
        return {name: values for name, each in found if (values := list(each))}


NONE = OwnFields({})


def _xpath(where: str, name: object, selector: object) -> str:
    """The XPath that a CSS selector stands for; an XPath stays as it is. Raises ConfigError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
        raise ConfigError(
            f"{where}: field {name!r:.100}: expected a name of at most 32 of a-z, 0-9, _ and -,"
            f" a letter first, and none of {', '.join(sorted(_RESERVED))}"
        )
    from parsel import Selector, css2xpath

    try:
        if not isinstance(selector, str):
            raise TypeError("it is not text")
        xpath = selector if _XPATH.match(selector) else css2xpath(selector)
        Selector("<p></p>").xpath(xpath)  # functions and variables that are not there
    except (
        ValueError,
        TypeError,
        SyntaxError,
        RuntimeError,
    ) as error:  # cssselect has the last two
        raise ConfigError(
            f"{where}: {name}: {selector!r:.200}: expected a CSS selector or an XPath: {error}"
        ) from None
    return xpath


def _values(page: Selector, xpath: str) -> Iterator[str]:
    """Each once, without white space around it."""
    try:
        nodes = page.xpath(xpath)
    except ValueError:  # an XPath that fails on this page alone
        return
    seen: set[str] = set()
    for node in nodes:
        text = one_line(_text(node.root), MAX_VALUE)
        if text and text not in seen:
            seen.add(text)
            yield text


def _text(found: Any) -> str:
    """The text of an element, with a space where a block begins or ends; others are values."""
    if not hasattr(found, "xpath"):
        return f"{found:.15g}" if isinstance(found, float) else str(found)
    pieces: list[str] = []
    for node in found.xpath("descendant-or-self::node()"):
        if isinstance(node, str):
            behind = node.is_tail and node.getparent().tag in _APART  # type: ignore[attr-defined]
            pieces.append(f" {node}" if behind else node)
        elif node.tag in _APART:
            pieces.append(" ")
    return "".join(pieces)
