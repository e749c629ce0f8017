"""scrapy search QUERY: the best pages of a crawl, also while it runs, with matching text."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import asdict

from larmspider import options, program
from larmspider.command import LarmCommand, print_json
from larmspider.crawl.search_engines import searcher_of
from larmspider.errors import ConfigError, QueryError
from larmspider.formatting import counted, printable, readable, utc
from larmspider.index.access import EVERYTHING
from larmspider.index.schema import KINDS
from larmspider.reports.why import Why, why
from larmspider.search.best_bets import titled
from larmspider.search.curated import Curated
from larmspider.search.labels import Label, LabelSet
from larmspider.search.query import DAYS, REACH, Filters, since_time
from larmspider.search.request import MAX_LIMIT, MAX_OFFSET, SearchRequest
from larmspider.search.results import Results, found_line, replaced, results_json
from larmspider.urls.file_urls import OpenableUrls

_BOLD, _PLAIN = "\033[1m", "\033[0m"


class Command(LarmCommand):
    words_may_begin_with_a_dash = True

    def syntax(self) -> str:
        return "[options] WORDS"

    def short_desc(self) -> str:
        return "Search the pages of a crawl"

    def long_desc(self) -> str:
        return (
            'Search the pages of a crawl. Pages with all words come first. "a phrase", -word, word~'
            " (similar), title:word, url:word, author:word, host:name, lang:de and mime:pdf narrow"
            " the search, and so do the names of LARM_FIELDS."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-n",
            type=int,
            default=10,
            metavar="N",
            help=f"show N pages (default 10, at most {MAX_LIMIT})",
        )
        parser.add_argument("--offset", type=int, default=0, metavar="N", help="skip the first N")
        parser.add_argument(
            "--host", action="append", default=[], help="only this host; repeatable"
        )
        parser.add_argument(
            "--type",
            action="append",
            default=[],
            help=f"only this kind of document; repeatable: {', '.join(KINDS)}",
        )
        parser.add_argument(
            "--lang",
            action="append",
            default=[],
            help="only this language, such as de or en; repeatable",
        )
        parser.add_argument(
            "--label",
            action="append",
            default=[],
            help="only pages with this label (docs/labels.md); repeatable",
        )
        parser.add_argument(
            "--field",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="only pages with this value of a field of the setting LARM_FIELDS; repeatable",
        )
        parser.add_argument(
            "--exact",
            action="store_true",
            help="search for the query as typed, without corrections",
        )
        parser.add_argument(
            "--copies",
            action="store_true",
            help="show copies of a page as separate hits",
        )
        parser.add_argument(
            "--sort",
            choices=("relevance", "date"),
            default="relevance",
            help="sort by date, newest first; only pages with all the words",
        )
        parser.add_argument(
            "--unreachable",
            choices=REACH,
            default=REACH[0],
            help="pages that were not reached at their last visit: show them after others (yes),"
            " leave them out (no), or show them alone (only)",
        )
        parser.add_argument(
            "--why",
            metavar="URL",
            help="explain the place of this page among the hits, or why it is not a hit",
        )
        parser.add_argument(
            "--since",
            metavar="WHEN",
            help="only pages modified since then, or fetched where that is unknown;"
            f" {', '.join(DAYS)}, or a day as in 2026-01-31",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        query = " ".join(args)
        if not query.strip():
            raise QueryError("the query is empty: name at least one word")
        options.as_integer("-n", opts.n, minimum=1, maximum=MAX_LIMIT)
        options.as_integer("--offset", opts.offset, minimum=0, maximum=MAX_OFFSET)
        assert self.settings is not None
        curated = Curated.from_settings(self.settings)
        labels = curated.labels.value
        request = SearchRequest(
            query,
            opts.n,
            opts.offset,
            _filters(opts, labels),
            facets=opts.json,
            verbatim=opts.exact,
            copies=opts.copies,
            newest=opts.sort == "date",
            suggest=not opts.offset,
            labels=labels.all,
        )
        crawl = self.open_crawl()
        searcher = searcher_of(crawl, self.settings).widened_by(curated.synonyms.value)
        if opts.why is not None:
            reasons = why(request, opts.why, searcher, crawl, self.settings)
            if opts.json:
                print_json(asdict(reasons))
            else:
                _print_why(reasons)
            return
        results = searcher.search(request)
        for error in results.left_out:
            text = f"without the pages of an index: {error}"
            print(f"{program.NAME} search: {printable(text)}", file=sys.stderr)
            self.exitcode = 1
        found = [] if opts.offset else curated.best_bets.value.of(query, EVERYTHING.page)
        bets = titled(found, searcher, lambda url: crawl.forms(url).exact)
        if opts.json:
            opens = OpenableUrls.from_settings(self.settings)
            print_json(results_json(results, bets, opens))
        else:
            for bet in bets:
                print(f"  >  {readable(bet.title) or '(no title)'}\n     {printable(bet.url)}")
            _print(results)


def _filters(opts: argparse.Namespace, known: LabelSet) -> Filters:
    return Filters.of(
        hosts=opts.host,
        kinds=opts.type,
        languages=opts.lang,
        labels=[_label(name, known) for name in opts.label],
        since=None if opts.since is None else since_time(opts.since, time.time()),
        fields=map(_field, opts.field),
        unreachable=opts.unreachable,
    )


def _label(name: str, known: LabelSet) -> Label:
    if (found := known.of(name)) is None:
        names = ", ".join(label.name for label in known.all) or "none: labels.txt names none"
        raise ConfigError(f"--label {name}: there is no such label: expected one of {names}")
    return found


def _field(given: str) -> tuple[str, str]:
    name, _, value = given.partition("=")
    if not name or not value:
        raise ConfigError(f"--field {given}: expected NAME=VALUE")
    return name, value


def _print_why(found: Why) -> None:
    print(f"{printable(found.page.url if found.page else found.url)}: {found.verdict}")
    if found.query != found.typed:
        print(f"searched for: {printable(found.query)}")
    if found.note:
        print(found.note)
    for reason in found.reasons:
        print(f"  - {printable(reason)}")
    for placed in (found.page, found.above, found.first):
        if placed is not None and placed.examined.score:
            one = placed.examined
            print(f"{placed.position or '-':>3}. {readable(placed.title) or '(no title)'}")
            print(f"     {printable(placed.url)}")
            print(f"     score {one.score:.2f}: {one.prior:.2f}, {one.because}, times the sum of")
            for part, value in one.parts.items():
                print(f"     {value:>8.2f}  {printable(part)}")


def _print(results: Results) -> None:
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    marks = (_BOLD, _PLAIN) if bold else ("*", "*")
    if said := replaced(results):
        print(f"{printable(said)} (--exact: as typed)")
    for word in results.no_filters:
        name = word.partition(":")[0]
        print(f"{printable(name)}: is not a filter; searched for {printable(word)} as a word")
    if results.also:
        print(f"Searched too: {printable(', '.join(results.also))} (--exact: as typed)")
    for number, hit in enumerate(results.hits, results.request.offset + 1):
        print(f"{number:>3}. {marks[0] if bold else ''}{readable(hit.title) or '(no title)'}"
              f"{marks[1] if bold else ''}")  # fmt: skip
        notes = [f"page {hit.page}"] if hit.page else []
        notes += [counted(hit.copies, "copy", "copies")] if hit.copies else []
        if hit.missing_since is not None:
            notes.append(f"not reached since {utc(hit.missing_since)[:10]}")
        print(f"     {printable(hit.target)}" + "".join(f"  ({note})" for note in notes))
        if snippet := hit.snippet.marked(*marks, readable):
            print(f"     {snippet}")
    print(printable(found_line(results, f"{results.seconds * 1000:.1f} ms")))
    suggestion = results.suggestion
    if suggestion is not None and results.instead is None:
        found = f"{suggestion.total_all:,} found"
        if not suggestion.total_all:
            found = f"{suggestion.total:,} with any of the words"
        print(f"Did you mean: {printable(suggestion.query)}  ({found})")
