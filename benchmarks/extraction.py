"""What one HTML page costs: ``python -m benchmarks.extraction [folder]``.

Reads every .html file below the folder (default: Python's documentation) and prints milliseconds of
CPU a page, best of several rounds for each page, for the whole of ``extract`` and for its parts:

- decode: find the charset, make UTF-8 of the body
- guard: look for markup that would make the parser slow
- parse: lexbor
- walk: collect hrefs, anchors, text and metadata
- links: resolve them and make Link objects
- text: join the text and collapse its white space
- main: which of it is the main text, or not seen

and what languages and copies take of the crawl's own thread beside that: their texts are handed to
other processes, that of the language for each page that says none, all here.

With ``--articles`` it reads the 181 pages of scrapinghub/article-extraction-benchmark, which the
folder has, and writes their main texts to output/larmspider.json there, for its evaluate.py.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from scrapy.settings import Settings
from selectolax.lexbor import LexborHTMLParser

from larmspider import options
from larmspider.extraction.pages import html
from larmspider.extraction.pages.markup_guard import is_costly
from larmspider.extraction.pages.page_builder import page_text, regions
from larmspider.extraction.texts.charset import to_utf8
from larmspider.extraction.texts.language import Languages
from larmspider.extraction.texts.simhasher import Simhasher
from larmspider.items import Page

DEFAULT = "/usr/share/doc/python3.11-doc/html"
ROUNDS = 5


def cost(work: Callable[[], object]) -> float:
    """Milliseconds of CPU for one call, the best of ROUNDS."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        work()
        best = min(best, time.process_time_ns() - start)
    return best / 1e6


def measure(path: Path) -> tuple[dict[str, float], int, int]:
    """Cost by part, number of links and of bytes of one file."""
    body, url = path.read_bytes(), path.as_uri().replace("file://", "http://docs.example")
    markup, _ = to_utf8(body, None)
    costs = {
        "extract": cost(lambda: html.extract(body, url, None)),
        "decode": cost(lambda: to_utf8(body, None)),
        "guard": cost(lambda: is_costly(markup)),
        "parse": cost(lambda: LexborHTMLParser(markup, options=html._OPTIONS)),
    }
    costs["walk"] = cost(lambda: html.read(markup)) - costs["parse"]
    builder = html.read(markup)
    costs["text"] = cost(lambda: page_text(builder.pieces))
    text = page_text(builder.pieces)
    costs["main"] = cost(lambda: regions(text))
    costs["links"] = cost(lambda: builder.fill(Page(url))) - costs["text"] - costs["main"]
    return costs, len(builder.links), len(body)


async def beside(pages: Sequence[Page]) -> tuple[float, float]:
    """Milliseconds a page in this thread while its language is guessed, and its simhash taken."""
    settings = Settings({"LARM_LANGUAGES": options.defaults()["LARM_LANGUAGES"]})
    with closing(Languages.from_settings(settings)) as languages, Simhasher() as hasher:
        await languages.of(Page("http://a.example/", text="of these words none is measured " * 9))
        start = time.thread_time_ns()
        for page in pages:
            await languages.of(page)
        middle = time.thread_time_ns()
        asked = [hasher.submit([("a.example", page.text)]) for page in pages]
        end = time.thread_time_ns()
        for answer in asked:
            answer.result()
    return (middle - start) / len(pages) / 1e6, (end - middle) / len(pages) / 1e6


def read_articles(folder: Path) -> None:
    """Write the main text of each page."""
    found = {}
    for path in sorted((folder / "html").glob("*.html.gz")):
        page = html.extract(gzip.decompress(path.read_bytes()), "http://news.example/a", None)
        found[path.name.removesuffix(".html.gz")] = {"articleBody": page.main}
    (folder / "output" / "larmspider.json").write_text(json.dumps(found))
    print(f"{len(found)} pages; now: cd {folder} && python evaluate.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=DEFAULT)
    parser.add_argument("--articles", action="store_true")
    asked = parser.parse_args()
    folder = asked.folder
    if asked.articles:
        read_articles(folder)
        return
    paths = sorted(folder.rglob("*.html"))
    if not paths:
        sys.exit(f"no .html file below {folder}")
    pages = [measure(path) for path in paths]
    links = sum(page[1] for page in pages)
    kilobytes = sum(page[2] for page in pages) / 1024
    print(f"{len(pages)} pages of {folder}: on average {kilobytes / len(pages):.1f} KB")
    print(f"and {links / len(pages):.0f} links; milliseconds of CPU\n")
    print("part      median    mean  per 100 links  per 40 KB")
    for part in pages[0][0]:
        values = [page[0][part] for page in pages]
        total = sum(values)
        print(
            f"{part:8} {statistics.median(values):7.3f} {total / len(pages):7.3f}"
            f"  {total / links * 100:13.3f}  {total / kilobytes * 40:9.3f}"
        )
    texts = [html.extract(path.read_bytes(), "http://a.example/", None) for path in paths[:1000]]
    for page in texts:
        page.language = None
    language, copies = asyncio.run(beside(texts))
    print(f"\nof the crawl's thread, a page: language {language:.3f}, copies {copies:.3f}")


if __name__ == "__main__":
    main()
