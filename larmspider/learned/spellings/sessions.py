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

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from larmspider.urls.session_ids import tokens_of, without

PAGES = 3
"""Pages with a new value each that make a parameter a session id."""
LINKS = 3
"""Links of such a page that differ beside the parameter."""
MAX_NAMES = 500
"""Names of a host that are looked at: a token in the path is named by the segments before it."""


class SessionNames(msgspec.Struct, array_like=True):
    """The session ids that the pages of one host have shown in this run. New fields go to the end,
    with a default. ``values`` by the name of the parameter; ``refuted``: names with nothing left to
    learn."""

    values: dict[str, set[str]] = {}
    refuted: set[str] = set()

    def open_in(self, url: str) -> dict[str, str]:
        """The tokens of a URL that may still teach something."""
        if len(self.refuted) + len(self.values) >= MAX_NAMES:
            return {name: one for name, one in tokens_of(url).items() if name in self.values}
        return {name: one for name, one in tokens_of(url).items() if name not in self.refuted}

    def saw(self, url: str, links: Iterable[str]) -> list[str]:
        """Learn from a page and its links to its host. Returns the names of parameters that it has
        shown to be session ids. A page without tokens shows nothing."""
        own = self.open_in(url)
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
                    self.refuted.add(name)
                    self.values.pop(name, None)
                continue
            ((value, rests),) = values.items()
            if len(rests) >= LINKS:
                known = self.values.setdefault(name, set())
                known.add(value)
                if len(known) >= PAGES:
                    self.refuted.add(name)  # nothing is left to learn
                    del self.values[name]
                    learned.append(name)
        return learned
