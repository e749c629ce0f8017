"""The traps that a crawl has found: the classes of URLs that are held, evidence, and a rule.

    for trap in traps_in(crawl):
        print(trap.name, trap.why, trap.line)       # wiki:80/doku.php?do=edit&id=* ... url ^https?://...
    accept(trap, rules_file(settings, crawl))       # the line is in LARM_KNOWN_PATHS_FILE
    reject(trap, crawl)                             # it is not a trap, for this crawl

A rule is the shortest that fits the whole class and no other fetched URL. It is a guess,
so an operator has to accept it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import options
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.extraction.texts.novelty import MAX_TEXT
from larmspider.files import replace_file
from larmspider.formatting import printable
from larmspider.frontier.storage.records import host_of
from larmspider.learned.traps.host_traps import (
    ANY_PATH,
    DEEP_URLS,
    HOST,
    NEW,
    SAID_BEGINS,
    WAITING,
    ClassRecord,
    ClassState,
    HostTraps,
    name_of,
)
from larmspider.learned.traps.trap_watch import NOT_TRAPS, NOTE
from larmspider.middlewares.known_paths import KnownPathsFilter, packaged_rules
from larmspider.urls.patterns import PatternSet
from larmspider.urls.url_class import SIBLINGS, UrlClass
from larmspider.workdir.left import changing

if TYPE_CHECKING:
    from larmspider.crawl.reader import CrawlDir
    from larmspider.options import Settings
    from larmspider.search.results import Document
    from larmspider.search.searcher import Searcher

_FILE = "LARM_KNOWN_PATHS_FILE"
_MAX_ORDERS = 3
"""Parameters whose orders a rule can list completely."""
_MAX_SEEN = 6
"""Orders of more parameters that a rule lists."""
_MAX_EXCEPTIONS = SIBLINGS
"""Classes that the exception of a rule may name: the first names of a folder are classes."""
_NONE = "none fits this class alone"
_NO_LINE = {
    WAITING: "none: its classes have rules of their own",
    HOST: "none: it would refuse all pages of the host; LARM_HOST_MAX_PAGES limits them",
    DEEP_URLS: "none: it goes by links, not by URLs; DEPTH_LIMIT is the setting",
}
"""Why there is no line, for classes that no URL shows."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A page that was not new. ``repeats``: a URL with the same text, or the answer to its request,
    or the beginning of its text."""

    url: str
    found_on: str
    repeats: str


@dataclass(frozen=True, slots=True)
class Trap:
    """A class of a host: its ``fetched`` pages and ``held`` URLs. ``line`` is a line for
    LARM_KNOWN_PATHS_FILE, or "" with the reason in ``no_line``. ``drop`` is a parameter that
    changes nothing, or ""."""

    name: str
    host: str
    why: str
    fetched: int
    held: int
    samples: list[Sample] = field(default_factory=list)
    line: str = ""
    drop: str = ""
    no_line: str = ""
    shown: str = "not new"
    """The label of the samples."""


def traps_in(crawl: CrawlDir) -> list[Trap]:
    """The traps of all hosts, most held URLs first. Raises CrawlDirError. 300,000 pages take a
    second."""
    with crawl.frontier() as frontier:
        if frontier is None:
            raise CrawlDirError(f"the crawl in {crawl.path} has no frontier")
        notes = ((host, frontier.note(NOTE.format(host=host))) for host in frontier.hosts())
        known = [HostTraps.unpack(note, host) for host, note in notes if note]
        hosts = {one.host: one for one in known if any(one.blocked())}
        urls: dict[str, list[str]] = {host: [] for host in hosts}
        for _, visit in frontier.visits() if hosts else ():
            if (of_host := urls.get(host_of(visit.url))) is not None:
                of_host.append(visit.url)
    searcher = None
    with suppress(CrawlDirError):  # no index
        searcher = crawl.searcher() if hosts else None
    found = []
    for host, traps in hosts.items():
        rules = _Rules(traps, urls[host], crawl)
        for record in (*traps.blocked(), *traps.waiting()):
            samples = [_sample(*one, crawl, searcher) for one in record.samples or ()]
            name, why = name_of(host, record.text), record.in_words()
            line, no_line = rules.line(record)
            of = (name, host, why, record.pages, record.held, samples, line)
            found.append(Trap(*of, changes_nothing(samples), no_line, record.shown))
    return sorted(found, key=lambda trap: (-trap.held, trap.name))


def _sample(url: str, found_on: str, crawl: CrawlDir, searcher: Searcher | None) -> Sample:
    exact = crawl.forms(url).exact
    fetch = crawl.last_fetch(exact)
    if fetch is not None and fetch.result != "200":
        return Sample(url, found_on, f"answered {fetch.result}")
    document = searcher.get(exact) if searcher is not None else None
    if searcher is None or document is None:
        return Sample(url, found_on, "")
    _, copies = searcher.copies(document)
    others = [hit.url for hit in copies if hit.url != url]
    least = min(others, key=lambda one: (len(_parameters(one)), len(one), one), default="")
    return Sample(url, found_on, least or _like(document, found_on, crawl, searcher))


def _like(document: Document, found_on: str, crawl: CrawlDir, searcher: Searcher) -> str:
    """For a page without copies: the page that links to it, if that page has nearly all of its
    text; else the beginning of its text."""
    said = _rows(document)
    before = searcher.get(crawl.forms(found_on).exact) if found_on else None
    if said and before is not None and len(said - _rows(before)) < NEW * len(said):
        return found_on
    begins = " ".join(f"{document.text} {document.rest}"[: 2 * SAID_BEGINS].split())
    return f'says "{begins[:SAID_BEGINS]}"' if begins else ""


def _rows(document: Document) -> set[tuple[str, ...]]:
    words = f"{document.text} {document.rest}"[:MAX_TEXT].lower().split()
    return set(zip(words, words[1:], words[2:], strict=False))


def _parameters(url: str) -> dict[str, str]:
    query = url.partition("?")[2]
    return dict(one.partition("=")[::2] for one in re.split("[&;]", query) if one)


def changes_nothing(samples: Iterable[Sample]) -> str:
    """The parameter that all samples have more than the page that they repeat."""
    found = set[str]()
    for one in samples:
        asked, there = _parameters(one.url), _parameters(one.repeats)
        more = asked.keys() - there
        is_one = len(more) == 1 and there.items() <= asked.items()
        if not is_one or one.url.partition("?")[0] != one.repeats.partition("?")[0]:
            return ""
        found |= more
    return found.pop() if len(found) == 1 else ""


class _Rules:
    """Makes rules for the traps of a host, which must not fit its other fetched URLs."""

    def __init__(self, traps: HostTraps, urls: Iterable[str], crawl: CrawlDir) -> None:
        self._traps, self._crawl = traps, crawl
        self._others = [self._form(seed) for seed in crawl.seeds]
        """URLs that no rule may fit."""
        self._views = list[str]()
        """URLs that were fetched, and would be held now."""
        for url in map(self._form, urls):
            (self._views if traps.holds_like(url) else self._others).append(url)

    def _form(self, url: str) -> str:
        return self._crawl.forms(url).normalized

    def line(self, record: ClassRecord) -> tuple[str, str]:
        """The shortest line that fits the class, or "" and why there is none."""
        if record.is_content and record.state is not ClassState.ENDLESS:
            return "", "none: it would refuse new pages, too"
        if why := _NO_LINE.get(record.text, ""):
            return "", why
        return self._shortest(record)

    def _shortest(self, record: ClassRecord) -> tuple[str, str]:
        path, query, names = record.text.partition("?")
        if not path.startswith("/") or not record.text.isprintable():
            return "", _NONE  # a line break would begin another rule
        path, _, many = path.partition(" with ")
        number = int(many.partition(" ")[0]) if many else 0
        samples = [self._form(url) for url, _ in record.samples or ()]
        with_exception, no_line = "", _NONE
        of = path, names if query else None, number, samples
        for rule in _candidates(self._traps.host, *of):
            found = _finder(rule)
            if not all(map(found, samples)):
                continue
            if (other := next(filter(found, self._others), "")) == "":
                return f"url   {rule}", ""
            if no_line == _NONE:
                no_line = f"{_NONE}: it would refuse {self._traps.classes.of(other)}, too"
            exception = "" if with_exception else self._exception(record, found, samples)
            if exception:
                with_exception = f"url   {rule}  except {exception}"
        return with_exception, "" if with_exception else no_line

    def _exception(self, record: ClassRecord, found: _Finder, samples: list[str]) -> str:
        """The shortest expression for the other URLs that a rule fits, and for no URL of the
        class; "" if there is none, or these URLs are of many classes."""
        others = dict[UrlClass, list[str]]()
        for url in filter(found, self._others):
            of = self._traps.classes.of(url)._replace(values=())
            others.setdefault(of, []).append(url)
            if len(others) > _MAX_EXCEPTIONS:
                return ""
        views = samples + [url for url in filter(found, self._views) if self._is_of(record, url)]
        expressions = dict[str, None]()
        for of, urls in others.items():
            fits = (
                one for one in self._expressions(of, urls)
                if all(map(_finder(one), urls)) and not any(map(_finder(one), views))
            )  # fmt: skip
            if not (one := next(fits, "")):
                return ""
            expressions[one] = None
        start = _start(self._traps.host)
        one, *more = expressions
        rest = "|".join(expression.removeprefix(start) for expression in expressions)
        return f"{start}(?:{rest})" if more else one

    def _is_of(self, record: ClassRecord, url: str) -> bool:
        return any(one is record for one in self._traps.find(url, 0).records)

    def _expressions(self, of: UrlClass, urls: list[str]) -> Iterator[str]:
        """Expressions for these ``urls`` of a class. The expression for the path comes first."""
        if of.query:
            yield f"{_start(self._traps.host)}{_path(of.path)}\\?"
        yield from _candidates(self._traps.host, of.path, of.query[1:] or None, 0, urls)


_Finder = Callable[[str], object]


def _finder(rule: str) -> _Finder:
    return PatternSet([rule], name="rule", mode="search").match


def _start(host: str) -> str:
    name, _, port = host.rpartition(":")
    return rf"^https?://{re.escape(name)}(?::{port}){'?' if port in ('80', '443') else ''}"


def _path(path: str) -> str:
    """An expression for the shape of a path: its last segment may be empty, as in ``/wiki/``."""
    if path.endswith(ANY_PATH):
        return "/".join([*map(_segment, path.removesuffix(ANY_PATH).split("/")), "[^?]*"])
    *folders, last = map(_segment, path.split("/"))
    return "/".join([*folders, "[^/?]*" if last == _ANY else last])


def _candidates(
    host: str, path: str, query: str | None, number: int = 0, urls: Sequence[str] = ()
) -> Iterator[str]:
    """Expressions for canonical URLs, the widest first. With ``number``: for any parameters of this
    number, if the URLs have only that in common. Many parameters come in the orders of ``urls``."""
    at, last = f"{_start(host)}{_path(path)}", path.rpartition("/")[2]
    if number:
        yield rf"{at}\?[^&;]*(?:[&;][^&;]*){{{number - 1}}}$"
        return
    if query is None:
        yield f"{at}$"
        return
    pairs = [one.partition("=") for one in query.split("&")]
    of_name = {
        name: f"{re.escape(name)}={'[^&;]*' if value == '*' else re.escape(value)}" if is_pair
        else re.escape(name)
        for name, is_pair, value in pairs
    }  # fmt: skip
    asked = list(of_name.values())
    for one in sorted(asked, key=lambda text: "*" in text):
        yield rf"{at}\?(?:.*[&;])?{one}(?:[&;]|$)"
    if last == "*":
        at = f"{at.removesuffix('*')}+"
        for one in sorted(asked, key=lambda text: "*" in text):
            yield rf"{at}\?(?:.*[&;])?{one}(?:[&;]|$)"
    if len(asked) <= _MAX_ORDERS:
        orders = "|".join("[&;]".join(order) for order in permutations(asked))
        yield rf"{at}\?(?:{orders})$"
        return
    seen = {tuple(_parameters(url)) for url in urls}
    if 0 < len(seen) <= _MAX_SEEN and all(names <= of_name.keys() for names in map(set, seen)):
        one, *more = ("[&;]".join(of_name[name] for name in names) for names in sorted(seen))
        yield rf"{at}\?(?:{'|'.join([one, *more])})$" if more else rf"{at}\?{one}$"


_ANY = "[^/?]+"


def _segment(text: str) -> str:
    if text.startswith("*."):
        return f"[^/?]*{re.escape(text[1:])}"  # a format
    return _ANY if text == "*" else re.escape(text)


# an operator's decisions


def rules_file(settings: Settings, crawl: CrawlDir) -> Path | None:
    """The operator's LARM_KNOWN_PATHS_FILE (a crawl reads a copy of it), or None."""
    name = options.text(settings, _FILE)
    if name and Path(name) == crawl.rules.get(_FILE):
        name = str(crawl.settings[_FILE])
    return Path(name).expanduser() if name else None


