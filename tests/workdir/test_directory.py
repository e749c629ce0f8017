"""larmspider/workdir/directory.py: one directory, one crawl."""

from __future__ import annotations

import fcntl
import fnmatch
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, Self

import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from larmspider import settings as ours
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.items import Page
from larmspider.options import check_names, check_writable, larm_dir, writable_dir
from larmspider.pipelines.pushed import PushedPipeline
from larmspider.pipelines.store import Store
from larmspider.workdir import directory as locks
from larmspider.workdir import worker_name
from larmspider.workdir.directory import CrawlDirectory, asked_fresh, locked
from larmspider.workdir.manifest import REJUDGE, files_of_others, files_of_stores

CrawlerFor = Callable[..., Crawler]
OURS: dict[str, Any] = {
    name: getattr(ours, name) for name in ("ITEM_PIPELINES", "SPIDER_MIDDLEWARES", "SCHEDULER")
}
"""Our components but the extensions, beside which ``crawler_for`` has Scrapy's alone."""


def claimed(crawler_for: CrawlerFor, **settings: object) -> CrawlDirectory:
    directory = CrawlDirectory.from_crawler(crawler_for(**settings))
    directory.check()
    directory.claim()
    return directory


def test_describes_the_crawl(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """Seeds and settings at the start, the reason at the end."""
    directory = claimed(crawler_for, LARM_RESTRICT="http://h/.*", LARM_KNOWN_PATHS_FILE="known.txt")
    described = json.loads((tmp_path / "crawl" / "crawl.json").read_text())
    assert described["seeds"] == ["http://h/"]
    assert described["settings"]["LARM_RESTRICT"] == "http://h/.*"
    assert described["settings"]["LARM_KNOWN_PATHS_FILE"] == str(Path.cwd() / "known.txt")
    assert "end" not in described
    directory.finish("finished")
    assert json.loads((tmp_path / "crawl" / "crawl.json").read_text())["end"] == "finished"


def test_rules_are_kept_with_the_crawl(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """A continued crawl keeps its new rules in place of the earlier ones, or none."""
    rules, copy = tmp_path / "known.txt", tmp_path / "crawl" / "rules" / "known_paths.txt"
    for content in (b"url /\xff\r\n", b"url /b\n"):
        rules.write_bytes(content)
        settings = {"LARM_KNOWN_PATHS_FILE": str(rules), "LARM_RESUME": "anyway"}
        claimed(crawler_for, **settings).finish("shutdown")
        assert copy.read_bytes() == content
    claimed(crawler_for, LARM_RESUME="anyway").finish("shutdown")
    assert not copy.exists()


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("LARM_MAX_PAGES", "5", 5),
        ("LARM_BACKOFF_SECS", "5", 5.0),
        ("DOWNLOAD_TIMEOUT", "0.5", 0.5),
        ("LARM_LOWERCASE_PATH", "no", False),
        ("ROBOTSTXT_OBEY", "1", True),
        ("LARM_SESSION_IDS", "sid, token", ["sid", "token"]),
        ("LARM_HOST_RULES", '{"h": {"delay": 1}}', {"h": {"delay": 1}}),
        ("LARM_MAX_PAGES", "many", "many"),
    ],
)
def test_settings_have_their_types(
    crawler_for: CrawlerFor, tmp_path: Path, name: str, given: str, told: object
) -> None:
    """As on a command line, where all is text; spelled otherwise it is the same crawl."""
    claimed(crawler_for, **{name: given}).finish("shutdown")
    described = json.loads((tmp_path / "crawl" / "crawl.json").read_text())
    assert described["settings"][name] == told
    assert type(described["settings"][name]) is type(told)
    claimed(crawler_for, **{name: told}).finish("finished")


def test_a_directory_in_use_is_refused(crawler_for: CrawlerFor) -> None:
    """Two crawls never write into one directory, not even with fresh=yes."""
    running = claimed(crawler_for)
    with pytest.raises(CrawlDirError, match="is in use"):
        claimed(crawler_for, LARM_FRESH="yes")
    running.finish("finished")


