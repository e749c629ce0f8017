"""How well the index finds things, judged by people who knew: the index of Python's documentation.

Its authors wrote 14,000 entries such as "join() (asyncio.Queue method)", each with pages to look
at. Here all pages but the index itself are indexed as a crawl would do it, each of a sample of
entries is typed in as a query, and two figures say how it went:

    success@10   share of the entries for which a right page is among the first ten
    MRR@10       mean of 1 / rank of the first right page, 0 where it is not among the ten

for plain BM25 over title and body (any of the words, Tantivy's default words) and for
`larmspider.index.search.Searcher` as it is. Three ways to type an entry are tried:

    full   join() asyncio.Queue method     the name and the words of its qualifier; this is the bar
    name   join()                          right is only this entry's page, not another join()'s
    any    join()                          right is each page that any entry of this name gives

Run it (package python3.11-doc, 40 s):

    python -m benchmarks.findability [--terms 1500] [--docs DIR] [--no-contents] [--json]

The index pages themselves (genindex*, py-modindex, search) are not indexed, nor the texts of their
links. contents.html is: a site map is a page too; --no-contents leaves it out for comparison.
The weights of larmspider/index/ranking.py were found on 750 other entries and refined on the first
half of the sample; the second half (44 of its 750 were among those others) shows whether they hold.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tantivy
from selectolax.lexbor import LexborHTMLParser, LexborNode

from larmspider.errors import InvalidURL, QueryError
from larmspider.extraction.html import extract
from larmspider.index.search import Searcher
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.urls.canonical import canonicalize

DOCS = Path("/usr/share/doc/python3.11-doc/html")
BASE = "http://docs.example/"
SEED = 2002
_INDEX_PAGES = re.compile(r"genindex.*|py-modindex\.html|search\.html")

Search = Callable[[str], Sequence[str]]
"""A query's first ten URLs."""


@dataclass(frozen=True)
class QueuedUrl:
    """An entry of the index: a name, mostly with a qualifier in parentheses, and its pages."""

    text: str
    urls: frozenset[str]

    @property
    def name(self) -> str:
        return self.text.partition(" (")[0]

    @property
    def full(self) -> str:
        name, _, qualifier = self.text.partition(" (")
        return f"{name} {qualifier.removesuffix(')')}".strip()


@dataclass(frozen=True)
class Scores:
    success: float
    mrr: float

    def __str__(self) -> str:
        return f"{self.success:.3f} / {self.mrr:.3f}"


def pages(docs: Path, *, contents: bool = True) -> Iterator[Page]:
    """The documentation's pages, as the crawl would hand them to the index."""
    for path in sorted(docs.rglob("*.html")):
        name = path.relative_to(docs).as_posix()
        if _INDEX_PAGES.fullmatch(name) or (name == "contents.html" and not contents):
            continue
        body = path.read_bytes()
        page = extract(body, BASE + name, "text/html")
        page.body, page.mime, page.normalized = body, "text/html", canonicalize(page.url)
        for link in page.links:
            try:
                link.normalized = canonicalize(link.url)
            except InvalidURL:
                link.normalized = None
        yield page


def entries(docs: Path, indexed: Iterable[str]) -> list[QueuedUrl]:
    """All entries that lead to a page in ``indexed``, each text once, sorted."""
    known = set(indexed)
    found: defaultdict[str, set[str]] = defaultdict(set)
    tree = LexborHTMLParser((docs / "genindex-all.html").read_bytes().decode())
    for item in tree.css("table.genindextable > tbody > tr > td > ul > li"):
        text, urls = _entry(item)
        found[text] |= urls & known
        for sub in item.css("ul > li"):
            if sub != item and (sub_entry := _entry(sub))[0]:
                qualifier = sub_entry[0].removeprefix("(").removesuffix(")")
                found[f"{text.partition(' (')[0]} ({qualifier})"] |= sub_entry[1] & known
    return [
        QueuedUrl(text, frozenset(urls)) for text, urls in sorted(found.items()) if text and urls
    ]


def _entry(item: LexborNode) -> tuple[str, set[str]]:
    """The text and the pages of one <li>, without the list in it; "[1]" is a further page."""
    parts, urls = [], set()
    for node in item.iter(include_text=True):
        if node.tag == "ul":
            break
        if node.tag == "a":
            urls.add(BASE + (node.attributes.get("href") or "").partition("#")[0])
        if not re.fullmatch(r"\[\d+\]", node.text()):
            parts.append(node.text())
    return " ".join("".join(parts).split()).strip(", "), urls


def sample(all_entries: Sequence[QueuedUrl], size: int) -> list[QueuedUrl]:
    """The same ``size`` entries each time, in random order."""
    return random.Random(SEED).sample(list(all_entries), min(size, len(all_entries)))


