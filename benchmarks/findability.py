"""How well the index finds things, judged by people who knew: the indexes of manuals.

The authors of a manual wrote entries such as "join() (asyncio.Queue method)", each with pages to
look at. Here all pages of a manual but the index itself are indexed as a crawl would do it, and
entries are typed in as queries. Two figures say how that went:

    MRR@10       mean of 1 / rank of the first right page, 0 where it is not among the ten
    success@10   share of the entries for which a right page is among the first ten

for plain BM25 over title and text (any of the words, Tantivy's default words), for the same with
all link texts as a third field, and for `larmspider.search.searcher.Searcher` as it is. What is
typed, ``--form``:

    name       join()                       right is each page that any entry of this name gives
    entry      join() asyncio.Queue method  the name and the words of its qualifier; only its page
    question   how do I use join()          a name in one of `QUESTIONS` in turn
    typo       jion()                       one mistake in a word of five letters or more: a letter
                                            left out, put in, changed, or two swapped
    inflected  listener for listeners       the last word in the other number; names of plain words;
                                            of German manuals names of one word (`FORMEN`)
    flag       --prefix                     entries that begin with a dash
    quoted     "join()"                     a name in quotes
    code       asyncio.Queue.join()         owner and name, as in a program; names with signs

Entries are a sample with SEED, at most 200 a manual and form (``--queries``), in the order of the
form's name; an entry without a letter or digit, or with more than ten pages, is not typed. The
manuals and their halves are those of benchmarks/manuals.py::

    python -m benchmarks.findability --root /srv/manuals --half "held out" [--form name ...]
    python -m benchmarks.findability --docs /usr/share/doc/postgresql-doc-15/html --form question

``--questions`` types those of benchmarks/questions.tsv, or of another file of this form, instead,
as persons would put them, and says where a right page is among the first ten.

``--stemmer german`` makes indexes with this stemmer alone, whatever language the pages are in.
``--json`` writes the figures to a file, ``--beside`` takes such a file, of other code, into the
table. Indexes are kept in ``--keep`` for the next run.
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
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import tantivy
from scrapy.settings import Settings

from benchmarks.manuals import HELD_OUT, MANUALS, TUNED, Entry, Manual, installed
from larmspider import options as options_of_crawls
from larmspider.errors import QueryError
from larmspider.extraction.texts.language import Languages
from larmspider.extraction.texts.simhasher import Simhasher
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher

SEED = 2002
MAX_RIGHT = 10
"""Pages of an entry that is typed."""
QUESTIONS = (
    "how do I use {}",
    "what is {} and how does it work",
    "how can I use {} in my own program",
    "where can I find out about {}",
    "what does {} do?",
    "when should I use {}",
)
FRAGEN = (
    "wie benutze ich {}",
    "was ist {} und wie funktioniert es",
    "wo finde ich etwas über {}",
    "wozu dient {}?",
)

FORMEN = {
    "ungen": "ung", "ung": "ungen", "heit": "heiten", "keit": "keiten", "en": "e", "e": "en",
    "er": "ern", "el": "eln", "or": "oren", "chen": None, "s": None, "": "e",
}  # fmt: skip
"""Endings of German nouns, and those of another number or case; the first that fits."""

Search = Callable[[str], Sequence[str]]
"""A query's first ten URLs."""
Case = tuple[str, frozenset[str]]
"""A query and the pages that are right."""


class Scores(NamedTuple):
    mrr: float
    success: float

    def __str__(self) -> str:
        return f"{self.mrr:.3f} / {self.success:.3f}"


def measure(cases: Iterable[Case], search: Search) -> Scores:
    """Scores of the queries."""
    ranks = []
    for query, right in cases:
        urls = search(query)
        ranks.append(next((n for n, url in enumerate(urls, start=1) if url in right), 0))
    return Scores(
        statistics.fmean(1 / rank if rank else 0 for rank in ranks),
        statistics.fmean(rank > 0 for rank in ranks),
    )