def test_the_same_crawl_goes_on(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """The same seeds, scope and filters: its files stay, and it began when it began."""
    claimed(crawler_for).finish("shutdown")
    (tmp_path / "crawl" / "store.log").write_text("x\n")
    path = tmp_path / "crawl" / "crawl.json"
    described = json.loads(path.read_text()) | {"began": "2026-01-01T00:00:00Z"}
    path.write_text(json.dumps(described))
    directory = claimed(crawler_for, DOWNLOAD_DELAY=9)
    assert directory.resumed
    directory.finish("finished")
    assert json.loads(path.read_text())["began"] == "2026-01-01T00:00:00Z"
    assert (tmp_path / "crawl" / "store.log").read_text() == "x\n"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"LARM_RESTRICT": "http://h/a.*"}, "LARM_RESTRICT"),
        ({"LARM_LOWERCASE_PATH": False}, "LARM_LOWERCASE_PATH"),
        ({"SPIDER_MIDDLEWARES": {"larmspider.middlewares.traps.TrapsFilter": 5}}, "filters"),
    ],
)
def test_another_crawl_is_refused_with_what_differs(
    crawler_for: CrawlerFor, settings: dict[str, object], named: str
) -> None:
    """It names what was and what is now, and both ways out; told to, it goes on."""
    claimed(crawler_for).finish("shutdown")
    with pytest.raises(CrawlDirError, match=f"other {named}: .* then, .* now.*resume=anyway"):
        claimed(crawler_for, **settings)
    directory = claimed(crawler_for, LARM_RESUME="anyway", **settings)
    assert directory.resumed
    directory.finish("finished")


def test_an_import_does_not_go_on_with_another_crawl(crawler_for: CrawlerFor) -> None:
    """It takes no resume=anyway, so that is no way out."""
    claimed(crawler_for).finish("shutdown")
    crawler = crawler_for(LARM_RESTRICT="http://h/a.*")
    crawler.spider.may_resume = False
    with pytest.raises(CrawlDirError, match=r"now; -a fresh=yes starts over, -s LARM_DIR"):
        CrawlDirectory.from_crawler(crawler).check()


@pytest.mark.parametrize("name", ["nowhere.Store", "larmspider.items.Nothing", "Store"])
def test_a_store_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^ITEM_PIPELINES: .*(nowhere|Nothing|Store)"):
        files_of_stores(Settings({"ITEM_PIPELINES": {name: 600}}))


def test_links_are_to_be_judged_again_until_they_were(
    crawler_for: CrawlerFor, tmp_path: Path
) -> None:
    """Also after a kill in between; not where nothing has changed."""
    claimed(crawler_for).finish("shutdown")
    other = {"LARM_RESTRICT": "http://h/a.*"}
    directory = claimed(crawler_for, LARM_RESUME="anyway", **other)
    assert directory.rejudge
    directory.release()  # killed
    directory = claimed(crawler_for, **other)
    assert directory.rejudge
    directory.note_rejudge(needed=False)
    directory.release()
    directory = claimed(crawler_for, **other)
    assert not directory.rejudge
    directory.finish("finished")
    assert REJUDGE not in json.loads((tmp_path / "crawl" / "crawl.json").read_text())


