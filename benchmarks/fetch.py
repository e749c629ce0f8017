"""CPU a fetch of a download handler alone: GETs of small pages from nginx on loopback.

    python -m benchmarks.fetch --fetches 4000 --rounds 3

Ours beside Scrapy's own handlers, alternating in one run; each round in a process of its own, on
the asyncio event loop, 16 fetches at once over kept connections. CPU is that of the main thread
(RUSAGE_THREAD), without the building of the Requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scrapy import Request, Spider
from scrapy.utils.misc import load_object
from scrapy.utils.test import get_crawler

from tests.support.servers.nginx import Nginx

ROOT = Path(__file__).parents[1]
OURS = "larmspider.fetch.curl_handler.CurlHandler"
HANDLERS = {
    "larmspider, libcurl": OURS,
    "Scrapy, Twisted": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler",
    "Scrapy, aiohttp": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler",
}
HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en",
    "User-Agent": "benchmark",
    "Accept-Encoding": "gzip, deflate, br, zstd",
}
AT_ONCE = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fetches", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bytes", type=int, nargs="+", default=[2_000, 40_000])
    parser.add_argument("--child", nargs=3, metavar=("HANDLER", "URL", "FETCHES"))
    arguments = parser.parse_args()
    if arguments.child:
        handler, url, fetches = arguments.child
        measure(handler, url, int(fetches))
        return
    with tempfile.TemporaryDirectory(prefix="fetch-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        for size in arguments.bytes:
            (root / f"{size}.html").write_bytes(b"<p>hello</p>\n" * (size // 13))
        with Nginx({"127.77.1.1": root}) as server:
            for size in arguments.bytes:
                compare(server.url(path=f"/{size}.html"), arguments.fetches, arguments.rounds)


def compare(url: str, fetches: int, rounds: int) -> None:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in HANDLERS}
    for _ in range(rounds):
        for name, path in HANDLERS.items():
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.fetch", "--child", path, url, str(fetches)],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            found[name].append(json.loads(done.stdout))
    print(f"{url.rpartition('/')[2]}: us CPU of the main thread a fetch, of these in the kernel,")
    print("fetches a second; medians of", rounds)
    for name, results in found.items():
        cpu, kernel, rate = (
            statistics.median(r[key] for r in results) for key in ("cpu", "kernel", "rate")
        )
        print(f"  {name:22} {cpu:7.0f} {kernel:7.0f} {rate:9,.0f}")


def measure(path: str, url: str, fetches: int) -> None:
    if "http11" in path:
        from twisted.internet import asyncioreactor

        asyncioreactor.install()
        from twisted.internet import reactor
        from twisted.internet.defer import Deferred

        done = Deferred.fromCoroutine(_in_twisted(path, url, fetches))
        done.addBoth(lambda result: (print(json.dumps(result)), reactor.stop()))
        reactor.run()
    else:
        print(json.dumps(asyncio.run(fetch_all(path, url, fetches))))


async def _in_twisted(path: str, url: str, fetches: int) -> dict[str, float]:
    from twisted.internet.defer import Deferred

    return await Deferred.fromFuture(asyncio.ensure_future(fetch_all(path, url, fetches)))


async def fetch_all(path: str, url: str, fetches: int) -> dict[str, float]:
    crawler = get_crawler(Spider, settings_dict={"CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE})
    crawler.spider = Spider("benchmark")
    handler = load_object(path).from_crawler(crawler)

    async def worker(requests: list[Request]) -> None:
        for request in requests:
            response = await handler.download_request(request)
            assert response.status == 200
            assert response.body

    def share() -> list[Request]:
        return [Request(url, headers=HEADERS) for _ in range(fetches // AT_ONCE)]

    await worker(share()[:20])
    shares = [share() for _ in range(AT_ONCE)]
    before, began = resource.getrusage(resource.RUSAGE_THREAD), time.perf_counter()
    await asyncio.gather(*map(worker, shares))
    after, seconds = resource.getrusage(resource.RUSAGE_THREAD), time.perf_counter() - began
    user, kernel = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    await handler.close()
    count = sum(map(len, shares))
    return {
        "cpu": (user + kernel) / count * 1e6,
        "kernel": kernel / count * 1e6,
        "rate": count / seconds,
    }


if __name__ == "__main__":
    main()
