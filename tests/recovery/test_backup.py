"""Backups of crawls that run: what is restored continues exactly. Files that are no backup change
nothing."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from larmspider import command
from larmspider.commands.backup import backup
from larmspider.crawl import backup as crawl_backup
from larmspider.crawl.backup import BackupFile, add_crawl, restore
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.files import lock
from larmspider.server.home import Home
from tests.support.crawling import Ran, scrapy
from tests.support.recovery.killed_crawl import KilledCrawl, RunningCrawl, Site
from tests.support.servers.scripted import ScriptedServer

ROUNDS = 6


def quiet(_: str, __: int, ___: int) -> None:
    pass


def larmspider(*arguments: object, cwd: Path) -> Ran:
    return scrapy(*map(str, arguments), cwd=cwd)


@pytest.mark.acceptance
@pytest.mark.parametrize("compression", ["", "zstd"])
def test_a_backup_of_a_running_crawl_continues_exactly(tmp_path: Path, compression: str) -> None:
    """The crawl is lost at a later moment, and the restored one fetches the rest: each page once in
    files, logs and index. ``verify`` finds no damage."""
    chance = random.Random(7)
    (tmp_path / "c").mkdir()
    with Site() as site:
        crawl = KilledCrawl(site, tmp_path / "c", LARM_COMPRESSION=compression)
        for number in range(ROUNDS):
            before = sum(site.seen.values())
            process = crawl.process_of(None, 0)
            crawl.wait_for(process, before + 1)
            time.sleep(chance.uniform(0.1, 0.5))
            file = tmp_path / f"{number}.tar{'.zst' if compression else ''}"
            with BackupFile(file, "crawl", quiet) as out:
                add_crawl(out, crawl.crawl)
            time.sleep(chance.uniform(0.0, 0.5))
            process.kill()
            process.wait(60)
            site.wait_until_left()
            shutil.rmtree(crawl.crawl)
            restore(file, crawl.crawl, quiet)
            crawl.check_commit()
        crawl.report.exposed.clear()  # pages that were lost with the crawl are fetched again
        assert crawl.run(None)
        crawl.check_end()
    checked = larmspider("verify", "--dir", "crawl", cwd=tmp_path / "c")
    assert checked.status == 0, checked.out


@pytest.mark.acceptance
def test_it_waits_for_a_moment_between_two_commits(tmp_path: Path) -> None:
    """Backups without a pause between them; in each one frontier and logs agree."""
    (tmp_path / "c").mkdir()
    with Site() as site:
        crawl = KilledCrawl(site, tmp_path / "c", LARM_CHECKPOINT_SECS="0.1")
        process = crawl.process_of(None, 0)
        crawl.wait_for(process, 3)
        made = list[Path]()
        while process.poll() is None and len(made) < 40:
            made.append(tmp_path / f"{len(made)}.tar")
            with BackupFile(made[-1], "crawl", quiet) as out:
                add_crawl(out, crawl.crawl)
        process.kill()
        process.wait(60)
        for file in made:
            shutil.rmtree(crawl.crawl)
            restore(file, crawl.crawl, quiet)
            crawl.check_commit()
    assert len(made) >= 3


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a crawl that has ended."""
    folder = tmp_path_factory.mktemp("backup")
    with (
        ScriptedServer({"/": "<title>Start</title>penguins <a href=/b>b</a>", "/b": "b"}) as site,
        RunningCrawl(site.url("/"), folder) as running,
    ):
        assert running.end() == 0, running.said
    return folder