def test_errors_are_no_stored_pages(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """fresh=yes may delete them."""
    claimed(crawler_for).finish("finished")
    fields = ["", "http://h/", "http://h/", "0", "404", "text/html", "9", "Not found", "0", "0"]
    log = tmp_path / "crawl" / "store.log"
    log.write_text("\t".join(fields) + "\n")
    claimed(crawler_for, LARM_FRESH="yes").finish("finished")
    fields[4] = "200"
    log.write_text("\t".join(fields) + "\n")
    with pytest.raises(CrawlDirError, match="holds 1 stored page: -a fresh=force"):
        claimed(crawler_for, LARM_FRESH="yes")


def older_paths(identity: dict[str, Any]) -> dict[str, Any]:
    """As a version wrote it in which the filters had other modules."""
    filters = [f"larmspider.older.place.{path.rpartition('.')[2]}" for path in identity["filters"]]
    return identity | {"filters": filters}


def test_filters_are_compared_by_class_name(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """A version that moved a filter's module continues the crawl; one filter less is a change."""
    claimed(crawler_for, **OURS).finish("shutdown")
    path = tmp_path / "crawl" / "crawl.json"
    described = json.loads(path.read_text())
    described["identity"] = older_paths(described["identity"])
    path.write_text(json.dumps(described))
    fewer = dict.fromkeys(OURS["SPIDER_MIDDLEWARES"], 1) | {
        "larmspider.middlewares.traps.TrapsFilter": None
    }
    with pytest.raises(CrawlDirError, match="other filters: "):
        claimed(crawler_for, **OURS | {"SPIDER_MIDDLEWARES": fewer})
    directory = claimed(crawler_for, **OURS)
    assert directory.resumed
    directory.finish("finished")


def test_a_filter_may_be_named_by_its_class(crawler_for: CrawlerFor) -> None:
    """As Scrapy takes either."""
    path = "larmspider.middlewares.traps.TrapsFilter"
    claimed(crawler_for, SPIDER_MIDDLEWARES={path: 5}).finish("shutdown")
    claimed(crawler_for, SPIDER_MIDDLEWARES={load_object(path): 5}).finish("finished")


def test_edited_rules_make_another_crawl(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """The content of a rules file counts, not its name."""
    rules = tmp_path / "known.txt"
    rules.write_text("url /a\n")
    claimed(crawler_for, LARM_KNOWN_PATHS_FILE=str(rules)).finish("shutdown")
    moved = rules.rename(tmp_path / "moved.txt")
    claimed(crawler_for, LARM_KNOWN_PATHS_FILE=str(moved)).finish("shutdown")
    moved.write_text("url /b\n")
    with pytest.raises(CrawlDirError, match="other LARM_KNOWN_PATHS_FILE"):
        claimed(crawler_for, LARM_KNOWN_PATHS_FILE=str(moved))


@pytest.mark.parametrize("force", ["force", "Force", "yes,yes", "1,on"])
def test_stored_pages_are_deleted_only_by_force(
    crawler_for: CrawlerFor, tmp_path: Path, force: str
) -> None:
    """fresh=yes is enough for a crawl without pages; files that are not ours stay."""
    claimed(crawler_for, **OURS).finish("finished")
    claimed(crawler_for, **OURS, LARM_FRESH="yes").finish("finished")
    directory = tmp_path / "crawl"
    (directory / "store.log").write_text("x\ny\n")
    (directory / "index").mkdir()
    (directory / "notes.txt").write_text("mine")
    (directory / "pagefile_7.pfl").write_text("x")
    (directory / "ScopeFilter.log").write_text("x")
    (directory / "OtherFilter.log").write_text("mine")
    told = CrawlDirectory(directory, {}).how_to_start_over()
    assert told == "-a fresh=force deletes 2 stored pages and starts over"
    with pytest.raises(CrawlDirError, match=r"holds 2 stored pages.*fresh=force"):
        claimed(crawler_for, **OURS, LARM_FRESH="yes")
    assert (directory / "store.log").read_text() == "x\ny\n"
    claimed(crawler_for, **OURS, LARM_FRESH=force).finish("finished")
    names = {path.name for path in directory.iterdir()}
    assert names == {"crawl.json", "sealed.json", "lock", "notes.txt", "OtherFilter.log"}


class TitleLog(Store):
    """A store of a user's."""

    files = ("titles.log", "titles_*.idx")

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        return cls()

    def write(self, page: Page) -> None:
        """Nothing."""


TITLE_LOG = f"{__name__}.TitleLog"


def test_starting_over_deletes_the_files_of_ones_own_stores(
    crawler_for: CrawlerFor, tmp_path: Path
) -> None:
    """As its class names them; of stores of the earlier crawl too, which crawl.json remembers."""
    stores = {"ITEM_PIPELINES": {TITLE_LOG: 1, **OURS["ITEM_PIPELINES"]}}
    claimed(crawler_for, **OURS | stores).finish("finished")
    directory = tmp_path / "crawl"
    described = json.loads((directory / "crawl.json").read_text())
    assert described["stores"][TITLE_LOG] == ["titles.log", "titles_*.idx"]
    for name in ("titles.log", "titles_1.idx", "titles.txt", "links.log"):
        (directory / name).write_text("x")
    with pytest.raises(CrawlDirError, match=r"holds the files of .*TitleLog \(titles.log\)"):
        claimed(crawler_for, **OURS, LARM_FRESH="yes")
    claimed(crawler_for, **OURS, LARM_FRESH="force").finish("finished")
    names = {path.name for path in directory.iterdir()}
    assert names == {"crawl.json", "sealed.json", "lock", "titles.txt"}


def test_a_store_that_was_taken_out_is_still_known(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """Its files still belong to the crawl after a run without it."""
    claimed(crawler_for, ITEM_PIPELINES={TITLE_LOG: 1}).finish("shutdown")
    (tmp_path / "crawl" / "titles.log").write_text("x")
    claimed(crawler_for, ITEM_PIPELINES={TITLE_LOG: None}).finish("shutdown")
    claimed(crawler_for, LARM_FRESH="force").finish("finished")
    assert not (tmp_path / "crawl" / "titles.log").exists()


@pytest.mark.parametrize("name", ["", "..", "*", "lo?k", "crawl.json", "../x", "a/b", "/etc/x"])
def test_a_name_that_reaches_too_far_is_refused(
    crawler_for: CrawlerFor, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Neither files elsewhere nor those that every crawl has are a store's."""
    monkeypatch.setattr(TitleLog, "files", (name,))
    with pytest.raises(ConfigError, match=r"TitleLog.files: .*: expected"):
        claimed(crawler_for, ITEM_PIPELINES={TITLE_LOG: 1})


def test_what_our_components_write_is_theirs() -> None:
    """Each file that docs/formats.md lists is named by one of them."""
    settings = Settings()
    settings.setmodule("larmspider.settings")
    names = [name for files in files_of_stores(settings).values() for name in files]
    names += ["sealed.json", "crawl.log"]  # CrawlDirectory and the command line delete them
    names += [*files_of_others(settings), *PushedPipeline.files]
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text("utf-8")
    table = page.partition("\n## ")[0]
    listed = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    kept = {
        "crawl.json",
        "lock",
        "removed.txt",
        "not-traps.txt",
        "queries.sqlite",
        "rules/",
    }  # a new crawl keeps them
    for name in set(listed) - kept:
        concrete = name.replace("<n>", "0").replace("<Name>", "Scope").rstrip("/")
        assert any(fnmatch.fnmatchcase(concrete, pattern) for pattern in names), name


def test_somebody_elses_directory_is_refused(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """Even with fresh=yes: what is no crawl is not ours to delete, and nothing is left there."""
    directory = tmp_path / "crawl"
    directory.mkdir()
    (directory / "thesis.tex").write_text("mine")
    with pytest.raises(CrawlDirError, match=r"holds other files \(thesis.tex\)"):
        claimed(crawler_for, LARM_FRESH="yes")
    assert not (directory / "crawl.json").exists()


@pytest.mark.parametrize("name", ["/proc/crawl", "/dev/null/crawl"])
def test_a_directory_that_cannot_be_written_is_refused(crawler_for: CrawlerFor, name: str) -> None:
    """The error names setting, path and reason."""
    with pytest.raises(ConfigError, match=f"LARM_DIR={name} cannot be written"):
        claimed(crawler_for, LARM_DIR=name)


def test_an_unknown_setting_is_refused_with_a_suggestion(crawler_for: CrawlerFor) -> None:
    """A typo must not silently mean the default."""
    with pytest.raises(ConfigError, match=r"BYTE is not a setting.*LARM_PAGEFILE_BYTES"):
        check_names(crawler_for(LARM_PAGEFILE_BYTE=1).settings)


def test_it_remembers_that_stores_went_back(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """Once killed or broken off, the index may have more than the logs from then on."""
    path = tmp_path / "crawl" / "crawl.json"
    claimed(crawler_for).finish("shutdown")
    claimed(crawler_for).release()
    assert "cut_back" not in json.loads(path.read_text())
    for _ in range(2):
        claimed(crawler_for).finish("finished")
        assert json.loads(path.read_text())["cut_back"]


def test_a_check_makes_nothing_that_another_worker_could_lose(tmp_path: Path) -> None:
    """Workers of one crawl start at the same moment, and one of them makes its directory."""
    path = tmp_path / "crawl"

    def check() -> None:
        for _ in range(2000):
            with suppress(ConfigError):  # here it may be taken away meanwhile
                check_writable(path / "w1")

    with ThreadPoolExecutor() as threads:
        checking = threads.submit(check)
        while not checking.done():
            path.mkdir()
            path.rmdir()
        checking.result()


def test_whether_a_directory_can_be_written_is_tried_unseen(tmp_path: Path) -> None:
    """Workers that start together look at the same ones, and refuse to crawl into others' files."""
    seen: set[Path] = set()
    with ThreadPoolExecutor() as threads:
        trying = threads.submit(lambda: [writable_dir(tmp_path) for _ in range(2000)])
        while not trying.done():
            seen.update(tmp_path.iterdir())
        trying.result()
    assert not seen


def test_who_looks_whether_a_crawl_runs_keeps_none_from_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``scrapy serve`` and others have the lock for a moment to see whether it is free, and for
    longer where the system lets other processes run meanwhile."""
    flock, looks = fcntl.flock, [True] * 3

    def looked_at(file: IO[str], how: int) -> None:
        if looks:
            looks.pop()
            raise BlockingIOError
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", looked_at)
    locks.locked(tmp_path / "lock").close()


# larmspider/workdir/worker_name.py: who is who in LARM_DIR.


@pytest.mark.parametrize(
    ("host", "present", "expected"),
    [
        ("atlas", [], ["atlas-1", "atlas-2"]),
        ("atlas", ["atlas-3", "boreas-1", "atlas-x"], ["atlas-3", "atlas-1"]),
        ("Atlas.Example", ["atlas-2", "atlas-1"], ["atlas-1", "atlas-2"]),
        ("höst name", [], ["h-st-name-1", "h-st-name-2"]),
        ("", [], ["worker-1", "worker-2"]),
        ("x" * 64, [], [f"{'x' * 56}-1", f"{'x' * 56}-2"]),
    ],
)
def test_names_that_have_directories_come_first(
    tmp_path: Path, host: str, present: list[str], expected: list[str]
) -> None:
    """By number; then new names. Names of other machines are left alone."""
    for name in present:
        (tmp_path / name).mkdir()
    names = list(islice(worker_name.names(tmp_path, host), 2))
    assert names == expected
    for name in names:
        worker_name.check_name(name)


def settings_for(tmp_path: Path, **more: str) -> Settings:
    return Settings({"LARM_DIR": str(tmp_path), "REDIS_URL": "redis://h/0", **more})


def test_a_worker_takes_the_first_directory_that_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From then on it is its own; one that is left is taken up again."""
    monkeypatch.setattr("socket.gethostname", lambda: "atlas")
    (tmp_path / "atlas-1").mkdir()
    held = locked(tmp_path / "atlas-1" / "lock")
    assert worker_name.free_names(tmp_path, 2) == ["atlas-2", "atlas-3"]
    settings = settings_for(tmp_path)
    worker_name.settle(settings)
    assert larm_dir(settings) == tmp_path / "atlas-2"
    held.close()
    again = settings_for(tmp_path)
    worker_name.settle(again)
    assert larm_dir(again) == tmp_path / "atlas-1"
    for name in ("atlas-1", "atlas-2"):
        locked(tmp_path / name / "lock").close()


def test_without_redis_there_is_one_directory(tmp_path: Path) -> None:
    """LARM_DIR, whatever LARM_WORKER says."""
    settings = Settings({"LARM_DIR": str(tmp_path), "LARM_WORKER": "w1", "REDIS_URL": ""})
    worker_name.settle(settings)
    assert larm_dir(settings) == tmp_path


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "A", "x" * 65, "redis", "rules", "ä", ".x"])
def test_names_that_are_refused(name: str) -> None:
    """They are no folder names, or another folder there has them."""
    with pytest.raises(ConfigError, match=r"LARM_WORKER=.*: expected"):
        worker_name.check_name(name)


@pytest.mark.parametrize("value", ["maybe", "force,yes", "yes,no", "yes,yes,yes"])
def test_a_word_that_fresh_does_not_know_names_those_it_does(value: str) -> None:
    """The three words, whatever was asked."""
    with pytest.raises(ConfigError, match=f"^fresh={value}: expected yes, no, or force to delete"):
        asked_fresh(Settings({"LARM_FRESH": value}))
