"""Speaks to the control of a crawl that runs, by the Unix socket in its directory."""

from __future__ import annotations

from pathlib import Path

from larmspider.control.controller import RemoteController
from larmspider.workdir.directory import worker_dirs


async def tell(directory: Path, act: str) -> None:
    """Send `pause` or `resume`. Raises HttpError if the crawl cannot be reached."""
    directories = worker_dirs(directory) or [directory]
    await RemoteController(lambda: directories).act(act, {}, "server")