def build(directory: Path, all_pages: Iterable[Page], stemmer: str = "") -> Searcher:
    """The product's index of the pages, as a finished crawl leaves it, or with one stemmer."""
    guessed = "" if stemmer else options_of_crawls.defaults()["LARM_LANGUAGES"]
    with (
        Simhasher() as hasher,
        closing(Languages.from_settings(Settings({"LARM_LANGUAGES": guessed}))) as languages,
        IndexWriter(directory, stemmer=stemmer or "english", simhashes=hasher.submit) as writer,
    ):
        for page in all_pages:
            page.language = None if stemmer else languages.of_now(page)
            writer.add(page)
            writer.add_anchors(
                page.name,
                {
                    (link.exact, link.anchor)
                    for link in page.links
                    if link.exact and link.anchor and link.exact != page.exact
                },
            )
        writer.refresh_all_anchors()
    return Searcher.open(directory)


def product(searcher: Searcher) -> Search:
    """Its first ten; none where the query is only operators, such as "!="."""

    def search(query: str) -> list[str]:
        try:
            return [hit.url.partition("#")[0] for hit in searcher.search(query).hits]
        except QueryError:
            return []

    return search


def baseline(all_pages: Sequence[Page], *, anchors: bool = False) -> Search:
    """Plain BM25 over title and body: any of the words, no stems, no weights."""
    texts: defaultdict[str, list[str]] = defaultdict(list)
    if anchors:
        for page in all_pages:
            for link in page.links:
                if link.exact and link.anchor and link.exact != page.exact:
                    texts[link.exact].append(link.anchor)
    fields = ("title", "body", "anchors")[: 3 if anchors else 2]
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("url", stored=True, tokenizer_name="raw")
    for field in fields:
        builder.add_text_field(field)
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(50_000_000, 1)
    for page in all_pages:
        more = {"anchors": " ".join(texts[page.name][:2_000])} if anchors else {}
        writer.add_document(
            tantivy.Document(url=page.url, title=page.title, body=page.text, **more)
        )
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(query: str) -> list[str]:
        words = re.findall(r"[^\W_]+", query.lower())
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(schema, field, word))
            for word in words
            for field in fields
        ]
        hits = searcher.search(tantivy.Query.boolean_query(terms), 10).hits
        return [searcher.doc(address)["url"][0] for _, address in hits]

    return search


# what is typed


def _names(entries: Sequence[Entry]) -> dict[str, frozenset[str]]:
    """All names with the pages of all their entries."""
    pages: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries:
        pages[entry.name] |= entry.urls
    return {
        name: frozenset(urls)
        for name, urls in pages.items()
        if len(urls) <= MAX_RIGHT and any(map(str.isalnum, name))
    }


def _mistyped(name: str, draw: random.Random) -> str | None:
    words = list(re.finditer(r"[^\W\d_]{5,}", name))
    if not words:
        return None
    word = draw.choice(words)
    at = draw.randrange(word.start(), word.end() - 1)
    letter = draw.choice("abcdefghijklmnopqrstuvwxyz")
    wrong = draw.choice(
        [
            name[:at] + name[at + 1 :],
            name[:at] + letter + name[at:],
            name[:at] + letter + name[at + 1 :],
            name[:at] + name[at + 1] + name[at] + name[at + 2 :],
        ]
    )
    return None if wrong == name else wrong


def _inflected(name: str) -> str | None:
    if not re.fullmatch(r"[A-Za-z]{3,}(?: [A-Za-z]{3,})*", name):
        return None
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith("s"):
        return None if name.endswith(("ss", "us", "is")) else name[:-1]
    if name.endswith("y") and name[-2] not in "aeou":
        return name[:-1] + "ies"
    return name + ("es" if name.endswith(("x", "ch", "sh")) else "s")


def _flektiert(name: str) -> str | None:
    if not re.fullmatch("[A-ZÄÖÜ][a-zäöüß]{3,}", name):
        return None
    ending = next(ending for ending in FORMEN if name.endswith(ending))
    other = FORMEN[ending]
    return None if other is None else name.removesuffix(ending) + other


