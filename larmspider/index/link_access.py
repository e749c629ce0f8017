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

EVERY_HOST = "*"


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


def covered(restricted: Collection[str], noted: Collection[str] | None) -> bool:
    """Whether all of these hosts were restricted when link texts were taken in, by the index's
    ``noted``. None: nothing was noted yet; only files are certain to be restricted."""
    known = {FILES} if noted is None else {*noted}
    return EVERY_HOST in known or known.issuperset(restricted)