def measure(cases: Iterable[tuple[str, frozenset[str]]], search: Search) -> Scores:
    """Scores of the queries, each with the URLs that are right."""
    ranks = []
    for query, right in cases:
        urls = search(query)
        ranks.append(next((n for n, url in enumerate(urls, start=1) if url in right), 0))
    return Scores(
        statistics.fmean(rank > 0 for rank in ranks),
        statistics.fmean(1 / rank if rank else 0 for rank in ranks),
    )


def build(directory: Path, all_pages: Iterable[Page]) -> Searcher:
    """The product's index of the pages, as a finished crawl leaves it."""
    with IndexWriter(directory) as writer:
        for page in all_pages:
            writer.add(page)
            writer.add_anchors(
                [
                    (link.normalized, link.anchor)
                    for link in page.links
                    if link.normalized and link.normalized != page.normalized
                ]
            )
        writer.refresh_all_anchors()
    return Searcher.open(directory)


def product(searcher: Searcher) -> Search:
    """Its first ten; none where the query is only operators, such as "!="."""

    def search(query: str) -> list[str]:
        try:
            return [hit.url for hit in searcher.search(query).hits]
        except QueryError:
            return []

    return search


def baseline(all_pages: Iterable[Page]) -> Search:
    """Plain BM25 over title and body: any of the words, no stems, no weights."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("url", stored=True, tokenizer_name="raw")
    for field in ("title", "body"):
        builder.add_text_field(field)
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(50_000_000, 1)
    for page in all_pages:
        writer.add_document(tantivy.Document(url=page.url, title=page.title, body=page.text))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(query: str) -> list[str]:
        words = re.findall(r"[^\W_]+", query.lower())
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(schema, field, word))
            for word in words
            for field in ("title", "body")
        ]
        hits = searcher.search(tantivy.Query.boolean_query(terms), 10).hits
        return [searcher.doc(address)["url"][0] for _, address in hits]

    return search


def cases(
    chosen: Sequence[QueuedUrl], form: str, all_entries: Sequence[QueuedUrl]
) -> list[tuple[str, frozenset[str]]]:
    """Queries and right URLs of the entries in one of the three forms."""
    if form == "full":
        return [(entry.full, entry.urls) for entry in chosen]
    if form == "name":
        return [(entry.name, entry.urls) for entry in chosen if _has_word(entry.name)]
    by_name: defaultdict[str, set[str]] = defaultdict(set)
    for entry in all_entries:
        by_name[entry.name] |= entry.urls
    names = dict.fromkeys(entry.name for entry in chosen if _has_word(entry.name))
    return [(name, frozenset(by_name[name])) for name in names]


def _has_word(name: str) -> bool:
    """An operator such as "!=" names nothing that a word index could find."""
    return any(map(str.isalnum, name))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Findability on Python's documentation.")
    parser.add_argument("--terms", type=int, default=1500, help="entries in the sample (1500)")
    parser.add_argument("--docs", type=Path, default=DOCS, help=f"the HTML pages ({DOCS})")
    parser.add_argument("--no-contents", action="store_true", help="leave out contents.html")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    if not (options.docs / "genindex-all.html").exists():
        print(f"{options.docs}: no genindex-all.html (package python3.11-doc)", file=sys.stderr)
        return 2

    all_pages = list(pages(options.docs, contents=not options.no_contents))
    all_entries = entries(options.docs, (page.url for page in all_pages))
    chosen = sample(all_entries, options.terms)
    half = len(chosen) // 2
    report: dict[str, object] = {
        "pages": len(all_pages),
        "entries": len(all_entries),
        "sample": len(chosen),
    }
    with tempfile.TemporaryDirectory() as directory:
        started = time.perf_counter()
        searcher = build(Path(directory), all_pages)
        report["index_seconds"] = round(time.perf_counter() - started, 2)
        searches = {"baseline": baseline(all_pages), "larmspider": product(searcher)}
        for form in ("full", "name", "any"):
            for part, part_entries in (
                ("all", chosen),
                ("tuned half", chosen[:half]),
                ("other half", chosen[half:]),
            ):
                typed = cases(part_entries, form, all_entries)
                for name, search in searches.items():
                    report[f"{form}, {part}, {name}"] = measure(typed, search)
        typed = cases([entry for entry in chosen if _has_word(entry.name)], "full", all_entries)
        times = sorted(searcher.search(query).seconds for query, _ in typed)
        report["query_ms_p50"] = round(1000 * times[len(times) // 2], 2)
        report["query_ms_p99"] = round(1000 * times[len(times) * 99 // 100], 2)
    if options.json:
        print(json.dumps({k: asdict(v) if isinstance(v, Scores) else v for k, v in report.items()}))
    else:
        for key, value in report.items():
            print(f"{key:32} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
