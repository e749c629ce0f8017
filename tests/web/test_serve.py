"""scrapy serve: whatever the directory holds, it says what that is."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import IO
from urllib.parse import quote

import pytest

from larmspider.commands.serve import NOBODY_SIGNS_IN, collection_names
from larmspider.errors import ConfigError
from larmspider.index.version import META_NAME
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.searcher import Searcher
from tests.support.crawling import PROJECT, scrapy
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.crawling import Crawling, endless
from tests.support.web.serving import Served, request

Servers = Callable[..., ScriptedServer]
PAGES = {"/robots.txt": (404, {}, b""), "*": endless()}


@contextmanager
def serving(
    folder: Path, *arguments: str, lines: int = 1, err: IO[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Its first lines, and its address; it ends by SIGTERM, with status 0."""
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "larmspider.settings"}
    environment["PYTHONPATH"] = str(PROJECT)
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "serve", "--port", "0", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=err,
        text=True,
    )
    assert process.stdout is not None
    try:
        said = "".join(process.stdout.readline() for _ in range(lines))
        url = process.stdout.readline()
        assert url.startswith("http://127.0.0.1:"), said + url
        yield said.strip(), url.strip().rstrip("/")
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.acceptance
def test_an_empty_directory_stays_empty(tmp_path: Path) -> None:
    """It is served, says so, and can still be crawled into; then it is another."""
    (tmp_path / "crawl").mkdir()
    with serving(tmp_path, "--dir", "crawl") as (said, url):
        assert "is empty: no crawl has written here yet" in said
        got = request(url + "/")
        assert got.status == 404
        assert "is empty" in got.text
        assert json.loads(request(url + "/healthz").body) == {"status": "ok", "crawl": "empty"}
        assert list((tmp_path / "crawl").iterdir()) == []


def test_a_finished_crawl(demo_crawl: Path, tmp_path: Path) -> None:
    """The overview in figures; nothing to control, however one asks."""
    with serving(tmp_path, "--dir", str(demo_crawl)) as (said, url):
        assert re.fullmatch(r"Finished at \S+Z\.", said)
        assert re.sub(r"T([\d:]+)Z", r" \1", said) in request(url + "/").text
        found = request(url + "/stats.json").json
        assert found["state"] == "ended"
        assert found["urls"]["stored"] > 40
        assert found["rejected_links"]["scope"] >= 1
        assert found["failed_urls"] == {"http-404": 1, "http-500": 1}
        assert found["numbers"] is None
        assert request(url + "/control/pause", "POST", form={}).status == 401


@pytest.mark.acceptance
def test_a_killed_crawl(scripted_server: Servers, tmp_path: Path) -> None:
    """It did not say how it ended; the note of where it served is no server any more."""
    server = scripted_server(PAGES)
    with Crawling(tmp_path, server.url("/")) as crawl:
        crawl.until(lambda: crawl.gauges["counters"].get("larm/checkpoint/count", 0) > 3, "some")
        crawl.process.kill()
        crawl.process.wait()
        token = crawl.token
    with serving(tmp_path) as (said, url):
        assert "was killed" in said
        assert "Start it again to continue from its last checkpoint" in request(url + "/").text
        assert request(url + "/healthz").status == 503
        found = request(url + "/stats.json").json
        assert found["urls"]["stored"] > 0
        assert found["numbers"] is None
        headers = {"Authorization": f"Bearer {token}"}
        got = request(url + "/control/pause", "POST", headers, {"x": ""})
        assert (got.status, got.json["error"]) == (409, "The crawl's own server cannot be reached.")


