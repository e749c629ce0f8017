"""A crawl whose server of names says nothing about some names, and knows others: how soon are
these fetched?

    unshare -Urmn python -m tests.support.hostile.silent_names 60 30 22

60 links to silent names stand before 30 to good ones; 22 s at most are waited for these. Prints
JSON: ``fetched`` good pages after ``seconds``, how many hosts had ``failed`` by then, and how long
the crawl took to ``end`` by SIGINT.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.servers import own_names
from tests.support.servers.name_server import NameServer
from tests.support.servers.scripted import ScriptedServer

_SETTINGS = ("DOWNLOAD_DELAY=0", "ROBOTSTXT_OBEY=1", "LARM_SITEMAPS=0")


def main(dead: int, good: int, seconds: float, *settings: str) -> None:
    own_names.begin()
    with (
        NameServer({"ok.test": "127.0.0.1"}, own_names.HOST, own_names.PORT),
        ScriptedServer({"*": "<p>hello"}) as server,
        tempfile.TemporaryDirectory(prefix="silent-names") as folder,
    ):
        names = [f"h{n}.silent.test" for n in range(dead)] + [f"g{n}.ok.test" for n in range(good)]
        links = (f'<a href="http://{name}:{server.port}/">x</a>' for name in names)
        server.routes["/start"] = "".join(links)
        options = [part for setting in (*_SETTINGS, *settings) for part in ("-s", setting)]
        start = f"start={server.url('/start')}"
        command = [sys.executable, "-m", "scrapy", "crawl", "intranet", "-a", start]
        with Path(folder, "log").open("w") as log:
            process = subprocess.Popen(
                [*command, "-a", "restrict=http.*", *options],
                cwd=folder,
                env={**os.environ, "SCRAPY_SETTINGS_MODULE": "larmspider.settings"},
                stdout=log,
                stderr=log,
            )
            try:
                found = _watch(server, good, seconds)
                process.send_signal(signal.SIGINT)
                began = time.monotonic()
                found["status"] = process.wait(60)
                found["end"] = round(time.monotonic() - began, 1)
            finally:
                process.kill()
                process.wait()
        log_text = Path(folder, "log").read_text()
        found["failed"] = sum(map(int, re.findall(r"'larm/robots/failed': (\d+)", log_text)))
        found["log"] = log_text[-2000:]
        print(json.dumps(found))


def _watch(server: ScriptedServer, good: int, seconds: float) -> dict[str, object]:
    """From the request for the page with the links on."""
    fetched, began = 0, time.monotonic()
    first: float | None = None
    while fetched < good and time.monotonic() < (first or began + 30) + seconds:
        time.sleep(0.05)
        log = list(server.log)
        if first is None and any(request.path == "/start" for request in log):
            first = time.monotonic()
        fetched = sum(
            "ok.test" in request.headers.get("host", "") and request.path == "/" for request in log
        )
    return {"fetched": fetched, "seconds": round(time.monotonic() - (first or began), 1)}


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
