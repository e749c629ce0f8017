"""Parameters that name a session on one host, whatever their name: learned from links.

    learner = SessionNames()
    learner.saw("http://shop/item?n=1&trk=9f86d081884c7d65", page_links)    # []
    ...                                                                     # ["trk"], at the third

A page whose URL has ``trk=9f86d081884c7d65`` and whose links all have ``trk=2c26b46b68ffc68f`` was
given a new session. PAGES such pages with different values make the name a session id for the rule
``session-id`` (urls/equivalence.py): whether it means nothing is then proven by pairs, as usual. A
commit that a repository browser shows stays the same from the page to its links.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable

PAGES = 3
"""Pages with a new value each that make a parameter a session id."""
LINKS = 3
"""Links of such a page that differ beside the parameter."""
_TOKEN = re.compile(r"(?:\A|[&;])([^=&;]+)=((?=[^&;]*[0-9])[0-9A-Za-z_-]{12,})(?=[&;]|\Z)")
_SEGMENT = re.compile(r"/\(([A-Z])\(([0-9A-Za-z_-]{12,})\)\)(?=[/?]|\Z)")
IN_PATH = "path"
"""Name of a parameter that is a segment of the path: ``/(S(lit3py55t21z5v55vlm25s55))/``."""
_BARE_SEGMENT = re.compile(
    r"/(?=[^/;]*[0-9])(?=[^/;]*[A-Za-z])([0-9A-Za-z]{16,})(?=/)"  # no slug: these have hyphens
)
BARE_IN_PATH = "segment"
"""Name of a parameter that is a whole segment, but the last one: ``/9f86d081884c7d65/item``."""
_IN_SEGMENT = re.compile(r"(;[^=;/]+)=((?=[^;/]*[0-9])[0-9A-Za-z_-]{12,})(?=[;/]|\Z)")
"""A parameter behind a segment; its name begins with the semicolon: ``/item;trk=9f86d081884c``."""


def tokens_of(url: str) -> dict[str, str]:
    """The parameters of a URL whose values look as if drawn at random, by name."""
    path, _, query = url.partition("#")[0].partition("?")
    found = dict(_TOKEN.findall(query)) if query else {}
    if "(" in path and (segment := _SEGMENT.search(path)) is not None:
        found[IN_PATH] = segment[2]
    if (segment := _BARE_SEGMENT.search(path)) is not None:
        found[BARE_IN_PATH] = segment[1]
    if ";" in path:
        found |= _IN_SEGMENT.findall(path)
    return found


def without(url: str, names: Collection[str]) -> str:
    """A URL less the parameters of these names."""
    head, mark, query = url.partition("?")
    if IN_PATH in names:
        head = _SEGMENT.sub("", head)
    if BARE_IN_PATH in names:
        head = _BARE_SEGMENT.sub("", head, count=1)
    if ";" in head:
        first, *parts = re.split("(;[^=;/]+=[^;/]*)", head)
        head = first + "".join(one for one in parts if one.partition("=")[0] not in names)
    if not mark:
        return head
    kept = [one for one in re.split("[&;]", query) if one.partition("=")[0] not in names]
    return f"{head}?{'&'.join(kept)}" if kept else head


class SessionNames:
    """The session ids that the pages of one host have shown in this run."""

    def __init__(self) -> None:
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        self._refuted: set[str] = set()

    def saw(self, url: str, links: Iterable[str]) -> list[str]:
        """A page, and where it leads on its host: the names of the parameters that it has shown to
        be session ids. A page without such a parameter shows nothing."""
        own = {name: one for name, one in tokens_of(url).items() if name not in self._refuted}
        if not own:
            return []
        learned: list[str] = []
        found: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in own}
        for link in links:
            for name, value in tokens_of(link).items():
                if name in own:
                    found[name][value].add(without(link, own))
        for name, values in found.items():
            if len(values) != 1 or own[name] in values:
                if values:
                    self._refuted.add(name)
                continue
            ((value, rests),) = values.items()
            if len(rests) >= LINKS:
                self._values[name].add(value)
                if len(self._values[name]) >= PAGES:
                    self._refuted.add(name)  # nothing is left to learn
                    learned.append(name)
        return learned
