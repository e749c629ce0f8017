"""Does a version find and store what another one does? Hit lists and crawls, kept and compared.

    python -m benchmarks.same_results --save before.same       # with the code as it was
    python -m benchmarks.same_results --compare before.same    # with the code as it is

Two parts; ``--part`` runs one of them:

searches   Pages of four manuals are indexed. 1,000 queries are made from their words, with one seed
           (`KINDS`), and asked twice: by an administrator, and by a reader who may not see one of
           the manuals. Kept is each answer as a program gets it, without the time that it took:
           URL, title, snippet and score of each hit, counts, corrections.
crawls     Six manuals, served by nginx, are crawled with one connection each. Kept are the lines of
           store.log (URL to title) and those of links.log, each as a set.

A comparison asks the queries that the file has, and names the first answers and lines that differ.

Exit status: 0 all is equal (or saved), 1 something differs, 2 nothing could be compared.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b, sha1
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from benchmarks.meter import crawl_command, crawl_environment
from larmspider import options as crawl_options
from larmspider.errors import InvalidURL, LarmspiderError, QueryError
from larmspider.extraction.pages.html import extract
from larmspider.extraction.texts.language import Languages
from larmspider.extraction.texts.simhasher import Simhasher
from larmspider.index.access import Access
from larmspider.index.unreached import UnreachedLog
from larmspider.index.version import note_restricted_of
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.query import Filters, since_time, until_time
from larmspider.search.request import SearchRequest
from larmspider.search.results import results_json
from larmspider.search.searcher import Searcher
from larmspider.search.synonyms import parse_synonyms
from larmspider.urls.canonical import Canonicalizer
from tests.support.servers.nginx import NGINX, Nginx

_exact = Canonicalizer().exact
SEED = 42
QUERIES = 1_000
NOW = 1_790_000_000.0
"""The clock of indexing and searching, in seconds since the epoch."""
HEAP_BYTES = 2_000_000_000
"""Enough for one segment: how Tantivy merges several depends on the moment."""
MOST_PAGES, MOST_BYTES = 500, 100_000
"""Pages of a manual that are indexed at most, and bytes of a page."""
SHOWN = 10
"""Answers and lines that are named."""
PORT = 18_942
"""All servers listen here. URLs must be the same each time, because samples go by their hashes."""
CRAWL_SECONDS = 1_800.0
FORMAT = "larmspider same results 1"
SEARCHES, CRAWLS = PARTS = ("searches", "crawls")


class NotPossibleError(Exception):
    """Nothing can be compared; the text says why."""


@dataclass(frozen=True)
class Manual:
    """HTML pages of a Debian ``package`` in ``folder``; a crawl begins with ``start``."""

    name: str
    package: str
    folder: Path
    start: str = "/index.html"

    @property
    def pages(self) -> list[Path]:
        """At most `MOST_PAGES`, from all of its folders, none larger than `MOST_BYTES`."""
        found = sorted(path for path in self.folder.rglob("*.html") if path.is_file())
        found = [path for path in found if path.stat().st_size <= MOST_BYTES]
        return found[:: -(-len(found) // MOST_PAGES)] if found else []


_DOC = Path("/usr/share/doc")
PYTHON = Manual("python", "python3.11-doc", _DOC / "python3.11-doc/html")
POSTGRESQL = Manual("postgresql", "postgresql-doc-15", _DOC / "postgresql-doc-15/html")
ERLANG = Manual("erlang", "erlang-doc", _DOC / "erlang-doc/lib")
JAVA = Manual("java", "openjdk-17-doc", _DOC / "openjdk-17-doc/api/java.base/java/util")
INDEXED = (PYTHON, POSTGRESQL, ERLANG, JAVA)
CRAWLED = {
    "127.42.0.1": PYTHON,
    "127.42.0.2": POSTGRESQL,
    "127.42.0.3": Manual("libffi", "libffi-dev", _DOC / "libffi-dev/html"),
    "127.42.0.4": Manual("nodejs", "nodejs-doc", _DOC / "nodejs/api"),
    "127.42.0.5": Manual("valgrind", "valgrind", _DOC / "valgrind/html"),
    "127.42.0.6": Manual("libxslt", "libxslt1-dev", _DOC / "libxslt1-dev/html"),
}
"""By address."""
RESTRICTED = (f"{POSTGRESQL.name}.example", f"{ERLANG.name}.example")
"""Restricted hosts."""
ALLOWED = (f"{ERLANG.name}.example",)
"""Restricted hosts that the restricted reader may see."""
UNREACHED = 40
"""One page of 40 counts as missing since yesterday."""
SYNONYMS = ("delete, remove", "folder, directory", "method, member function", "fast, quick, speedy")
READERS = {"administrator": None, "restricted reader": Access(RESTRICTED, ALLOWED)}

# --- the index -----------------------------------------------------------------------------------


def read_pages(manuals: Iterable[Manual]) -> list[Page]:
    """All pages as a crawl hands them to the index; their bodies are let go of later."""
    pages = []
    for manual in manuals:
        for number, path in enumerate(manual.pages):
            body = path.read_bytes()
            url = f"http://{manual.name}.example/{path.relative_to(manual.folder).as_posix()}"
            page = extract(body, url, "text/html")
            page.body, page.mime, page.exact = body, "text/html", _exact(url)
            page.status, page.fetched = 200, NOW - 86_400.0 * (number % 400)
            for link in page.links:
                try:
                    link.exact = _exact(link.url)
                except InvalidURL:
                    link.exact = None
            pages.append(page)
    return pages


def build(directory: Path, pages: Sequence[Page]) -> None:
    """One commit with all link texts known: the same numbers each time, and no page that was
    replaced."""
    guessed = crawl_options.defaults()["LARM_LANGUAGES"]
    with (
        Simhasher() as hasher,
        closing(Languages.from_settings(Settings({"LARM_LANGUAGES": guessed}))) as languages,
        IndexWriter(directory, heap_bytes=HEAP_BYTES, simhashes=hasher.submit) as writer,
    ):
        for page in pages:
            links = {
                (link.exact, link.anchor)
                for link in page.links
                if link.exact and link.anchor and link.exact != page.exact
            }
            writer.add_anchors(page.name, links)
        writer.commit()
        for page in pages:
            page.language = languages.of_now(page)
            digest = sha1(page.body, usedforsecurity=False).hexdigest()
            writer.add(page, digest)
            page.body, page.links = b"", []
        writer.commit()
    note_restricted_of(directory, RESTRICTED)
    marks = UnreachedLog(directory)
    for page in pages[::UNREACHED]:
        marks.missed(page.name, "missing", NOW - 86_400.0)
    marks.write()


# --- the queries ---------------------------------------------------------------------------------


class Words:
    """Draws words and phrases from pages."""

    def __init__(self, pages: Sequence[Page], draw: random.Random) -> None:
        self.draw = draw
        self.texts = [page.text for page in pages if len(page.text) > 500]
        self.titles = [page.title for page in pages if page.title]
        counted = Counter(
            word for text in self.texts for word in {*re.findall(r"[a-z]{3,14}", text.lower())}
        )
        self.by_pages = sorted(counted, key=lambda word: (-counted[word], word))
        code = {name for text in self.texts[::7] for name in re.findall(r"\w+[._:]+\w+\(\)", text)}
        self.code = sorted(code)
        flags = {flag for text in self.texts[::7] for flag in re.findall(r"(?<=\s)--[a-z-]+", text)}
        self.flags = sorted(flags)

    def frequent(self) -> str:
        return self.draw.choice(self.by_pages[:150])

    def common(self) -> str:
        return self.draw.choice(self.by_pages[150:5_000])

    def rare(self) -> str:
        return self.draw.choice(self.by_pages[5_000:])

    def any(self) -> str:
        return self.draw.choice((self.frequent, self.common, self.common, self.rare))()

    def row(self, number: int) -> str:
        """Words as they stand side by side on a page."""
        while True:
            text = self.draw.choice(self.texts)
            at = self.draw.randrange(len(text) - 200)
            words = re.findall(r"[A-Za-z]+", text[at : at + 200])[1 : number + 1]
            if len(words) == number:
                return " ".join(words)

    def title(self) -> str:
        words = re.findall(r"[A-Za-z]{3,}", self.draw.choice(self.titles))
        return self.draw.choice(words) if words else self.common()

    def misspelt(self, word: str = "") -> str:
        """A word with two letters that have changed places, one left out, or a wrong one."""
        while len(word) < 5:
            word = self.common()
        at = self.draw.randrange(1, len(word) - 1)
        return self.draw.choice(
            (
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                word[:at] + word[at + 1 :],
                word[:at] + self.draw.choice("aeiourst") + word[at + 1 :],
            )
        )

    def unknown(self) -> str:
        return "".join(self.draw.choices("bcdfghjklmnpqrstvwxz", k=self.draw.randint(7, 12)))


HOSTS = tuple(f"{manual.name}.example" for manual in INDEXED)
QUESTIONS = ("how do I use {}", "what is {} and how does it work", "when should I use {}?")

KINDS: Mapping[str, Any] = {
    "one word": lambda w: w.any(),
    "two words": lambda w: f"{w.any()} {w.common()}",
    "three words": lambda w: f"{w.common()} {w.frequent()} {w.any()}",
    "words side by side": lambda w: w.row(w.draw.randint(2, 5)),
    "question": lambda w: w.draw.choice(QUESTIONS).format(w.row(2)),
    "phrase": lambda w: f'"{w.row(w.draw.randint(2, 3))}"',
    "phrase and word": lambda w: f'"{w.row(2)}" {w.common()}',
    "phrase that no page has": lambda w: f'"{w.rare()} {w.common()}"',
    "minus": lambda w: f"{w.common()} -{w.frequent()}",
    "minus phrase": lambda w: f'{w.common()} {w.common()} -"{w.row(2)}"',
    "title:": lambda w: f"title:{w.title()} {w.common()}",
    "title: phrase": lambda w: f'title:"{w.title()} {w.title()}"',
    "url:": lambda w: f"{w.common()} url:{w.draw.choice(('library', 'sql', 'lib', 'api', 'doc'))}",
    "host:": lambda w: f"{w.any()} host:{w.draw.choice(HOSTS)}",
    "two host:": lambda w: f"{w.any()} host:{w.draw.choice(HOSTS)} host:{w.draw.choice(HOSTS)}",
    "lang: and mime:": lambda w: f"{w.any()} lang:{w.draw.choice(('en', 'de'))} mime:text/html",
    "author: and unreachable:": lambda w: w.draw.choice(
        (f"{w.any()} unreachable:no", f"{w.any()} unreachable:only", f"{w.any()} author:{w.rare()}")
    ),
    "fuzzy word": lambda w: f"{w.misspelt()}~ {w.common()}",
    "misspelt word": lambda w: w.misspelt(),
    "two misspelt words": lambda w: f"{w.misspelt()} {w.misspelt()}",
    "word that no page has": lambda w: f"{w.unknown()} {w.draw.choice(('', w.common()))}".strip(),
    "name in code": lambda w: w.draw.choice(w.code or w.flags or ["f()"]),
    "flag": lambda w: f"{w.draw.choice(w.flags or ['--help'])} {w.draw.choice(('', w.common()))}",
    "signs": lambda w: w.draw.choice(("->>", "C++", "operator==", "!=", "*", "-x", "&&", '"')),
    "synonym": lambda w: (
        f"{w.draw.choice(('delete', 'remove', 'folder', 'directory', 'method', 'fast'))} {w.any()}"
    ),
    "two spellings": lambda w: (
        w.draw.choice(("e-mail", "time stamp", "RFC-1034", "multi-threaded")) + f" {w.common()}"
    ),
}
"""Makers of queries by kind."""
OPTIONS: Sequence[Mapping[str, Any]] = (
    *({} for _ in range(8)),
    {"offset": 10},
    {"copies": True},
    {"newest": True},
    {"verbatim": True},
    {"host": [HOSTS[0]]},
    {"host": [HOSTS[1], HOSTS[2]], "type": ["html"]},
    {"language": ["en"], "since": "2026-06-01"},
    {"until": "2026-03-01", "limit": 30},
)
"""Options of a query, used in turns."""


def make_queries(pages: Sequence[Page]) -> list[dict[str, Any]]:
    """The queries of all kinds, with their options: the same queries for the same pages."""
    words, kinds = Words(pages, random.Random(SEED)), list(KINDS)
    found = []
    for number in range(QUERIES):
        kind = kinds[number % len(kinds)]
        chosen = OPTIONS[number // len(kinds) % len(OPTIONS)]
        found.append({"kind": kind, "query": KINDS[kind](words)} | chosen)
    return found


# --- the answers ---------------------------------------------------------------------------------


def answer(searcher: Searcher, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON that a program gets, with scores of six digits and without the duration."""
    try:
        filters = Filters.of(
            hosts=asked.get("host", ()),
            kinds=asked.get("type", ()),
            languages=asked.get("language", ()),
            since=since_time(asked["since"], NOW) if "since" in asked else None,
            until=until_time(asked["until"]) if "until" in asked else None,
        )
        request = SearchRequest(
            asked["query"],
            asked.get("limit", 10),
            asked.get("offset", 0),
            filters,
            facets=True,
            verbatim=asked.get("verbatim", False),
            copies=asked.get("copies", False),
            newest=asked.get("newest", False),
            suggest=True,
        )
        results = searcher.search(request)
    except QueryError as error:
        return {"error": str(error)}
    found = results_json(results)
    del found["seconds"]
    for shown, hit in zip(found["hits"], results.hits, strict=True):
        shown["score"] = None if hit.score is None else round(hit.score, 6)
    return found


