"""The crawl that runs, as the pages see it: what it can tell beyond its directory, and do.

local.py is the crawl of this process; remote.py one of another process, through its own server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from larmspider.status.numbers import Numbers


class Live(Protocol):
    """Called on the event loop."""

    async def numbers(self) -> Numbers | None:
        """The crawl now; None where it cannot be reached."""
        ...

    async def act(self, name: str, form: Mapping[str, str], who: str) -> str:
        """Do one of acts.ACTS and say what was done. Raises Refused."""
        ...
