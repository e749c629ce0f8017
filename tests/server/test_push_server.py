"""Documents pushed to a real server: each becomes a stored page, once, in spite of kills."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from larmspider.workdir.pushed import Pushed, PushWatch
from tests.server.test_server import ctl
from tests.support.crawling import scrapy
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.console import Running, first_token, serving, until
from tests.support.web.serving import Got, request

pytestmark = pytest.mark.acceptance
HR = """
kind = "push"
collection = "Staff"
[settings]
LARM_CHECKPOINT_SECS = 0.3
LARM_SQL_URL = "sqlite:pages.db"
LARM_FACETS = ["room"]
[settings.LARM_FIELDS."*"]
room = "//nothing"
[settings.ITEM_PIPELINES]
"larmspider.pipelines.deleted_log.DeletedLogPipeline" = 100
"larmspider.pipelines.page_files.PageFilesPipeline" = 200
"larmspider.pipelines.link_log.LinkLogPipeline" = 300
"larmspider.pipelines.fetch_log.FetchLogPipeline" = 400
"larmspider.pipelines.search_index.SearchIndexPipeline" = 500
"larmspider.pipelines.outbox.sql.SqlReceiver" = 600
"""
LINES = "application/x-ndjson"


def push(server: Running, documents: list[dict[str, Any]]) -> Got:
    body = b"\n".join(json.dumps(one).encode() for one in documents)
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": LINES}
    return request(f"{server.url}/api/v1/index?collection=hr", "POST", headers, body)


def state(server: Running, url: str) -> Any:
    got = server.raw(f"/index?url={quote(url)}")
    return got.json["state"] if got.status == 200 else got.status


def stored_urls(directory: Path) -> Counter[str]:
    """The URLs of the stored pages in store.log, with the number of their lines."""
    lines = (directory / "store.log").read_text().splitlines()
    return Counter(line.split("\t")[1] for line in lines)


def test_a_document_is_a_page(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Found, shown without its scripts, sent to a receiver, in facets; then changed, taken out,
    verified, indexed again and exported. A URL of a crawl of the same collection is refused."""
    site = scripted_server({"/": "<title>Start</title><p>a", "/robots.txt": (404, {}, b"")})
    crawls = tmp_path / "home" / "crawls"
    crawls.mkdir(parents=True)
    (crawls / "hr.toml").write_text(HR)
    (crawls / "wiki.toml").write_text(f"collection = 'Staff'\nseeds = ['{site.url('/')}']\n")
    directory, host = tmp_path / "home" / "data" / "hr", "http://hr.example"
    rtf = base64.b64encode(rb"{\rtf1 narwhals swim}").decode()
    page = "<title>Old</title><p>seal <script>alert(1)</script><a href='/x'>x</a>"
    documents = [
        {"url": f"{host}/text", "text": "walrus text", "title": "Walrus", "fields": {"room": "12"},
         "language": "en", "date": "2020-02-03", "version": 1},
        {"url": f"{host}/html", "text": page, "content_type": "text/html", "title": "Seal"},
        {"url": f"{host}/file.rtf", "file": rtf, "content_type": "application/rtf"},
        {"url": f"{host}/a.png", "file": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()},
        {"url": f"{host}/gone", "text": "walrus that leaves"},
        {"url": f"{host}/pay", "text": "orca", "access": ["group:hr", "user:anna"]},
        {"url": f"{host}/later", "text": "orca", "access": ["user:anna"]},
    ]  # fmt: skip
    with serving(tmp_path) as server:
        server.token = first_token(server)
        server.api("/crawls/wiki/start", "POST")
        until(lambda: server.api("/crawls/wiki")["summary"]["state"] == "ended", "wiki has ended")
        got = push(server, [*documents, {"url": site.url("/"), "text": "mine"}])
        assert [one["status"] for one in got.json["documents"]] == [201] * 7 + [409]
        assert "the crawl wiki of this collection" in got.json["documents"][7]["error"]
        for one in documents:
            url = str(one["url"])
            until(lambda url=url: state(server, url) == "stored", f"{url} is stored")
        png = server.api(f"/index?url={host}/a.png")
        assert png["outcome"] == "binary: image/png is not a document"

        def found(query: str, headers: dict[str, str] | None = None) -> Any:
            return request(
                f"{server.url}/search?q={quote(query)}&format=json", headers=headers or {}
            ).json

        until(lambda: found("walrus")["total"] == 2, "it is found")
        hit = found("walrus text")["hits"][0]
        assert (hit["title"], hit["url"]) == ("Walrus", f"{host}/text")
        assert found("walrus")["facets"]["fields"]["room"] == {"12": 1}
        assert found("narwhals")["total"] == 1
        copy = request(f"{server.url}/search/copy?u={quote(host + '/html', safe='')}")
        assert "seal" in copy.text
        assert "alert(1)" not in copy.text
        headers = {"Authorization": f"Bearer {server.token}"}
        assert request(f"{server.url}/crawls/hr/", headers=headers).status == 200
        assert (found("orca")["total"], found("orca", headers)["total"]) == (0, 2)
        for path in ("pay", "later"):
            copy = request(f"{server.url}/search/copy?u={quote(f'{host}/{path}', safe='')}")
            assert (copy.status, "orca" in copy.text) == (404, False)
        push(server, [{"url": f"{host}/later", "text": "orca"}])  # the same text, for everybody now
        until(lambda: found("orca")["total"] == 1, "it is for everybody")
        push(server, [documents[0] | {"version": 2, "text": "walrus again", "title": "Newer"}])
        assert server.raw(f"/index?url={host}/gone", "DELETE").status == 200
        until(lambda: found("walrus")["total"] == 1, "the other one has left")
        assert found("walrus")["hits"][0]["title"] == "Newer"
        until(lambda: state(server, f"{host}/gone") == 404, "it is forgotten")
        assert ctl(tmp_path, "stop", "hr").status == 0
        until(lambda: server.api("/crawls/hr")["summary"]["state"] == "ended", "it has stopped")
        assert server.api("/crawls/hr/runs")["runs"][0]["outcome"] == "shutdown"
        push(server, [{"url": f"{host}/last", "text": "walrus later"}])
        with closing(sqlite3.connect(tmp_path / "home" / "pages.db")) as database:
            rows = database.execute("SELECT * FROM pages").fetchall()
        assert {"Newer", "Seal"} <= {value for row in rows for value in row}
        here = ("-s", f"LARM_DIR={directory}")
        for command in (("verify",), ("reindex",), ("verify",)):
            ran = scrapy(*command, *here, cwd=tmp_path)
            assert ran.status == 0, ran.out + ran.err
        assert "Newer" in scrapy("search", *here, "walrus", cwd=tmp_path).out
        assert found("walrus")["facets"]["fields"]["room"] == {"12": 1}
        assert (found("orca")["total"], found("orca", headers)["total"]) == (1, 2)
        shutil.rmtree(directory / "index")
        ran = scrapy("reindex", *here, cwd=tmp_path)
        assert ran.status == 0, ran.err
        until(lambda: found("walrus")["total"] == 1, "the new index is open")
        assert (found("orca")["total"], found("orca", headers)["total"]) == (1, 2)
        assert scrapy("export", *here, "pages", "pages.jsonl", cwd=tmp_path).status == 0
        exported = [
            json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()
        ]
        assert {one["url"]: one["title"] for one in exported}[f"{host}/text"] == "Newer"
        ran = scrapy("remove", *here, "--yes", f"{host}/html", cwd=tmp_path)
        assert ran.status == 0, ran.err
        got = push(server, [documents[1]])
        assert "the operator has removed this URL" in got.json["documents"][0]["error"]
        server.api("/crawls/hr/start", "POST")
        until(lambda: state(server, f"{host}/last") == "stored", "what waited is stored")
        assert ctl(tmp_path, "stop", "hr").status == 0
        until(lambda: server.api("/crawls/hr")["summary"]["state"] == "ended", "it has stopped")
    crawl = ("crawl", "intranet", "-a", f"start={site.url('/')}", "-a", "resume=anyway")
    refused = scrapy(*crawl, *here, cwd=tmp_path)
    assert (refused.status, "was pushed to before" in refused.err) == (2, True), refused.err
    assert scrapy("verify", *here, cwd=tmp_path).status == 0


