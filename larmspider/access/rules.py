"""Rules by URL: ``LARM_ACCESS_RULES = {"/hr/*": ["group:hr"], "*": ["everyone"]}``.

    rules = Rules.of({"/hr/*": ["group:hr"]})
    rules.number_of("http://wiki.example/hr/plan")     # 0: the first rule

The first rule that fits a URL decides; a URL that no rule fits is left to the other sources. ``*``
stands for any characters. ``/hr/*`` is a path on every host, ``wiki.example/hr/*`` on one host, and
``file:///srv/share/hr/*`` is a whole URL. Case does not matter, escapes are read, and ``/hr/*``
fits ``/hr``, too: a server may take all of these for the same page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from larmspider.access.lists import AccessList
from larmspider.access.rights import Document, Rights
from larmspider.errors import ConfigError

MAX_RULES = 1_000
MAX_PATTERN = 500
"""Characters."""
MAX_STARS = 8
_SLASHES = re.compile(r"[/\\]{2,}|\\")


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
    return ""


_PATH, _PLACE, _WHOLE = range(3)


def _subject(pattern: str) -> int:
    if "://" in pattern or pattern == "*":
        return _WHOLE
    return _PATH if pattern.startswith("/") else _PLACE


def _expression(pattern: str) -> re.Pattern[str]:
    text = pattern.casefold()
    if "://" not in text:
        text = _SLASHES.sub("/", text)
    end = ""
    if text.endswith("/*") and not text.endswith("//*"):
        text, end = text[:-2], "(?:/.*)?"
    first, *others = (re.escape(unquote(one)) for one in text.split("*"))
    if not others:
        return re.compile(first + end, re.DOTALL)  # a path may hold %0A
    # the first place of a text between two stars is enough; to try all takes minutes
    between = "".join(f"(?>.*?{one})" for one in others[:-1])
    return re.compile(f"{first}{between}.*{others[-1]}{end}", re.DOTALL)


def _subjects(url: str) -> tuple[list[str], list[str], list[str]]:
    """The texts for the patterns of each sort, with the query of the URL, and without."""
    parts = urlsplit(url)
    path = _SLASHES.sub("/", unquote(parts.path)).casefold() or "/"
    paths = [path, f"{path}?{unquote(parts.query).casefold()}"] if parts.query else [path]
    host = (parts.hostname or "").rstrip(".")
    scheme, port = parts.scheme.lower(), f":{parts.port}" if parts.port else ""
    places = [host + one for one in paths]
    whole = [f"{scheme}://{host}{port}{one}" for one in paths]
    return paths, [*places, *(host + port + one for one in paths)] if port else places, whole
