"""Many names, one host: www.wiki.example and 10.0.0.7 are wiki.example, if the rules say so.

The rules are in LARM's properties file, one a line, in the syntax of Java's ``Properties.load``
(``#`` or ``!`` starts a comment line, ``\\`` at the end continues a line, ``\\u00fc`` is an
escape)::

    startsWith(www.)=             hosts that start with "www." lose it
    endsWith(.old.example)=.example
    synonym(10.0.0.7)=wiki.example

The case of the keywords matters. In the parentheses ``,`` may stand for ``.``; ``:``, ``=`` and
spaces would end the key and need a ``\\``: ``synonym([\\:\\:1])=wiki.example``. Hosts are put in
lower case and punycode.

The resolver works on the canonical form, never on the fetched URL:

- One pass applies startsWith, then endsWith, in each case the longest matching part, once; then
  synonyms, through chains. Parts are plain text: ``startsWith(www)=`` matches www2.example as well.
- Passes are repeated until nothing changes, so that resolving is idempotent: www.www.h is h under
  ``startsWith(www.)=``. If passes run in a circle (``startsWith(a.)=b.`` and
  ``startsWith(b.)=a.``), all hosts of the circle become the alphabetically first one.
- A replacement is not repeated on its own result: ``endsWith(.lan)=.site.lan`` leaves x.site.lan.
- A rule whose result would not be a host (``startsWith(www.)=`` on www.1.2) is not applied. A host
  that still changes after ``MAX_PASSES`` passes is left as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

import can_ada
import javaproperties

from larmspider.errors import ConfigError
from larmspider.files import replace_file
from larmspider.urls.syntax import LONGEST_HOST

STARTS_WITH = "startsWith"
ENDS_WITH = "endsWith"
SYNONYM = "synonym"
KEYWORDS = (STARTS_WITH, ENDS_WITH, SYNONYM)

_ACCEPTED = (
    "expected startsWith(part)=replacement, endsWith(part)=replacement or synonym(host)=host"
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_PIECE = re.compile(r"[a-z0-9_-]*(?:\.[a-z0-9_-]+)*\.?")
_HOST_CHARS = re.compile(r"[^\x00-\x20/\\?#@:%\[\]]+|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True)
class HostRule:
    """``keyword(part)=value``; ``line`` counts from 1."""

    keyword: str
    part: str
    value: str
    source: str
    line: int

    def __str__(self) -> str:
        return f"{self.keyword}({self.part})={self.value} ({self.source}:{self.line})"


def parse_host_rules(text: str, source: str) -> list[HostRule]:
    """The rules of ``text`` in their order, each once; ``source`` is the file's name for messages.

    Raises ConfigError, with file and line, for an invalid rule and for two contradicting rules.
    """
    rules: dict[tuple[str, str], HostRule] = {}
    for key, value, line in _entries(text, source):
        rule = _rule(key, value, source, line)
        first = rules.setdefault((rule.keyword, rule.part), rule)
        if first.value != rule.value:
            raise ConfigError(
                f"{source}:{line}: {rule.keyword}({rule.part})={rule.value} contradicts line "
                f"{first.line}, where its value is {first.value!r}; expected one for each part"
            )
    return list(rules.values())


def canonical_host(text: str) -> str | None:
    """``text`` as a canonical URL spells it, or None if it is not a host name or address."""
    if not _HOST_CHARS.fullmatch(text) or len(text) > LONGEST_HOST:
        return None
    try:
        host = can_ada.parse(f"http://{text}/").hostname.removesuffix(".")
    except (ValueError, TypeError):  # TypeError: lone surrogates
        return None
    return host if 0 < len(host) <= LONGEST_HOST and ".." not in f".{host}." else None


def property_line(keyword: str, part: str, value: str) -> str:
    """A rule as a line of the file, with the escapes that it needs."""
    line: str = javaproperties.join_key_value(f"{keyword}({part})", value)
    return line


def add_rule(path: Path, line: str) -> None:
    """Append a rule to a file, which is created if missing. Raises ConfigError if the rule
    contradicts others there, or the file cannot be read or written; the file is then unchanged."""
    try:
        before = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
        text = before + ("\n" if before and not before.endswith(("\n", "\r")) else "") + line + "\n"
        HostResolver.from_properties(text, os.fspath(path))
        replace_file(path, text.encode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8; expected UTF-8 and \\uXXXX escapes") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}; expected a file to write") from error


def _entries(text: str, source: str) -> Iterator[tuple[str, str, int]]:
    """Yields key, value and line number."""
    line = 1
    elements = javaproperties.parse(text)
    while True:
        try:
            element = next(elements, None)
        except javaproperties.InvalidUEscapeError as error:
            raise ConfigError(
                f"{source}: at or after line {line}: {error}; expected \\u with four hex digits"
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
            f"{where}{text!a} is not a host name; expected a name such as wiki.example or an "
            "address, without scheme, port and path"
        )
    return host


def _piece(text: str, where: str) -> str:
    if not _PIECE.fullmatch(text):
        raise ConfigError(
            f"{where}{text!a} is not part of a host name; expected letters, digits, '-', '_' "
            "and single dots (punycode for other letters), without scheme, port and path"
        )
    return text


MAX_PASSES = 64
"""More than sensible rules need."""
CACHE_SIZE = 65_536
"""Resolved hosts that are remembered; about 15 MB."""


class HostResolver:
    """Maps hosts by ``rules``; without any, every host is its own.

    Raises ConfigError if the synonyms lead in a circle.
    """

    def __init__(self, rules: Iterable[HostRule] = ()) -> None:
        self.rules = tuple(rules)
        longest_first = sorted(self.rules, key=lambda rule: -len(rule.part))
        self._starts = [rule for rule in longest_first if rule.keyword == STARTS_WITH]
        self._ends = [rule for rule in longest_first if rule.keyword == ENDS_WITH]
        self._synonyms = {rule.part: rule for rule in self.rules if rule.keyword == SYNONYM}
        self._check_synonyms()
        self._remembered = lru_cache(CACHE_SIZE)(lambda host: self._settle(host)[0])

    @classmethod
    def from_properties(cls, text: str, source: str = "<string>") -> Self:
        return cls(parse_host_rules(text, source))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """The resolver for a file in UTF-8. Raises ConfigError, also if the file is missing."""
        try:
            content = Path(path).read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(
                f"host rules {os.fspath(path)!r}: {reason}; expected a readable properties file"
            ) from error
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise ConfigError(
                f"{os.fspath(path)}:{line}: not UTF-8; expected UTF-8 and \\uXXXX escapes"
            ) from error
        return cls.from_properties(text, os.fspath(path))

    def resolve(self, host: str) -> str:
        """The host that ``host`` stands for, in lower case. Idempotent."""
        return self._remembered(host.lower())

    def explain(self, host: str) -> list[str]:
        """The rules that led from ``host`` to ``resolve(host)``, each with file and line."""
        return [str(rule) for rule in self._settle(host.lower())[1]]

    def apply(self, normalized_url: str) -> str:
        """The canonical URL with its host resolved and its port kept; the same object if unchanged.

        Idempotent. 0.05 us without rules, 0.5 us with rules and a host seen before.
        """
        if not self.rules:
            return normalized_url
        start = normalized_url.index("://") + 3
        end = normalized_url.index("/", start)
        host = normalized_url[start:end]
        if (colon := host.rfind(":")) > host.rfind("]"):  # [::1]:81 has a port, [::1] has none
            end = start + colon
            host = host[:colon]
        resolved = self._remembered(host)
        if resolved == host:
            return normalized_url
        return normalized_url[:start] + resolved + normalized_url[end:]

    def _check_synonyms(self) -> None:
        """Raise ConfigError if following the synonyms comes back to where it was."""
        checked = set[str]()
        for first in self._synonyms:
            chain = list[HostRule]()
            host = first
            while host not in checked and (rule := self._synonyms.get(host)):
                checked.add(host)
                chain.append(rule)
                host = rule.value
            circle = [rule for rule in chain if rule.part == host]
            if circle:
                rules = ", ".join(map(str, chain[chain.index(circle[0]) :]))
                raise ConfigError(
                    f"synonyms lead in a circle: {rules}; expected chains that end at a host "
                    "without a synonym"
                )

    def _settle(self, host: str) -> tuple[str, list[HostRule]]:
        """The host after all passes, and the rules that led there."""
        hosts, rules = [host], list[list[HostRule]]()
        for _ in range(MAX_PASSES):
            following, applied = self._pass(hosts[-1])
            if following in hosts:
                # A circle; of one host, if nothing changed.
                end = hosts.index(min(hosts[hosts.index(following) :]))
                return hosts[end], [rule for used in rules[:end] for rule in used]
            hosts.append(following)
            rules.append(applied)
        return host, []

    def _pass(self, host: str) -> tuple[str, list[HostRule]]:
        """``host`` after one pass, and the rules that changed it."""
        applied = []
        for rules, matches in ((self._starts, str.startswith), (self._ends, str.endswith)):
            rule = next((rule for rule in rules if matches(host, rule.part)), None)
            if rule and (changed := _replaced(rule, host)) != host:
                applied.append(rule)
                host = changed
        while rule := self._synonyms.get(host):
            applied.append(rule)
            host = rule.value
        return host, applied


def _replaced(rule: HostRule, host: str) -> str:
    """``host`` with the part at its start or end replaced, or as it is where it must stay."""
    if rule.keyword == STARTS_WITH:
        own_result = rule.value.startswith(rule.part) and host.startswith(rule.value)
        changed = rule.value + host[len(rule.part) :]
    else:
        own_result = rule.value.endswith(rule.part) and host.endswith(rule.value)
        changed = host[: len(host) - len(rule.part)] + rule.value
    return host if own_result or canonical_host(changed) != changed else changed
