"""Pages a second and CPU of a page into one node of OpenSearch, sender and server apart.

    python -m benchmarks.opensearch --pages 3000

The pages of a manual (by default the JDK's) are extracted and put into a spool; then they are sent
as `scrapy outbox --send` sends them, the documents whose link texts changed at the end included.
The same pages go into our own index, for comparison. Times are CPU, but for pages a second.

``--find 50`` types 50 queries of each form of benchmarks/findability.py into both, too: MRR@10 and
success@10, and the clock's ms of a query. ``--questions`` types persons' questions about the manual
``--name``, and prints the ranks of the right pages over our own index and over OpenSearch:

    python -m benchmarks.opensearch --docs /usr/share/doc/python3.11-doc/html --name python \
        --find 60 --form inflected --questions
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from scrapy.settings import Settings

from benchmarks.findability import (
    FORMS,
    QUESTIONS_FILE,
    ask_questions,
    build,
    cases,
    measure,
    product,
    questions,
)
from benchmarks.manuals import Manual
from larmspider import options as options_of_crawls
from larmspider.extraction.texts.language import Languages
from larmspider.items import Page
from larmspider.pipelines.outbox.facts import IndexFacts
from larmspider.pipelines.outbox.sender import Sender
from larmspider.pipelines.outbox.spool import FOLDER, Position, Spool
from larmspider.plugins.opensearch.engine import searcher_of
from larmspider.plugins.opensearch.receiver import OpenSearchReceiver
from tests.support.servers.opensearch.cluster import OpenSearchCluster

DEFAULT = Path("/usr/share/doc/openjdk-17-jre-headless/api")
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def cpu_of_children(but: int) -> float:
    """CPU seconds of our own children so far, except one."""
    tasks = Path("/proc/self/task").glob("*/children")
    children = {int(child) for task in tasks for child in task.read_text().split()}
    return sum(cpu_of(child) for child in children - {but})


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def pages_of(manual: Manual, number: int) -> Iterator[Page]:
    guessed = options_of_crawls.defaults()["LARM_LANGUAGES"]
    with closing(Languages.from_settings(Settings({"LARM_LANGUAGES": guessed}))) as languages:
        for page in islice(manual.pages(), number):
            page.language = languages.of_now(page)
            page.fetched = time.time()
            yield page


def fill_spool(crawl: Path, pages: Sequence[Page]) -> Position:
    spool, facts = Spool(crawl / FOLDER), IndexFacts()
    spool.open()
    began = time.process_time()
    for page in pages:
        spool.append(page, page.fetched, body=False, facts=facts)
    spool.close()
    used = time.process_time() - began
    print(f"spool: {used / len(pages) * 1e3:.3f} ms and {spool.end.offset / len(pages):,.0f} bytes")
    return spool.end


def send(crawl: Path, end: Position, pages: int, heap: str, find: Callable[[str], None]) -> None:
    with OpenSearchCluster(1, heap, jvm=("-XX:+UseSerialGC",)) as cluster:
        url = cluster.url("jdk")
        settings = Settings({"LARM_OPENSEARCH_URL": url, "LARM_INDEX_STEMMER": "english"})
        receiver = OpenSearchReceiver.from_settings(settings)
        sender = Sender(receiver, crawl / FOLDER, lambda _: True)
        node = cluster.nodes[0].pid
        receiver.connect()
        server, began, clock = cpu_of(node), time.process_time(), time.monotonic()
        sender.send_up_to(end.offset)
        first = time.process_time() - began, cpu_of(node) - server, time.monotonic() - clock
        left = sender.cursor.left
        sender.catch_up()
        both = time.process_time() - began, cpu_of(node) - server, time.monotonic() - clock
        children = cpu_of_children(node)
        receiver.close()
        assert (sender.cursor.sent, sender.cursor.dead) == (pages, 0)
        for what, (own, there, passed) in (("sent", first), (f"{left:,} caught up", both)):
            print(
                f"{what}: {pages / passed:,.0f} pages/s; a page: sender {own / pages * 1e3:.2f} ms,"
                f" server {there / pages * 1e3:.2f} ms"
            )
        print(f"likeness, in its own processes: {children / pages * 1e3:.2f} ms a page")
        cluster.ask("POST", "/jdk/_flush")
        cluster.ask("POST", "/jdk/_forcemerge?max_num_segments=1")
        stats = cluster.ask("GET", "/jdk/_stats/store,docs")["_all"]["primaries"]
        assert stats["docs"]["count"] == pages, stats
        print(f"disk: {stats['store']['size_in_bytes'] / pages:,.0f} bytes a page")
        find(url)


def compare(
    url: str, crawl: Path, manual: Manual, pages: Sequence[Page], options: argparse.Namespace
) -> None:
    """Findability over both engines."""
    settings = Settings({"LARM_OPENSEARCH_URL": url, "LARM_INDEX_STEMMER": "english"})
    searchers = {
        "tantivy": build(crawl / "index", pages),
        "opensearch": searcher_of([crawl], settings),
    }
    entries = manual.entries(page.url for page in pages)
    if options.questions:
        searches = {name: product(searcher) for name, searcher in searchers.items()}
        ask_questions(manual, questions(manual, options.questions), searches)
    for form in (options.form or FORMS) if options.find else ():
        typed = cases(form, entries, manual, options.find)
        if len(typed) < min(10, options.find):
            continue
        found = []
        for name, searcher in searchers.items():
            began = time.monotonic()
            scores = measure(typed, product(searcher))
            passed = (time.monotonic() - began) / len(typed) * 1e3
            found.append(f"{name} {scores} ({passed:.0f} ms)")
        print(f"{form:10} {len(typed):4}   {'   '.join(found)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pages into OpenSearch.")
    parser.add_argument("--docs", type=Path, default=DEFAULT)
    parser.add_argument("--pages", type=int, default=3_000)
    parser.add_argument("--heap", default="1g")
    parser.add_argument("--find", type=int, default=0, metavar="N")
    parser.add_argument("--form", action="append", choices=FORMS, help="what is typed (all)")
    parser.add_argument("--name", default="manual", help="of the manual, as questions have it")
    parser.add_argument("--questions", type=Path, nargs="?", const=QUESTIONS_FILE, metavar="FILE")
    options = parser.parse_args()
    manual = Manual.of(options.name, options.docs)
    assert manual is not None, options.docs
    pages = list(pages_of(manual, options.pages))
    print(f"{len(pages):,} pages, {sum(len(page.text) for page in pages) / len(pages):,.0f} chars")
    with tempfile.TemporaryDirectory() as folder:
        crawl = Path(folder)

        def find(url: str) -> None:
            if options.find or options.questions:
                with tempfile.TemporaryDirectory() as own:
                    compare(url, Path(own), manual, pages, options)

        send(crawl, fill_spool(crawl, pages), len(pages), options.heap, find)
        began, clock = time.process_time(), time.monotonic()
        build(crawl / "index", pages)
        used, passed = time.process_time() - began, time.monotonic() - clock
        size = size_of(crawl / "index")
        print(
            f"our own index: {len(pages) / passed:,.0f} pages/s; a page:"
            f" {used / len(pages) * 1e3:.2f} ms, {size / len(pages):,.0f} bytes"
        )


if __name__ == "__main__":
    main()
