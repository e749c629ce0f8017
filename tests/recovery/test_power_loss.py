"""A machine that loses its power keeps the synced bytes, and the crawl continues from them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.index.version import open_index
from larmspider.pipelines.outbox.spool import FOLDER, Cursor
from tests.support.crawling import FAST, environment, records, scrapy
from tests.support.recovery.synced_only import SyncedOnly, compiler
from tests.support.servers.scripted import Reply, Request, ScriptedServer

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(compiler() is None, reason="no C compiler: cc, gcc or clang is needed"),
]

PAGES = 60
STORES = (
    "deleted_log.DeletedLogPipeline", "page_files.PageFilesPipeline",
    "link_log.LinkLogPipeline", "fetch_log.FetchLogPipeline",
    "search_index.SearchIndexPipeline", "outbox.dummy.DummyReceiver",
)  # fmt: skip
SETTINGS = FAST | {
    "LARM_CHECKPOINT_SECS": "0.1",
    "LARM_INDEX_HEAP_BYTES": "15000000",
    "LARM_PAGEFILE_BYTES": "40000",
    "DOWNLOAD_MAXSIZE": "40000",
    "LARM_DOCUMENT_MAXSIZE_BYTES": "40000",
    "LARM_BLOB_BYTES": "1000000",
    "ITEM_PIPELINES": json.dumps(
        {f"larmspider.pipelines.{name}": n for n, name in enumerate(STORES)}
    ),
}


def page(request: Request) -> Reply:
    time.sleep(0.01)
    number = int(request.path.strip("/p") or 0)
    links = "".join(f"<a href='/p{n}'>to {n}</a> " for n in range(number, number + 6) if n < PAGES)
    text = f"<title>Page {number}</title><p>{f'What page {number} says. ' * 40}{links}"
    if number % 20 == 7:
        text += "x" * 60_000  # a body that has a file of its own
    return Reply(200, {"Content-Type": "text/html"}, text.encode())


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer({"*": page, "/robots.txt": Reply(404)}) as server:
        yield server


def arguments(server: ScriptedServer) -> list[str]:
    given = [part for name, value in SETTINGS.items() for part in ("-s", f"{name}={value}")]
    return ["crawl", "intranet", "-a", f"start={server.url('/p0')}", *given, "-s", "LARM_DIR=crawl"]


def committed(crawl: Path) -> int:
    """Pages that the last checkpoint has."""
    try:
        with FrontierReader(crawl / "frontier") as reader:
            return reader.counts().stored
    except Exception:  # noqa: BLE001 - it is just being created
        return -1


MOMENTS: dict[str, Callable[[Path], bool]] = {
    "when crawl.json is written": lambda crawl: (crawl / "crawl.json").exists(),
    "when the frontier is made": lambda crawl: (crawl / "frontier" / "data.mdb").exists(),
    "after the first checkpoint": lambda crawl: committed(crawl) > 0,
    "in the middle": lambda crawl: committed(crawl) > PAGES // 2,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_power_loss_loses_nothing_that_was_committed(
    moment: str, server: ScriptedServer, tmp_path: Path
) -> None:
    kept, real, left = SyncedOnly(tmp_path / "kept"), tmp_path / "real", tmp_path / "left"
    real.mkdir()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", *arguments(server)],
            cwd=real,
            env=environment(real, "larmspider.settings") | kept.variables,
            stdout=log,
            stderr=log,
        )
        deadline = time.monotonic() + 60
        while not MOMENTS[moment](real / "crawl") and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL, (tmp_path / "log").read_text()
    kept.after_power_loss(real, left)
    before = max(0, committed(real / "crawl"))
    assert committed(left / "crawl") >= before or not before
    ran = scrapy(*arguments(server), cwd=left)
    assert ran.status == 0, ran.err
    assert "Traceback" not in ran.err
    crawl = left / "crawl"
    stored = [fields["url"] for fields in records(crawl / "store.log")]
    assert len(stored) == len(set(stored)) == PAGES
    index, _ = open_index(crawl / "index")
    assert index.searcher().num_docs == PAGES
    assert json.loads((crawl / "crawl.json").read_text())["end"] == "finished"
    if (crawl / FOLDER).exists():
        cursor = Cursor.read(crawl / FOLDER, "DummyReceiver")
        assert cursor is None or cursor.sent >= PAGES


def test_a_power_loss_behind_the_end_leaves_nothing_that_verify_names(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """Checksums are on the disk after a run, and after a command that changes the crawl."""
    kept, real = SyncedOnly(tmp_path / "kept"), tmp_path / "real"
    real.mkdir()
    remove = ["remove", "--yes", server.url("/p3"), "--dir", "crawl"]
    for number, command in enumerate((arguments(server), remove)):
        subprocess.run(
            [sys.executable, "-m", "scrapy", *command],
            cwd=real,
            env=environment(real, "larmspider.settings") | kept.variables,
            check=True,
            capture_output=True,
        )
        left = tmp_path / f"left{number}"
        kept.after_power_loss(real, left)
        ran = scrapy("verify", "--dir", "crawl", cwd=left)
        assert ran.out == f"{PAGES - number} stored pages: all is whole\n"
        assert ran.status == 0


def test_an_export_is_on_the_disk_when_the_command_has_ended(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """Else a power loss would leave neither the new file nor the one that it has replaced."""
    real, left = tmp_path / "real", tmp_path / "left"
    real.mkdir()
    assert scrapy(*arguments(server), cwd=real).status == 0
    kept = SyncedOnly(tmp_path / "kept")
    subprocess.run(
        [sys.executable, "-m", "scrapy", "export", "--dir", "crawl", "pages", "pages.csv"],
        cwd=real,
        env=environment(real, "larmspider.settings") | kept.variables,
        check=True,
        capture_output=True,
    )
    kept.after_power_loss(real, left)
    assert (left / "pages.csv").read_bytes() == (real / "pages.csv").read_bytes()
