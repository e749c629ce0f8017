"""Manuals that have an index page: their pages, and the entries of their index.

Whoever wrote the index says which page is right for an entry, so it judges a search. Six kinds of
index are read: Sphinx (genindex), DocBook (bookindex, gimp-help-index), Javadoc of JDK 8 and later
(index-all, index-files), Texinfo ("Function Index", or any page with the table of an index),
Doxygen (functions*.html) and GTK-Doc (api-index-full)::

    for manual in installed(Path("/srv/manuals")):
        everything = list(manual.pages())
        manual.entries(page.url for page in everything)

`MANUALS` are packages of Debian 12, looked for in ``/`` and in the directories that ``dpkg -x`` has
made of them::

    apt-get download cmake-doc && dpkg -x cmake-doc_*.deb /srv/manuals/cmake-doc

Index pages are neither pages to be found nor are the texts of their links used: they would give the
answers away.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from larmspider.errors import InvalidURL
from larmspider.extraction.pages.html import extract
from larmspider.items import REDIRECT, Page
from larmspider.urls.canonical import Canonicalizer

_exact = Canonicalizer().exact


@dataclass(frozen=True)
class Entry:
    """An entry of an index: a name, perhaps a qualifier ("str method"), and its pages."""

    name: str
    qualifier: str
    urls: frozenset[str]

    @property
    def full(self) -> str:
        return f"{self.name} {self.qualifier}".strip()


Found = Iterator[tuple[str, str, list[str]]]
"""Name, qualifier and links, as one index page has them."""


def _sphinx(tree: LexborHTMLParser) -> Found:
    for item in tree.css("table.genindextable > tbody > tr > td > ul > li"):
        text, links = _own(item)
        name, qualifier = _qualified(text)
        if links:
            yield name, qualifier, links
        for sub in item.css("ul > li"):
            if sub != item:
                said, links = _own(sub)
                yield name, said.removeprefix("(").removesuffix(")"), links
    for item in tree.css("table.genindextable dt"):  # of Sphinx 1
        text = _clean(item.text())
        links = [link.attributes.get("href") or "" for link in item.css("a")]
        if _is_nested(item):
            yield name, text.removeprefix("(").removesuffix(")"), links
        else:
            name, qualifier = _qualified(text)
            yield name, qualifier, links


def _docbook(tree: LexborHTMLParser) -> Found:
    name = ""
    for item in tree.css("div.index dt, div.indexdiv dt"):
        text = "".join(node.text() for node in item.iter(include_text=True) if node.tag != "a")
        text = _clean(text.partition("(see")[0]).strip(", ")
        links = [link.attributes.get("href") or "" for link in item.css("a.indexterm")]
        if _is_nested(item):
            yield name, text, links
        else:
            name = text
            yield name, "", links


def _javadoc(tree: LexborHTMLParser) -> Found:
    for item in tree.css("dl > dt"):
        link = item.css_first("a.member-name-link, span.memberNameLink > a")  # JDK 16; 8 to 15
        if link is not None:
            owner = re.search(r"(?:class|interface|enum|record) (\S+)$", _clean(item.text()))
            qualifier = owner[1].rpartition(".")[2] if owner and len(item.css("a")) > 1 else ""
            name = _clean(link.text()).partition("(")[0]
            yield name, qualifier, [link.attributes.get("href") or ""]


def _texinfo(tree: LexborHTMLParser) -> Found:
    for row in tree.css("tr"):
        links = row.css("td > a")
        if len(links) > 1 and "#index-" in (links[0].attributes.get("href") or ""):
            yield _clean(links[0].text()), "", [links[0].attributes.get("href") or ""]


def _doxygen(tree: LexborHTMLParser) -> Found:
    for item in tree.css("li"):
        name, colon, _ = _clean(item.text()).partition(" : ")
        if colon:
            for link in item.css("a.el"):
                owner = re.sub(r"\s*<.*", "", _clean(link.text()))
                yield name, owner, [link.attributes.get("href") or ""]


def _gtkdoc(tree: LexborHTMLParser) -> Found:
    for item in tree.css("div.index dt"):
        text = _clean(item.text())
        if link := item.css_first("a.link"):
            name = _clean(link.text())
            yield name, text.removeprefix(name).strip(", "), [link.attributes.get("href") or ""]
        elif link := item.css_first("a.indexterm"):  # as DocBook makes it
            yield text.partition(",")[0], "", [link.attributes.get("href") or ""]


@dataclass(frozen=True)
class Kind:
    """A way to make an index: names of its pages, or a mark in those that have any name.
    ``separator`` stands between owner and name in code."""

    read: Callable[[LexborHTMLParser], Found]
    pages: re.Pattern[str]
    left_out: re.Pattern[str]
    separator: str = "."
    mark: re.Pattern[bytes] | None = None

    def is_index(self, name: str, path: Path) -> bool:
        if self.pages.fullmatch(name):
            return True
        return self.mark is not None and self.mark.search(path.read_bytes()) is not None


_NONE = re.compile(r"(?!)")
KINDS = {
    "sphinx": Kind(_sphinx, re.compile(r"genindex.*"), re.compile(r"py-modindex|search|glob")),
    "docbook": Kind(_docbook, re.compile(r"bookindex|gimp-help-index"), _NONE),
    "javadoc": Kind(
        _javadoc,
        re.compile(r"index-all|index-files/.*"),
        re.compile(r"all\w+-index|allclasses(?:-(?:no)?frame)?|overview-frame|search|help-doc"
                   r"|.*/class-use/.*|(?:.*/)?package-(?:use|tree|frame)"),
    ),
    "texinfo": Kind(
        _texinfo,
        re.compile(r"(?:.*/)?(?:(?:[\w-]+-)?(?:Function|Concept|Operator|Variable|Properties|Macro)"
                   r"-[Ii]ndex|lilypond-(?:command-)?index(?:\.de)?|theindex)"),
        _NONE,
        mark=re.compile(rb'<table class="(?:index-\w+|\w+-entries-printindex)"'),
    ),
    "doxygen": Kind(
        _doxygen,
        re.compile(r"(?:functions|namespacemembers|globals)(?!.*_8)(?:_.*)?"),  # "_8" is a dot
        re.compile(r"annotated|classes|inherit.*|hierarchy|search/.*|files|dir_.*|.*_graph.*"),
        "::",
    ),
    "gtkdoc": Kind(
        _gtkdoc,
        re.compile(r"api-index-full|ix01|index-all"),  # ix01: in "XML mode"
        re.compile(r"(?:api-)?index-.*|ix\d\d|annotation-glossary"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Manual:
    """A directory of HTML pages with an index of one of the `KINDS`."""

    name: str
    directory: Path
    kind: Kind

    @property
    def base(self) -> str:
        return f"http://{self.name.lower()}.example/"

    @classmethod
    def of(cls, name: str, directory: Path) -> Manual | None:
        """The manual in ``directory``, None where it has no index of a known kind."""
        files = list(_files(directory))
        named = [
            kind for kind in KINDS.values() if any(kind.pages.fullmatch(page) for page, _ in files)
        ]
        if len(named) > 1:  # cairo has GTK-Doc's index under the name of Javadoc's
            named = [kind for kind in named if cls(name, directory, kind).has_any()] or named
        if named:
            return cls(name, directory, named[0])
        for kind in KINDS.values():
            if any(kind.is_index(page, path) for page, path in files):
                return cls(name, directory, kind)
        return None

    def has_any(self) -> bool:
        """Whether an entry of the index is understood."""
        return any(any(self.kind.read(_tree(path))) for _, path in self.indexes())

    def indexes(self) -> list[tuple[str, Path]]:
        """The index pages that are read."""
        found = [file for file in _files(self.directory) if self.kind.is_index(*file)]
        return [file for file in found if file[0] == "genindex-all"] or found

    def pages(self) -> Iterator[Page]:
        """The pages as a crawl hands them to the index, without the index pages, and without those
        that only send their readers on."""
        for name, path in _files(self.directory):
            if self.kind.left_out.fullmatch(name) or self.kind.is_index(name, path):
                continue
            body = path.read_bytes()
            page = extract(body, f"{self.base}{name}.html", "text/html")
            page.body, page.mime, page.exact = body, "text/html", _exact(page.url)
            for link in page.links:
                try:
                    link.exact = _exact(link.url)
                except InvalidURL:
                    link.exact = None
            if not any(link.type == REDIRECT for link in page.links):
                yield page

    def entries(self, indexed: Iterable[str]) -> list[Entry]:
        """The entries that lead to a page in ``indexed``, each once, sorted."""
        known = set(indexed)
        found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for name, path in self.indexes():
            here = f"{self.base}{name}.html"
            for text, qualifier, links in self.kind.read(_tree(path)):
                urls = {unquote(urljoin(here, link).partition("#")[0]) for link in links}
                if text:
                    found[text, qualifier] |= urls & known
        return [
            Entry(name, qualifier, frozenset(urls))
            for (name, qualifier), urls in sorted(found.items())
            if urls
        ]


def _tree(path: Path) -> LexborHTMLParser:
    return LexborHTMLParser(path.read_bytes().decode("utf-8", "replace"))


TUNED, HELD_OUT = "tuned", "held out"
MANUALS = {
    "python": (TUNED, "python3.11-doc", "python3.11-doc/html"),
    "postgresql": (TUNED, "postgresql-doc-15", "postgresql-doc-15/html"),
    "sphinx": (TUNED, "sphinx-doc", "sphinx-doc/html"),
    "django": (TUNED, "python-django-doc", "python-django-doc/html"),
    "octave": (TUNED, "octave-doc", "octave/octave.html"),
    "commons-lang": (TUNED, "libcommons-lang3-java-doc", "libcommons-lang3-java/api"),
    "cmake": (HELD_OUT, "cmake-doc", "cmake-data/html"),
    "sqlalchemy": (HELD_OUT, "python-sqlalchemy-doc", "python-sqlalchemy-doc/html"),
    "ghc": (HELD_OUT, "ghc-doc", "ghc-doc/html/users_guide"),
    "libstdcxx": (HELD_OUT, "libstdc++-12-doc", "gcc-12-base/libstdc++/user"),
    "lilypond-de": (HELD_OUT, "lilypond-doc-html-de", "lilypond/html/Documentation/notation"),
    "jdk": (HELD_OUT, "openjdk-17-doc", "openjdk-17-jre-headless/api"),
}
"""The half that weights are chosen by or the half that judges them; package; place under
/usr/share/doc."""


def installed(root: Path | None = None) -> Iterator[Manual]:
    """The `MANUALS` that are unpacked in ``root/PACKAGE``, or installed."""
    for name, (_, package, place) in MANUALS.items():
        for above in ([root / package] if root else []) + [Path("/")]:
            directory = above / "usr/share/doc" / place
            if directory.is_dir() and (manual := Manual.of(name, directory)):
                yield manual
                break


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    """Paths without ``.html``, and the files, in order; not links to what is not there."""
    for path in sorted(directory.rglob("*.html")):
        if path.is_file():
            yield path.relative_to(directory).as_posix().removesuffix(".html"), path


def _is_nested(item: LexborNode) -> bool:
    """Whether a <dt> is in a list of a <dd>."""
    above = item.parent and item.parent.parent
    return above is not None and above.tag == "dd"


def _own(item: LexborNode) -> tuple[str, list[str]]:
    """The text and the links of one <li>, without the list in it; "[1]" is a further page."""
    parts, links = [], []
    for node in item.iter(include_text=True):
        if node.tag == "ul":
            break
        if node.tag == "a":
            links.append(node.attributes.get("href") or "")
        if not re.fullmatch(r"\[\d+\]", node.text()):
            parts.append(node.text())
    return _clean("".join(parts)).strip(", "), links


def _qualified(text: str) -> tuple[str, str]:
    name, _, qualifier = text.partition(" (")
    return name, qualifier.removesuffix(")")


def _clean(text: str) -> str:
    return " ".join(text.split())
