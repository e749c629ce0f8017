"""Documents that end or hold up their reader cost themselves alone, wherever they come from."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from larmspider.plugins.warc.archives import Archive
from tests.support.crawling import FAST, Ran, body_of, records, scrapy
from tests.support.documents.hostile import (
    ole_of_many_entries,
    xlsx_of_two_far_cells,
    zip_of_many_names,
)
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.web.crawling import Crawling

pytestmark = pytest.mark.acceptance

BODIES = {
    "cells": xlsx_of_two_far_cells(),
    "ole": ole_of_many_entries(60_000),
    "zip": zip_of_many_names(60_000),
    "text": b"x" * 4_000_000,
}
TYPES = {"cells": "spreadsheetml.sheet", "ole": "msword", "zip": "application/zip", "text": "text/"}


class Host:
    """Two pages and a document. ``spoilt``: made-up URLs give that document, and so do the start
    page and one of the pages; the other one has changed."""

    def __init__(self, body: bytes, content_type: str = "") -> None:
        self.body, self.type, self.spoilt = body, content_type, False
        self.made_up = 0

    def answer(self, request: Request) -> Reply:
        path, page = request.path, {"Content-Type": "text/html"}
        document = Reply(200, {"Content-Type": self.type} if self.type else {}, self.body)
        if path == "/robots.txt":
            return Reply(404)
        if path == "/document" or (self.spoilt and path == "/"):
            return document
        if path == "/":
            links = b"<p>The start of all<a href=/a>a</a> <a href=/b>b</a> <a href=/document>d</a>"
            return Reply(200, page, links)
        if path == "/a":
            text = b"<p>The canteen has another menu today" if self.spoilt else b"<p>The canteen"
            return Reply(200, page, b"<title>a</title>" + text)
        if path == "/b" and not self.spoilt:
            return Reply(200, page, b"<title>b</title><p>The parking space of the visitors")
        if not self.spoilt:
            return Reply(404)
        self.made_up += path != "/b"
        return document


@contextmanager
def hosts() -> Iterator[dict[str, tuple[Host, str]]]:
    with ExitStack() as running:
        found = {}
        for number, (name, body) in enumerate(BODIES.items(), 1):
            host = Host(body, "text/csv" if name == "text" else "")
            server = running.enter_context(ScriptedServer({"*": host.answer}, f"127.0.2.{number}"))
            found[name] = host, server.url("/")
        yield found


def shares(folder: Path) -> Path:
    """The same documents as files, without a word on what they are."""
    (folder / "share").mkdir()
    for name, body in BODIES.items():
        (folder / "share" / name).write_bytes(body)
    (folder / "share" / "note.txt").write_text("read as well")
    return folder / "share"


def stored(folder: Path) -> dict[str, dict[str, str]]:
    return {line["url"]: line for line in records(folder / "store.log")}


def test_documents_end_no_crawl(tmp_path: Path) -> None:
    """Found by links, as files, in place of a start page, and as answers to made-up URLs."""
    share = shares(tmp_path)
    seconds = {"LARM_DOCUMENT_SECS": "5", "LARM_FILE_ROOTS": str(share)}
    settings = [f"-s{name}={value}" for name, value in (FAST | seconds).items()]
    with hosts() as found:
        seeds = " ".join([*(url for _, url in found.values()), f"file://{share}/"])
        begin = ("crawl", "intranet", "-a", f"start={seeds}", *settings)

        ran = scrapy(*begin, cwd=tmp_path)
        assert ran.status == 0, ran.err
        before = stored(tmp_path / "crawl")
        for name, (_, url) in found.items():
            for place in (f"{url}document", f"file://{share}/{name}"):
                assert TYPES[name] in before[place]["mime-type"], place
        assert before[f"file://{share}/note.txt"]["title"] == "read as well"

        for host, _ in found.values():
            host.spoilt = True
        ran = scrapy(*begin, "-a", "refresh=all", cwd=tmp_path)
        assert ran.status == 0, ran.err
        assert all(host.made_up for host, _ in found.values()), "made-up URLs were asked"
        assert not (tmp_path / "crawl/deleted.log").exists() or not records(
            tmp_path / "crawl/deleted.log"
        )
        after = stored(tmp_path / "crawl")
        assert after.keys() >= before.keys()
        for name, (_, url) in found.items():
            assert b"another menu" in body_of(tmp_path / "crawl", after[f"{url}a"])
            if name == "cells":  # no reader can read it: the pages stay as they were
                for path in ("", "b"):
                    assert after[url + path] == before[url + path]

    ran = scrapy("reindex", "-sLARM_DOCUMENT_SECS=5", cwd=tmp_path)
    assert ran.status == 0, ran.err
    found_again = scrapy("search", "--json", "canteen", cwd=tmp_path)
    assert found_again.status == 0
    assert "menu" in found_again.out


def test_documents_of_an_archive_end_no_import(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror" / "wiki.example"
    mirror.mkdir(parents=True)
    for name, body in BODIES.items():
        (mirror / name).write_bytes(body)
    (mirror / "index.html").write_text("<title>start</title>")
    assert list(Archive([tmp_path / "mirror"]).urls())
    settings = [f"-s{name}={value}" for name, value in (FAST | {"LARM_DOCUMENT_SECS": "5"}).items()]
    ran: Ran = scrapy("import", "mirror", *settings, cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert len(stored(tmp_path / "crawl")) == len(BODIES) + 1


def test_a_crawl_answers_while_such_documents_come(tmp_path: Path) -> None:
    """Each many times: /healthz is not silent for the second that one of them would take."""
    silences: list[float] = []
    with ExitStack() as running:
        routes = {
            f"/{name}{number}": Reply(200, {"X-Number": str(number)}, body)
            for name, body in BODIES.items()
            if name != "cells"
            for number in range(4)
        }
        links = "".join(f"<a href={path}>x</a> " for path in routes)
        page = Reply(200, {"Content-Type": "text/html"}, links.encode())
        server = running.enter_context(ScriptedServer({"/": page, **routes}))
        settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": "8", "LARM_DOCUMENT_SECS": "5"}
        crawl = running.enter_context(Crawling(tmp_path, server.url("/"), **settings))
        over = threading.Event()

        def ask() -> None:
            while not over.is_set():
                began = time.monotonic()
                crawl.get("/healthz")
                silences.append(time.monotonic() - began)
                time.sleep(0.05)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            crawl.until(lambda: len(server.log) >= len(routes) + 1, "all requests")
            time.sleep(2)
        finally:
            over.set()
            asking.join()
    assert silences
    assert max(silences) < 10.0  # 20 s when OLE files were opened there; a busy machine takes 3