@pytest.mark.acceptance
def test_a_running_crawl_is_shown_and_controlled_through_its_own_server(
    scripted_server: Servers, tmp_path: Path
) -> None:
    """Live numbers, and acts, from another process that reads the same directory."""
    server = scripted_server(PAGES)
    with Crawling(tmp_path, server.url("/")) as crawl:
        crawl.until(lambda: crawl.gauges["counters"].get("larm/checkpoint/count", 0) > 3, "some")
        with serving(tmp_path) as (said, url):
            assert said.startswith("Running since ")
            assert request(url + "/stats.json").json["numbers"]["pages"] > 0
            headers = {"Authorization": f"Bearer {crawl.token}"}
            got = request(url + "/control/pause", "POST", headers, {"x": ""})
            assert got.json["done"].startswith("the crawl is paused")
            assert crawl.gauges["paused"]
            bad = request(url + "/control/slow", "POST", headers, {"factor": "much"})
            assert bad.status == 409
            assert "factor 'much': expected" in bad.json["error"]
            crawl.act("resume")
            before = crawl.gauges["pages"]
            end = time.monotonic() + 120
            while request(url + "/stats.json").json["numbers"]["pages"] <= before:
                assert time.monotonic() < end


def test_crawls_are_named_for_their_directories() -> None:
    """For as much of the path as tells them apart, or by LARM_COLLECTIONS."""
    paths = [Path("/srv/a/crawl"), Path("/srv/b/crawl"), Path("/srv/wiki")]
    assert [*collection_names(paths, {}).values()] == ["a/crawl", "b/crawl", "wiki"]
    named = collection_names(paths, {"/srv/a/crawl": "Staff", "/srv/gone": "Gone"})
    assert [*named.values()] == ["Staff", "crawl", "wiki"]
    for bad in (
        {"/srv/wiki": ""},
        {"/srv/wiki": 3},
        {"/srv/wiki": "wiki,pay"},
        {"/srv/wiki": " _all "},
        {"/srv/wiki": "*"},
        {"/srv/wiki": "larmspider"},
        {"/srv/wiki": "crawl", "/srv/a/crawl": "crawl"},
    ):
        with pytest.raises(ConfigError, match="LARM_COLLECTIONS"):
            collection_names(paths, bad)
    with pytest.raises(ConfigError, match="/srv/wiki: the same directory is named twice"):
        collection_names([*paths, Path("/srv/wiki")], {})


def test_a_directory_is_named_once_however_it_is_spelt(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "loop").symlink_to("loop")
    for other in ("b/../a", "link"):
        says = f"{tmp_path / other}: the same directory is named twice, as {tmp_path / 'a'} too"
        with pytest.raises(ConfigError, match=re.escape(says)):
            collection_names([tmp_path / "a", tmp_path / other], {})
        named = collection_names([tmp_path / "a", tmp_path], {str(tmp_path / other): "Staff"})
        assert named[tmp_path / "a"] == "Staff"
    assert len(collection_names([tmp_path / "a", tmp_path / "loop"], {})) == 2


@pytest.mark.parametrize("name", ["larmspider", "_all", "*", "wiki,pay"])
def test_a_directory_with_a_name_that_means_all_crawls(name: str) -> None:
    """It has to be given another one, unless it is the only crawl, or named by more of its path."""
    path, other = Path("/srv") / name, Path("/srv/wiki")
    with pytest.raises(ConfigError) as refused:
        collection_names([other, path], {})
    assert str(refused.value).startswith(f"{path}: its pages cannot be searched as the collection")
    assert str(refused.value).endswith(f'as in LARM_COLLECTIONS={{"{path}": "Staff"}}')
    named = collection_names([other, path], {str(path): "Staff"})
    assert [*named.values()] == ["wiki", "Staff"]
    assert collection_names([path], {}) == {path: name}
    if "," not in name:
        assert len(collection_names([path, Path("/var") / name], {})) == 2


def test_several_crawls(demo_crawl: Path, tmp_path: Path) -> None:
    """Found together; a directory without a crawl is an error, and so is the token of one."""
    shutil.copytree(demo_crawl, tmp_path / "other")
    token = "a token of one crawl, 32 letters"
    (tmp_path / "other" / "web.token").write_text(token.replace(" ", "-"))
    with serving(tmp_path, "other", str(demo_crawl), lines=2) as (_, url):
        found = request(url + "/search?q=rotor&format=json").json
        assert set(found["facets"]["collection"]) == {demo_crawl.name, "other"}
        assert len({hit["url"] for hit in found["hits"]}) == len(found["hits"])
        headers = {"Authorization": f"Bearer {token.replace(' ', '-')}"}
        assert request(url + "/control/pause", "POST", headers, {"x": ""}).status == 401
    ran = scrapy("serve", str(demo_crawl), "none", cwd=tmp_path)
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)


