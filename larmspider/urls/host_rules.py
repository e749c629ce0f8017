"""Rules for hosts in LARM's properties format: ``startsWith(www.)=``, ``synonym(w3)=intranet``.

One rule a line, in the syntax of Java's ``Properties.load``: ``#`` or ``!`` starts a comment line,
``\\`` at the end continues a line, ``\\u00fc`` is an escape. Three keywords, their case matters::

    startsWith(www.)=             hosts that start with "www." lose it
    endsWith(.old.example)=.example
    synonym(10.0.0.7)=wiki.example

Inside the parentheses ``,`` may stand for ``.``; ``:``, ``=`` and spaces would end the key and need
a ``\\``: ``synonym([\\:\\:1])=wiki.example``. Hosts are lower-cased, host names of synonyms are
put in punycode. What the rules mean is in host_resolver.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import can_ada
import javaproperties

from larmspider.errors import ConfigError
from larmspider.urls.host_length import LONGEST_HOST

STARTS_WITH = "startsWith"
ENDS_WITH = "endsWith"
SYNONYM = "synonym"
KEYWORDS = (STARTS_WITH, ENDS_WITH, SYNONYM)

_ACCEPTED = (
    "accepted are startsWith(part)=replacement, endsWith(part)=replacement, synonym(host)=host"
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_PIECE = re.compile(r"[a-z0-9_-]*(?:\.[a-z0-9_-]+)*\.?")
_HOST_CHARS = re.compile(r"[^\x00-\x20/\\?#@:%\[\]]+|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True)
class HostRule:
    """``keyword(part)=value`` and where it stands; ``line`` counts from 1."""

    keyword: str
    part: str
    value: str
    source: str
    line: int

    def __str__(self) -> str:
        return f"{self.keyword}({self.part})={self.value} ({self.source}:{self.line})"


def parse_host_rules(text: str, source: str) -> list[HostRule]:
    """The rules of ``text`` in their order; ``source`` is the file's name for messages.

    Raises ConfigError, with file and line, for what is no rule and for two rules that contradict
    each other. The same rule twice is one rule.
    """
    rules: dict[tuple[str, str], HostRule] = {}
    for key, value, line in _entries(text, source):
        rule = _rule(key, value, source, line)
        first = rules.setdefault((rule.keyword, rule.part), rule)
        if first.value != rule.value:
            raise ConfigError(
                f"{source}:{line}: {rule.keyword}({rule.part})={rule.value} contradicts line "
                f"{first.line}, where its value is {first.value!r}; accepted is one for each part"
            )
    return list(rules.values())


def canonical_host(text: str) -> str | None:
    """``text`` as a canonical URL spells it, or None if it is no host name or address."""
    if not _HOST_CHARS.fullmatch(text) or len(text) > LONGEST_HOST:
        return None
    try:
        host = can_ada.parse(f"http://{text}/").hostname.removesuffix(".")
    except (ValueError, TypeError):  # TypeError: lone surrogates
        return None
    return host if 0 < len(host) <= LONGEST_HOST and ".." not in f".{host}." else None


def _entries(text: str, source: str) -> Iterator[tuple[str, str, int]]:
    """Key, value and first line of each entry."""
    line = 1
    elements = javaproperties.parse(text)
    while True:
        try:
            element = next(elements, None)
        except javaproperties.InvalidUEscapeError as error:
            raise ConfigError(
                f"{source}: at or after line {line}: {error}; accepted is \\u with four hex digits"
            ) from error
        if element is None:
            return
        if isinstance(element, javaproperties.KeyValue):
            yield element.key, element.value.strip(), line
        line += len(_LINE_END.findall(element.source))


def _rule(key: str, value: str, source: str, line: int) -> HostRule:
    where = f"{source}:{line}: "
    keyword, opened, rest = key.partition("(")
    if not opened or not rest.endswith(")"):
        hint = ""
        if ")" in value:  # the key ended early
            hint = " ahead of ':', '=' or a space; these need a backslash: synonym([\\:\\:1])=host"
        raise ConfigError(f"{where}{key!r} lacks a parenthesis{hint}; {_ACCEPTED}")
    if keyword not in KEYWORDS:
        meant = next((word for word in KEYWORDS if word.lower() == keyword.lower()), None)
        hint = f", write {meant} (case matters)" if meant else ""
        raise ConfigError(f"{where}unknown keyword {keyword!r}{hint}; {_ACCEPTED}")
    part = rest[:-1].strip().replace(",", ".").lower()
    if not part:
        raise ConfigError(f"{where}nothing stands between the parentheses; {_ACCEPTED}")
    if keyword == SYNONYM:
        return HostRule(keyword, _host(part, where), _host(value, where), source, line)
    return HostRule(keyword, _piece(part, where), _piece(value.lower(), where), source, line)


def _host(text: str, where: str) -> str:
    host = canonical_host(text)
    if host is None:
        raise ConfigError(
            f"{where}{text!a} is not a host name; accepted are names such as wiki.example and "
            "addresses, without scheme, port and path"
        )
    return host


def _piece(text: str, where: str) -> str:
    if not _PIECE.fullmatch(text):
        raise ConfigError(
            f"{where}{text!a} is not part of a host name; accepted are letters, digits, '-', '_' "
            "and single dots (punycode for other letters), without scheme, port and path"
        )
    return text
