"""Labels: names for parts of the sites, in a text file, by which a search can be narrowed.

    # label => URL; * stands for any characters
    Handbook => https://wiki.example/handbook/
    Forms    => https://*.example/*/forms/
    Staff    => https://wiki.example/index.php?title=Staff:*

A URL with a slash at its end has all pages below. The field ``folders`` of the index finds them,
whose terms are few: 0.3 ms for 500,000 pages, 3 to 6 ms with a star. Another URL is compared with
the keys of its host's pages, which takes 2.5 ms for each 1,000 pages that match.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import tantivy
from tantivy import Occur, Query

from larmspider.errors import InvalidURL
from larmspider.index.queries import kind_of
from larmspider.index.schema import HOST_LIMIT, MAX_FOLDERS, typed_host
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.syntax import normalize_escapes

MAX_LABELS = 100
"""Most labels. Each takes 0.3 ms for each page of results."""
MAX_PATTERNS = 500
MAX_NAME = 60
"""Characters."""
_MAX_URL = 2_083
_SCHEMES = ("http://", "https://", "file://", "*://")
_EXPECTED = "expected label => URL, as in: Handbook => https://wiki.example/handbook/"
_ASCII = "".join(map(chr, range(33, 127)))
_PLAIN = frozenset("_:/-%")
_exact = Canonicalizer().forms


@dataclass(frozen=True, slots=True)
class Label:
    """``folders`` are patterns of whole folders, ``pages`` of pages, in the form of the index."""

    name: str
    folders: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()

    def query(self, schema: tantivy.Schema) -> Query:
        """All pages with the label, without a score."""
        kind = kind_of(schema)
        literal = [one for one in self.folders if "*" not in one]
        found = [kind.term_set_query(schema, "folders", literal)] if literal else []
        for name, patterns in (("folders", self.folders), ("key", self.pages)):
            found += [
                kind.regex_query(schema, name, _expression(one))
                for one in patterns
                if "*" in one or name == "key"
            ]
        either = kind.boolean_query([(Occur.Should, query) for query in found])
        return kind.const_score_query(either, 0.0)


@dataclass(frozen=True, slots=True)
class LabelSet:
    """The labels of a file, in its order."""

    all: tuple[Label, ...] = field(default=())

    def of(self, name: str) -> Label | None:
        """The label of a name, ignoring case."""
        wanted = name.casefold()
        return next((label for label in self.all if label.name.casefold() == wanted), None)


NO_LABELS = LabelSet()


def parse_labels(lines: Iterable[str]) -> tuple[LabelSet, list[tuple[int, str]]]:
    """The labels of all good lines, and the bad lines. Several lines of one label add up."""
    found: dict[str, Label] = {}
    problems = list[tuple[int, str]]()
    patterns = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            name, pattern = _parsed(text)
            before = found.get(name.casefold(), Label(name))
            if name.casefold() not in found and len(found) >= MAX_LABELS:
                raise ValueError(f"there are {MAX_LABELS} labels already, the maximum")
            if patterns >= MAX_PATTERNS:
                raise ValueError(f"there are {MAX_PATTERNS} URLs already, the maximum")
        except ValueError as error:
            problems.append((number, str(error)))
            continue
        patterns += 1
        folder = pattern.endswith("/")
        found[name.casefold()] = Label(
            before.name,
            (*before.folders, pattern) if folder else before.folders,
            before.pages if folder else (*before.pages, pattern),
        )
    return LabelSet(tuple(found.values())), problems


def _parsed(line: str) -> tuple[str, str]:
    """The name of a line, and its URL in the form of the index. Raises ValueError."""
    name, arrow, url = (part.strip() for part in line.partition("=>"))
    name = " ".join(name.split())
    if not arrow or not name or not url:
        raise ValueError(f"{line!r:.60}: {_EXPECTED}")
    if len(name) > MAX_NAME or not name.isprintable():
        raise ValueError(f"{name!r:.60}: expected a label of 1 to {MAX_NAME} characters")
    if len(url) > _MAX_URL or len(url.split()) != 1 or not url.lower().startswith(_SCHEMES):
        raise ValueError(f"{url!r:.60}: expected a URL that begins with {', '.join(_SCHEMES)}")
    pattern = _normal(url)
    origin = pattern[: pattern.index("/", pattern.index("://") + 3)]
    if pattern.endswith("/*"):
        pattern = pattern[:-1]
    if pattern.endswith("/") and pattern.count("/") - 2 > MAX_FOLDERS:
        raise ValueError(f"{url!r:.60}: expected at most {MAX_FOLDERS} folders")
    if not pattern.endswith("/") and "*" in origin:
        raise ValueError(
            f"{url!r:.60}: expected a slash at the end, because the host has a *: otherwise"
            " each page of the index would be looked at"
        )
    return name, pattern


def _normal(url: str) -> str:
    """A pattern in the exact form of URLs."""
    if "*" not in url:
        try:
            return _exact(url).exact
        except InvalidURL as error:
            raise ValueError(f"{url!r:.60}: {error}") from None
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    if not slash:
        path = ""
    host = host.lower() if "*" in host else _host(host)
    path = normalize_escapes(quote(path, safe=_ASCII))
    return f"{scheme.lower()}://{host}/{path}"


def _host(host: str) -> str:
    name, colon, port = host.rpartition(":")
    if colon and port.isdecimal():
        return f"{typed_host(name)}:{port}"
    return typed_host(host)[:HOST_LIMIT]


def _expression(pattern: str) -> str:
    """The pattern as one of Tantivy's regular expressions."""
    return "".join(
        ".*" if one == "*" else one if one.isalnum() or one in _PLAIN else f"\\{one}"
        for one in pattern
    )


def queries(labels: Sequence[Label], schema: tantivy.Schema) -> dict[str, Query]:
    """The query of each label, by name."""
    return {label.name: label.query(schema) for label in labels}
