"""A share of files is crawled, searched, kept current, and survives being unmounted."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.crawling import FAST, Ran, records, scrapy
from tests.support.servers.scripted import Reply, ScriptedServer

pytestmark = pytest.mark.acceptance


@pytest.fixture
def share(tmp_path: Path) -> Path:
    share = tmp_path / "share"
    (share / "plans" / "old").mkdir(parents=True)
    (share / "start.html").write_text(
        "<title>Start</title><p>harbour <a href='plans/budget.txt?x=1'>budget</a>"
        " <a href='file:///etc/passwd'>p</a>"
    )
    (share / "plans" / "budget.txt").write_text("the harbour budget")
    (share / "plans" / "old" / "list.csv").write_text("what,price\ncrane,300\n")
    (share / os.fsdecode(b"caf\xe9.txt")).write_text("harbour cafe")
    (share / "loop").symlink_to(".")
    (share / "out").symlink_to("/etc")
    os.mkfifo(share / "pipe")
    return share


def crawl(
    share: Path, *more: str, start: str = "", settings_module: str = "larmspider.settings"
) -> Ran:
    # addresses are denied, which does not concern files
    settings = FAST | {
        "LARM_FILE_ROOTS": str(share), "LARM_DENY_ADDRESSES": "0.0.0.0/0,::/0",
        "LARM_ALLOW_ADDRESSES": "127.0.0.0/8", "LARM_RETRY_TIMES": "0",
        "LARM_HOST_MAX_PARKS": "0",
    }  # fmt: skip
    words = [f"-s{name}={value}" for name, value in settings.items()]
    start = start or f"file://{share}"
    asked = ("crawl", "intranet", "-a", f"start={start}", *words, *more)
    return scrapy(*asked, cwd=share.parent, timeout=300, settings_module=settings_module)


def stored(share: Path) -> list[str]:
    begin = len(f"file://{share}/")
    lines = records(share.parent / "crawl" / "store.log")
    return sorted(line["url"][begin:] for line in lines if line["http-code"] == "200")


def found(share: Path, *words: str) -> list[str]:
    ran = scrapy("search", "--json", *words, cwd=share.parent)
    return sorted(Path(hit["url"]).name for hit in ran.json["hits"])


def test_all_files_of_a_share_are_found_and_nothing_else(share: Path) -> None:
    ran = crawl(share)
    assert ran.status == 0, ran.err
    files = ["caf%E9.txt", "plans/budget.txt", "plans/old/list.csv", "start.html"]
    assert stored(share) == sorted(["", "plans/", "plans/old/", *files])
    assert found(share, "harbour") == ["budget.txt", "caf%E9.txt", "start.html"]
    assert found(share, "crane") == ["list.csv"]

    (share / "plans" / "budget.txt").write_text("the harbour budget of next year")
    (share / "plans" / "new.txt").write_text("a new crane")
    (share / "start.html").unlink()
    ran = crawl(share, "-a", "refresh=all")
    assert "1 new, 1 missing (removed after" in ran.out, ran.out
    assert found(share, "next", "year") == ["budget.txt"]
    assert found(share, "crane") == ["list.csv", "new.txt"]

    away = share.with_name("away")
    share.rename(away)
    share.mkdir()
    ran = crawl(share, "-a", "refresh=all")
    assert "waits       a share or folder of file:// is away" in ran.out, ran.out
    assert "is the share mounted?" in (share.parent / "crawl" / "fetch.log").read_text()
    share.rmdir()
    crawl(share, "-a", "refresh=all")
    away.rename(share)
    assert found(share, "crane") == ["list.csv", "new.txt"]
    ran = crawl(share, "-a", "refresh=all")
    assert "missing" in ran.out, ran.out
    assert not re.search(r"\d removed\b", ran.out), ran.out
    assert found(share, "crane") == ["list.csv", "new.txt"]


def test_a_folder_that_is_away_costs_the_others_no_visit(share: Path) -> None:
    """The run does not wait for it, and removes nothing."""
    other = share.with_name("other")
    other.mkdir()
    for number in range(12):
        (other / f"{number}.txt").write_text("pier " + " ".join(f"{number}n{n}" for n in range(30)))
    both = ("-s", f"LARM_FILE_ROOTS={share},{other}", "-s", "LARM_HOST_MAX_PARKS=3")
    start = f"file://{share} file://{other}"
    assert crawl(share, *both, start=start).status == 0
    other.rename(share.with_name("away"))
    other.mkdir()
    ran = crawl(share, *both, "-a", "refresh=all", start=start)
    assert ran.status == 0, ran.err
    assert "13 failed, 9 as before" in ran.out, ran.out
    assert "0 known pages not visited" in ran.out, ran.out
    assert "waits       a share or folder of file:// is away" in ran.out, ran.out
    assert len(found(share, "pier")) == 10


def test_new_files_of_a_folder_that_is_away_do_not_hold_up_a_refresh(share: Path) -> None:
    """The seed of such a folder was never fetched. It is visited when the folder is back."""
    other = share.with_name("other")
    other.mkdir()
    more = ("-s", f"LARM_FILE_ROOTS={share},{other}", "-s", "LARM_HOST_MAX_PARKS=0")
    start = f"file://{other} file://{share}"
    ran = crawl(share, *more, start=start)
    assert len(found(share, "harbour")) > 1, ran.err
    ran = crawl(share, *more, "-a", "refresh=all", start=start)
    assert "0 known pages not visited" in ran.out, ran.out
    assert "given up" not in ran.out, ran.out
    assert "waits       a share or folder of file:// is away" in ran.out, ran.out
    (other / "back.txt").write_text("The pier is back.")
    ran = crawl(share, *more, "-a", "refresh=all", start=start)
    assert "back.txt" in found(share, "pier"), ran.out


def test_files_that_their_folder_names_no_more_are_visited_next(share: Path) -> None:
    """By runs with a budget of one visit a day; and all files of a folder that has left."""
    many = share / "plans" / "many"
    many.mkdir()
    for number in range(30):
        (many / f"{number}.txt").write_text(f"plan {number} of the harbour")
    gone = {f"{number}.txt" for number in (3, 14, 15)}

    def missing_on(day: float) -> set[str]:
        name = f"ahead{day}".replace(".", "_")
        (share.parent / f"{name}.py").write_text(
            "import time\nfrom larmspider.settings import *\n"
            f"def FRONTIER_CLOCK(): return time.time() + {day * 86_400}\n"
        )
        more = ("-arefresh=due", "-sLARM_REFRESH_PER_DAY=1")
        before = len(list(records(share.parent / "crawl" / "fetch.log")))
        ran = crawl(share, *more, settings_module=name)
        assert ran.status == 0, ran.err
        lines = list(records(share.parent / "crawl" / "fetch.log"))[before:]
        return {Path(line["url"]).name for line in lines if "missing" in line["message"]}

    crawl(share)
    for name in gone:
        (many / name).unlink()
    assert missing_on(1) == gone
    many.rename(share.parent / "away")
    for day in (2.1, 3.2):
        missing_on(day)
    assert gone <= {Path(one["url"]).name for one in records(share.parent / "crawl/deleted.log")}
    assert len(missing_on(4.3)) > 10, "the folder has left by now"


def test_a_rejected_link_of_a_listing_is_counted_once(share: Path) -> None:
    """Though the rows of a listing are read for their times, too."""
    within = f"file://{share}(/|/start.html)?$"
    ran = crawl(share, "-sLARM_SITEMAPS=yes", f"-arestrict={within}")
    assert ran.status == 0, ran.err
    assert "rejected    4 links (scope 4)" in ran.out, ran.out


def test_no_page_of_the_web_chooses_a_file(share: Path) -> None:
    """A link, a frame, a redirect, a sitemap; also where the scope is wide and a root is there."""
    secret = f"file://{share}/plans/budget.txt"
    page = f"<a href={secret}>a</a><iframe src={secret}></iframe><a href=/moved>m</a>"
    urls = f"<urlset><url><loc>{secret}</loc></url></urlset>"
    routes = {
        "/": page, "/robots.txt": Reply(404), "/moved": Reply(302, {"Location": secret}),
        "/sitemap.xml": Reply(200, {"Content-Type": "application/xml"}, urls.encode()),
    }  # fmt: skip
    with ScriptedServer(routes) as server:
        ran = crawl(share, "-sLARM_SITEMAPS=yes", "-arestrict=.*", start=server.url("/"))
        assert ran.status == 0, ran.err
        assert {"/sitemap.xml", "/moved"} <= {one.path for one in server.log}
    urls_stored = {line["url"] for line in records(share.parent / "crawl" / "store.log")}
    assert not [url for url in urls_stored if url.startswith("file:")]
    assert "normalize" in ran.out, ran.out


@pytest.mark.parametrize("start", ["file:///etc/", "file:///", "file://nas/share/"])
def test_a_seed_outside_of_the_roots_is_one_line(share: Path, start: str) -> None:
    ran = crawl(share, start=start)
    assert ran.status == 2
    assert "Traceback" not in ran.err
    said = ran.err.strip().splitlines()[-1]
    assert said.startswith("scrapy crawl: start")
    assert "file:///srv/share/" in said or "LARM_FILE_ROOTS" in said
    assert not (share.parent / "crawl" / "store.log").exists()
