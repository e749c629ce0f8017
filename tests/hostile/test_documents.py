"""Documents that are too deep, too long, or not what they say: read, and nothing waits for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.cases import DOCUMENTS
from tests.support.hostile.healthy import HEALTHY, is_complete
from tests.support.hostile.running import MORE_MB, crawl, differences
from tests.support.hostile.server import HostileServer

MAX_BLOCK_SECS = 1.0
"""Of CPU; 0.2 to 0.6, by the speed of the machine."""
MOST_BYTES, AT_ONCE = 16 << 20, 4


@pytest.mark.acceptance
def test_each_document_is_read_and_holds_up_nobody(tmp_path: Path, idle_mb: float) -> None:
    """Links and text of each; the event loop is never busy with one thing for long."""
    with HostileServer([HEALTHY, *DOCUMENTS]) as server:
        crawled = crawl(
            server.seeds(),
            tmp_path,
            DOWNLOAD_MAXSIZE=str(MOST_BYTES),
            DOWNLOAD_TIMEOUT="15",
            CONCURRENT_REQUESTS=str(AT_ONCE),
            LARM_LINK_LOG="all",  # each link of a document is counted here
            LARM_INDEX_HEAP_BYTES="16000000",  # its 64 MB would be most of the measured memory
        )
    assert not (wrong := differences(server, crawled.found)), wrong
    assert is_complete(server, crawled.found)
    assert crawled.longest_block_secs < MAX_BLOCK_SECS
    assert crawled.peak_mb < idle_mb + MORE_MB + (AT_ONCE * MOST_BYTES >> 20)
