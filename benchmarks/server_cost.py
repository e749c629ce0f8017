"""How much more a page costs when the server runs the crawl, in counted instructions.

    python -m benchmarks.server_cost [--pages 40 640] [--rounds 3]

CPU seconds of two equal crawls differ by more than the 2% in question, so valgrind counts the
instructions of the crawl's processes (Debian package valgrind; a crawl takes 30 times as long).
The same crawl file is crawled by ``scrapy crawl intranet --file`` and by a run of the server, for
two numbers of pages of the JDK's manual (openjdk-17-doc). The difference of the two counts, divided
by that of the pages, is the cost of a page without start and end. The first command is counted in
each round twice: what their medians differ by is the noise.

Under valgrind a second holds 30 times less work, so all that happens once a second (the server asks
each crawl how far it is) weighs 30 times as much as without.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.meter import crawl_environment

MANUAL = Path("/usr/share/doc/openjdk-17-doc/api/java.base")
COUNTED = re.compile(r"I +refs: +([\d,]+)")
RUN_SECS = 1_800.0


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def make_site(folder: Path, pages: int) -> None:
    """A page that links to ``pages`` pages of the manual."""
    folder.mkdir(parents=True)
    found = sorted(MANUAL.rglob("*.html"), key=lambda path: (path.stat().st_size, path))
    middle = found[len(found) // 4 :: max(1, len(found) * 3 // 4 // pages)][:pages]
    if len(middle) < pages:
        raise SystemExit(f"{MANUAL}: has {len(middle)} pages, expected {pages}")
    for number, path in enumerate(middle):
        shutil.copy(path, folder / f"{number}.html")
    links = "".join(f"<a href='{number}.html'>{number}</a>" for number in range(pages))
    (folder / "index.html").write_text(links)


def crawl_file(url: str) -> str:
    # the normalized form of /index.html is /
    return (
        f"seeds = [\"{url}/index.html\"]\nrestrict = '{re.escape(url)}/([0-9]+\\.html)?'\n"
        "[settings]\nDOWNLOAD_DELAY = 0.01\n"
    )


def counted(folder: Path) -> int:
    """Instructions of all processes that have ended."""
    found = [COUNTED.search(log.read_text()) for log in folder.glob("*.log")]
    return sum(int(match[1].replace(",", "")) for match in found if match)


def python_that_counts(folder: Path) -> Path:
    """A python that counts: each process leaves its count in ``folder``."""
    folder.mkdir()
    command = folder / "python"
    command.write_text(
        f"#!/bin/sh\nexec valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null"
        f' --log-file={folder}/%p.log {sys.executable} "$@"\n'
    )
    command.chmod(0o755)
    return command


def from_the_shell(folder: Path, url: str) -> int:
    python = python_that_counts(folder / "counts")
    (folder / "site.toml").write_text(crawl_file(url))
    words = ["crawl", "intranet", "-v", "--file", str(folder / "site.toml")]
    with (folder / "log").open("w+") as log:
        ran = subprocess.run(
            [str(python), "-m", "scrapy", *words],
            cwd=folder, env=crawl_environment(), stdout=log, stderr=log, check=False,
        )  # fmt: skip
        if ran.returncode:
            raise SystemExit((folder / "log").read_text()[-2_000:])
    return counted(folder / "counts")


def by_the_server(folder: Path, url: str) -> int:
    """The server itself is not counted; it asks the crawl for its state as for an operator."""
    python = python_that_counts(folder / "counts")
    home = folder / "home"
    serve = "import sys; sys.executable = sys.argv.pop(1)"
    serve += "; from scrapy.cmdline import execute; execute()"
    given = [str(python), "server", "--home", str(home), "--port", "0"]
    command = [sys.executable, "-c", serve, *given]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=crawl_environment(), stdout=log, stderr=log
        )
        try:
            until(lambda: (home / "crawls").exists(), server)
            (home / "crawls" / "site.toml").write_text(crawl_file(url))
            until(lambda: ctl(home, "start", "site") is not None, server)
            until(lambda: '"finished"' in (ctl(home, "--json", "runs", "site") or ""), server)
        finally:
            server.terminate()
            server.wait(60)
    return counted(folder / "counts")


def ctl(home: Path, *arguments: str) -> str | None:
    command = [sys.executable, "-m", "scrapy", "ctl", "--home", str(home), *arguments]
    ran = subprocess.run(
        command, env=crawl_environment(), capture_output=True, text=True, check=False
    )
    return ran.stdout if ran.returncode == 0 else None


def until(true: Callable[[], bool], server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + RUN_SECS
    while not true():
        if server.poll() is not None or time.monotonic() > end:
            raise SystemExit("the server has ended, or the run takes too long")
        time.sleep(5)


WAYS = {"shell": from_the_shell, "shell again": from_the_shell, "server": by_the_server}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, nargs=2, default=(40, 640), metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed (Debian package valgrind)")
    costs: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(given.rounds):
        for way, run in WAYS.items():
            found = []
            for pages in given.pages:
                with tempfile.TemporaryDirectory() as place:
                    folder = Path(place)
                    make_site(folder / "site", pages)
                    (folder / "run").mkdir()
                    with served(folder / "site") as url:
                        found.append(run(folder / "run", url))
            less, more = given.pages
            costs[way].append((found[1] - found[0]) / (more - less) / 1e6)
            print(f"round {number + 1}  {way:12} {costs[way][-1]:.2f}", flush=True)
    print("million instructions a page, medians")
    shell = statistics.median(costs["shell"])
    for way, of_way in costs.items():
        middle = statistics.median(of_way)
        print(f"{way:12} {middle:.2f}  {middle / shell:.3f}")


if __name__ == "__main__":
    main()
