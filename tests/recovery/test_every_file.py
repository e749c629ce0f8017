"""Each file of a plain, a compressed and a WARC crawl is damaged: `verify` names it. After `verify
--repair` and a refresh the crawl is as it was. One crawl of each kind is copied for each group of
damages."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest
from scrapy.settings import Settings

from larmspider.checksums import SEAL
from larmspider.crawl.verify.check import check
from larmspider.workdir.left import OPERATORS
from tests.recovery.test_verify import DAMAGES, SETTINGS, STORES, Crawls, damage_it, is_named
from tests.support.crawling import scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer

pytestmark = pytest.mark.acceptance

PAGES = 16
WARC = {"LARM_BODIES": "warc", "LARM_WARC_BYTES": "9000"}
KINDS = {"plain": {}, "zstd": {"LARM_COMPRESSION": "zstd"}, "warc": WARC}
LOCKS = re.compile(r"lock|lock\.mdb|.*\.lock|\.tantivy-.*|index\.sqlite-.*")
"""Files without content, and those that SQLite makes for its readers."""
MENDED = {
    "plain": [{"logs.idx/index.sqlite": "gone", "deleted.log": "gone", "Monitor.log": "a byte"}],
    "zstd": [
        {"store.log.zst": "a byte", "sums/Monitor.log": "empty"},
        {"links.log.zst": "a bit", "pagefile_0.pfl.zst": "cut"},
    ],
    "warc": [
        {"warc/*-00001.warc.gz": "gone", "warc/*-00002.cdxj": "a bit"},
        {"warc/*-00001.warc.gz": "cut", "warc/*-00002.warc.gz": "a byte"},
    ],
}
"""Files that are damaged together, in one copy of the crawl, by the damage of each."""
BODIES = re.compile(r"store\.log|pagefile_|blobs/|warc/")
"""Lines of store.log say where bodies are."""
ALONE = {"frontier/data.mdb", "crawl.json"}
"""Files whose damage says something about all others."""


def page(request: Request) -> Reply:
    number = int(request.path.strip("/p") or 0)
    if number % 10 == 9:
        return Reply(404, {"Content-Type": "text/html"}, b"<h1>gone %d</h1>" % number)
    to = range(number + 1, min(PAGES, number + 5))
    links = "".join(f"<a href='/p{other}'>to {other}</a> " for other in to)
    text = f"<title>Page {number}</title><p>{f'What page {number} says. ' * 40}{links}"
    text += "x" * 60_000 * (number == 5)  # a body that has a file of its own
    return Reply(200, {"Content-Type": "text/html"}, text.encode())


@pytest.fixture(scope="module", params=KINDS)
def crawls(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crawls]:
    settings = SETTINGS | KINDS[request.param]
    if request.param == "warc":
        stores = ["larmspider.plugins.warc.pipeline.WarcPipeline"]
        stores += [f"larmspider.pipelines.{name}" for name in STORES]
        listed = {name: order for order, name in enumerate(stores)}
        settings |= {"ITEM_PIPELINES": json.dumps(listed)}
    folder = tmp_path_factory.mktemp(request.param)
    with ScriptedServer({"*": page, "/robots.txt": Reply(404)}) as server:
        crawls = Crawls(folder, server, settings=settings)
        for name, seed in (("one", "/p0"), ("two", "/p1")):
            ran = crawls.run(name, seed)
            assert ran.status == 0, ran.err
            for file in OPERATORS:
                (folder / name / file).write_text(f"# of {name}\n")
        for command in (
            ["remove", "--yes", server.url("/p8")],
            ["outbox", "--fill", "DummyReceiver"],
            ["report"],
        ):
            ran = scrapy(*command, "--dir", "one", *crawls.given(), cwd=folder)
            assert ran.status == 0, ran.err
        ran = crawls.run("one", "/p0", "-a", "refresh=all")
        assert ran.status == 0, ran.err
        yield crawls._replace(before=crawls.content("one"))


def _kind_of(crawls: Crawls) -> str:
    return next(name for name in KINDS if crawls.folder.name.startswith(name))


def _groups(crawls: Crawls) -> list[dict[str, str]]:
    """Each file, with one of the six damages: another from file to file, and from kind to kind.
    Files of a group lie in different folders, so no damage is named for another one."""
    kind, one = _kind_of(crawls), crawls.folder / "one"
    groups: list[dict[str, str]] = []
    number = 2 * [*KINDS].index(kind)
    for path in sorted(one.rglob("*")):
        file = path.relative_to(one).as_posix()
        if not path.is_file() or LOCKS.fullmatch(path.name):
            continue
        number += 1
        if kind != "plain" and path.parent.name == "index" and path.name != SEAL and number % 3:
            continue  # the index is the same in each kind
        damage = [*DAMAGES][number % 6] if path.stat().st_size else "gone"
        is_alone = file in ALONE or path.name == SEAL
        groups.append({file: damage})
        for group in groups[:-1]:
            if not is_alone and not any(_touch(file, other) for other in group):
                group[file] = groups.pop()[file]
                break
    return groups


def _touch(file: str, other: str) -> bool:
    """Whether the damage of one may hide, or stand for, the damage of the other."""
    one, two = PurePosixPath(file), PurePosixPath(other)
    if other in ALONE or two.name == SEAL:
        return True
    in_index = one.parts[0] == two.parts[0] == "index"
    both_bodies = bool(BODIES.match(file) and BODIES.match(other))
    return in_index or both_bodies or one.name.partition(".")[0] == two.name.partition(".")[0]


def test_each_file_that_is_damaged_is_named(crawls: Crawls) -> None:
    one, work, unnamed, number = crawls.folder / "one", crawls.folder / "named", [], 0
    for group in _groups(crawls):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(one, work)
        changed = {file: damage for file, damage in group.items() if damage_it(work / file, damage)}
        found = check(work, Settings(), lambda *_: None)
        for file, damage in changed.items():
            number += 1
            is_noted = file in OPERATORS and any(str(work / file) in note for note in found.notes)
            if not is_named(work / file, found) and not is_noted:
                unnamed.append((file, damage, group, found.damages))
    assert number > 35
    assert not unnamed


def test_damaged_files_are_mended(crawls: Crawls) -> None:
    """Also what neither a run nor a command makes again: empty logs, the log index."""
    for group in MENDED[_kind_of(crawls)]:
        work = crawls.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(crawls.folder / "one", work)
        files = {min(work.glob(file)): damage for file, damage in group.items()}
        for file, damage in files.items():
            assert damage_it(file, damage)
        mended = crawls.verify("work", "--repair")
        assert mended.status == 0, (group, mended.out + mended.err)
        assert [
            file for file in files if f"{file.relative_to(crawls.folder)}" not in mended.out
        ] == []
        is_warc = any(file.parent.name == "warc" for file in files)
        assert is_warc or all(file.exists() for file in files)
        assert crawls.verify("work").status == 0
        ran = crawls.run("work", "/p0", "-a", "refresh=all")
        assert ran.status == 0, ran.err
        after = crawls.verify("work")
        assert after.status == 0, (group, after.out)
        assert crawls.content("work") == crawls.before, group
