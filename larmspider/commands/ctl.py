"""larmspider ctl: tells a server what to do, by its API."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from larmspider.command import LarmCommand, print_json
from larmspider.errors import ConfigError
from larmspider.formatting import printable, utc


class Asked(NamedTuple):
    """A request of the API."""

    method: str
    path: str
    body: Any = None


def _one(name: str, act: str = "") -> str:
    return f"/crawls/{quote(name, safe='')}{act}"


def _crawl_text(file: str) -> str:
    from larmspider.server.config.crawl_file import read_text

    return read_text(Path(file))


def _table(file: str) -> dict[str, Any]:
    from larmspider.server.config.crawl_file import table_of

    return table_of(_crawl_text(file), file)


ACTS: Mapping[str, tuple[Sequence[str], str, Callable[..., Asked]]] = {
    "crawls": ((), "all crawls and the queue", lambda: Asked("GET", "/crawls")),
    "crawl": (("NAME",), "a crawl and its file", lambda name: Asked("GET", _one(name))),
    "create": (
        ("NAME", "FILE"),
        "create a crawl from a file",
        lambda name, file: Asked("POST", "/crawls", {"name": name, "crawl": _crawl_text(file)}),
    ),
    "change": (
        ("NAME", "FILE"),
        "change the keys that a file has",
        lambda name, file: Asked("PATCH", _one(name), {"crawl": _table(file)}),
    ),
    "preview-change": (
        ("NAME", "FILE"),
        "see what a change would change",
        lambda name, file: Asked("POST", _one(name, "/preview"), {"crawl": _table(file)}),
    ),
    "delete": (
        ("NAME", "NAME"),
        "delete a crawl; its pages stay",
        lambda name, typed: Asked("DELETE", _one(name), {"name": typed}),
    ),
    "start": (("NAME",), "start a run", lambda name: Asked("POST", _one(name, "/start"))),
    "stop": (("NAME",), "stop a run", lambda name: Asked("POST", _one(name, "/stop"))),
    "pause": (("NAME",), "pause a run", lambda name: Asked("POST", _one(name, "/pause"))),
    "resume": (("NAME",), "continue it", lambda name: Asked("POST", _one(name, "/resume"))),
    "visit": (
        ("NAME", "all|url|pattern", "VALUE"),
        "visit pages again; VALUE is '' for all",
        lambda name, what, value: Asked(
            "POST", _one(name, "/visit"), {"what": what, "value": value}
        ),
    ),
    "preview": (
        ("FILE",),
        "fetch the first 20 pages of a crawl that is not kept",
        lambda file: Asked("POST", "/preview", {"crawl": _table(file)}),
    ),
    "runs": (("NAME",), "the runs of a crawl", lambda name: Asked("GET", _one(name, "/runs"))),
    "log": (
        ("NAME", "NUMBER"),
        "the end of a run's log",
        lambda name, number: Asked("GET", _one(name, f"/runs/{quote(number, safe='')}/log")),
    ),
    "tokens": ((), "all tokens", lambda: Asked("GET", "/tokens")),
    "make-token": (
        ("NAME", "read|push|operate"),
        "make a token, which is shown once",
        lambda name, scope: Asked("POST", "/tokens", {"name": name, "scope": scope}),
    ),
    "remove-token": (
        ("NAME",),
        "remove a token",
        lambda name: Asked("DELETE", f"/tokens/{quote(name, safe='')}"),
    ),
    "users": ((), "all users", lambda: Asked("GET", "/users")),
    "add-user": (
        ("NAME", "operator|editor|reader"),
        "add a user, whose password is shown once",
        lambda name, role: Asked("POST", "/users", {"name": name, "role": role}),
    ),
    "set-role": (
        ("NAME", "operator|editor|reader"),
        "set a user's role",
        lambda name, role: Asked("PATCH", f"/users/{quote(name, safe='')}", {"role": role}),
    ),
    "reset-password": (
        ("NAME",),
        "give a user a new password, which is shown once",
        lambda name: Asked("POST", f"/users/{quote(name, safe='')}/reset"),
    ),
    "delete-user": (
        ("NAME",),
        "delete a user",
        lambda name: Asked("DELETE", f"/users/{quote(name, safe='')}"),
    ),
    "see-as": (
        ("PERSON", "QUERY"),
        "search as another person; QUERY '' shows the groups alone",
        lambda person, query: Asked(
            "GET", f"/see-as?person={quote(person, safe='')}&query={quote(query, safe='')}"
        ),
    ),
    "pushed": (
        ("URL",),
        "the state of a pushed document",
        lambda url: Asked("GET", f"/index?url={quote(url, safe='')}"),
    ),
    "unpush": (
        ("URL",),
        "remove a pushed document",
        lambda url: Asked("DELETE", f"/index?url={quote(url, safe='')}"),
    ),
    "audit": ((), "the last acts", lambda: Asked("GET", "/audit")),
}
"""Each act with its arguments, as in server/api/api.py."""
PUSH = "push COLLECTION FILE..."
MAX_WIDTH = 60
"""Characters of a padded column."""


class Command(LarmCommand):
    of_a_crawl = False

    def syntax(self) -> str:
        return "[options] ACT [ARGUMENTS]"

    def short_desc(self) -> str:
        return "Tell a larmspider server what to do: create, start and stop crawls"

    def long_desc(self) -> str:
        acts = "; ".join(
            f"{' '.join((name, *wanted))}: {what}" for name, (wanted, what, _) in ACTS.items()
        )
        return f"The acts are {acts}; {PUSH}: push documents, a line each in FILE.jsonl or -."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--home", metavar="DIR", default="larmspider-home", help="the home of the server"
        )
        parser.add_argument(
            "--url",
            default="",
            help="the address of a server elsewhere; LARMSPIDER_TOKEN holds the token",
        )
        parser.add_argument(
            "--at",
            metavar="URL",
            default="",
            help="push: the URL of a file; one that ends with / gets the name of the file",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args[:1] == ["push"]:
            self._push(args[1:], opts)
            return
        if not args or args[0] not in ACTS:
            given = f"{args[0]!r} is not an act: " if args else ""
            raise ConfigError(f"{given}expected one of {', '.join((*ACTS, 'push'))}")
        wanted, _, asked_of = ACTS[args[0]]
        if len(args) - 1 != len(wanted):
            raise ConfigError(f"expected {' '.join(('larmspider ctl', args[0], *wanted))}")
        from larmspider.server.api.client import address_of, ask

        asked = asked_of(*args[1:])
        address = address_of(Path(opts.home).expanduser().absolute(), opts.url)
        found = asyncio.run(ask(address, asked.method, asked.path, asked.body))
        if opts.json:
            print_json(found)
        else:
            for line in _text(found):
                print(printable(line))

    def _push(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) < 2:
            raise ConfigError(f"expected larmspider ctl {PUSH}")
        from larmspider.server.api.client import address_of
        from larmspider.server.api.push_client import check, push

        name, *files = args
        check(files, opts.at)
        address = address_of(Path(opts.home).expanduser().absolute(), opts.url)
        done = asyncio.run(push(address, name, files, opts.at))
        if opts.json:
            print_json(done.as_json())
        else:
            for refused in done.refused:
                print(printable(refused), file=sys.stderr)
            print(done.said)
        if done.refused:
            self.exitcode = 2


def _text(found: Mapping[str, Any]) -> list[str]:
    """An answer as text: a line a value, and a table for each list of rows."""
    if "done" in found:
        return [str(found["done"])]
    if "text" in found:
        return str(found["text"]).splitlines()
    return _lines(found) or ["nothing"]


def _lines(found: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in found.items():
        if not value:
            continue
        rows = isinstance(value, list) and isinstance(value[0], dict)
        if isinstance(value, dict):
            lines += _lines(value)
        elif rows:
            lines += _columns(value)
        elif isinstance(value, str) and "\n" in value:
            lines += [f"{key}:", *(f"    {line}" for line in value.splitlines())]
        else:
            lines.append(f"{key:<12} {_shown(key, value)}")
    return lines


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows under the names of their columns, without columns that are empty in all rows."""
    names = [name for name in rows[0] if any(row.get(name) for row in rows)]
    cells = [names, *([_shown(name, row.get(name)) for name in names] for row in rows)]
    widths = [min(MAX_WIDTH, max(map(len, column))) for column in zip(*cells, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


_TIMES = ("began", "ended", "last_run", "next_run", "made", "ends")


def _shown(key: str, value: Any) -> str:
    """A value in one line; "" for nothing."""
    if not value or isinstance(value, str):
        return str(value or "")
    if key in _TIMES and isinstance(value, int | float):
        return utc(value)[:16]
    if isinstance(value, list):
        return ", ".join(_shown(key, one) for one in value)
    if isinstance(value, dict):
        return " ".join(f"{name}={_shown(name, one)}" for name, one in value.items())
    return str(value)
