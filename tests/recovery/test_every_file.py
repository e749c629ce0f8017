"""Each file of a plain, a compressed and a WARC crawl is damaged in turn: `verify` names it. After
`verify --repair` and a refresh the crawl is as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from scrapy.settings import Settings

from larmspider.crawl.verify.check import check
from larmspider.workdir.left import OPERATORS
from tests.recovery.test_verify import DAMAGES, SETTINGS, STORES, Crawls, damaged, is_named
from tests.support.crawling import scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer

pytestmark = pytest.mark.acceptance

PAGES = 16
WARC = {"LARM_BODIES": "warc", "LARM_WARC_BYTES": "9000"}
KINDS = {"plain": {}, "zstd": {"LARM_COMPRESSION": "zstd"}, "warc": WARC}
LOCKS = re.compile(r"lock|lock\.mdb|.*\.lock|\.tantivy-.*|index\.sqlite-.*")
"""Files without content, and those that SQLite makes for its readers."""
MENDED = {
    "zstd": ("store.log.zst", "links.log.zst", "pagefile_0.pfl.zst", "sums/*"),
    "warc": ("warc/*-00001.warc.gz", "warc/*-00002.cdxj", "warc/*-00002.warc.gz"),
}


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
        for name, seed, removed in (("one", "/p0", "/p8"), ("two", "/p1", "/p11")):
            ran = crawls.run(name, seed)
            assert ran.status == 0, ran.err
            for file in OPERATORS:
                (folder / name / file).write_text(f"# of {name}\n")
            for command in (
                ["remove", "--yes", server.url(removed)],
                ["outbox", "--fill", "DummyReceiver"],
                ["report"],
            ):
                ran = scrapy(*command, "--dir", name, *crawls.given(), cwd=folder)
                assert ran.status == 0, ran.err
            ran = crawls.run(name, seed, "-a", "refresh=all")
            assert ran.status == 0, ran.err
        yield crawls._replace(before=crawls.content("one"))


def _kind_of(crawls: Crawls) -> str:
    return next(name for name in KINDS if crawls.folder.name.startswith(name))


def test_each_file_that_is_damaged_is_named(crawls: Crawls) -> None:
    """By one of the six damages, which changes from file to file, and from kind to kind."""
    one, unnamed, number = crawls.folder / "one", [], 0
    first = 2 * list(KINDS).index(_kind_of(crawls))
    for path in sorted(one.rglob("*")):
        if not path.is_file() or LOCKS.fullmatch(path.name) or not path.stat().st_size:
            continue
        file, number = path.relative_to(one).as_posix(), number + 1
        damage = [*DAMAGES][(first + number) % 6]
        if (now := damaged(crawls, "named", file, damage)) is None:
            continue
        if file.startswith("logs.idx") and not now.exists():
            continue  # each reader of the logs makes it again
        found = check(crawls.folder / "named", Settings(), lambda *_: None)
        is_noted = file in OPERATORS and any(str(now) in note for note in found.notes)
        if not is_named(now, found) and not is_noted:
            unnamed.append((file, damage, found.damages))
    assert number > 40
    assert not unnamed


def test_a_damaged_file_is_mended(crawls: Crawls) -> None:
    for number, file in enumerate(MENDED.get(_kind_of(crawls), ())):
        damage = [*DAMAGES][number % 6]
        assert damaged(crawls, "work", file, damage) is not None
        mended = crawls.verify("work", "--repair")
        assert mended.status == 0, (file, damage, mended.out + mended.err)
        ran = crawls.run("work", "/p0", "-a", "refresh=all")
        assert ran.status == 0, ran.err
        after = crawls.verify("work")
        assert after.status == 0, (file, damage, after.out)
        assert crawls.content("work") == crawls.before, (file, damage)
