"""Decides which link texts may be indexed: texts on pages that everybody may see.

A page with an access list (access/table.py) gives texts only to pages that the same rule fits: the
lists of two other pages may be changed apart. A restricted page gives texts only to restricted
pages of its own host: readers who find these may see that page, too::

    access = LinkAccess(("*.hr.example",))
    access.hides("http://pay.hr.example/a")                               # True
    access.keeps("http://pay.hr.example/a", "http://pay.hr.example/b")    # True
    access.keeps("http://pay.hr.example/a", "http://wiki.example/")       # False

An index records the restricted hosts for which this holds of all its link texts (version.py). If
more hosts have become restricted since, a search without full access leaves out all link texts,
until `IndexWriter.withdraw_link_texts` has removed the texts of these hosts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from larmspider.access.table import AccessTable
from larmspider.index.access import Access, place_of
from larmspider.index.schema import FILES
from larmspider.items import Page

EVERY_HOST = "*"
_IN_CRAWL = frozenset({None, "visited", "nofollow", "depth", "language"})
"""Verdicts on links whose targets may be in the index."""


class LinkAccess:
    """Link access with patterns of ``restricted`` hosts; files are always restricted. ``table`` has
    the access lists, None: there are none."""

    def __init__(self, restricted: Iterable[str] = (), table: AccessTable | None = None) -> None:
        self.restricted = tuple(sorted({*restricted, FILES}))
        self._access = Access(self.restricted)
        self.table = table

    def hides(self, url: str, name: str = "") -> bool:
        """Whether a page is restricted, ``name`` by exact form, if that is another text."""
        return not self._access.page(url) or self.slot_of(name or url) is not None

    def keeps(self, here: str, target: str) -> bool:
        """Whether a page that is hidden, ``here`` by exact form, gives a text to ``target``."""
        slot = self.slot_of(here)
        if slot is None:
            return self.hides(target) and place_of(target) == place_of(here)
        by_rule = self.table is not None and self.table.is_by_rule(slot)
        if not by_rule or slot != self.slot_of(target):
            return False
        return self._access.page(here) or place_of(target) == place_of(here)

    def slot_of(self, name: str) -> int | None:
        return None if self.table is None else self.table.slot_of(name)

    def given(self, page: Page) -> list[tuple[str, str]]:
        """The texts that a page gives to other pages: (exact target, text)."""
        here = page.name
        secret = self.hides(page.url, here)
        return [
            (name, link.anchor)
            for link in page.links
            if link.anchor
            and (name := link.exact or link.normalized) is not None
            and name != here
            and link.rejected_by in _IN_CRAWL
            and not (secret and self._leaves(here, name, link.url))
        ]

    def _leaves(self, here: str, name: str, url: str) -> bool:
        """Whether a link of a page that not everybody may see leads to readers of other pages."""
        return not (self.hides(url, name) and self.keeps(here, name))

    def moves(self, old: str, new: str) -> bool:
        """Whether a URL that has moved gives the texts of its links to the new one."""
        return self.keeps(old, new) or not (self.hides(old) or self.hides(new))


def covered(restricted: Collection[str], noted: Collection[str] | None) -> bool:
    """Whether all of these hosts were restricted when the index's link texts were collected.
    ``noted``: the hosts that the index lists as restricted. If it is None, only files are certain
    to be restricted."""
    known = {FILES} if noted is None else {*noted}
    return EVERY_HOST in known or known.issuperset(restricted)
