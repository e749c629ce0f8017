"""How many hits are copies of better ones: ``python -m benchmarks.copies FOLDER [--pages 4000]``.

Indexes the HTML and text files of a folder as a crawl does, each at ``http://docs/its/path``, types
words of their titles, and prints the share of the first ten hits that are copies of one before:
with the same bytes, and nearly the same by their texts (index/copies.py); before, and as searches
are. The texts of hits are compared word by word, so near copies that are not found count as well.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

from larmspider.errors import QueryError
from larmspider.extraction.formats import extractor_for, media_type
from larmspider.extraction.texts.simhasher import Simhasher
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.request import SearchRequest
from larmspider.search.results import Document
from larmspider.search.searcher import Searcher

SEED = 2002
ALIKE = 0.95
"""Share of the words of two texts that are the same, from which they are near copies."""


def pages(folder: Path, most: int) -> list[Page]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    random.Random(SEED).shuffle(files)
    found: list[Page] = []
    for path in files:
        if len(found) == most:
            break
        if path.suffix not in (".html", ".txt", "") or path.stat().st_size > 1 << 20:
            continue
        url, body = f"http://docs/{path.relative_to(folder)}", path.read_bytes()
        mime = media_type("", body, url)
        if mime in ("text/html", "text/plain") and (extract := extractor_for(mime)):
            page = extract(body, url, None)
            page.body, page.mime, page.fetched = body, mime, 1.7e9
            found.append(page)
    return found


def are_alike(one: Document, other: Document) -> bool:
    if one.digest == other.digest:
        return True
    words = one.text.split(), other.text.split()
    if min(map(len, words)) < ALIKE * max(map(len, words)) or len(one.text) < 200:
        return False
    matcher = SequenceMatcher(None, *words, autojunk=False)
    return matcher.quick_ratio() >= ALIKE and matcher.ratio() >= ALIKE


def share(searcher: Searcher, queries: Sequence[str], *, copies: bool) -> str:
    hits = same = near = 0
    took = 0.0
    for query in queries:
        started = time.process_time()
        try:
            found = searcher.search(SearchRequest(query, copies=copies)).hits
        except QueryError:
            continue
        took += time.process_time() - started
        shown: list[Document] = []
        for hit in found:
            page = searcher.get(hit.normalized)
            assert page is not None
            hits += 1
            same += any(page.digest == before.digest for before in shown)
            near += any(are_alike(page, before) for before in shown)
            shown.append(page)
    return (
        f"{hits} hits, {same / hits:.1%} the same bytes as a better one, {near / hits:.1%} the same"
        f" or nearly; {1000 * took / len(queries):.1f} ms CPU a search"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--queries", type=int, default=200)
    args = parser.parse_args()
    found = pages(args.folder, args.pages)
    chance = random.Random(SEED)
    queries = [page.title for page in chance.choices(found, k=2 * args.queries) if page.title]
    with tempfile.TemporaryDirectory() as directory, Simhasher() as simhasher:
        for name, simhashes in (("without likeness", None), ("with likeness", simhasher.submit)):
            started, cpu = time.perf_counter(), time.process_time()
            with IndexWriter(Path(directory) / name, simhashes=simhashes) as writer:
                for page in found:
                    writer.add(page)
            print(
                f"{len(found)} pages indexed {name}: {time.perf_counter() - started:.1f} s,"
                f" {time.process_time() - cpu:.1f} s CPU of this process"
            )
        searcher = Searcher.open(Path(directory) / "with likeness")
        print("each page a hit: ", share(searcher, queries[: args.queries], copies=True))
        print("copies together: ", share(searcher, queries[: args.queries], copies=False))


if __name__ == "__main__":
    main()
