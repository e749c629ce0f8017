"""Facts that an index of pages needs beside the fields of a page in the spool (spool.py).

facts = IndexFacts.of_run(settings)
facts.page(page)        # {"given": [["http://wiki.example/", "Wiki"]], "core": "", ...}
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self

from larmspider.extraction.texts.language import in_languages, languages_in
from larmspider.index.link_access import LinkAccess
from larmspider.items import Page, Part, Removed
from larmspider.pipelines.reextract import is_for_readers
from larmspider.workdir.restricted import restricted_of_run

if TYPE_CHECKING:
    from larmspider.options import Settings

FIELDS = ("canonical", "rest", "contents", "sections", "core")
PART_FIELDS = tuple(Part.__slots__)


class IndexFacts:
    """Makes the facts for receivers that are indexes, by the settings of a run: readers find no
    page in another language, and no page of a restricted host gives link texts to other hosts."""

    def __init__(self, languages: Collection[str] = (), restricted: Collection[str] = ()) -> None:
        self._languages, self._access = languages, LinkAccess(restricted)

    @classmethod
    def of_run(cls, settings: Settings) -> Self:
        """Raises ConfigError, CrawlDirError."""
        return cls(languages_in(settings, "LARM_INDEX_LANGUAGES"), restricted_of_run(settings))

    def page(self, page: Page) -> dict[str, Any]:
        """The facts of a page. ``given``: the link texts that the page gives (`LinkAccess.given`).
        If readers can find the page, FIELDS and ``parts`` are there, too."""
        given = self._access.given(page)
        shown = in_languages(page, self._languages)
        if shown is None or not is_for_readers(shown):
            return {"given": given}
        parts = [[getattr(part, name) for name in PART_FIELDS] for part in shown.parts]
        fields = {name: getattr(shown, name) for name in FIELDS}
        return {"given": given, "parts": parts, **fields}

    def successor(self, removed: Removed) -> str:
        """The exact form of the URL that gets the texts of links to a removed page; "" for none."""
        new = removed.successor
        return new if new and self._access.moves(removed.exact, new) else ""
