"""The parts of an Office Open XML package, which lead to each other by relationships (ECMA-376-2).

    package = Package(ZipReader(body))
    package.main                        # "word/document2.xml": the document by _rels/.rels
    package.related(package.main)       # Relationship("r1", "header", "word/kopf.xml"), ...

A backslash in a name is a slash, and names are equal ignoring case. A target outside of the package
is a link, and stays unopened. The usual names of parts count where relationships are missing.
"""

from __future__ import annotations

import re
from posixpath import join, normpath
from typing import Any, NamedTuple
from urllib.parse import unquote

from larmspider.extraction.documents.archives import ZipReader
from larmspider.extraction.documents.parts import Spent
from larmspider.extraction.documents.reading import Unread, parse_xml

_MAIN_KINDS = ("officedocument", "document")  # of Office, of Visio
_MAINS = (
    *("word/document.xml", "ppt/presentation.xml", "xl/workbook.xml", "xl/workbook.bin"),
    "visio/document.xml",
)
_USUAL = (
    (re.compile(r"word/(footnotes|endnotes|comments|header|footer)\d*\.xml"), r"\1"),
    (re.compile(r"ppt/slides/(slide)\d+\.xml"), r"\1"),
    (re.compile(r"xl/worksheets/(?:sheet)\d+\.xml"), "worksheet"),
    (re.compile(r"xl/(styles|sharedstrings)\.xml"), r"\1"),
    (re.compile(r"visio/(comments)\.xml"), r"\1"),
    (re.compile(r"visio/pages/(page)s?\d*\.xml"), r"\1"),
    (re.compile(r"(?:word|ppt|xl|visio)/embeddings/.+"), "package"),
)
"""Names that all programs give to parts of the main one, and their relationship's kind."""
_USUAL_OF_SLIDE = (
    r"ppt/(?:(?P<notesslide>notesslides/notesslide)|(?P<comments>comments/\D*)){}\.xml"
)
_SLIDE_NUMBER = re.compile(r"ppt/slides/slide(\d+)\.xml")
_NUMBER = re.compile(r"\d+")
_WITH_TEXT = re.compile(
    r"(?:word|ppt|visio)/(?:(?:document|header|footer|footnotes|endnotes|comments|slides/slide"
    r"|notesslides/notesslide|charts/chart|diagrams/data|pages/page)\d*|comments/[^/]+)\.xml"
)
"""The same of all parts with text."""
_STRICT = re.compile(
    rb"http://purl\.oclc\.org/ooxml/(officeDocument|wordprocessingml|drawingml|presentationml|spreadsheetml)/"
)
_ESCAPED, _NO_ESCAPES = re.compile(r"_x([0-9A-Fa-f]{4})_"), "wordprocessingml"
_ODD = re.compile(r"[\\%]|^\.?/|/\.?/|\.\./")
_EXTERNAL = re.compile(r"(?i)(?:[a-z][a-z0-9+.-]+:|\\\\)")


class Relationship(NamedTuple):
    """``kind`` is the end of the type, in lower case. ``target`` is a part's name, or a URL."""

    id: str
    kind: str
    target: str
    external: bool = False


class Package:
    """``main`` is "" if no part is called the document."""

    def __init__(self, archive: ZipReader) -> None:
        self.archive = archive
        self._names = {_key(info.filename): info.filename for info in archive.infos}
        self._known: dict[str, list[Relationship]] = {}
        mains = (one.target for one in self.related("") if one.kind in _MAIN_KINDS)
        self.main = next(filter(None, mains), "")
        self.by_name = not self.main
        """Whether the package does not say which part is the document."""
        if self.by_name:
            self.main = next(filter(None, map(self.name, _MAINS)), "")

    def name(self, part: str) -> str:
        """The name in the zip file; "" if there is no such part."""
        return self._names.get(_key(part), "")

    def names(self, folder: str | tuple[str, ...]) -> list[str]:
        """The parts in a folder, or in several."""
        return [name for key, name in self._names.items() if key.startswith(folder)]

    def xml(self, part: str, *, is_whole: bool = False) -> Any:
        """The root element. Names of ISO 29500 strict are replaced by the names of ECMA-376, and
        escapes by their characters. A damaged part has its first elements unless ``is_whole``.
        Raises Unread."""
        data = self.archive.read(part) if is_whole else self.archive.beginning(part)
        if b"purl.oclc.org" in data[:4_096]:
            data = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data)
        root = parse_xml(data)
        if b"_x00" in data:
            for element in root.iter("{*}*"):
                if element.text and _NO_ESCAPES not in element.tag:
                    element.text = unescaped(element.text)
        return root

    def related(self, part: str) -> list[Relationship]:
        """The targets of ``part``, "" being the package, without missing ones."""
        if part not in self._known:
            found = self._listed(part)
            if part and (self.by_name or not found):
                found += self.usual(part)
            self._known[part] = found
        return self._known[part]

    def _listed(self, part: str) -> list[Relationship]:
        """Empty where the relationships are missing, or cannot be read."""
        folder, _, file = _slashed(part).rpartition("/")
        listed = self.name(f"{folder}/_rels/{file}.rels")
        if not listed:
            return []
        try:
            root = parse_xml(self.archive.read(listed))
        except Spent:
            raise
        except Unread:
            return []
        found = []
        for one in root:
            target, kind = one.get("Target", ""), one.get("Type", "").rpartition("/")[2].lower()
            external = one.get("TargetMode") == "External" or bool(_EXTERNAL.match(target))
            if not external and not target.startswith("#"):
                target = self.name(join(f"/{folder}", _slashed(target))) or self.name(target)
            if target:
                found.append(Relationship(one.get("Id", ""), kind, target, external))
        return found

    def with_text(self) -> list[str]:
        """The parts that have text by their names, in the order of their numbers."""
        found = [(key, name) for key, name in self._names.items() if _WITH_TEXT.fullmatch(key)]
        order = {key: int((_NUMBER.findall(key) or ("0",))[-1][:9]) for key, _ in found}
        return [name for key, name in sorted(found, key=lambda one: (order[one[0]], one[0]))]

    def usual(self, part: str) -> list[Relationship]:
        """The parts that ``part`` leads to by their names, in the order of their numbers."""
        found: list[tuple[int, Relationship]] = []
        if slide := _SLIDE_NUMBER.fullmatch(_key(part)):
            usual = [(re.compile(_USUAL_OF_SLIDE.format(slide[1])), "")]
        elif part == self.main:
            usual = list(_USUAL)
        else:
            return []
        for key, name in self._names.items():
            for pattern, kind in usual:
                if match := pattern.fullmatch(key):
                    number = int((_NUMBER.findall(key) or ("0",))[-1][:9])
                    kind = match.expand(kind) if kind else (match.lastgroup or "")
                    found.append((number, Relationship("", kind.lower(), name)))
        return [one for _, one in sorted(found)]


def unescaped(text: str) -> str:
    """``text`` without escapes of ASCII (ECMA-376-1 22.9.2.19): Excel and PowerPoint write an
    escape for each pasted line end. Word has none."""
    return _ESCAPED.sub(_character, text) if "_x00" in text else text


def _character(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return found[0] if number > 0x7F else chr(number) if number > 0x20 else " "


def _slashed(name: str) -> str:
    return name.replace("\\", "/")


def _key(name: str) -> str:
    """A name without case and escapes, so that all names of one part are equal."""
    if not _ODD.search(name):
        return name.lower()
    return normpath("/" + unquote(_slashed(name)).lstrip("/")).lower()[1:]
