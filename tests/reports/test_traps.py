"""How learned traps are shown, and how an operator decides about them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider.crawl.reader import CrawlDir
from larmspider.errors import ConfigError
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.middlewares.known_paths import KnownPathsFilter
from larmspider.reports.traps import (
    Sample,
    Trap,
    _candidates,
    accept,
    changes_nothing,
    traps_in,
)
from tests.support.crawling import Ran, scrapy
from tests.support.frontier.walk import (
    H,
    Walk,
    folders,
    folders_and_news,
    repository,
    wiki,
)
from tests.support.servers.generators import document, page
from tests.support.servers.scripted import Reply
from tests.support.stored_crawl import StoredCrawl

EDIT = "h:80/wiki?do=edit&id=*"


def walk_in(folder: Path, site: Callable[[str], Reply] = wiki) -> Walk:
    """Walks on in the directory of a crawl."""
    backend = LmdbBackend(folder / "frontier")
    walk = Walk(site, backend, not_traps=folder / "not-traps.txt").run(9_999)
    walk.frontier.checkpoint({})
    backend.close()
    return walk


@pytest.fixture
def crawl(tmp_path: Path) -> CrawlDir:
    StoredCrawl(tmp_path / "crawl", refresh=False).end()
    walk_in(tmp_path / "crawl")
    return CrawlDir(tmp_path / "crawl")


def named(traps: list[Trap], name: str) -> Trap:
    return next(trap for trap in traps if trap.name == name)


def test_each_class_has_its_evidence_and_a_rule_that_fits_it_alone(crawl: CrawlDir) -> None:
    trap = named(traps_in(crawl), EDIT)
    assert trap.why.startswith("quarantined: 1 of its last ")
    assert trap.held > 20
    assert len(trap.samples) == 5
    assert trap.line == r"url   ^https?://h(?::80)?/wiki\?(?:.*[&;])?do=edit(?:[&;]|$)"
    rule = KnownPathsFilter.from_text(trap.line, "")
    for url, is_rejected in (("?do=edit&id=7", True), ("?id=7&do=edit", True), ("?id=7", False)):
        assert (rule.reject_reason(f"{H}/wiki{url}") is not None) is is_rejected


def test_a_class_of_many_paths_has_a_rule_for_all_of_them(tmp_path: Path) -> None:
    StoredCrawl(tmp_path / "crawl", refresh=False).end()
    walk = walk_in(tmp_path / "crawl", folders)
    trap = named(traps_in(CrawlDir(tmp_path / "crawl")), "h:80/**?C=*&O=*")
    reject = KnownPathsFilter.from_text(trap.line, "").reject_reason
    refused = {target for target in walk.fetched if reject(f"{H}{target}") is not None}
    assert refused == {target for target in walk.fetched if "?" in target}


def test_a_class_over_all_paths_has_a_rule_that_leaves_out_new_pages(tmp_path: Path) -> None:
    """It refuses each view that was fetched or is held, and no page with the same parameters."""
    StoredCrawl(tmp_path / "crawl", refresh=False).end()
    walk = walk_in(tmp_path / "crawl", folders_and_news)
    crawl = CrawlDir(tmp_path / "crawl")
    trap = named(traps_in(crawl), "h:80/**?C=*&O=*")
    wide, _, exception = trap.line.partition("  except ")
    assert wide.startswith(r"url   ^https?://h(?::80)?/[^?]*\?(?:.*[&;])?")
    assert exception == r"^https?://h(?::80)?/news/\?"
    accept(trap, tmp_path / "paths.txt")
    refuses = KnownPathsFilter.from_text((tmp_path / "paths.txt").read_text(), "").reject_reason
    with crawl.frontier() as frontier:
        assert frontier is not None
        waiting = [entry.url for entry in frontier.queued("h:80", 9_999)]
    urls = [*(f"{H}{target}" for target in walk.fetched), *waiting]
    assert len(waiting) == trap.held > 100
    views = [url for url in urls if "?" in url and "/news/" not in url]
    assert len(views) == 8 * 40
    assert [url for url in urls if refuses(url) is not None] == views


@pytest.mark.parametrize(
    ("path", "query", "number", "fits", "others"),
    [
        ("/rows with 3 parameters", None, 3, ["/rows?a=1&b=2&c=3"], ["/rows?a=1&b=2", "/rows"]),
        ("/tree/*", "id=*", 0, ["/tree/src?id=a1"], ["/tree/?id=a1", "/tree/src"]),
        (
            "/git", "a=log&f=*&h=*&p=*", 0,
            ["/git?p=w;a=log;f=x;h=1", "/git?p=w;f=x;a=log;h=2"],
            ["/git?p=w;a=log;f=x;h=1;hb=2", "/git?p=w;a=blob;f=x;h=1", "/git?p=w;a=log;f=x;hb=1"],
        ),
    ],
)  # fmt: skip
def test_a_rule_goes_by_the_number_of_parameters_or_by_names_that_are_there(
    path: str, query: str | None, number: int, fits: list[str], others: list[str]
) -> None:
    rules = [*_candidates("h:80", path.partition(" with ")[0], query, number, fits)]
    found = [
        all(re.search(rule, f"{H}{one}") for one in fits)
        and not any(re.search(rule, f"{H}{one}") for one in others)
        for rule in rules
    ]
    assert any(found)


def test_a_rule_may_leave_out_as_many_classes_as_a_folder_has_names(tmp_path: Path) -> None:
    news = [f"/news-{letter}/?C={n}&O=A" for letter in "abcdefghijkl" for n in range(3)]

    def site(target: str) -> Reply:
        if target in news:
            return page("News", document(100 + news.index(target)))
        reply = folders(target)
        if target == "/":
            reply.body += "".join(f"<a href='{one}'>news</a> " for one in news).encode()
        return reply

    StoredCrawl(tmp_path / "crawl", refresh=False).end()
    walk = walk_in(tmp_path / "crawl", site)
    trap = named(traps_in(CrawlDir(tmp_path / "crawl")), "h:80/**?C=*&O=*")
    refuses = KnownPathsFilter.from_text(trap.line, "").reject_reason
    refused = {one for one in walk.fetched if refuses(f"{H}{one}") is not None}
    assert refused == {one for one in walk.fetched if "?" in one and "news" not in one}


@pytest.mark.parametrize("has_line", [False, True])
def test_a_bad_line_of_a_rule_file_is_named_and_nothing_is_added(
    tmp_path: Path, has_line: bool
) -> None:
    trap = Trap(EDIT, "h:80", "quarantined", 1, 1, line="url   ^https?://h/wiki$")
    file = tmp_path / "paths.txt"
    before = f"url ^https?://h/a\nurl (unclosed\n{trap.line if has_line else ''}\n"
    file.write_text(before)
    with pytest.raises(ConfigError, match=r"paths.txt:2: "):
        accept(trap, file)
    assert file.read_text() == before


def test_no_rule_fits_a_class_of_which_new_pages_are_fetched(tmp_path: Path) -> None:
    StoredCrawl(tmp_path / "crawl", refresh=False).end()
    walk = walk_in(tmp_path / "crawl", repository)
    traps = traps_in(CrawlDir(tmp_path / "crawl"))
    files = named(traps, "h:80/git?a=file&f=*&h=*")
    assert files.why.startswith("known by f: 0 of its last 40 pages were new; URLs with a new f")
    assert (files.line, files.no_line) == ("", "none: it would refuse new pages, too")
    with pytest.raises(ConfigError, match="rule: none: it would refuse new pages, too; expected"):
        accept(files, tmp_path / "paths.txt")
    rules = [KnownPathsFilter.from_text(trap.line, "") for trap in traps if trap.line]
    assert rules
    shown = [f"{H}{target}" for target in walk.fetched if "a=file" in target]
    assert not [url for url in shown for rule in rules if rule.reject_reason(url) is not None]


@pytest.mark.parametrize(
    "repeats, found",
    [
        (("?n=1", "?n=2"), "sid"),
        (("?n=1", "?n=1"), ""),
        (("?n=1&sid=b", "?n=2"), ""),
        (("?n=1", ""), ""),
    ],
)
def test_a_parameter_that_changes_nothing_is_named(repeats: tuple[str, str], found: str) -> None:
    samples = [
        Sample(f"{H}/shop?n={n}&sid=a", "", f"{H}/shop{other}")
        for n, other in enumerate(repeats, 1)
    ]
    assert changes_nothing(samples) == found


@pytest.mark.acceptance
def test_an_operator_accepts_or_rejects_a_class_by_command(crawl: CrawlDir, tmp_path: Path) -> None:
    def run(*words: str) -> Ran:
        return scrapy("traps", *words, cwd=tmp_path)

    shown = run()
    assert (shown.status, shown.out.count("  not new  ")) == (0, 5 * shown.out.count("  rule  "))
    assert run("--json", "-n", "1").json["traps"][0]["name"] == "h:80/wiki with 2 parameters"
    for words, why in (
        (["--accept", "h:80/x"], "--accept h:80/x: expected a class that is held: h:80/wiki"),
        (["--accept", EDIT], f"{EDIT}: LARM_KNOWN_PATHS_FILE is empty: expected"),
        (["-n", "0"], "-n 0: expected"),
    ):
        refused = run(*words)
        assert refused.status == 2
        assert why in refused.err
    file = tmp_path / "paths.txt"
    for did in ("added to", "is already in"):
        accepted = run("--accept", EDIT, "-s", f"LARM_KNOWN_PATHS_FILE={file}")
        assert (accepted.status, did in accepted.out) == (0, True)
    assert file.read_text().count("do=edit(?:[&;]|$)\n") == 1
    assert "server-status" in file.read_text()  # and the packaged rules
    assert [run("--reject", EDIT).status for _ in range(2)] == [0, 0]
    assert (crawl.path / "not-traps.txt").read_text() == f"{EDIT}\n"
    fetched = walk_in(crawl.path).fetched
    assert sum("do=edit" in target for target in fetched) > 20
    assert not any(trap.name == EDIT for trap in traps_in(crawl))
