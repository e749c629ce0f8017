"""benchmarks/complete.py: what a crawl lacks of a manual is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.complete import Manual, check, compare, walk
from larmspider.crawl.reader import CrawlDir

PAGES = {
    "index.html": "<a href=a/>a</a> <a href='b%20c.html#x'>b</a> <a href=/index.html>home</a>"
    "<a href=n.html rel=nofollow>n</a> <a href=http://other/x.html>x</a> <a href=none.html>y</a>",
    "a/index.html": "<base href=/d/><a href=deep.html?q=1>deep</a><iframe src=../e.txt></iframe>",
    "b c.html": "<area href=.//a//index.html><a href=../../b%20c.html>itself</a>",
    "d/deep.html": "deep",
    "e.txt": "<a href=n.html>no page</a>",
    "n.html": "not walked",
    "lonely.html": "nobody links here",
}
REACHED = {"index.html", "a/index.html", "b c.html", "d/deep.html", "e.txt"}


@pytest.fixture
def manual(tmp_path: Path) -> Manual:
    root = tmp_path / "manual"
    for name, text in PAGES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Manual(root, "index.html")


def names(manual: Manual, files: object) -> set[str]:
    assert isinstance(files, (dict, list))
    return {str(file.relative_to(manual.root)) for file in files}


def test_the_walk_finds_what_links_name(manual: Manual) -> None:
    """By their files: folders, escapes, bases and frames; not what says nofollow."""
    assert names(manual, walk(manual.root, "index.html", "http://h/")) == REACHED


@pytest.mark.acceptance
def test_what_a_crawl_lacks_is_named(manual: Manual, tmp_path: Path) -> None:
    """Nothing is missing of a whole crawl; then a page is missing, one differs, one is a copy."""
    told: list[str] = []
    result = check(manual, tmp_path / "crawl", told.append)
    assert (result.reached, result.missing, result.differing, told) == (5, {}, [], [])
    reached = walk(manual.root, "index.html", "http://h/")
    lonely, copy = manual.root / "lonely.html", manual.root / "copy.html"
    copy.write_text("deep")
    (manual.root / "e.txt").write_text("changed")
    crawl = CrawlDir(tmp_path / "crawl")
    result = compare(manual.root, crawl, reached | {lonely: "http://h/", copy: "http://h/"}, 0.0)
    assert names(manual, result.missing) == {"lonely.html"}
    assert names(manual, result.differing) == {"e.txt"}
    assert names(manual, result.copies) == {"copy.html"}
