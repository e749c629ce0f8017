"""Reads a crawl file: TOML -> Crawl, or each problem with its key and line.

    crawl = read_crawl(Path("crawls/wiki.toml"))       # CrawlFileError
    settings_of(crawl)                                 # {"LARM_START": "http://wiki/", ...}

The same checks serve the file on disk, `larmspider crawl --file`, the form and the API.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from scrapy.settings import BaseSettings

from larmspider import options
from larmspider.access.rules import Rules
from larmspider.errors import ConfigError
from larmspider.extraction.texts.language import languages_in
from larmspider.files import read_plain
from larmspider.frontier.hosts import HostPace
from larmspider.learned.factory import host_rules
from larmspider.server.config.crawl_schema import (
    PUSH_KEYS,
    WRITABLE,
    Crawl,
    Host,
    Schedule,
    fields_of,
    settings_in,
)
from larmspider.server.config.schedule import Timetable, in_window
from larmspider.urls.file_urls import is_archive
from larmspider.urls.host_pattern import HostPattern
from larmspider.urls.patterns import PatternSet, compile_pattern
from larmspider.urls.seeds import read_seeds

MAX_FILE_BYTES = 1_000_000
"""A file of 1,000 seeds and 500 hosts has some 200,000 bytes."""
_MAX_SHOWN = 60
"""Characters of a value in a message."""
_ELSEWHERE = {
    "LARM_PUSH": "kind",
    "LARM_START": "seeds", "LARM_RESTRICT": "restrict", "LARM_EXCLUDE": "exclude",
    "LARM_FOLLOW_LANGUAGES": "languages", "LARM_REFRESH": "schedule and refresh",
    "LARM_REFRESH_PER_DAY": "refresh.per_day", "LARM_ACCESS_RULES": "access",
}  # fmt: skip
"""Settings that have a key of their own."""
_SERVERS = (
    "LARM_FRESH",
    "LARM_RESUME",
    "LARM_REFRESH_RUN",
    "LARM_WORKER",
    "LARM_SHARDS",
    "LARM_SHARED_GAPS",
)
"""Settings of a single run, which a file may not set."""


@dataclass(frozen=True, slots=True)
class Problem:
    """``key`` as ``limits.pages`` or ``hosts[0].delay``, "" for the file; ``line`` 0: unknown."""

    key: str
    text: str
    line: int = 0


class CrawlFileError(ConfigError):
    """A crawl file that cannot be used: the first problem as a sentence, and all of them."""

    def __init__(self, where: str, problems: Sequence[Problem]) -> None:
        first, more = problems[0], len(problems) - 1
        place = f"{where}:{first.line}" if first.line else where
        others = f" (and {more:,} more)" if more else ""
        super().__init__(f"{place}: {said(first)}{others}")
        self.problems = tuple(problems)


def said(problem: Problem) -> str:
    """A problem as a line."""
    return f"{_cut(problem.key)}: {problem.text}" if problem.key else problem.text


def read_crawl(path: Path) -> Crawl:
    """Raises CrawlFileError."""
    return parse_crawl(read_text(path), str(path))


def read_text(path: Path) -> str:
    """The text of a crawl file. Raises CrawlFileError for a file that is too large, a symbolic
    link, or no text."""
    try:
        if path.is_symlink():
            raise CrawlFileError(str(path), [Problem("", "is a symbolic link: expected a file")])
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            too_large = f"has {size:,} bytes: expected at most {MAX_FILE_BYTES:,}"
            raise CrawlFileError(str(path), [Problem("", too_large)])
        return read_plain(path).decode("utf-8-sig")
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise CrawlFileError(str(path), [Problem("", why)]) from None
    except UnicodeDecodeError as error:
        why = f"is not UTF-8 at byte {error.start:,}"
        raise CrawlFileError(str(path), [Problem("", why)]) from None


def parse_crawl(text: str, where: str) -> Crawl:
    """The crawl that a file describes. Raises CrawlFileError, whose messages begin with
    ``where``."""
    table = table_of(text, where)
    try:
        return crawl_of(table, where)
    except CrawlFileError as error:
        found_at = [Problem(one.key, one.text, line_of(text, one.key)) for one in error.problems]
        raise CrawlFileError(where, found_at) from None


def table_of(text: str, where: str) -> dict[str, Any]:
    """The keys of a file, without a check. Raises CrawlFileError."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else len(text.splitlines())
        problem = Problem("", f"is not TOML: {error or 'too many levels'}", line)
        raise CrawlFileError(where, [problem]) from None


def crawl_of(table: Mapping[str, Any], where: str) -> Crawl:
    """The crawl of a parsed file, or of the body of a request. Raises CrawlFileError."""
    problems: list[Problem] = []
    crawl: Crawl | None = _converted(Crawl, table, "", problems)
    if crawl is not None and not problems:
        problems += _checked(crawl)
    if problems or crawl is None:
        raise CrawlFileError(where, problems)
    return crawl


