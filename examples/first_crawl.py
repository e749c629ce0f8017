"""The first crawl, as ``make crawl`` runs it: the demo intranet, or a site of yours, then a search.

    python examples/first_crawl.py
    python examples/first_crawl.py --start http://wiki.example/ --restrict 'https?://[^/]*\\.example/.*'

    python examples/first_crawl.py --workers 4

Everything it does are commands that you can type yourself; it prints each before running it.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.intranet.serve import DemoServer
from larmspider.crawl.reader import read_manifest
from larmspider.crawl.state import FINISHED, RunState
from larmspider.crawl.worker_dirs import open_crawl

DEMO_DIR = "crawl-demo"
DEMO_SEARCH = "Reisekosten"
ADDRESS = "http://127.0.0.1:6080/"
BIN = ".venv/bin/"


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Crawl the demo intranet, or yours, and search it."
    )
    parser.add_argument("--start", default="", help="URLs to start from, or @file; none: the demo")
    parser.add_argument("--restrict", default="", help="regular expression of the URLs to crawl")
    parser.add_argument("--search", default="", help="words to search for when the crawl is done")
    parser.add_argument("--dir", default="crawl", help="where to store; the demo uses crawl-demo")
    parser.add_argument("--fresh", default="", help="yes: start over; force: delete its pages too")
    parser.add_argument("--workers", default="", help="processes that share the crawl; none: one")
    options, more = parser.parse_known_args()
    if options.restrict and not options.start:
        parser.error("--restrict (RESTRICT) needs --start (START): without it the demo is crawled")
    if options.dir != parser.get_default("dir") and not options.start:
        parser.error(
            "--dir (LARM_DIR) needs --start (START): without it the demo is crawled,"
            f" into {DEMO_DIR}"
        )
    # the demo may start over: never in the Redis of the environment, which may hold a crawl
    redis = ["-s", "REDIS_URL="] if os.environ.get("REDIS_URL") and not options.start else []
    with ExitStack() as stack:
        arguments = ["-a", f"start={options.start}"]
        directory = options.dir
        if options.start:
            if options.restrict:
                arguments += ["-a", f"restrict={options.restrict}"]
            if options.fresh:
                arguments += ["-a", f"fresh={options.fresh}"]
            elif has_ended(Path(directory)):
                print(f"The crawl in {directory} has ended: revisiting due pages.")
                arguments += ["-a", "refresh=due"]
        else:
            directory = f"{DEMO_DIR}-workers" if options.workers else DEMO_DIR
            port = 0
            if not options.workers and not options.fresh and has_ended(Path(directory)):
                port = port_of(Path(directory))
            server = demo(stack, port)
            again = server.later
            if again:
                print("Some time has passed: one page has changed, one is new, one is gone.")
            # our own server on this machine: no need to wait between two pages
            arguments = [
                "-a",
                f"start={server.url}",
                "-a",
                "refresh=all" if again else "fresh=force",
                "-s",
                "DOWNLOAD_DELAY=0.02",
                "-s",
                "LARM_BACKOFF_SECS=0.5",
            ]
        in_dir = ["-s", f"LARM_DIR={directory}", *redis]
        command = ["workers", "-n", options.workers] if options.workers else ["crawl", "intranet"]
        status = run(*command, *arguments, *in_dir, *more)
    if status:
        return status
    words = options.search or (words_of_a_title(directory) if options.start else DEMO_SEARCH)
    status = run("search", *in_dir, "--", words)
    if status == 0:
        told = shlex.join(["--dir", directory])
        print(f"\nIn the browser: {BIN}larmspider serve {told}, then {ADDRESS}")
        print(f"More: {BIN}larmspider search {told} WORDS; {BIN}larmspider help")
    return status


def has_ended(directory: Path) -> bool:
    """Whether there is a crawl that came to its end."""
    return RunState.of(directory).reason == FINISHED


def port_of(directory: Path) -> int:
    """The port that the demo had when it was crawled; 0 where that cannot be told."""
    start = "".join(read_manifest(directory).get("seeds", ()))
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/", start)
    return int(found[1]) if found else 0


def demo(stack: ExitStack, port: int) -> DemoServer:
    """The demo on a port that it had before, when some time has passed; else on a free one, as it
    was at first."""
    try:
        return stack.enter_context(DemoServer(port=port, later=bool(port)))
    except OSError:  # somebody else has the port now
        return stack.enter_context(DemoServer())


def run(*arguments: str) -> int:
    """Run a command of larmspider and return its exit status."""
    print("$ larmspider", shlex.join(arguments), flush=True)
    command = [str(Path(sys.executable).with_name("larmspider")), *arguments]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "larmspider.settings"}
    return subprocess.run(command, env=environment, check=False).returncode


def words_of_a_title(directory: str) -> str:
    """Words that the crawl must find: of the first title of a page that was found, not moved."""
    for page in open_crawl(Path(directory)).pages():
        if page.status == 200 and (words := re.findall(r"\w+", page.title)):
            return " ".join(words[:5])
    return "the"


if __name__ == "__main__":
    sys.exit(main())
