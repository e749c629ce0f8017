"""The cost of a change: crawls with the code of before and of now, in turns.

    git worktree add ../before REVISION
    python -m benchmarks.versions --before ../before [--pages 3000] [--rounds 6]

nginx serves the documentation of the JDK. Each round crawls it three times with everything on:
with the code of now, with the code of before, and with the code of before again. The second and
the third run are the same code, so their ratio is the noise. CPU seconds are those of the crawl and
of the processes that it starts, user and system, start and end included.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import deque
from compileall import compile_dir
from pathlib import Path

from benchmarks.meter import IMPOLITE, ROOT
from benchmarks.sites import SITES
from tests.support.servers.nginx import Nginx

ADDRESS = "127.21.0.1"
NOW, BEFORE, AGAIN = "now", "before", "before, again"


def cpu_of(code: Path, start: str, pages: int) -> float:
    """CPU seconds of one crawl of ``pages`` pages with the package in the folder ``code``."""
    with tempfile.TemporaryDirectory(prefix="versions-") as folder:
        settings = {**IMPOLITE, "LARM_MAX_PAGES": pages, "LARM_DIR": f"{folder}/crawl"}
        words = [f"-s{name}={value}" for name, value in settings.items()]
        own = {"PYTHONPATH": str(code), "SCRAPY_SETTINGS_MODULE": "larmspider.settings"}
        own["PYTHONDONTWRITEBYTECODE"] = ""  # else each process of each crawl compiles its modules
        earlier = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "scrapy", "crawl", "intranet", "-a", f"start={start}", *words],
            check=True,
            cwd=folder,
            env={**os.environ, **own},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - earlier.ru_utime - earlier.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the older code")
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    before = options.before.resolve()
    if not (before / "larmspider" / "settings.py").is_file():
        parser.error(f"--before {before}: expected a checkout with larmspider/settings.py")
    site = SITES["openjdk-17-doc"]
    if not site.installed:
        parser.error(f"{site.folder} is missing: apt-get install {site.package}")
    site.warm()
    turns = deque([(NOW, ROOT), (BEFORE, before), (AGAIN, before)])
    change, noise = [], []
    for code in (ROOT, before):
        compile_dir(code / "larmspider", quiet=1)
    with Nginx({ADDRESS: site.folder}) as server:
        start = server.url(ADDRESS, site.start)
        for _ in range(options.rounds):
            used = {name: cpu_of(code, start, options.pages) for name, code in turns}
            turns.rotate()
            change.append(used[NOW] / used[BEFORE])
            noise.append(used[AGAIN] / used[BEFORE])
            shown = ", ".join(f"{name} {used[name]:.2f} s" for name in (NOW, BEFORE, AGAIN))
            print(f"{shown}; now / before {change[-1]:.3f}, noise {noise[-1]:.3f}", flush=True)
    print(
        f"{options.pages:,} pages, medians of {options.rounds} rounds:"
        f" now / before {statistics.median(change):.3f}, the same code twice"
        f" {statistics.median(noise):.3f}"
    )


if __name__ == "__main__":
    main()