def _converted(kind: Any, given: Any, key: str, problems: list[Problem]) -> Any:
    """``given`` converted to ``kind``; None, with an entry in ``problems``, if it does not fit."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        if not isinstance(given, Mapping):
            problems.append(Problem(key, f"{_shown(given)}: expected a table"))
            return None
        return _converted_table(kind, given, f"{key}." if key else "", problems)
    base, *meta = get_args(kind) if hasattr(kind, "__metadata__") else (kind,)
    if get_origin(base) is list and get_args(base) == (Host,) and isinstance(given, list):
        most = meta[0].max_length
        if len(given) > most:
            problems.append(Problem(key, f"{len(given):,} hosts: expected at most {most:,}"))
            return None
        return [_converted(Host, one, f"{key}[{n}]", problems) for n, one in enumerate(given)]
    if isinstance(given, float) and not isfinite(given):
        given = str(given)  # no number
    return msgspec.convert(given, kind, strict=True)


def _converted_table(
    kind: type[Struct], given: Mapping[str, Any], prefix: str, problems: list[Problem]
) -> Any:
    fields, values, before = fields_of(kind), {}, len(problems)
    for name, value in given.items():
        if name not in fields:
            near = get_close_matches(name, fields, 1)
            meant = f"; did you mean {near[0]}?" if near else f": expected {', '.join(fields)}"
            problems.append(Problem(f"{prefix}{name}", f"unknown key{meant}"))
            continue
        try:
            values[name] = _converted(fields[name].type, value, prefix + name, problems)
        except msgspec.ValidationError:
            text = f"{_shown(value)}: expected {fields[name].expected}"
            problems.append(Problem(prefix + name, text))
    for name, field in fields.items():
        if field.required and name not in given:
            problems.append(Problem(prefix + name, f"is missing: expected {field.expected}"))
    return kind(**values) if len(problems) == before else None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def _checked(crawl: Crawl) -> Iterator[Problem]:
    """Checks that go beyond types."""
    if crawl.kind == "push":
        for name in msgspec.to_builtins(crawl):  # without defaults
            if name not in PUSH_KEYS:
                yield Problem(name, 'has no effect with kind = "push": nothing is fetched')
    elif not crawl.seeds:
        yield Problem("seeds", f"is missing: expected {fields_of(Crawl)['seeds'].expected}")
    yield from _checked_seeds(crawl)
    settings = as_settings(crawl)
    for key, check in (
        ("restrict", lambda: crawl.restrict and compile_pattern(crawl.restrict, name="restrict")),
        ("exclude", lambda: PatternSet(options.words(settings, "LARM_EXCLUDE"), name="exclude")),
        ("languages", lambda: languages_in(settings, "LARM_FOLLOW_LANGUAGES")),
        ("schedule.run", lambda: Timetable.parse(crawl.schedule.run, "UTC")),
        ("schedule.time_zone", lambda: Timetable.parse("", crawl.schedule.time_zone or "UTC")),
        ("access", lambda: Rules.of(crawl.access, "access")),
        ("settings", lambda: _check_settings(crawl.settings)),
    ):
        try:
            check()
        except ConfigError as error:
            yield Problem(key, str(error).removeprefix(f"{key}: "))
    if crawl.schedule.window and len(set(crawl.schedule.window)) == 1:
        yield Problem("schedule.window", f"{crawl.schedule.window}: expected two different hours")
    elif never := _why_never(crawl.schedule):
        yield Problem("schedule.missed", never)
    if not crawl.collection.isprintable() or "," in crawl.collection:
        yield Problem("collection", "expected printable characters without commas")
    for number, host in enumerate(crawl.hosts):
        key = f"hosts[{number}]"
        try:
            if host.secret:
                HostPattern.parse(host.host)
            else:
                HostPace(host.host)
            host_rules(as_settings(replace(crawl, hosts=[host], settings={})))
        except ConfigError as error:
            yield Problem(key, str(error).removeprefix("LARM_HOST_RULES: "))
        if why := _why_no_secret(host):
            yield Problem(f"{key}.{why[0]}", why[1])
    if crawl.run.nodes and any(host.secret for host in crawl.hosts):
        yield Problem(
            "run.nodes", "a host has a secret, which stays here: use LARM_SITES_FILE on the nodes"
        )
    if len(set(crawl.run.nodes)) < len(crawl.run.nodes):
        yield Problem("run.nodes", "a node is listed twice")
    if crawl.hosts and "LARM_HOST_RULES" in crawl.settings:
        yield Problem("settings.LARM_HOST_RULES", "cannot be used with hosts: expected one of them")
    if any(host.secret for host in crawl.hosts) and "LARM_SITES_FILE" in crawl.settings:
        yield Problem(
            "settings.LARM_SITES_FILE",
            "cannot be used with a secret: expected one of them",
        )


def _why_never(schedule: Schedule) -> str:
    """Why no run of a schedule would ever begin; "" if runs begin, or another check says why."""
    if schedule.missed == "run" or not schedule.window:
        return ""
    try:
        timetable = Timetable.parse(schedule.run, "UTC")
    except ConfigError:
        return ""
    begins, ends = schedule.window
    time = timetable.after(datetime(2026, 1, 1, tzinfo=UTC))
    for _ in range(25):  # a day; each day of a cron expression has the same hours
        if time is None or in_window((begins, ends), time, timetable.zone):
            return ""
        time = timetable.after(time + timedelta(minutes=59))
    return f"no time of {schedule.run!r} lies in the window {begins}-{ends}, and all are skipped"


def _checked_seeds(crawl: Crawl) -> Iterator[Problem]:
    for number, seed in enumerate(crawl.seeds):
        key = f"seeds[{number}]"
        try:
            if seed.startswith("@") or len(seed.split()) != 1:
                raise ConfigError(f"{_cut(seed)!r} is not a seed: expected one URL")
            if is_archive(read_seeds(seed)[0]):
                raise ConfigError(f"{_cut(seed)!r} is an archive: larmspider import reads it")
        except ConfigError as error:
            yield Problem(key, str(error).removeprefix("start: "))
        else:
            if seed in crawl.seeds[:number]:
                yield Problem(key, f"{_cut(seed)!r} is listed twice")


def _why_no_secret(host: Host) -> tuple[str, str] | None:
    if not host.secret:
        alone = [name for name in ("user",) if getattr(host, name)]
        return (alone[0], "is set without secret") if alone else None
    if host.auth == "bearer" and host.user:
        return "user", "is set, and auth is bearer, which has a token and no user"
    if host.auth != "bearer" and not host.user:
        return "user", f"is missing: auth is {host.auth}, which needs a user"
    return None


def _check_settings(settings: Mapping[str, Any]) -> None:
    known = options.defaults()
    for name in settings:
        if name in _ELSEWHERE:
            raise ConfigError(f"{name} has a key of its own: {_ELSEWHERE[name]}")
        if name in _SERVERS or name.startswith("LARM_WEB"):
            raise ConfigError(f"{_cut(name)} is set by the server")
        if not name.isupper():
            near = get_close_matches(name.upper(), known, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{_cut(name)} is not a setting{meant}")
    options.check_names(BaseSettings(settings))
    options.check_scrapys(BaseSettings(settings))


def settings_of(crawl: Crawl) -> dict[str, Any]:
    """The settings that the crawl runs with. Credentials are added by secrets.py."""
    found = {
        name: value
        for table in (crawl, crawl.refresh, crawl.limits)
        for name, value in settings_in(table)
    }
    found["LARM_START"] = " ".join(crawl.seeds)
    if crawl.kind == "push":
        found["LARM_PUSH"] = True
    rules: dict[str, dict[str, Any]] = {}
    for host in crawl.hosts:
        values = {name: getattr(host, name) for name in _RULES}
        rule = {name: value for name, value in values.items() if value is not None}
        if rule:
            rules[host.host] = rule
    if rules:
        found["LARM_HOST_RULES"] = rules
    return found | dict(crawl.settings)


_RULES = ("delay", "connections", "budget", "window", "nofollow")
"""Keys of a host that LARM_HOST_RULES has, too."""


def as_settings(crawl: Crawl) -> BaseSettings:
    """The settings that the crawl runs with, and the defaults of all others."""
    settings = BaseSettings(dict(options.defaults()))
    settings.update(settings_of(crawl))
    return settings


def not_writable(table: Mapping[str, Any]) -> list[Problem]:
    """The keys that a browser, or the API, may not write."""
    return [
        Problem(key, "comes from the crawl file on the server's disk only")
        for key in table
        if key in fields_of(Crawl) and key not in WRITABLE
    ]


_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")


def line_of(text: str, key: str) -> int:
    """The line of a key, or of the beginning of its table; 0 if it is not found."""
    table, _, name = key.rpartition(".")
    name = re.sub(r"\[\d+\]$", "", name)
    wanted = re.compile(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=")
    root = re.escape(re.split(r"[.\[]", key)[0])
    inline = re.compile(rf"\s*(?:{root}\s*\.\s*{re.escape(name)}|{root})\s*=")
    here, counts, begins = "", dict[str, int](), 0
    for number, line in enumerate(text.splitlines(), 1):
        if found := _HEADER.match(line):
            here = found[2]
            if found[1] == "[[":
                counts[here] = counts.get(here, -1) + 1
                here = f"{here}[{counts[here]}]"
            if here in (table, name, key):
                begins = number
        elif here == table and wanted.match(line):
            return number
        elif table and not here and inline.match(line):
            begins = number  # schedule.run = "watch", or schedule = {run = "watch"}
    return begins
