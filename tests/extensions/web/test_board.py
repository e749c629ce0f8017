"""What is computed once for all who look: how old it may be."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import pytest

from larmspider.crawl_files import LOCK
from larmspider.extensions.web.board import CURVES_SECS, Board
from larmspider.extensions.web.kept import Kept
from tests.extensions.web.serving import Served


@pytest.mark.parametrize("wait", [True, False], ids=["waits", "is given the old one first"])
def test_a_forecast_is_not_of_older_hosts_than_itself(
    demo_crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: bool
) -> None:
    """A crawl that runs: its first checkpoint shows as soon as the forecast is due again."""
    crawl, now = tmp_path / "crawl", [0.0]
    shutil.copytree(demo_crawl, crawl)
    source = Served(crawl).source
    board = Board(source)
    for one in (*vars(source).values(), *vars(board).values()):
        if isinstance(one, Kept):
            monkeypatch.setattr(one, "_clock", lambda: now[0])
    with (crawl / LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with monkeypatch.context() as before:
            before.setattr(source._hosts, "_make", dict)
            assert board.status(None).forecast.reasons == ["The first checkpoint is not taken yet."]
        now[0] = CURVES_SECS
        board.status(None, wait=wait)
        with board._forecast._making:
            found = board.status(None, wait=wait)
        assert found.forecast.reasons == ["Nothing is queued that this run would fetch."]