def _as_code(entry: Entry, separator: str) -> str | None:
    owner = re.fullmatch(
        r"(?:class |built-in |in module |module |in )*([\w.:]*\w)"
        r"(?: (?:\w+ )?(?:method|attribute))?",
        entry.qualifier,
    )
    if owner and not re.search(r"[\s-]", entry.name) and re.search(r"[.:_A-Z]", owner[1]):
        return f"{owner[1]}{separator}{entry.name}"
    return entry.name if re.search(r"\w[_:.()]+", entry.name) and " " not in entry.name else None


def cases(form: str, entries: Sequence[Entry], manual: Manual, count: int) -> list[Case]:
    """Queries of a form and the pages that are right, at most ``count``."""
    draw = random.Random(f"{SEED} {form}")
    names = _names(entries)
    questions = FRAGEN if manual.name.endswith("-de") else QUESTIONS
    found: list[Case] = []
    if form in ("entry", "code"):
        for entry in entries:
            if len(entry.urls) <= MAX_RIGHT and any(map(str.isalnum, entry.name)):
                code = form == "code"
                typed = _as_code(entry, manual.kind.separator) if code else entry.full
                if typed:
                    found.append((typed, entry.urls))
    else:
        for number, (name, urls) in enumerate(sorted(names.items())):
            wanted: str | None = name
            if form == "question":
                wanted = questions[number % len(questions)].format(name)
            elif form == "typo":
                wanted = _mistyped(name, draw)
            elif form == "inflected":
                wanted = (_flektiert if manual.name.endswith("-de") else _inflected)(name)
                wanted = None if wanted in names else wanted
            elif form == "flag":
                wanted = name if name.startswith("-") else None
            elif form == "quoted":
                wanted = f'"{name}"'
            if wanted:
                found.append((wanted, urls))
    return draw.sample(found, min(count, len(found)))


QUESTIONS_FILE = Path(__file__).with_name("questions.tsv")


def questions(manual: Manual, path: Path = QUESTIONS_FILE) -> list[Case]:
    """What persons would ask of a manual, with the pages that answer."""
    lines = path.read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [
        (question, frozenset(manual.base + page for page in right.split()))
        for name, question, right in rows
        if name == manual.name
    ]


def ask_questions(manual: Manual, asked: Sequence[Case], searches: dict[str, Search]) -> None:
    """Print the rank of the first right page for each question, 0 for none."""
    first: dict[str, int] = dict.fromkeys(searches, 0)
    for question, right in asked:
        ranks = []
        for name, search in searches.items():
            urls = search(question)
            ranks.append(next((n for n, url in enumerate(urls, 1) if url in right), 0))
            first[name] += ranks[-1] == 1
        print(f"{manual.name:12} {question:42} {'   '.join(map(str, ranks))}")
    said = ", ".join(f"{name} {count}" for name, count in first.items())
    print(f"{manual.name:12} right page first of {len(asked)}: {said}", flush=True)


