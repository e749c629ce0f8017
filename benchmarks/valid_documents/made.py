"""A valid file with the text that it is known to show."""

from __future__ import annotations

from typing import NamedTuple


class Made(NamedTuple):
    """``format``: a row of the table; ``said``: the Content-Type of a server, "" for none."""

    format: str
    name: str
    body: bytes
    text: str
    said: str = ""
