"""scrapy explain URL: why is this page in the crawl, or why is it not?"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from larmspider.command import LarmCommand, one_argument, print_json
from larmspider.formatting import printable
from larmspider.reports.explain import Explanation, explain


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] URL"

    def short_desc(self) -> str:
        return "Show what each filter says about a URL, and whether and when it was fetched"

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        url = one_argument(args, "URL")
        crawl = self.open_crawl()
        explanation = explain(url, self.settings, crawl)
        if opts.json:
            print_json(asdict(explanation) | {"rejected_by": explanation.rejected_by})
        else:
            print_text(explanation)


def print_text(explanation: Explanation) -> None:
    """Print the explanation, one fact on each line."""
    rows = [("URL", explanation.url), ("canonical", explanation.canonical or "none")]
    if explanation.merged:
        rows.append(("merged", explanation.merged))
    rows += [("host rule", rule) for rule in explanation.host_rules or ["none applies"]]
    rows += [("note", note) for note in explanation.notes]
    for verdict in explanation.verdicts:
        text = verdict.verdict if verdict.verdict != "reject" else "REJECT"
        rows.append((verdict.stage, f"{text}  {verdict.reason}".rstrip()))
    rows += [("site", line) for line in explanation.sites]
    fetch, page = explanation.fetched, explanation.stored
    if fetch is not None:
        result = f"{fetch.time or 'yes'}  {fetch.result}"
        if page is not None and fetch.result.isdigit():
            result += f" {page.mime} {page.size} bytes"
        rows.append(("fetched", f"{result}  {fetch.message}".rstrip()))
    else:
        rows.append(("fetched", "no"))
    if page is not None:
        rows.append(("stored", f"{page.file} at {page.offset}"))
        rows.append(("title", page.title))
    rows += [(name, ", ".join(values)) for name, values in explanation.fields.items()]
    rows += [("copy", url) for url in explanation.copied_at]
    if explanation.copies > len(explanation.copied_at):
        rows.append(("copies", f"{explanation.copies}; these are the first ones"))
    rows += [("frontier", line) for line in explanation.frontier]
    rows += [("history", line) for line in explanation.history]
    if explanation.first_referrer is None:
        unknown = "not known" if explanation.known else "no page of this crawl"
        rows.append(("found on", unknown))
    else:
        rows.append(("found on", explanation.first_referrer or "a seed"))
    for label, text in rows:
        print(f"{label:<12} {printable(text)}".rstrip())
