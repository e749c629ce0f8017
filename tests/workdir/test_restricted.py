"""larmspider/workdir/restricted.py: which hosts of a crawl are restricted."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.crawl.reader import read_manifest
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.fetch.sites.lookup import Sites
from larmspider.workdir.access import follow_mode
from larmspider.workdir.directory import worker_dirs
from larmspider.workdir.restricted import note_restricted, restricted_hosts, restricted_or_all

SITES = """[[site]]
hosts = "hr.example"
headers = { X-Word = { env = "LARM_TEST_WORD_THAT_IS_NOT_SET" } }
[[site]]
hosts = "proxied.example"
proxy = "http://proxy.example:3128"
proxy_user = "larm"
proxy_password = { env = "LARM_TEST_WORD_THAT_IS_NOT_SET" }
"""
MANY = {"workers": {"redis": "redis://r/0"}}


def a_crawl(directory: Path, **more: object) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    manifest = {"format": 2, "seeds": ["http://wiki/"], "settings": {}, **more}
    (directory / "crawl.json").write_text(json.dumps(manifest))
    return directory


@pytest.mark.parametrize(("manifest", "found"), [
    ({}, ()), ({"credentials": ["b", "a"]}, ("a", "b")),
    ({"seeds": ["file:///srv/"]}, ("file://",)),
])  # fmt: skip
def test_crawl_json_says_which(
    tmp_path: Path, manifest: dict[str, object], found: tuple[str, ...]
) -> None:
    """Files are by their seeds."""
    assert restricted_hosts([a_crawl(tmp_path, **manifest)]) == found
    assert restricted_hosts([manifest]) == found


def test_one_worker_restricts_a_host_for_the_whole_crawl(tmp_path: Path) -> None:
    """Whichever of its directories is asked; the directory of another crawl inside does not count,
    nor does one that lies beside."""
    root = a_crawl(tmp_path / "crawl", **MANY)
    one = a_crawl(root / "w1", credentials=["hr.example"])
    other = a_crawl(root / "w2", credentials=[])
    for asked in (root, one, other):
        assert restricted_hosts([asked]) == ("hr.example",), asked
    alone = a_crawl(tmp_path / "alone")
    a_crawl(alone / "inner", credentials=["pay.example"])
    assert restricted_hosts([alone]) == ()
    assert restricted_hosts([alone, root]) == ("hr.example",)


@contextmanager
def as_nobody() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("closed", ["w2", "."])
def test_a_worker_that_may_not_be_looked_into_restricts_all(closed: str) -> None:
    """A directory that this user may not read or list was left out: hr.example was open."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        root = a_crawl(Path(name, "crawl"), **MANY)
        one, two = a_crawl(root / "w1"), a_crawl(root / "w2", credentials=["hr.example"])
        (root / "lost+found").mkdir(mode=0)
        (root / "file").write_text("")
        with as_nobody():
            assert restricted_hosts([one]) == restricted_hosts([root]) == ("hr.example",)
            assert worker_dirs(root) == [one, two]
        (root / closed).chmod(0o711 if closed == "." else 0)
        with as_nobody():
            for asked in (one, root):
                with pytest.raises(CrawlDirError, match="Permission denied"):
                    restricted_hosts([asked])
                assert restricted_or_all([asked]) == ("*", "file://")
            with pytest.raises(CrawlDirError, match="Permission denied"):
                worker_dirs(root)
        for path in (root, two):
            path.chmod(0o755)


def test_a_worker_that_has_lost_its_crawl_json_restricts_all(tmp_path: Path) -> None:
    """Its pages are there; no file says which of them are restricted."""
    root = a_crawl(tmp_path / "crawl", **MANY)
    one, two = a_crawl(root / "w1"), a_crawl(root / "w2", credentials=["hr.example"])
    (two / "store.log").write_text("a page")
    (two / "crawl.json").unlink()
    for asked in (root, one, two):
        with pytest.raises(CrawlDirError, match=r"w2 holds pages and has no crawl\.json"):
            restricted_hosts([asked])
        assert restricted_or_all([asked]) == ("*", "file://")


def test_the_umask_follows_one_worker(tmp_path: Path) -> None:
    """Where crawl.json of all does not know what one worker has met."""
    root = a_crawl(tmp_path / "crawl", **MANY)
    a_crawl(root / "w1", credentials=["hr.example"])
    before = os.umask(0o022)
    try:
        follow_mode(json.loads((root / "crawl.json").read_text()), root)
        assert os.umask(0o022) == 0o077
    finally:
        os.umask(before)


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_who_cannot_know_restricts_all(tmp_path: Path, content: str | None) -> None:
    """crawl.json is missing beside pages, or damaged."""
    (tmp_path / "store.log").touch()
    if content is not None:
        (tmp_path / "crawl.json").write_text(content)
    with pytest.raises(CrawlDirError, match=r"crawl\.json"):
        restricted_hosts([tmp_path])
    assert restricted_or_all([tmp_path]) == ("*", "file://")


