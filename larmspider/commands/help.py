"""larmspider help [SUBJECT [HEADING]]: the user's pages of the documentation, on the terminal.

The wheel has them in larmspider/guide, a checkout in docs/.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from difflib import get_close_matches
from importlib.resources import files

from larmspider import program
from larmspider.command import LarmCommand
from larmspider.errors import ConfigError

_PACKAGE = files("larmspider")
FOLDERS = (_PACKAGE.joinpath("guide"), _PACKAGE.joinpath("../docs"))
"""The first that exists holds the pages."""
_HEADING = re.compile(r"^(#+) +(.+?) *$", re.MULTILINE)
_SETTING = re.compile(r"[A-Z][A-Z0-9_]{3,}")


class Command(LarmCommand):
    of_a_crawl = False

    def syntax(self) -> str:
        return "[SUBJECT [HEADING]]"

    def short_desc(self) -> str:
        return "Explain a subject: larmspider help refresh"

    def long_desc(self) -> str:
        return (
            "Print a page of the documentation, or the section with that HEADING. Without SUBJECT:"
            " the list of pages. A setting's name prints its row: help LARM_DIR."
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        pages = read_pages()
        if not args:
            titles = {name: title_of(text) for name, text in pages.items()}
            if opts.json:
                print(json.dumps(titles))
                return
            width = max(map(len, titles))
            print("\n".join(f"  {name:<{width}}  {title}" for name, title in titles.items()))
            return
        text = found(pages, args[0], " ".join(args[1:]))
        if opts.json:
            print(json.dumps({"subject": args[0], "text": text}))
        elif sys.stdout.isatty():
            from rich.console import Console
            from rich.markdown import Markdown

            Console().print(Markdown(text))
        else:
            print(text)


def read_pages() -> dict[str, str]:
    """The text of each user's page by name: ``refresh`` is docs/refresh.md. Raises ConfigError."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    if folder is None:
        raise ConfigError(f"the pages of the documentation are not installed in {FOLDERS[0]}")
    pages = {page.name: page for page in folder.iterdir() if page.name.endswith(".md")}
    return {name.removesuffix(".md"): pages[name].read_text("utf-8") for name in sorted(pages)}


def title_of(text: str) -> str:
    heading = _HEADING.search(text)
    return heading[2] if heading else ""


def found(pages: dict[str, str], subject: str, heading: str = "") -> str:
    """The page, its section, or the row of a setting. Raises ConfigError."""
    if _SETTING.fullmatch(subject):
        row = re.search(rf"^\|.*`{subject}`.*$", pages.get("settings", ""), re.MULTILINE)
        if row is None:
            raise ConfigError(f"no setting {subject} in {program.NAME} help settings")
        return row[0]
    name, _, fragment = subject.removeprefix("docs/").partition("#")
    name = name.removesuffix(".md").lower()
    if name not in pages:
        near = get_close_matches(name, pages, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"no page {name!r}: expected one of {', '.join(pages)}{meant}")
    wanted = heading or fragment
    return section(pages[name], wanted) if wanted else pages[name]


def section(text: str, wanted: str) -> str:
    """The section from its heading to the next heading of the same level. ``wanted``: the heading,
    its anchor, or the beginning of either, ignoring case. Raises ConfigError."""
    headings = list(_HEADING.finditer(text))
    anchor = _anchor(wanted)
    for place, heading in enumerate(headings):
        if _anchor(heading[2]).startswith(anchor):
            level = len(heading[1])
            ends = (one.start() for one in headings[place + 1 :] if len(one[1]) <= level)
            return text[heading.start() : next(ends, len(text))].rstrip()
    raise ConfigError(
        f"no heading {wanted!r}: expected one of {', '.join(one[2] for one in headings)}"
    )


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
