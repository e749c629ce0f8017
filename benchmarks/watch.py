"""Does a crawl that is never stopped keep its memory? ``refresh=watch`` over a constant web.

    python -m benchmarks.watch [--minutes 60] [--speed 120] [--seed 1] [--code ../before]

The servers of benchmarks/year_world.py, whose pages change and neither come nor go, are crawled
once. Then ``scrapy crawl intranet -a refresh=watch`` runs with a clock that goes 120 times as fast
(virtual_clock.c, which takes a C compiler): an hour is five days. Each minute prints the day of the
crawl, the requests, and the anonymous memory of the crawl's process and of its readers, in MB
(``Anonymous`` of /proc/PID/smaps_rollup: without mapped files).

At the end: the mean of the last five minutes over that of the five after the first ten.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.meter import ROOT
from benchmarks.year import BEGIN, EVENTS, virtual_clock
from benchmarks.year_world import DAY, World, read_events
from tests.support.crawling import FAST
from tests.support.recovery.synced_only import compiler

LOOK_SECS = 5.0
WARM_MINUTES, MEAN_MINUTES = 10, 5


def memory_mb(pid: int) -> tuple[float, float]:
    """Anonymous memory of a process, and of its children, in MB."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return _anonymous(pid), sum(_anonymous(int(child)) for child in children)


def _anonymous(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1000


def watch(
    world: World, code: Path, folder: Path, *, minutes: int, speed: int
) -> list[tuple[float, float]]:
    """The memory of each minute: the crawl's process, its readers."""
    began = int(time.time())
    environment = os.environ | {
        "PYTHONPATH": str(code),
        "SCRAPY_SETTINGS_MODULE": "larmspider.settings",
        "LD_PRELOAD": str(virtual_clock(folder)),
        "VIRTUAL_CLOCK_SECS": str(int(BEGIN) - began),
    }
    (folder / "seeds").write_text("".join(f"{one}\n" for one in world.seeds()))
    settings = FAST | {"LARM_SITEMAPS": "yes"}
    words = [f"-s{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "scrapy", "crawl", "intranet", "-astart=@seeds"]
    command += [f"-arestrict={world.restrict()}", *words]
    world.go_to(0, BEGIN)
    with (folder / "said").open("wb") as said:
        options: dict[str, Any] = {"cwd": folder, "stdout": said, "stderr": said}
        subprocess.run(command, check=True, env=environment, **options)
        print(f"{world.requests:,} requests of the first crawl", flush=True)
        environment |= {"VIRTUAL_CLOCK_SPEED": str(speed), "VIRTUAL_CLOCK_FROM": str(began)}
        with subprocess.Popen([*command, "-arefresh=watch"], env=environment, **options) as process:
            try:
                return _measured(world, process, began, minutes, speed)
            finally:
                process.send_signal(signal.SIGTERM)


def _measured(
    world: World, process: subprocess.Popen[bytes], began: int, minutes: int, speed: int
) -> list[tuple[float, float]]:
    means: list[tuple[float, float]] = []
    print("minute      day  requests   crawl MB  readers MB")
    for minute in range(1, minutes + 1):
        samples = []
        end = time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(LOOK_SECS)
            if process.poll() is not None:
                raise SystemExit(f"the crawl ended with status {process.returncode}")
            now = BEGIN + (time.time() - began) * speed
            world.go_to(int((now - BEGIN) / DAY), now)
            samples.append(memory_mb(process.pid))
        crawl, readers = (statistics.mean(column) for column in zip(*samples, strict=True))
        means.append((crawl, readers))
        row = f"{minute:6} {(time.time() - began) * speed / DAY:8.2f} {world.requests:9,}"
        print(f"{row} {crawl:10.1f} {readers:11.1f}", flush=True)
    return means


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--speed", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--code", type=Path, default=ROOT, help="a checkout; this one if not given")
    options = parser.parse_args()
    least = WARM_MINUTES + 2 * MEAN_MINUTES
    if options.minutes < least or options.speed < 1:
        parser.error(f"expected --minutes {least} or more, and --speed 1 or more")
    if compiler() is None:
        parser.error("there is no C compiler: apt-get install gcc libc6-dev")
    folder = Path(tempfile.mkdtemp(prefix="watch-"))
    events = [one for one in read_events(EVENTS) if one.what in ("pages", "edits")]
    try:
        with World(options.seed, events) as world:
            code, minutes, speed = options.code.resolve(), options.minutes, options.speed
            means = watch(world, code, folder, minutes=minutes, speed=speed)
    finally:
        shutil.rmtree(folder)
    for name, column in zip(("crawl", "readers"), zip(*means, strict=True), strict=True):
        first = statistics.mean(column[WARM_MINUTES : WARM_MINUTES + MEAN_MINUTES])
        last = statistics.mean(column[-MEAN_MINUTES:])
        print(f"{name}: {first:.1f} MB, {last:.1f} MB at the end: {last / max(first, 0.1):.3f}")


if __name__ == "__main__":
    main()