FORMS = ("name", "entry", "question", "typo", "inflected", "flag", "quoted", "code")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Findability, judged by indexes of manuals.")
    parser.add_argument("--form", action="append", choices=FORMS, help="what is typed (all)")
    parser.add_argument("--questions", type=Path, nargs="?", const=QUESTIONS_FILE, metavar="FILE",
                        help="type those of questions.tsv, or another file")  # fmt: skip
    parser.add_argument("--queries", type=int, default=200, help="a manual and form (200)")
    parser.add_argument("--root", type=Path, help="where packages are unpacked, each by its name")
    parser.add_argument("--half", choices=(TUNED, HELD_OUT), help="only these manuals")
    parser.add_argument("--manual", action="append", choices=MANUALS, help="only this one")
    parser.add_argument("--docs", type=Path, action="append", help="other manuals: directories")
    parser.add_argument("--keep", type=Path, help="keep the indexes here")
    parser.add_argument("--product-only", action="store_true", help="without BM25")
    parser.add_argument("--stemmer", default="", help="one stemmer for all pages")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--beside", type=Path, help="figures of other code, for the table")
    options = parser.parse_args(arguments)
    chosen: list[Manual] = []
    for directory in options.docs or ():
        found = Manual.of(re.sub(r"\W+", "-", directory.as_posix()).strip("-"), directory)
        if found is None:
            print(f"{directory}: no index of a known kind in it", file=sys.stderr)
            return 2
        chosen.append(found)
    chosen += [
        manual
        for manual in (() if options.docs else installed(options.root))
        if options.half in (None, MANUALS[manual.name][0])
        and (not options.manual or manual.name in options.manual)
    ]
    if not chosen:
        print("no manual is installed: see benchmarks/manuals.py", file=sys.stderr)
        return 2

    figures: dict[str, dict[str, dict[str, Scores]]] = {}
    times: list[float] = []
    status = 0
    with tempfile.TemporaryDirectory() as scratch:
        for manual in chosen:
            pages = list(manual.pages())
            entries = manual.entries(page.url for page in pages)
            if not entries and not options.questions:
                path = manual.indexes()[0][1]
                print(f"{path}: this index was not understood: no entry that leads to a page in it",
                      file=sys.stderr)  # fmt: skip
                status = 2
                continue
            kept = (options.keep or Path(scratch)) / manual.name
            searcher = Searcher.open(kept) if kept.exists() else build(kept, pages, options.stemmer)
            searches = {"larmspider": product(searcher)}
            if not options.product_only:
                searches["BM25"] = baseline(pages)
                searches["BM25 and link texts"] = baseline(pages, anchors=True)
            if options.questions:
                ask_questions(manual, questions(manual, options.questions), searches)
                continue
            for form in options.form or FORMS:
                typed = cases(form, entries, manual, options.queries)
                if len(typed) < min(10, options.queries):
                    continue
                scores = {name: measure(typed, search) for name, search in searches.items()}
                figures.setdefault(form, {})[manual.name] = scores
                times += [_cpu_ms(searcher, query) for query, _ in typed[:20]]
                said = "   ".join(f"{name} {score}" for name, score in scores.items())
                print(f"{form:10} {manual.name:14} {len(typed):4}   {said}", flush=True)
    if options.questions or (status and not times):
        return status
    if not times:
        raise SystemExit("no query was typed: the manuals have too few entries of these forms")
    times.sort()
    p50, p95 = times[len(times) // 2], times[len(times) * 95 // 100]
    print(f"CPU ms of a query with facets: p50 {p50:.1f}, p95 {p95:.1f}")
    _print_means(figures, options.beside)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    return status


def _cpu_ms(searcher: Searcher, query: str) -> float:
    started = time.process_time()
    try:
        searcher.search(SearchRequest(query, facets=True))
    except QueryError:
        pass
    return (time.process_time() - started) * 1_000


def _print_means(figures: dict[str, dict[str, dict[str, Scores]]], beside: Path | None) -> None:
    """Means over the manuals, MRR@10 / success@10; the change of each manual beside ``beside``."""
    other = json.loads(beside.read_text()) if beside else {}
    for form, manuals in figures.items():
        known = other.get(form, {})
        columns = {
            name: [scores[name] for scores in manuals.values()]
            for name in next(iter(manuals.values()))
        }
        if known and known.keys() >= manuals.keys():
            columns["before"] = [Scores(*known[manual]["larmspider"]) for manual in manuals]
            worst = min(
                (scores["larmspider"].mrr - known[manual]["larmspider"][0], manual)
                for manual, scores in manuals.items()
            )
            said = f"; least gain {worst[0]:+.3f} ({worst[1]})"
        else:
            said = ""
        means = {
            name: Scores(*map(statistics.fmean, zip(*column, strict=True)))
            for name, column in columns.items()
        }
        text = "   ".join(f"{name} {score}" for name, score in means.items())
        print(f"mean of {len(manuals)}, {form:10} {text}{said}")


if __name__ == "__main__":
    sys.exit(main())