def test_a_backup_is_made_and_restored_by_commands(crawled: Path, tmp_path: Path) -> None:
    """Text and JSON; tokens stay out, the log of queries is whole, the search finds the page."""
    shutil.copytree(crawled / "crawl", tmp_path / "wiki")
    for name in ("web.token", "web.json", "web.sock", "lock"):
        (tmp_path / "wiki" / name).write_text("hidden-token")
    with sqlite3.connect(tmp_path / "wiki" / "queries.sqlite") as database:
        database.execute("pragma journal_mode = wal")
        database.execute("create table t (q)")
        database.execute("insert into t values ('penguins')")
    (tmp_path / "wiki" / "link").symlink_to("/etc/passwd")
    made = larmspider("backup", "wiki", "wiki.tar.zst", "--json", cwd=tmp_path)
    assert made.status == 0, made.err
    assert made.json["crawls"] == 1
    assert "link is not a regular file: it is left out" in "".join(made.json["notes"])
    packed = zstd.decompress((tmp_path / "wiki.tar.zst").read_bytes())
    assert b"hidden-token" not in packed
    assert b"root:" not in packed
    assert (tmp_path / "wiki.tar.zst").stat().st_mode & 0o777 == 0o600
    restored = larmspider("restore", "wiki.tar.zst", "new/wiki", cwd=tmp_path)
    assert restored.status == 0, restored.err
    assert f"{made.json['files']} files" in restored.out
    assert "larmspider 1." in restored.out
    with sqlite3.connect(tmp_path / "new" / "wiki" / "queries.sqlite") as database:
        assert database.execute("select q from t").fetchall() == [("penguins",)]
    found = larmspider("search", "--dir", "new/wiki", "penguins", cwd=tmp_path)
    assert "Start" in found.out
    assert larmspider("verify", "--dir", "new/wiki", cwd=tmp_path).status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "wiki", "wiki.tar.zst"]


def test_a_home_is_restored_without_its_secrets(crawled: Path, tmp_path: Path) -> None:
    """All files of operators, the log of queries and the crawls; no secret, key or lock."""
    home = Home.open(tmp_path / "home")
    kept = {"server.toml", "tokens.json", "audit.log", "told.json", "labels.txt", "synonyms.txt"}
    for name in (*kept, "first.key", "server.json", "secrets/wiki"):
        (home.path / name).write_text("" if name == "server.toml" else "swordfish")
    with sqlite3.connect(home.path / "queries.sqlite") as database:
        database.execute("create table t (q)")
    (home.path / "crawls" / "wiki.toml").write_text("seeds = ['http://wiki.example/']\n")
    shutil.copytree(crawled / "crawl", home.path / "data" / "wiki")
    backup(home.path, tmp_path / "h.tar", as_json=False)
    assert restore(tmp_path / "h.tar", tmp_path / "new", quiet).kind == "home"
    found = {path.name for path in (tmp_path / "new").iterdir()}
    assert found == kept | {"queries.sqlite", "crawls", "data"}
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["backup", "crawl", "x.zip"], "expected a name that ends in .tar or .tar.zst"),
        (["backup", "crawl", "crawl/x.tar"], "expected a place outside of it"),
        (["backup", "crawl", "there.tar"], "exists: a backup overwrites nothing"),
        (["backup", "nowhere", "x.tar"], "is not a directory"),
        (["backup", "crawl", "nowhere/x.tar"], "is not a folder"),
        (["backup", "empty", "x.tar"], "no crawl has written here yet"),
        (["restore", "x.tar", "new"], "x.tar cannot be read"),
        (["restore", "said", "new"], "expected a name that ends in .tar or .tar.zst"),
        (["restore", "there.tar", "crawl"], "exists: expected a new or empty folder"),
        (["restore", "other.tar", "new"], "is not a backup of larmspider"),
        (["restore", "later.tar", "new"], "has format '99', made by larmspider 9.0"),
    ],
)
def test_a_wrong_argument_changes_nothing(
    crawled: Path, arguments: list[str], said: str, tmp_path: Path
) -> None:
    shutil.copytree(crawled / "crawl", tmp_path / "crawl")
    for name in ("there.tar", "said"):
        (tmp_path / name).write_text("")
    (tmp_path / "empty").mkdir()
    tar_of(tmp_path / "other.tar", {"x": b""})
    head = json.dumps({"format": 99, "larmspider": "9.0"}).encode()
    tar_of(tmp_path / "later.tar", {"larmspider-backup.json": head})
    before = sorted(path for path in tmp_path.rglob("*") if "lock" not in path.name)
    one, other = (tmp_path / name for name in arguments[1:])
    act = (
        partial(backup, as_json=False) if arguments[0] == "backup" else partial(restore, say=quiet)
    )
    with pytest.raises(ConfigError, match=re.escape(said)):
        act(one, other)
    assert sorted(path for path in tmp_path.rglob("*") if "lock" not in path.name) == before