def test_a_name_for_a_directory_that_is_not_served_is_told(tmp_path: Path) -> None:
    """At the start, and the others are named; a crawl may still come."""
    (tmp_path / "wiki").mkdir()
    named = json.dumps({str(tmp_path / "wiki/"): "Wiki", "/srv/hr\n": "Staff"})
    with (
        (tmp_path / "err").open("w") as err,
        serving(tmp_path, "-s", f"LARM_COLLECTIONS={named}", "wiki", err=err),
    ):
        said = (tmp_path / "err").read_text()
    assert said == (
        "scrapy serve: LARM_COLLECTIONS: /srv/hr\ufffd is not one of the served directories\n"
    )


def test_where_nobody_can_sign_in_it_is_told(tmp_path: Path) -> None:
    """The search is open, and a crawl with credentials left no token; groups need none."""
    manifest = {"format": 2, "seeds": [], "credentials": ["https://hr.example"], "settings": {}}
    (tmp_path / "crawl.json").write_text(json.dumps(manifest))
    groups = [
        'LARM_SEARCH_GROUPS={"staff": ["hr.example"]}',
        *("LARM_SEARCH_GROUPS_HEADER=X-Groups", "LARM_TRUSTED_PROXIES=::1"),
    ]
    said = []
    for settings in ([], ["LARM_WEB_TOKEN=" + "x" * 32], groups):
        options = [part for one in (*settings, "LARM_WEB_OPEN=/search") for part in ("-s", one)]
        with (tmp_path / "err").open("w") as err, serving(tmp_path, *options, ".", err=err):
            said.append((tmp_path / "err").read_text())
    assert said == [f"scrapy serve: {NOBODY_SIGNS_IN}\n", "", ""]


@pytest.mark.parametrize("damaged", ["meta.json", "*.idx", "*.store", "larmspider-index.json"])
def test_a_damaged_index_is_named(demo_crawl: Path, tmp_path: Path, damaged: str) -> None:
    """The others are searched."""
    shutil.copytree(demo_crawl, tmp_path / "other")
    for path in (tmp_path / "other" / "index").glob(damaged):
        path.unlink()
    with Served(demo_crawl, others=[tmp_path / "other"]) as site:
        (line,) = site.source.unsearched
        assert line.startswith("0: its pages are not found: ")
        assert str(tmp_path / "other" / "index") in line
        found = site.get("/search?q=rotor&format=json").json
        assert set(found["facets"]["collection"]) == {"first"}


def test_a_cached_copy_is_that_of_the_hits_own_crawl(demo_crawl: Path, tmp_path: Path) -> None:
    """Another crawl has another version of the page."""
    other = tmp_path / "other"
    shutil.copytree(demo_crawl, other)
    searcher = Searcher.open(other / "index")
    url = searcher.search("rotor").hits[0].normalized
    with IndexWriter(other / "index") as index:
        index.add(Page(url, normalized=url, body=b"x", text="the openversion", mime="text/html"))
    with Served(demo_crawl, others=[other]) as site:
        key = re.escape(quote(url, safe=""))
        link = rf'href="(/search/copy[^"]*u={key}[^"]*)"'
        (found,) = re.findall(link, site.get("/search?q=openversion").text)
        copy = site.get(unescape(found)).text
        assert "<mark>openversion</mark>" in copy
        assert "openversion" not in site.get(f"/search/copy?u={quote(url)}&collection=first").text
        assert site.get(f"/search/copy?u={quote(url)}&collection=none").status == 404


