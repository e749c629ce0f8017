"""The link texts of a crawl's pages for OpenSearch: an `AnchorTable` in the outbox.

`scrapy outbox --fill` may write it beside a crawl, so each process opens it for one batch::

    with open_links(crawl / "outbox" / "links") as table: ...
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from larmspider.files import make_folder
from larmspider.index.anchors import AnchorTable


@contextmanager
def open_links(folder: Path) -> Iterator[AnchorTable]:
    """The table in ``folder``, alone; waits for another process. Raises CrawlDirError, OSError."""
    make_folder(folder)
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        table = AnchorTable(folder / "anchors")
        try:
            yield table
        finally:
            table.close()