def rules_in(file: Path) -> str:
    """The text of the file, or the packaged rules if it is missing. Raises ConfigError."""
    try:
        return file.read_text("utf-8-sig") if file.exists() else packaged_rules()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}; expected a file to read, in UTF-8") from error


def accept(trap: Trap, file: Path | None) -> tuple[Path, bool]:
    """Add the rule of a trap to the operator's file; False if it has the rule. A missing file is
    created from the packaged rules. Raises ConfigError."""
    if not trap.line:
        raise ConfigError(f"{trap.name}: rule: {trap.no_line}; expected a class that has one")
    if file is None:
        raise ConfigError(
            f"{trap.name}: {_FILE} is empty: expected the name of a file for the line"
            f" {trap.line}, in the settings of the project or by -s"
        )
    before = rules_in(file)
    is_there = trap.line in before.splitlines()
    said = before if is_there else f"{before}\n# {printable(trap.name)}: {trap.why}\n{trap.line}\n"
    KnownPathsFilter.from_text(said, str(file))
    if not is_there:
        try:
            replace_file(file, said.encode())
        except OSError as error:
            raise ConfigError(f"{file}: {error.strerror}; expected a file to write") from error
    return file, not is_there


def reject(trap: Trap, crawl: CrawlDir) -> Path:
    """The class is not a trap, in this crawl: its URLs are fetched. A run that is under way takes
    it up at its next checkpoint. Raises CrawlDirError."""
    path = crawl.path / NOT_TRAPS
    try:
        before = path.read_text("utf-8") if path.exists() else ""
        if trap.name not in before.split("\n"):
            with changing(crawl.path, NOT_TRAPS):
                replace_file(path, f"{before}{trap.name}\n".encode())
    except (OSError, UnicodeDecodeError) as error:
        raise CrawlDirError(f"{path} cannot be written: {error}") from error
    return path