def tar_of(path: Path, members: dict[str, bytes], **how: Any) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for attribute, value in how.items():
                setattr(member, attribute, value)
            tar.addfile(member, io.BytesIO(content))


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def changed(content: bytes) -> bytes:
    return content.replace(b"penguins", b"penguinz")


def without_end(content: bytes) -> bytes:
    return content[: content.rindex(b"larmspider-backup-end.json")]


@pytest.mark.parametrize("damage", [cut, changed, without_end])
def test_a_damaged_backup_restores_nothing(
    crawled: Path, damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    file = tmp_path / "b.tar"
    with BackupFile(file, "crawl", quiet) as out:
        add_crawl(out, crawled / "crawl")
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CrawlDirError, match=r"is damaged: .*; nothing was restored"):
        restore(file, tmp_path / "new", quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["b.tar"]


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "."])
def test_no_member_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    head = json.dumps({"format": 1, "kind": "crawl"}).encode()
    tar_of(tmp_path / "b.tar", {"larmspider-backup.json": head, name: b""})
    with pytest.raises(CrawlDirError, match="is not a file that a backup has"):
        restore(tmp_path / "b.tar", tmp_path / "new", quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["b.tar"]


def test_workers_are_stopped_first(tmp_path: Path) -> None:
    """Their queues are in Redis."""
    (tmp_path / "crawl" / "w1").mkdir(parents=True)
    shared = {"format": 2, "workers": {"redis": "redis://redis.example:6379/0"}}
    (tmp_path / "crawl" / "crawl.json").write_text(json.dumps(shared))
    (tmp_path / "crawl" / "w1" / "crawl.json").write_text(json.dumps({"format": 2}))
    (tmp_path / "crawl" / "w1" / "store.log").write_text("")
    with (
        lock(tmp_path / "crawl" / "w1" / "lock"),
        pytest.raises(ConfigError, match="workers run"),
        BackupFile(tmp_path / "b.tar", "crawl", quiet) as out,
    ):
        add_crawl(out, tmp_path / "crawl")
    with BackupFile(tmp_path / "b.tar", "crawl", quiet) as out:
        add_crawl(out, tmp_path / "crawl")
    assert out.notes == [
        f"{tmp_path}/crawl: its queues are in Redis (redis://redis.example:6379/0): back Redis up,"
        " too"
    ]
    restore(tmp_path / "b.tar", tmp_path / "new", quiet)
    assert (tmp_path / "new" / "w1" / "store.log").exists()


def test_it_waits_while_the_frontier_is_committed(
    crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that were opened around a commit are opened again."""
    shutil.copytree(crawled / "crawl", tmp_path / "crawl")
    names, pinned = crawl_backup._names, list[int]()
    program = (
        "from pathlib import Path; from larmspider.frontier.storage.lmdb_env import *;"
        "LmdbFiles(Path('crawl/frontier')).write(WriteBatch(meta={b'note': b'1'}))"
    )

    def commits(*arguments: Any) -> Any:
        pinned.append(1)
        if len(pinned) == 1:
            subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
        return names(*arguments)

    monkeypatch.setattr(crawl_backup, "_names", commits)
    with BackupFile(tmp_path / "b.tar", "crawl", quiet) as out:
        add_crawl(out, tmp_path / "crawl")
    assert len(pinned) == 2


def test_a_progress_line_comes_every_five_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 1.0, 6.0, 7.0])
    monkeypatch.setattr(command.time, "monotonic", lambda: next(clock))
    with command.progress("Copying wiki") as say:
        for done in (1, 2, 3):
            say("store.log", done, 4)
    assert capsys.readouterr().err == "Copying wiki: store.log, 50%\n"