def answers(
    directory: Path, queries: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Reader and answer, for each reader and query."""
    searcher = Searcher.open(directory, clock=lambda: NOW)
    searcher = searcher.widened_by(parse_synonyms(SYNONYMS)[0])
    for reader, access in READERS.items():
        seen = searcher if access is None else searcher.seen_by(access)
        for asked in queries:
            yield reader, answer(seen, asked)


# --- the crawls ----------------------------------------------------------------------------------

CRAWL_SETTINGS = {
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "LARM_EXTRACTION_BESIDE": "off",  # pages in the order of their answers
    "LARM_WEB": False,
    "LARM_PROGRESS": False,
    "LOG_LEVEL": "WARNING",
}
_KEPT_COLUMNS = slice(1, 8)
"""Columns of store.log that are compared: URL to title. Which page led to a URL first depends on
when a process has read a large page; page file and offset depend on the order of answers."""


def crawl(folder: Path) -> dict[str, list[str]]:
    """The lines of both logs, sorted, each once. Raises NotPossibleError."""
    if NGINX is None:
        raise NotPossibleError("nginx is not installed (Debian package nginx-light)")
    roots = {address: manual.folder for address, manual in CRAWLED.items()}
    try:
        server = Nginx(roots, port=PORT)
        with server:
            seeds = [server.url(address, manual.start) for address, manual in CRAWLED.items()]
            (folder / "seeds").write_text("\n".join(seeds))
            with (folder / "output").open("wb") as output:
                status = subprocess.run(
                    crawl_command(CRAWL_SETTINGS | {"LARM_DIR": str(folder / "crawl")}),
                    cwd=folder,
                    env=crawl_environment() | {"REDIS_URL": ""},
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=CRAWL_SECONDS,
                    check=False,
                ).returncode
    except RuntimeError as error:
        raise NotPossibleError(f"nginx on port {PORT}: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise NotPossibleError(f"the crawl took more than {CRAWL_SECONDS:.0f} s") from error
    if status:
        told = (folder / "output").read_text("utf-8", "replace")[-2_000:]
        raise NotPossibleError(f"the crawl ended with status {status}:\n{told}")
    stored = (folder / "crawl" / "store.log").read_text("utf-8").splitlines()
    links = (folder / "crawl" / "links.log").read_text("utf-8").splitlines()
    return {
        "store.log": sorted({"\t".join(line.split("\t")[_KEPT_COLUMNS]) for line in stored}),
        "links.log": sorted(set(links)),
    }


# --- the file ------------------------------------------------------------------------------------


def digest(found: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(found, sort_keys=True).encode(), digest_size=8).hexdigest()


@dataclass
class Kept:
    """The content of a file. ``answers``: reader, digest and answer as JSON, by readers and then by
    ``queries``; ``logs``: lines by name of the log."""

    queries: list[dict[str, Any]]
    answers: list[tuple[str, str, str]]
    logs: dict[str, list[str]]

    def write(self, path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("format", FORMAT)
            file.writestr("queries", json.dumps(self.queries, indent=1))
            file.writestr("answers", "\n".join("\t".join(row) for row in self.answers))
            for name, lines in self.logs.items():
                file.writestr(name, "\n".join(lines))

    @classmethod
    def read(cls, path: Path) -> Kept:
        """Raises NotPossibleError."""
        try:
            with zipfile.ZipFile(path) as file:
                texts = {name: file.read(name).decode() for name in file.namelist()}
            if texts.get("format") != FORMAT:
                raise NotPossibleError(f"{path}: not written by --save of this version")
            rows = [line.split("\t", 2) for line in texts["answers"].split("\n") if line]
            logs = {name: texts[name].split("\n") for name in texts if name.endswith(".log")}
            return cls(json.loads(texts["queries"]), [(a, b, c) for a, b, c in rows], logs)
        except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
            raise NotPossibleError(f"{path}: cannot be read: {error}") from error


def gather(parts: Sequence[str], queries: list[dict[str, Any]] | None = None) -> Kept:
    """Results of this version; ``queries`` None: they are made. Raises
    NotPossibleError."""
    needed = [
        *(INDEXED if SEARCHES in parts else ()),
        *(CRAWLED.values() if CRAWLS in parts else ()),
    ]
    missing = {manual.package for manual in needed if not manual.pages}
    if missing:
        raise NotPossibleError(f"Debian packages are not installed: {', '.join(sorted(missing))}")
    found = Kept(queries or [], [], {})
    with tempfile.TemporaryDirectory(prefix="same-") as name:
        folder = Path(name)
        if SEARCHES in parts:
            began = time.monotonic()
            pages = read_pages(INDEXED)
            found.queries = queries or make_queries(pages)
            build(folder / "index", pages)
            tell(f"{len(pages):,} pages indexed in {time.monotonic() - began:.0f} s")
            began = time.monotonic()
            for reader, one in answers(folder / "index", found.queries):
                found.answers.append((reader, digest(one), json.dumps(one, sort_keys=True)))
            tell(f"{len(found.answers):,} answers in {time.monotonic() - began:.0f} s")
        if CRAWLS in parts:
            began = time.monotonic()
            found.logs = crawl(folder)
            lines = ", ".join(f"{len(lines):,} of {name}" for name, lines in found.logs.items())
            tell(f"crawled in {time.monotonic() - began:.0f} s: lines {lines}")
    return found


# --- the comparison ------------------------------------------------------------------------------


def first_difference(before: Any, now: Any, where: str = "") -> str:
    """Where two answers differ first, in words: ``hits[2].url: 'a' before, 'b' now``."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            if before.get(key) != now.get(key):
                inside = f"{where}.{key}" if where else str(key)
                return first_difference(before.get(key), now.get(key), inside)
    if isinstance(before, list) and isinstance(now, list):
        for at, (one, other) in enumerate(zip(before, now, strict=False)):
            if one != other:
                return first_difference(one, other, f"{where}[{at}]")
        return f"{where}: {len(before)} before, {len(now)} now"
    return (
        f"{where}: {html.unescape(repr(before))[:200]} before, {html.unescape(repr(now))[:200]} now"
    )


def differences(before: Kept, now: Kept, parts: Sequence[str]) -> list[str]:
    """A line for each of the first differences, and how many there are of each sort; none: all is
    equal."""
    told: list[str] = []
    if SEARCHES in parts:
        differing = [
            at
            for at, (one, other) in enumerate(zip(before.answers, now.answers, strict=True))
            if one[1] != other[1]
        ]
        if differing:
            told.append(f"{len(differing):,} of {len(before.answers):,} answers differ")
        for at in differing[:SHOWN]:
            asked = before.queries[at % len(before.queries)]
            where = first_difference(
                json.loads(before.answers[at][2]), json.loads(now.answers[at][2])
            )
            told.append(f"  {before.answers[at][0]}: {json.dumps(asked)}: {where}")
    for name in before.logs if CRAWLS in parts else ():
        lines, lines_now = set(before.logs[name]), set(now.logs[name])
        gone, new = sorted(lines - lines_now), sorted(lines_now - lines)
        if gone or new:
            told.append(f"{name}: {len(gone):,} lines are missing, {len(new):,} are new")
        told += [f"  - {line[:300]}" for line in gone[:SHOWN]]
        told += [f"  + {line[:300]}" for line in new[:SHOWN]]
    return told


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.same_results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--save", type=Path, metavar="FILE", help="keep what this version gives")
    what.add_argument("--compare", type=Path, metavar="FILE", help="compare it with what was kept")
    parser.add_argument("--part", choices=PARTS, help="one part alone")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = parsed(words)
    parts = [options.part] if options.part else list(PARTS)
    try:
        if options.save:
            if not os.access(options.save.absolute().parent, os.W_OK):
                raise NotPossibleError(f"{options.save}: its folder cannot be written")
            gather(parts).write(options.save)
            return 0
        before = Kept.read(options.compare)
        if SEARCHES in parts and not before.answers:
            raise NotPossibleError(f"{options.compare}: has no searches; expected --part {CRAWLS}")
        if CRAWLS in parts and not before.logs:
            raise NotPossibleError(f"{options.compare}: has no crawls; expected --part {SEARCHES}")
        now = gather(parts, before.queries)
        if SEARCHES in parts and len(now.answers) != len(before.answers):
            raise NotPossibleError(f"{options.compare}: has the answers of other readers")
        told = differences(before, now, parts)
    except (NotPossibleError, LarmspiderError, OSError) as error:
        tell(f"same_results: {error}")
        return 2
    print("\n".join(told) or "equal")
    return 1 if told else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that servers end, too
    sys.exit(main())
