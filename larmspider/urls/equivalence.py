"""Guesses: spellings that usually, but not always, mean one page, such as /FAQ.html and /faq.html.

    rules = EquivalenceRules([("old-iis*", {"path-case": "always"})])
    rules.of("wiki.example")          # Masks(normalized=31, merged=0): every rule has to be proven

========= ======================================================================
always    merged unseen, as LARM does: one of the two is never fetched
proven    merged if equal pages of the host have proved that they are the same
never     two URLs, and the canonical form keeps them apart, too
========= ======================================================================

URLs that the standards call equal are not guesses, and are always merged (canonical.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from larmspider.errors import ConfigError
from larmspider.urls.host_pattern import host_matcher

PATH_CASE, FOLDER_FILE, DOUBLE_SLASH, SESSION_ID, BARE_PERCENT = 1, 2, 4, 8, 16
RULES: Mapping[str, int] = {
    "path-case": PATH_CASE,
    "folder-file": FOLDER_FILE,
    "double-slash": DOUBLE_SLASH,
    "session-id": SESSION_ID,
    "bare-percent": BARE_PERCENT,
}
"""The bit of each rule, by its name. The numbers are on disk."""
ALWAYS, PROVEN, NEVER = "always", "proven", "never"
MODES = (PROVEN, ALWAYS, NEVER)

_HOST_PATTERN = re.compile(r"[!-~]+")
_ACCEPTED = (
    f"expected {', '.join(MODES[:-1])} or {MODES[-1]}, or a mapping from host patterns to one of"
    f" these, or to a mapping of it by rule ({', '.join(RULES)}); JSON on the command line, such as"
    ' {"old-iis*": {"path-case": "always"}, "*": "proven"}'
)


class Masks(NamedTuple):
    """The rules that make a host's canonical form, and the rules that merge URLs unseen."""

    normalized: int
    merged: int


def names_of(mask: int) -> Iterator[str]:
    """The names of the rules in a mask."""
    return (name for name, bit in RULES.items() if mask & bit)


class EquivalenceRules:
    """``modes``: host patterns, each with the modes of some rules by name. For each rule the first
    matching pattern that sets it counts. A rule that no pattern sets is proven. Raises
    ConfigError."""

    def __init__(self, modes: Sequence[tuple[str, Mapping[str, str]]] = ()) -> None:
        for pattern, by_rule in modes:
            if not _HOST_PATTERN.fullmatch(pattern):
                raise ConfigError(
                    f"host pattern {pattern!r}: expected a host name, or a shell pattern of them in"
                    " ASCII (punycode), such as *.case.example"
                )
            for rule, mode in by_rule.items():
                if rule not in RULES or mode not in MODES:
                    raise ConfigError(f"{rule}={mode} for the hosts {pattern!r}: {_ACCEPTED}")
        self.modes = tuple(modes)
        self.one_for_all = all(pattern == "*" for pattern, _ in modes)
        """Whether no host has rules of its own."""
        self.of = lru_cache(maxsize=16_384)(self._of)

    @classmethod
    def parse(cls, value: Any) -> list[tuple[str, Mapping[str, str]]]:
        """The modes in a setting. Raises ConfigError, without the setting's name."""
        if isinstance(value, str) and value.strip().startswith("{"):
            try:
                value = json.loads(value)
            except ValueError:
                raise ConfigError(_ACCEPTED) from None
        if isinstance(value, str):
            value = {"*": value}
        if not isinstance(value, Mapping):
            raise ConfigError(_ACCEPTED)
        found: list[tuple[str, Mapping[str, str]]] = []
        for pattern, modes in value.items():
            by_rule = dict.fromkeys(RULES, modes) if isinstance(modes, str) else modes
            if not isinstance(by_rule, Mapping) or not by_rule:
                raise ConfigError(_ACCEPTED)
            found.append((str(pattern), by_rule))
        cls(found)
        return found

    def _of(self, netloc: str) -> Masks:
        """The masks of a host, ``wiki`` or ``wiki:8080``."""
        host = netloc
        if (colon := netloc.rfind(":")) > netloc.rfind("]"):
            host = netloc[:colon]
        modes = dict.fromkeys(RULES, "")
        for pattern, by_rule in self.modes:
            matches = host_matcher(pattern)
            if matches(host) or matches(netloc):
                modes.update((rule, mode) for rule, mode in by_rule.items() if not modes[rule])
        return Masks(
            normalized=sum(bit for rule, bit in RULES.items() if modes[rule] != NEVER),
            merged=sum(bit for rule, bit in RULES.items() if modes[rule] == ALWAYS),
        )
