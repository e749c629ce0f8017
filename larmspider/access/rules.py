"""Rules by URL: ``LARM_ACCESS_RULES = {"/hr/*": ["group:hr"], "*": ["everyone"]}``.

    rules = Rules.of({"/hr/*": ["group:hr"]})
    rules.number_of("http://wiki.example/hr/plan")     # 0: the first rule

The first rule that fits a URL decides; a URL that no rule fits is left to the other sources. ``*``
stands for any characters. ``/hr/*`` is a path on every host, ``wiki.example/hr/*`` on one host, and
``file:///srv/share/hr/*`` is a whole URL. Case, escapes, doubled slashes, ``..`` and ``;`` with
what follows do not matter, and ``/hr/*`` fits ``/hr``, too: a server may take all of these for the
same page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from larmspider.access.lists import AccessList
from larmspider.access.rights import Document, Rights
from larmspider.errors import ConfigError
from larmspider.urls.host_resolver import canonical_host
from larmspider.urls.schemes import DEFAULT_PORTS
from larmspider.urls.syntax import resolve_dots

MAX_RULES = 1_000
MAX_PATTERN = 500
"""Characters."""
MAX_STARS = 8
_SLASHES = re.compile(r"[/\\]{2,}|\\")
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
_PORT = re.compile(r":[0-9*]*$")
_PARAMETERS = re.compile(r";[^/]*")
_PARAMETERS_OF_DOTS = re.compile(r"(?<=/)(\.{1,2});[^/]*")
_LATIN_1 = {0xDC00 + byte: byte for byte in range(0x80, 0x100)}


@dataclass(frozen=True)
class Rules:
    """``lists`` by pattern, in the order of the settings."""

    lists: tuple[tuple[str, AccessList], ...] = ()

    @classmethod
    def of(cls, table: Mapping[str, Any], name: str = "LARM_ACCESS_RULES") -> Self:
        """Parse the setting. ``name``: its name in messages. Raises ConfigError."""
        if len(table) > MAX_RULES:
            raise ConfigError(f"{name}: {len(table):,} rules; expected at most {MAX_RULES:,}")
        found = []
        for pattern, principals in table.items():
            if why := _refusal(pattern):
                raise ConfigError(f"{name}: {pattern:.80}: {why}")
            listed = [principals] if isinstance(principals, str) else principals
            if not isinstance(listed, list | tuple):
                raise ConfigError(
                    f'{name}: {pattern:.80}: expected a list of principals such as ["group:hr"]'
                )
            try:
                found.append((pattern, AccessList.simple(listed)))
            except ConfigError as error:
                raise ConfigError(f"{name}: {pattern:.80}: {error}") from None
        return cls(tuple(found))

    @property
    def patterns(self) -> list[str]:
        return [pattern for pattern, _ in self.lists]

    def number_of(self, url: str) -> int | None:
        """The number of the first rule that fits, None: none does."""
        return self._number_of(url) if self.lists else None

    def access_of(self, document: Document) -> Rights | None:
        number = self.number_of(document.name)
        if number is None:
            return None
        pattern, found = self.lists[number]
        return Rights(found, slot_name(pattern))

    @cached_property
    def _number_of(self) -> Callable[[str], int | None]:
        return matcher(self.patterns)


def slot_name(pattern: str) -> str:
    """The name of the slot of all documents that a rule fits."""
    return f"rule {pattern}"


def matcher(patterns: list[str]) -> Callable[[str], int | None]:
    """Finds the first of ``patterns`` that fits a URL."""
    compiled = [(_subject(one), _expression(one).fullmatch) for one in patterns]

    def number_of(url: str) -> int | None:
        subjects = _subjects(url)
        for number, (which, fits) in enumerate(compiled):
            if any(fits(subject) for subject in subjects[which]):
                return number
        return None

    return number_of


def _refusal(pattern: str) -> str:
    if not pattern.strip() or len(pattern) > MAX_PATTERN:
        return f"expected a pattern of at most {MAX_PATTERN} characters such as /hr/*"
    if pattern.count("*") > MAX_STARS:
        return f"has {pattern.count('*')} stars; expected at most {MAX_STARS}"
    if "/" not in pattern and pattern != "*":
        return "expected * or a pattern with a path such as /hr/* or wiki.example/*"
    if _DOTS.search(pattern):
        return "has a segment of dots; no URL that is compared has one"
    try:
        _expression(pattern)
    except ConfigError as error:
        return str(error)
    return ""


_PATH, _PLACE, _WHOLE = range(3)


def _subject(pattern: str) -> int:
    if "://" in pattern or pattern == "*":
        return _WHOLE
    return _PATH if pattern.startswith("/") else _PLACE


def _expression(pattern: str) -> re.Pattern[str]:
    scheme, mark, rest = pattern.rpartition("://")
    host, slash, path = rest.partition("/")
    text = _SLASHES.sub("/", slash + path)
    end = ""
    if text.endswith("/*"):
        text, end = text[:-2], "(?:/.*)?"
    text = f"{scheme}{mark}{_host(host)}{text}"
    first, *others = (re.escape(_plain(one)) for one in text.split("*"))
    if not others:
        return re.compile(first + end, re.DOTALL)  # a path may hold %0A
    # the first place of a text between two stars is enough; to try all takes minutes
    between = "".join(f"(?>.*?{one})" for one in others[:-1])
    return re.compile(f"{first}{between}.*{others[-1]}{end}", re.DOTALL)


def _host(text: str) -> str:
    """The host of a pattern as URLs have it. Raises ConfigError for one that no URL has."""
    name, mark, port = text.rpartition(":") if _PORT.search(text) else (text, "", "")
    if "*" in name:
        labels = [one if "*" in one or not one else _host(one) for one in name.split(".")]
        return ".".join(labels).removesuffix(".") + mark + port
    found = canonical_host(name) if name else ""
    if found is None or "@" in name:
        raise ConfigError(f"{name!r:.80} is not the name of a host")
    return found + mark + port


def _plain(text: str) -> str:
    """The form of a text in which it is compared. Bytes that are not UTF-8 are read as Latin-1, as
    old servers write them."""
    found = unquote(text, errors="surrogateescape")
    if found.isascii():
        return found.lower()
    return normalize("NFC", normalize("NFC", found.translate(_LATIN_1)).casefold())


def _paths(path: str) -> list[str]:
    """A path as servers may read it: ``/a/..%2Fhr`` is ``/hr``, and so is ``/hr;id=1`` for some."""
    found = _SLASHES.sub("/", _plain(path)) or "/"
    if ";" not in found:
        return [resolve_dots(found)]
    found = resolve_dots(_PARAMETERS_OF_DOTS.sub(r"\1", found))
    return [found, _SLASHES.sub("/", _PARAMETERS.sub("", found)) or "/"]


def _subjects(url: str) -> tuple[list[str], list[str], list[str]]:
    """The texts for the patterns of each sort, with the query of the URL, and without."""
    parts = urlsplit(url)
    paths = _paths(parts.path)
    if parts.query:
        query = _plain(parts.query)
        paths += [f"{path}?{query}" for path in paths]
    host, scheme = (parts.hostname or "").rstrip("."), parts.scheme.lower()
    if ":" in host:
        host = f"[{host}]"
    port = parts.port or DEFAULT_PORTS.get(scheme)
    hosts = [host] if port is None else [host, f"{host}:{port}"]
    places = [one + path for one in hosts for path in paths]
    if parts.port:
        hosts = hosts[1:]
    return paths, places, [f"{scheme}://{one}{path}" for one in hosts for path in paths]
