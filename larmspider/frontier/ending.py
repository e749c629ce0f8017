"""How the lease of a page ends, where the stores alone do not decide it.

    lease.ending = LookAgain(2.0)

The component that reads the response sets it; middlewares/acknowledge.py ends the lease by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larmspider.frontier.storage.records import FetchRecord, MergedUrl
    from larmspider.items import Page


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The crawl stops: the URL goes back to its queue."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    """The page is fetched once more, ``seconds`` later."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Merge:
    """Another URL has the same ``page``, which is not stored. ``merged``: its URL from now on."""

    page: Page
    message: str
    merged: MergedUrl


@dataclass(frozen=True, slots=True)
class Revisited:
    """The record that the URL gets once every store has the page; None: the page is removed, and
    its URL is forgotten."""

    record: FetchRecord | None


Ending = GiveBack | LookAgain | Merge | Revisited


@dataclass(slots=True)
class Output:
    """The items that a spider made of one response: the number not yet through the stores, and the
    end of the worst of the others."""

    items: int = 0
    complete: bool = False
    worst: FetchRecord | None = None
