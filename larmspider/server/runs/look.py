"""Looks at a crawl before it is saved: its first pages, and the links that its scope accepts.

    look = Looks(home)
    found = await look.at(crawl, ports=[6080])           # ConfigError, HttpError

The look is an ordinary crawl in a folder that is removed afterwards, with the same robots.txt,
gaps, limits and denied addresses. It fetches at most PAGES pages in SECONDS. The server's own port
and Redis' port are out of its scope, and denied by their addresses.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from larmspider import options
from larmspider.errors import CrawlDirError, HttpError
from larmspider.middlewares.filter_middleware import FILTER_LOG_COLUMNS
from larmspider.pipelines.page_files import STORE_LOG_COLUMNS
from larmspider.pipelines.records import read_records
from larmspider.server.api.api_types import LookAnswer, LookLink, LookPage
from larmspider.server.config.crawl_edit import new_text
from larmspider.server.config.crawl_file import as_settings
from larmspider.server.config.crawl_schema import Crawl, Host
from larmspider.server.home import Home
from larmspider.server.runs.process import LOG, crawl_command
from larmspider.server.runs.runs import SAYS

PAGES, SECONDS = 20, 60.0
MAX_LINKS = 50
"""Links of each verdict that are shown."""
FOLDER = "looks"
REDIS_PORT = 6_379
_MAX_SAID = 2_000
_LOOPBACK = r"(localhost|[^/:]*\.localhost|127\.[0-9.]+|0\.0\.0\.0|\[::1?\]|\[::ffff:[^\]]*\])"


class Looks:
    """One look at a time."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._busy = asyncio.Lock()
        shutil.rmtree(home.path / FOLDER, ignore_errors=True)  # of a server that was killed

    async def at(self, crawl: Crawl, ports: Collection[int] = ()) -> LookAnswer:
        """Raises HttpError while another preview runs, or if the crawl cannot begin."""
        if self._busy.locked():
            raise HttpError("Another look is running: try again in a minute.", 409)
        async with self._busy:
            folder = Path(tempfile.mkdtemp(dir=_made(self._home.path / FOLDER)))
            try:
                return await self._look(crawl, folder, ports)
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _look(self, crawl: Crawl, folder: Path, ports: Collection[int]) -> LookAnswer:
        file, directory = folder / "look.toml", folder / "crawl"
        file.write_text(new_text(_shown(crawl, ports)), "utf-8")
        settings = {
            "LARM_DIR": str(directory), "LARM_WEB": "no", "LARM_MAX_PAGES": str(PAGES),
            "LARM_FILTER_LOGS": "yes", "LARM_SEED_PATIENCE_SECS": "10",
            "LARM_DENY_ADDRESSES": json.dumps(await asyncio.to_thread(_denied, crawl, ports)),
            # as a worker of the crawl it would take URLs whose pages go with the folder
            "REDIS_URL": "", "REDIS_HOST": "",
        }  # fmt: skip
        with (folder / LOG).open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *crawl_command(sys.executable, file, settings),
                cwd=self._home.path,
                env={"SCRAPY_SETTINGS_MODULE": "larmspider.settings", **os.environ},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        cut_off = False
        try:
            await asyncio.wait_for(process.wait(), SECONDS)
        except TimeoutError:
            cut_off = True
            process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), SECONDS / 4)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        said = _said(folder / LOG)
        if process.returncode == 2:
            raise HttpError(said or "The crawl cannot begin.", 400)
        return await asyncio.to_thread(_found, directory, said, cut_off)


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _denied(crawl: Crawl, ports: Collection[int]) -> list[str]:
    """The networks that the crawl denies, and this machine's addresses at the ports of its server
    and of Redis."""
    given = options.strings(as_settings(crawl), "LARM_DENY_ADDRESSES")
    redis = urlsplit(str(crawl.settings.get("REDIS_URL") or os.environ.get("REDIS_URL", "")))
    machine = ["127.0.0.0/8", "[::1]"]
    with suppress(OSError, ValueError):
        for family, _, _, _, address in socket.getaddrinfo(socket.gethostname(), None):
            text = str(address[0]).partition("%")[0]
            machine.append(f"[{text}]" if family == socket.AF_INET6 else text)
    with suppress(ValueError):
        ports = {*ports, redis.port or REDIS_PORT}
    return [*given, *(f"{one}:{port}" for one in machine for port in sorted({*ports, REDIS_PORT}))]


def _shown(crawl: Crawl, ports: Collection[int]) -> dict[str, object]:
    """The crawl file of a preview, without secrets and without the settings of its home."""
    own = "|".join(str(port) for port in sorted({*ports, REDIS_PORT}))
    hosts = [msgspec.structs.replace(host, secret="", user="") for host in crawl.hosts]
    shown = msgspec.structs.replace(
        crawl,
        exclude=[*crawl.exclude, rf"[a-z]+://{_LOOPBACK}:({own})(/.*)?"],
        hosts=[host for host in hosts if host != Host(host=host.host)],
    )
    values: dict[str, object] = msgspec.to_builtins(shown)
    settings = dict(crawl.settings)
    for name in ("LARM_DIR", "LARM_NOTIFY", "ITEM_PIPELINES", "LARM_MAX_PAGES"):
        settings.pop(name, None)
    return values | {"settings": settings}


def _said(log: Path) -> str:
    return "; ".join(SAYS.findall(log.read_text("utf-8", "replace")))[:_MAX_SAID]


def _found(directory: Path, said: str, cut_off: bool) -> LookAnswer:
    pages, taken, refused = [], dict[str, str](), dict[str, str]()
    with suppress(OSError, CrawlDirError):
        for fields in read_records(directory / "store.log", len(STORE_LOG_COLUMNS)):
            row = dict(zip(STORE_LOG_COLUMNS, fields, strict=True))
            pages.append(LookPage(url=row["url"], status=row["http-code"], title=row["title"]))
    for url, verdict, reason in _links(directory):
        (refused if reason else taken).setdefault(url, reason or verdict)
    return LookAnswer(
        pages=pages[: 2 * PAGES],
        taken=[LookLink(url=url, reason="") for url in list(taken)[:MAX_LINKS]],
        refused=[LookLink(url=url, reason=why) for url, why in list(refused.items())[:MAX_LINKS]],
        taken_links=len(taken),
        refused_links=len(refused),
        said=said,
        cut_off=cut_off,
    )


def _links(directory: Path) -> Iterator[list[str]]:
    with suppress(OSError, CrawlDirError):
        yield from read_records(directory / "ScopeFilter.log", len(FILTER_LOG_COLUMNS))
