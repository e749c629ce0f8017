"""Files of word processors, slides, sheets and drawings: docx, pptx, vsdx, odt, ods, odp (zip files
with XML).

The reader follows the relationships of the document (relationships.py) and reads each part once:
slides in their order, headers, footers, notes, comments, diagrams, charts, drawings; and chunks of
HTML, RTF, text or Word (altChunk), which are text of the document. Embedded documents are parts
(parts.py). Macros, masters and layouts, building blocks, themes and properties of the programs are
no text. A target outside of the file is a link. office_text.py extracts the text of a part, and
visio.py of a drawing.
"""

from __future__ import annotations

from typing import Any

from larmspider.extraction.documents.archives import ZipReader
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.office import opendocument, visio
from larmspider.extraction.documents.office.embedded import is_chunk, is_word, members
from larmspider.extraction.documents.office.office_text import (
    P,
    R,
    add_text,
    is_threads,
    leave_out_threads,
    title_of,
)
from larmspider.extraction.documents.office.relationships import Package, Relationship
from larmspider.extraction.documents.parts import MAX_DEPTH, Spent
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    Unread,
    dublin_core,
    keeping,
)
from larmspider.extraction.formats import extractor_for
from larmspider.items import Outcome, Page

__all__ = ["extract", "members"]

_FOLLOWED = (
    *("header", "footnotes", "endnotes", "threadedcomment", "comments", "footer", "notesslide"),
    *("drawing", "diagramdata", "chart", "chartex", "chartusershapes", "vmldrawing"),
    *("pages", "page", "master"),  # of Visio
)
"""Kinds of parts with text, in the order in which they are read."""
_BASE = "part://chunk/"


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    archive, builder = ZipReader(body), DocumentBuilder()
    with keeping(builder, url):
        package = Package(archive)
        if package.by_name and any(map(package.name, opendocument.CONTENTS)):
            opendocument.read(package, builder)
        else:
            metadata(package, builder)
            builder.note()
            _read(package, builder)
        archive.end()
    return builder.page(url)


def metadata(package: Package, builder: DocumentBuilder) -> None:
    """Title, author and dates, where they can be read."""
    kind = "core-properties"
    found = next((one.target for one in package.related("") if one.kind == kind), "")
    if name := found or package.name("docProps/core.xml"):
        try:
            dublin_core(package.xml(name, is_whole=True), builder)
        except Spent:
            raise
        except Unread:
            pass  # the text may be whole


def _read(package: Package, builder: DocumentBuilder, depth: int = 0) -> None:
    texts = PartTexts(package, builder, depth)
    if package.main:
        texts.read(package.main)
    elif package.names("ppt/"):
        for slide in package.usual(""):
            texts.read(slide.target)
    else:
        for part in package.with_text():
            texts.read(part)
        raise Unread(Outcome.DAMAGED, "it is a zip file without the parts of a document")
    if package.archive.damage is not None:  # it may be a part that leads to others
        for part in package.with_text():
            texts.read(part)
    texts.end()


class PartTexts:
    """Reads parts and the parts that they lead to, each once. An unreadable part does not affect
    the others."""

    def __init__(self, package: Package, builder: DocumentBuilder, depth: int = 0) -> None:
        self._package, self._builder, self._depth = package, builder, depth
        self._seen: set[str] = set()
        self._has_threads = False
        self.fault: Unread | None = None
        """Why a part could not be read."""

    def read(self, part: str) -> None:
        left = [part]
        while left:
            part = left.pop()
            if part in self._seen:
                continue
            self._seen.add(part)
            try:
                more = self._read(part)
            except Spent:
                raise
            except Unread as unread:
                if unread.outcome is not Outcome.DAMAGED:
                    raise
                self.fault = self.fault or unread
                more = self.leads_to(part)
            self._builder.note()
            left += reversed(more)

    def end(self) -> None:
        """Raises Unread if a part could not be read."""
        if self.fault is not None:
            raise self.fault

    def _read(self, part: str) -> list[str]:
        root = self._package.xml(part)
        if visio.is_visio(root):
            visio.add_text(root, self._builder)
            return self.leads_to(part)
        related = self._package.related(part)
        chunks = {one.id: one.target for one in related if not one.external}
        if is_threads(root):
            self._has_threads = True
        elif self._has_threads:
            leave_out_threads(root)
        if not self._builder.title:
            self._builder.title = title_of(root)
        slides = _slides(root, related)
        add_text(
            root, self.links(part), self._builder, lambda link: self._chunk(chunks.get(link, ""))
        )
        return slides + self.leads_to(part)

    def links(self, part: str) -> dict[str, str]:
        """Targets of hyperlinks by their ids. Other external targets are links without a text."""
        found = {}
        for one in self._package.related(part):
            if one.external and one.kind == "hyperlink":
                found[one.id] = one.target
            elif one.external:
                self._builder.add_link(one.target)
        return found

    def leads_to(self, part: str) -> list[str]:
        """The parts with text that ``part`` has relationships to."""
        related = [
            (_FOLLOWED.index(one.kind), number, one.target)
            for number, one in enumerate(self._package.related(part))
            if one.kind in _FOLLOWED and not one.external
        ]
        return [target for *_, target in sorted(related)]

    def _chunk(self, name: str) -> None:
        if name and name not in self._seen:
            self._seen.add(name)
            try:
                self._read_chunk(name)
            except (Spent, MemoryError):
                raise
            except Unread as unread:
                if unread.outcome is Outcome.TOO_LONG:
                    raise
                self.fault = self.fault or unread
            except Exception as error:  # noqa: BLE001 - another reader's libraries
                fault = Unread(Outcome.READER_DIED, f"raised {error!r}"[:500])
                self.fault = self.fault or fault

    def _read_chunk(self, name: str) -> None:
        data = self._package.archive.read(name)
        kind = document_type(data, name)
        if is_word(kind):
            if self._depth == MAX_DEPTH:
                why = f"documents in documents are read {MAX_DEPTH} levels deep, not deeper"
                raise Unread(Outcome.TOO_LARGE, why)
            archive = ZipReader(data, self._package.archive.budget)
            _read(Package(archive), self._builder, self._depth + 1)
            archive.end()
        elif is_chunk(kind) and (extract := extractor_for(kind)) is not None:
            page = extract(data, _BASE, None)
            self._builder.add(page.text)
            for link in page.links:
                if not link.url.startswith(_BASE):
                    self._builder.add_link(link.url, link.anchor)


def _slides(root: Any, related: list[Relationship]) -> list[str]:
    """The slides of a presentation, in their order, and at the end the unlisted ones."""
    slides = {one.id or one.target: one.target for one in related if one.kind == "slide"}
    if not slides or root.tag != P + "presentation":
        return []
    ids = (one.get(R + "id", "") for one in root.iter(P + "sldId"))
    return list(dict.fromkeys([*(slides[one] for one in ids if one in slides), *slides.values()]))
