"""Where a crawl is served and its token, noted in its directory, for its own user alone to read."""

from __future__ import annotations

import json
from pathlib import Path

from larmspider.web.token import write_private

SERVER_FILE = "web.json"


def note_server(directory: Path, url: str, token: str) -> None:
    """Say where the crawl in ``directory`` is served. Raises OSError."""
    write_private(directory / SERVER_FILE, json.dumps({"url": url, "token": token}))


def noted_server(directory: Path) -> tuple[str, str] | None:
    """Address and token; None where there is no such note, or not for this user."""
    try:
        found = json.loads((directory / SERVER_FILE).read_text("utf-8"))
        url, token = found["url"], found["token"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(url, str) or not isinstance(token, str) or not url.startswith("http://"):
        return None
    return url, token