def test_twenty_kills(tmp_path: Path) -> None:
    """kill -9 of the server while it takes documents, and of the crawl that stores them: each
    answered document is stored, and none twice."""
    chance = random.Random(7)
    crawls = tmp_path / "home" / "crawls"
    crawls.mkdir(parents=True)
    (crawls / "hr.toml").write_text('kind = "push"\n[settings]\nLARM_CHECKPOINT_SECS = 0.3\n')
    directory, runs = tmp_path / "home" / "data" / "hr", tmp_path / "home" / "runs" / "hr"
    token = scrapy(
        "server", "--home", "home", "token", "hr", "--scope", "push", cwd=tmp_path
    ).out.strip()
    answered: set[str] = set()
    number = 0

    def send(server: Running) -> None:
        """Batches until the server is gone; the last one is sent once more to the next server."""
        nonlocal number
        while True:
            urls = [f"http://hr.example/{number}/{n}" for n in range(20)]
            documents = [{"url": url, "text": f"walrus {url}", "version": 1} for url in urls]
            try:
                got = push(server, documents)
                assert got.status == 200, got.text
                assert got.json["refused"] == 0
            except OSError:
                return
            answered.update(urls)
            number += 1

    for kill in range(20):
        with serving(tmp_path) as server:
            server.token = token
            sender = threading.Thread(target=send, args=(server,))
            sender.start()
            time.sleep(chance.uniform(0.2, 1.5))
            if kill % 4 == 3:
                kill_crawl(runs)
            server.process.kill()
            server.process.wait()
            sender.join(30)
    assert len(answered) > 20
    with serving(tmp_path) as server:
        watch = PushWatch()
        until(lambda: not watch.waits(directory), "all is stored", 300)
        ctl(tmp_path, "stop", "hr")
        idle = Path(runs / "lock")
        assert idle.exists()
        until(lambda: "running" not in ctl(tmp_path, "crawls").out, "it has stopped")
    urls = stored_urls(directory)
    assert set(urls) >= answered
    assert max(urls.values()) == 1
    ran = scrapy("verify", "-s", f"LARM_DIR={directory}", cwd=tmp_path)
    assert ran.status == 0, ran.out + ran.err
    ran = scrapy("search", "-s", f"LARM_DIR={directory}", "walrus", "--json", cwd=tmp_path)
    assert json.loads(ran.out)["total_all"] == len(urls)
    with Pushed.open(directory) as pushed:
        assert {url for url in answered if (known := pushed.state(url)) is None or known.state
                != "stored"} == set()  # fmt: skip


def kill_crawl(runs: Path) -> None:
    try:
        pid = json.loads((runs / "state.json").read_text())["run"]["pid"]
        os.kill(pid, signal.SIGKILL)
    except (OSError, KeyError, TypeError, ValueError):
        pass  # it does not run yet
