"""How long the index takes to answer, by kind of query, at 100,000 documents.

The pages are benchmarks/generated_text.py's: Zipf's law, 60 million words in all. Each kind of
query is asked with words of its own each time, so that nothing but the file cache is warm; facets,
snippets and ten hits are part of an answer, as on the search page. Run it (5 minutes to
build, then seconds; --index keeps the index for the next run):

    python -m benchmarks.search [--documents 100000] [--words 600] [--index DIR] [--rounds 200]
        [--json]
    python -m benchmarks.search --rights 500

``--rights`` gives the documents access lists, in folders of 100, and asks each query in turns, for
an operator and for a person of that many groups who may read nine of ten folders. The last column
is the share of the CPU time that rights add.

``--index`` may also be that of a crawl: words and names (link texts) are drawn from the index, 100
words that most pages have are the frequent ones. Ten of the kinds, the `MIX`, are what people type;
the last line has all their queries together.

Times are by the clock, on one thread. CPU times stand beside them: on a busy machine they say what
an idle one would take.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import string
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.findability import QUESTIONS
from benchmarks.generated_text import WORDS, GeneratedPages
from larmspider.access.lists import AccessList
from larmspider.access.rights import Rights
from larmspider.index.access import Access
from larmspider.index.writer import IndexWriter
from larmspider.search.query import Filters
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher

BAR_MS = 50.0
"""Of the 95th percentile of each kind."""
MIX = (
    *("name", "name of several words", "question about a name", "question", "one rare word"),
    *("one common word", "two words", "three words, one frequent", "five frequent words", "phrase"),
)
"""What people type; an index without link texts has no names."""
TOGETHER = "the mix"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=WORDS, help="of a page, on average")
    parser.add_argument("--index", type=Path, help="where the index is, or is to be kept")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rights", type=int, help="groups of a person who does not see all")
    options = parser.parse_args()
    pages = GeneratedPages(words=options.words)
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.index or Path(scratch) / "index"
        if not directory.exists():
            build(directory, pages, options.documents, rights=bool(options.rights))
        searcher = Searcher.open(directory)
        if options.rights:
            compare(searcher, options.rounds, options.rights)
            return
        figures = measure(searcher, options.rounds)
        documents = searcher.count()
    if options.json:
        print(json.dumps({"documents": documents, "kinds": figures}, indent=1))
        return
    print(f"{documents:,} documents, {options.rounds} queries of each kind, milliseconds")
    print(f"{'kind':<28}{'p50':>8}{'p95':>8}{'CPU p50':>9}{'CPU p95':>9}")
    for kind, (p50, p95, cpu50, cpu95) in figures.items():
        late = "" if p95 <= BAR_MS else "  late"
        print(f"{kind:<28}{p50:>8.1f}{p95:>8.1f}{cpu50:>9.1f}{cpu95:>9.1f}{late}")


def build(directory: Path, pages: GeneratedPages, count: int, *, rights: bool = False) -> None:
    with IndexWriter(directory) as index:
        for n, page in enumerate(pages.pages(count), 1):
            if rights:
                index.access.give(page.name, _rights(n // FOLDER))
            index.add(page, page.digest)
            if n % 5_000 == 0:
                index.commit()


FOLDER = 100  # documents


def _rights(folder: int) -> Rights:
    """One folder of ten is for a group that no person is in; the others are for a group each."""
    group = "board" if folder % 10 == 9 else f"team-{folder % 97}"
    return Rights(AccessList.simple([f"group:{group}"]), f"folder {folder}/*")


def compare(searcher: Searcher, rounds: int, groups: int) -> None:
    """Each query for an operator and for a person, in turns."""
    names = [f"group:team-{number}" for number in range(97)]
    names += [f"group:other-{number}" for number in range(groups - len(names))]
    person = searcher.seen_by(Access(("file://",), (), frozenset({"everyone", *names})))
    both = [kinds(one, random.Random(7), searcher) for one in (searcher, person)]
    print(f"{searcher.count():,} documents, of which the person sees {person.count():,}")
    print(f"{'kind':<28}{'operator':>10}{'person':>10}{'ratio':>8}")
    every: list[list[float]] = [[], []]
    for kind in both[0]:
        times: list[list[float]] = [[], []]
        for each in both:
            each[kind]()
        for _ in range(rounds):
            for number in (0, 1):
                times[number].append(_timed(both[number][kind])[1])
        if kind in MIX:
            for number in (0, 1):
                every[number] += times[number]
        _print_ratio(kind, times)
    _print_ratio(TOGETHER, every)


def _print_ratio(kind: str, times: list[list[float]]) -> None:
    one, other = (statistics.fmean(found) for found in times)
    print(f"{kind:<28}{one:>10.2f}{other:>10.2f}{other / one:>8.2f}")


def measure(searcher: Searcher, rounds: int) -> dict[str, tuple[float, ...]]:
    """p50 and p95 of each kind in milliseconds, by the clock and of CPU."""
    times = {}
    for kind, ask in kinds(searcher, random.Random(7)).items():
        ask()
        times[kind] = [_timed(ask) for _ in range(rounds)]
    times[TOGETHER] = [one for kind in MIX for one in times.get(kind, ())]
    return {
        kind: tuple(
            percentile(sorted(column), share)
            for column in zip(*found, strict=True)
            for share in (0.5, 0.95)
        )
        for kind, found in times.items()
    }


def dictionary(searcher: Searcher, field: str) -> list[str]:
    """The terms of a field that begin with a letter of ASCII, those of most pages first."""
    found: dict[str, int] = {}
    with searcher.shards[0].reading() as reader:
        for letter in string.ascii_lowercase:
            terms = reader.terms_with_prefix(field, letter)
            found.update((term, pages) for term, pages in terms if term.isprintable())
    return sorted(found, key=lambda term: (-found[term], term))


def kinds(
    searcher: Searcher, draw: random.Random, drawn_from: Searcher | None = None
) -> dict[str, Callable[[], object]]:
    """Words and names are drawn from the index of ``drawn_from``, by default the searcher's own."""
    source = drawn_from or searcher
    vocabulary, labels = dictionary(source, "exact"), dictionary(source, "labels")
    frequent, common, rare = vocabulary[:100], vocabulary[200:5_000], vocabulary[20_000:]
    names = [label for label in labels if label.isalnum()]
    several = [label for label in labels if not label.isalnum()]
    counted = searcher.search(SearchRequest(common[0], facets=True)).facets
    assert counted is not None
    host = [*counted.hosts][:4][-1]

    def words(*sources: list[str]) -> str:
        return " ".join(draw.choice(source) for source in sources)

    def search(query: str, **filters: object) -> object:
        narrow = Filters.of(**filters)  # type: ignore[arg-type]
        return searcher.search(SearchRequest(query, filters=narrow, facets=True))

    def question(*sources: list[str]) -> str:
        return draw.choice(QUESTIONS).format(words(*sources))

    def misspelt(source: list[str]) -> str:
        word = draw.choice([word for word in draw.choices(source, k=50) if len(word) > 5])
        at = draw.randrange(1, len(word) - 1)
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]

    def similar() -> object:
        hit = searcher.search(SearchRequest(words(common), 1, draw.randrange(10))).hits[0]
        document = searcher.get(hit.normalized)
        assert document is not None
        return searcher.similar(document)

    of_names = {
        "name": lambda: search(words(names)),
        "name of several words": lambda: search(words(several)),
        "question about a name": lambda: search(question(names)),
    }
    return (of_names if names and several else {}) | {
        "one rare word": lambda: search(words(rare)),
        "one common word": lambda: search(words(common)),
        "one frequent word": lambda: search(words(frequent)),
        "two words": lambda: search(words(common, common)),
        "three words, one frequent": lambda: search(words(common, frequent, common)),
        "three frequent words": lambda: search(words(frequent, frequent, frequent)),
        "question": lambda: search(question(common, common)),
        "five frequent words": lambda: search(words(*[frequent] * 5)),
        "eight words": lambda: search(words(*[common] * 5, *[frequent] * 3)),
        "phrase": lambda: search(f'"{words(common, frequent)}"'),
        "host and type chosen": lambda: search(words(common, common), hosts=[host], kinds=["html"]),
        "last year, German": lambda: search(
            words(common, common), languages=["de"], since=1_740_000_000.0
        ),
        "fuzzy word": lambda: search(misspelt(common) + "~"),
        "tenth page of hits": lambda: searcher.search(
            SearchRequest(words(common), 10, 90, facets=True)
        ),
        "suggested while typing": lambda: searcher.completions(
            words(labels)[: draw.randint(2, 12)]
        ),
        "did you mean": lambda: searcher.suggestion(words(common) + " " + misspelt(common)),
        "did you mean, two mistakes": lambda: searcher.suggestion(misspelt(common)[:-1] + "xq"),
        "similar pages": similar,
        "64 frequent words": lambda: search(" ".join(draw.sample(frequent, 64))),
        "4 fuzzy words": lambda: search(" ".join(misspelt(common) + "~2" for _ in range(4))),
    }


def _timed(ask: Callable[[], object]) -> tuple[float, float]:
    start, cpu = time.perf_counter(), time.process_time()
    ask()
    return (time.perf_counter() - start) * 1_000, (time.process_time() - cpu) * 1_000


def percentile(values: list[float], share: float) -> float:
    if len(values) < 2:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


if __name__ == "__main__":
    main()
