"""What slow and dead hosts leave of the healthy ones' rate, here and under Scrapy's own scheduler.

    python -m benchmarks.politeness --seconds 120

300 real hosts at loopback addresses, of which 10% answer after 10 s and 5% never; 32 places, 2 s
between two requests to a host, 30 s timeout. By the hosts' clock: requests to each kind of host as
part of what the gap allows, the shortest gaps and the most requests at once.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import peer_crawlers
from tests.support.crawling import scrapy_for
from tests.support.servers.many_hosts import DEAD, HEALTHY, SLOW, ManyHosts, Seen

Crawl = Callable[[ManyHosts, Path, argparse.Namespace], None]


def larmspider(servers: ManyHosts, folder: Path, options: argparse.Namespace) -> None:
    arguments = ["-astart=@seeds", f"-arestrict={servers.restrict}", f"-athreads={options.places}"]
    settings = [f"-sDOWNLOAD_DELAY={options.gap}", "-sDOWNLOAD_TIMEOUT=30"]
    scrapy_for(options.seconds, "crawl", "intranet", *arguments, *settings, cwd=folder)


def stock(_: ManyHosts, folder: Path, options: argparse.Namespace) -> None:
    settings = [f"-sDOWNLOAD_DELAY={options.gap}", f"-sCONCURRENT_REQUESTS={options.places}"]
    scrapy_for(
        options.seconds,
        "runspider",
        peer_crawlers.__file__,
        "-aseeds=seeds",
        *settings,
        cwd=folder,
        settings_module="scrapy.settings.default_settings",
    )


CRAWLS: dict[str, Crawl] = {"larmspider": larmspider, "stock": stock}


def run(name: str, options: argparse.Namespace) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="politeness") as folder,
        ManyHosts(options.hosts, mixed=True) as servers,
    ):
        Path(folder, "seeds").write_text("\n".join(servers.seeds))
        CRAWLS[name](servers, Path(folder), options)
        seen = Seen(servers.stop(), options.gap)
    print(f"{name}: requests as part of what a gap of {options.gap:g} s allows")
    starts = [0, 30, *range(60, int(options.seconds) - 10, 30)]
    ends = [*starts[1:], int(options.seconds) - 2]
    print(
        "             "
        + "".join(f"{start}-{end} s".rjust(12) for start, end in zip(starts, ends, strict=True))
    )
    for kind in (HEALTHY, SLOW, DEAD):
        hosts = seen.of(kind)
        rates = [seen.rate(hosts, start, end) for start, end in zip(starts, ends, strict=True)]
        print(f"  {kind:11}" + "".join(f"{rate:12.1%}" for rate in rates))
    settled = seen.rate(seen.of(HEALTHY), 60, ends[-1])
    print(f"  healthy hosts from the second minute on {settled:.1%}")
    gaps = [
        later - earlier
        for host in seen.hosts
        for earlier, later in zip(host.times, host.times[1:], strict=False)
    ]
    short = sum(gap < options.gap for gap in gaps)
    print(
        f"  shortest gap {min(gaps):.4f} s, {short} of {len(gaps)} shorter than {options.gap:g} s"
    )
    most = max(host.peak_requests for host in seen.hosts)
    print(f"  most requests at once to one host {most}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="over 70")
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--places", type=int, default=32)
    parser.add_argument("--gap", type=float, default=2.0)
    parser.add_argument("--only", choices=CRAWLS)
    options = parser.parse_args()
    for name in [options.only] if options.only else CRAWLS:
        run(name, options)


if __name__ == "__main__":
    main()
