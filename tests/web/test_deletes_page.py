"""/deletes: what waits is shown, and approved as it was shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from larmspider.control.deletes import approved_in
from larmspider.crawl.reader import CrawlDir
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import host_of
from larmspider.learned.deletes.notes import HostDeletes, Waiting, note_of
from tests.support.web.serving import TOKEN, Got, Served, request


def wait_for(crawl: Path, host: str, pages: int) -> None:
    """Let ``pages`` pages of a host wait for approval."""
    backend = LmdbBackend(crawl / "frontier")
    backend.recover()
    why = "20 pages of this host left within 7 days, limit 20"
    waiting = {
        bytes([number]) * 16: Waiting(f"http://{host}/<b>{number}", "missing", "3 times", 1e9, why)
        for number in range(pages)
    }
    backend.put_note(note_of(host), HostDeletes(waiting=waiting).pack())
    backend.checkpoint({})
    backend.close()


def test_a_list_is_shown_and_approved_as_it_was_shown(
    demo_crawl: Path, served: Callable[..., Served], tmp_path: Path
) -> None:
    """Text from the web is escaped; approval needs the token and the current list."""
    crawl = tmp_path / "crawl"
    shutil.copytree(demo_crawl, crawl)
    host = host_of(CrawlDir(crawl).seeds[0])
    site = served(crawl)
    assert "Nothing pending." in site.get("/deletes").text
    wait_for(crawl, host, 30)
    signed = {"Authorization": f"Bearer {TOKEN}"}

    def approve(shown: str, headers: dict[str, str] = signed) -> Got:
        form = {"name": host, "shown": shown}
        return request(f"{site.url}/control/approve-deletes", "POST", headers, form)

    page = request(f"{site.url}/deletes", headers=signed).text
    assert f"{host}: 30 pages" in page
    assert "&lt;b&gt;1" in page
    assert "<b>1" not in page
    shown = page.partition('name="shown" value="')[2].partition('"')[0]
    assert approve(shown, {}).status == 401
    wait_for(crawl, host, 31)
    changed = approve(shown)
    assert changed.status == 409
    assert "has changed since it was shown" in json.loads(changed.body)["error"]
    assert approved_in(crawl) == {}
    page = request(f"{site.url}/deletes", headers=signed).text
    done = approve(page.partition('name="shown" value="')[2].partition('"')[0])
    assert json.loads(done.body)["done"].startswith("31 pages of")
    assert len(approved_in(crawl)[host]) == 31
