"""Runs the scrapy command as a user does: another process, its output and exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from larmspider.pipelines.deleted_log import DELETED_LOG_COLUMNS
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS
from larmspider.pipelines.link_log import LINK_LOG_COLUMNS
from larmspider.pipelines.page_files import STORE_LOG_COLUMNS
from larmspider.workdir.frames import open_stored
from tests.support.forking import Forked, fork_server
from tests.support.servers.scripted import Route, ScriptedServer

PROJECT = Path(__file__).parents[2]
FAST = {
    "DOWNLOAD_DELAY": "0",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "8",
    "LARM_DELAY_RESPONSE_FACTOR": "0",
    "LARM_BACKOFF_SECS": "0.1",
    "LARM_WEB": "no",
    "LARM_SITEMAPS": "no",
    "LARM_TRAPS": "off",
    "LARM_LANGUAGES": "",
}
"""Settings for servers of our own, to whom we need not be polite; without web pages, sitemaps,
learned traps (many pages of ours say one thing) and the guesser of languages, which have their own
tests."""

_STOP_SECS = 15.0


@dataclass(frozen=True)
class Ran:
    """A finished command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def scrapy(
    *arguments: str, cwd: Path, timeout: float = 300, settings_module: str = "larmspider.settings"
) -> Ran:
    """Run ``scrapy ARGUMENTS`` in ``cwd``, with the project importable but not its scrapy.cfg."""
    own = environment(cwd, settings_module)
    if fork_server().can_run(own):
        return Ran(*fork_server().run([*arguments], cwd, own, timeout))
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=cwd,
        env=own,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def begin(
    *arguments: str,
    cwd: Path,
    out: IO[Any],
    settings_module: str = "larmspider.settings",
    **variables: str,
) -> Forked:
    """The same, running beside the test; what it says goes to ``out``, ``variables`` to its
    environment."""
    own = environment(cwd, settings_module) | variables
    return fork_server().start([*arguments], cwd, own, out.fileno(), out.fileno())


def environment(cwd: Path, settings_module: str) -> dict[str, str]:
    return {
        **os.environ,
        "SCRAPY_SETTINGS_MODULE": settings_module,
        "PYTHONPATH": os.pathsep.join([str(cwd), str(PROJECT)]),
        "PYTHONWARNINGS": "default",
    }


def scrapy_for(
    seconds: float, *arguments: str, cwd: Path, settings_module: str = "larmspider.settings"
) -> None:
    """The same, stopped after ``seconds``; it is an error if it ended before.

    Its output goes to ``cwd``/log. A crawl that does not stop by itself is killed.
    """
    with (cwd / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", *arguments],
            cwd=cwd,
            env=environment(cwd, settings_module),
            stdout=log,
            stderr=log,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECS)
        else:
            raise RuntimeError(f"ended early: {(cwd / 'log').read_text()[-2000:]}")
        finally:
            process.kill()
            process.wait()


def crawl(
    start: str,
    cwd: Path,
    timeout: float = 300,
    settings_module: str = "larmspider.settings",
    **settings: str,
) -> Ran:
    """Crawl into ``cwd``/crawl. Keywords in capitals are settings, others spider arguments."""
    options = []
    for name, value in ({**FAST} | settings).items():
        options += ["-s" if name.isupper() else "-a", f"{name}={value}"]
    command = ["crawl", "intranet", "-a", f"start={start}", *options]
    return scrapy(*command, cwd=cwd, timeout=timeout, settings_module=settings_module)


@dataclass(frozen=True)
class Crawled:
    """One crawl of many hosts, each with its case: servers by the name of the case, and ``folder``,
    below which the crawl is."""

    servers: dict[str, ScriptedServer]
    folder: Path
    ran: Ran


@contextmanager
def crawl_of_cases(
    cases: Mapping[str, Mapping[str, Route]], folder: Path, **settings: str
) -> Iterator[Crawled]:
    """Crawl a host of an address of its own for each case, given by its routes, all at once."""
    with ExitStack() as running:
        servers = {
            name: running.enter_context(ScriptedServer(routes, f"127.0.1.{number}"))
            for number, (name, routes) in enumerate(cases.items(), 1)
        }
        seeds = " ".join(server.url() for server in servers.values())
        yield Crawled(servers, folder, crawl(seeds, folder, **settings))


def records(path: Path) -> list[dict[str, str]]:
    """A log's lines as mappings from column to field; every line must have all its fields."""
    columns = {
        "store.log": STORE_LOG_COLUMNS,
        "links.log": LINK_LOG_COLUMNS,
        "fetch.log": FETCH_LOG_COLUMNS,
        "deleted.log": DELETED_LOG_COLUMNS,
    }[path.name]
    with open_stored(path) as log:
        lines = log.read().decode("utf-8").split("\n")
    assert lines.pop() == "", "the last line has its end"
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines]


def body_of(directory: Path, record: dict[str, str]) -> bytes:
    """The bytes of the page that a line of store.log describes."""
    with open_stored(directory / f"pagefile_{record['page-file']}.pfl") as page_file:
        page_file.seek(int(record["offset"]))
        return page_file.read(int(record["size"]))


# Crawls with a sites file, and what they stored.


PAGES = {
    "/index.html": "<title>start</title><a href=a.html>a</a> <a href=b.html>b</a>",
    "/a.html": "<title>a</title>",
    "/b.html": "<title>b</title>",
    "/robots.txt": "User-agent: *\nDisallow: /none",
}


def folder_with_pages(folder: Path) -> Path:
    folder.mkdir()
    for path, text in PAGES.items():
        (folder / path.lstrip("/")).write_text(text)
    return folder


def crawl_with(sites: str, start: str, cwd: Path, **settings: str) -> Ran:
    (cwd / "sites.toml").write_text(sites)
    (cwd / "sites.toml").chmod(0o600)
    return crawl(start, cwd, LARM_SITES_FILE=str(cwd / "sites.toml"), **settings)


def stored(cwd: Path) -> dict[str, str]:
    """Title of each page stored, by the path of its URL; others than 200 as their status."""
    return {
        "/" + record["url"].split("/", 3)[3]: record["title"]
        if record["http-code"] == "200"
        else record["http-code"]
        for record in records(cwd / "crawl" / "store.log")
    }


GIVE_UP = {"LARM_RETRY_TIMES": "0", "LARM_HOST_MAX_FAILURES": "1", "LARM_HOST_MAX_PARKS": "0"}
"""At once, on a host that cannot be asked for its robots.txt."""

ALL = {"/": "start", "/a.html": "a", "/b.html": "b"}