def test_a_directory_without_pages_restricts_nothing(tmp_path: Path) -> None:
    """It is empty, or does not exist."""
    assert restricted_hosts([tmp_path, tmp_path / "none"]) == ()


def test_the_sites_file_adds_to_what_is_known(tmp_path: Path) -> None:
    """Even where its secrets are not at hand; a host that it drops stays restricted. A proxy's
    password protects no host."""
    crawl = a_crawl(tmp_path / "crawl", credentials=["old.example"])
    sites = tmp_path / "sites.toml"
    sites.write_text(SITES)
    settings = Settings({"LARM_SITES_FILE": str(sites)})
    assert restricted_hosts([crawl], settings) == ("hr.example", "old.example")
    sites.write_text('[[site]]\nhosts = "new.example"\ncookies = { a = "b" }\n')
    assert restricted_hosts([crawl], settings) == ("new.example", "old.example")


def test_a_sites_file_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    """The sites file of a crawl may lie on another machine; the operator asks for the one on the
    command line. A file that is no TOML is refused."""
    settings = Settings({"LARM_SITES_FILE": str(tmp_path / "none.toml")})
    assert restricted_hosts([], settings) == ()
    settings.set("LARM_SITES_FILE", str(tmp_path / "none.toml"), priority="cmdline")
    with pytest.raises(ConfigError, match=r"none\.toml"):
        restricted_hosts([], settings)
    (tmp_path / "none.toml").write_text("[[site]")
    with pytest.raises(ConfigError, match="expected a readable TOML file"):
        restricted_hosts([], settings)
    assert restricted_or_all([], settings) == ("*", "file://")


def test_crawl_json_forgets_no_host() -> None:
    """Files are noted by the seeds alone."""
    manifest: dict[str, object] = {"credentials": ["a"]}
    note_restricted(manifest, ["b", "file://"])
    assert manifest["credentials"] == ["a", "b"]
    note_restricted(manifest := {}, ["file://"])
    assert manifest == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"credentials": ["http://[::"]},
        {"credentials": [None]},
        {"credentials": ["http://*:port"]},
        {"settings": "x"},
    ],
)
def test_a_crawl_json_that_cannot_be_meant_restricts_all(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    """An edited file is treated as a damaged one."""
    crawl = a_crawl(tmp_path / "crawl", **changed)
    with pytest.raises(CrawlDirError, match=r"crawl\.json"):
        restricted_hosts([crawl])
    assert restricted_or_all([crawl]) == ("*", "file://")


@pytest.mark.parametrize("depth", [1_000, 200_000])
def test_a_crawl_json_of_many_levels_is_a_damaged_one(tmp_path: Path, depth: int) -> None:
    """Commands and the search report it so."""
    (tmp_path / "crawl.json").write_text("[" * depth)
    for read in (lambda path: restricted_hosts([path]), read_manifest):
        with pytest.raises(CrawlDirError, match=r"crawl\.json cannot be read"):
            read(tmp_path)


def test_a_sites_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nor is a secret's: it is read several times, and a pipe has its content once."""
    os.mkfifo(tmp_path / "pipe")
    settings = Settings({"LARM_SITES_FILE": str(tmp_path / "pipe")})
    with pytest.raises(ConfigError, match=r"pipe: it is a pipe; expected a readable TOML file"):
        restricted_hosts([], settings)
    assert restricted_or_all([], settings) == ("*", "file://")
    sites = tmp_path / "sites.toml"
    sites.write_text(
        '[[site]]\nhosts = "hr.example"\nauth = "bearer"\ntoken_file = "pipe"\n', "utf-8"
    )
    settings = Settings({"LARM_SITES_FILE": str(sites)})
    assert restricted_hosts([], settings) == ("hr.example",)
    with pytest.raises(ConfigError, match=r"token_file .* cannot be read: it is a pipe"):
        Sites.for_fetching(settings)


def test_a_sites_file_that_is_moved_away_counts_as_it_was(tmp_path: Path) -> None:
    """A host that became restricted while the search is served does not open with that."""
    sites = tmp_path / "sites.toml"
    sites.write_text(SITES)
    settings = Settings({"LARM_SITES_FILE": str(sites)})
    assert restricted_hosts([], settings) == ("hr.example",)
    sites.rename(tmp_path / "moved.toml")
    assert restricted_hosts([], settings) == ("hr.example",)
    sites.write_text("")
    assert restricted_hosts([], settings) == ()
