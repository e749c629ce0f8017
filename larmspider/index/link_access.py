"""Decides which link texts may be indexed: texts on pages that everybody may see.

A restricted page gives texts only to restricted pages of its own host: readers who find these may
see that page, too::

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

from larmspider.index.access import Access, place_of
from larmspider.index.schema import FILES
from larmspider.items import Page

EVERY_HOST = "*"
_IN_CRAWL = frozenset({None, "visited", "nofollow", "depth", "language"})
"""Verdicts on links whose targets may be in the index."""


class LinkAccess:
    """Link access with patterns of ``restricted`` hosts; files are always restricted."""

    def __init__(self, restricted: Iterable[str] = ()) -> None:
        self.restricted = tuple(sorted({*restricted, FILES}))
        self._access = Access(self.restricted)

    def hides(self, url: str) -> bool:
        """Whether a page is restricted."""
        return not self._access.page(url)

    def keeps(self, here: str, target: str) -> bool:
        """Whether a page that is hidden, ``here`` by exact form, gives a text to ``target``."""
        return self.hides(target) and place_of(target) == place_of(here)

    def given(self, page: Page) -> list[tuple[str, str]]:
        """The texts that a page gives to other pages: (exact target, text)."""
        here = page.name
        secret = self.hides(page.url)
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
        return not (self.hides(url) and self.keeps(here, name))

    def moves(self, old: str, new: str) -> bool:
        """Whether a URL that has moved gives the texts of its links to the new one."""
        return self.keeps(old, new) or not (self.hides(old) or self.hides(new))


def covered(restricted: Collection[str], noted: Collection[str] | None) -> bool:
    """Whether all of these hosts were restricted when link texts were taken in, by the index's
    ``noted``. None: nothing was noted yet; only files are certain to be restricted."""
    known = {FILES} if noted is None else {*noted}
    return EVERY_HOST in known or known.issuperset(restricted)