@pytest.mark.acceptance
def test_one_of_several_crawls_cannot_be_searched(demo_crawl: Path, tmp_path: Path) -> None:
    """It is said at the start, with what to do, and on the operator's pages."""
    other = tmp_path / "other"
    shutil.copytree(demo_crawl, other)
    (other / "index" / META_NAME).write_text('{"format": 4, "stemmer": "english"}')
    token = "a-token-of-both-crawls-32-letters"
    settings = ("-s", f"LARM_WEB_TOKEN={token}")
    with (
        (tmp_path / "err").open("w") as err,
        serving(tmp_path, *settings, str(demo_crawl), "other", lines=2, err=err) as (_, url),
    ):
        said = (tmp_path / "err").read_text()
        assert said.startswith(f"scrapy serve: other: its pages are not found: {other}/index: ")
        assert "scrapy reindex rebuilds it" in said
        signed_in = {"Authorization": f"Bearer {token}"}
        for page in ("/", "/search", "/search?q=rotor"):
            assert "other: its pages are not found" in request(url + page, headers=signed_in).text
            assert "not found: " not in request(url + page).text
        found = request(url + "/search?q=rotor&format=json").json
        assert set(found["facets"]["collection"]) == {demo_crawl.name}


TWO_SIGNALS = """
import asyncio, os, signal, time
from larmspider.commands.serve import stopped_by_signals

async def serve():
    stopped = stopped_by_signals()
    os.kill(os.getpid(), signal.SIGINT)
    await stopped.wait()

asyncio.run(serve())
print("closed", flush=True)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(20)
"""


def test_a_second_signal_ends_it_without_a_traceback(tmp_path: Path) -> None:
    """Also when the loop is closed already, and only threads are waited for."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    ran = subprocess.run(
        [sys.executable, "-c", TWO_SIGNALS], cwd=tmp_path, env=environment, timeout=120,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr, ran.returncode) == ("closed\n", "", -signal.SIGINT)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["x", "--dir", "y"], "unexpected argument 'x': --dir names a directory already"),
        (["a/crawl", "a/crawl"], "is named twice"),
        (["-s", "LARM_COLLECTIONS=[]", "a", "b"], "LARM_COLLECTIONS=[]: expected a mapping"),
        (["nowhere"], "nowhere is not a directory"),
        (["--port", "70000"], "LARM_WEB_PORT=70000: expected"),
        (["-s", "LARM_WEB_ADDRESS=0.0.0.0"], "set LARM_WEB_TOKEN too"),
        (["-s", "LARM_WEB_ADDRESS=wiki"], "expected an IP address"),
        (
            ["-s", "LARM_WEB_ADDRESS=192.0.2.1", "-s", "LARM_WEB_TOKEN=0123456789abcdef", "."],
            "bound",
        ),
        (["-s", "LARM_WEB_TOKEN=s3cret"], "at least 16 printable"),
        (["-s", "LARM_WEB_OPEN=search"], "paths such as /search"),
        (["-s", "LARM_WEB_HOSTS=http://wiki/"], "without scheme and port"),
        (["-s", "LARM_SEARCH_COLOUR=red"], "expected a colour such as #7a1f3d"),
        (["-s", "LARM_WEB_HOSTS=wiki,wiki:6080"], "LARM_WEB_HOSTS=wiki:6080: expected"),
    ],
)
def test_what_cannot_be_served(tmp_path: Path, arguments: list[str], words: str) -> None:
    """One line, status 2, and no token in it."""
    ran = scrapy("serve", *arguments, cwd=tmp_path)
    assert ran.status == 2
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1
    assert "s3cret" not in ran.err


@pytest.mark.parametrize("command", [["serve", "crawl"], ["server", "--home", "home"]])
def test_a_named_port_that_is_taken_is_refused(tmp_path: Path, command: list[str]) -> None:
    """Bookmarks and proxies have that port. Without --port the next free one is printed."""
    (tmp_path / "crawl").mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = scrapy(*command, "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert ran.status == 2
    assert "another program listens there; expected a free port" in ran.err
    assert "Traceback" not in ran.err
