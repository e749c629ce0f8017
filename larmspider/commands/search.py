"""scrapy search QUERY: the best pages of a crawl, running ones too, with the words that matched."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from larmspider import options
from larmspider.command import LarmCommand, print_json
from larmspider.errors import QueryError
from larmspider.index.search import LIMIT_MOST, OFFSET_MOST, Hit, Searcher
from larmspider.terminal import printable

_BOLD, _PLAIN = "\033[1m", "\033[0m"


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] WORDS"

    def short_desc(self) -> str:
        return "Search the pages of a crawl"

    def long_desc(self) -> str:
        return (
            'Search the pages of a crawl. Words are ranked, all of them first; "a phrase", -word,'
            " word~ (nearly), title:word, url:word, host:name, lang:de, mime:pdf narrow it."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-n", type=int, default=10, metavar="N", help=f"show N pages (10, at most {LIMIT_MOST})"
        )
        parser.add_argument("--offset", type=int, default=0, metavar="N", help="skip the best N")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        query = " ".join(args)
        if not query.strip():
            raise QueryError("the query is empty: name at least one word")
        options.as_integer("-n", opts.n, minimum=1, maximum=LIMIT_MOST)
        options.as_integer("--offset", opts.offset, minimum=0, maximum=OFFSET_MOST)
        results = Searcher.open(self.open_crawl().index_dir).search(query, opts.n, opts.offset)
        if opts.json:
            print_json(
                {
                    "query": query,
                    "total": results.total,
                    "seconds": round(results.seconds, 6),
                    "hits": [_as_json(hit) for hit in results.hits],
                }
            )
            return
        bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        marks = (_BOLD, _PLAIN) if bold else ("*", "*")
        for number, hit in enumerate(results.hits, opts.offset + 1):
            print(f"{number:>3}. {marks[0] if bold else ''}{printable(hit.title) or '(no title)'}"
                  f"{marks[1] if bold else ''}")  # fmt: skip
            print(f"     {printable(hit.url)}")
            if snippet := hit.snippet.marked(*marks):
                print(f"     {snippet}")
        pages = "1 page" if results.total == 1 else f"{results.total:,} pages"
        print(f"{pages} found in {results.seconds * 1000:.1f} ms")


def _as_json(hit: Hit) -> dict[str, Any]:
    return {
        "url": hit.url,
        "title": hit.title,
        "score": round(hit.score, 4),
        "snippet": hit.snippet.html,
        "host": hit.host,
        "mime": hit.mime,
        "language": hit.language,
        "size": hit.size,
        "fetched": hit.fetched,
        "depth": hit.depth,
    }
