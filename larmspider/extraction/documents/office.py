"""What word processors write: docx, pptx, odt, ods, odp, zip files with XML in them.

Macros are other members of the file, which nobody opens; fields are not computed, no relationship
is followed. Encrypted OOXML is an OLE file (see spreadsheet.py and mail.py for such).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from larmspider.extraction.documents.archives import ZipReader
from larmspider.extraction.documents.parts import Spent
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    Unread,
    dublin_core,
    keeping,
    local_name,
    parse_xml,
)
from larmspider.items import Outcome, Page

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_STRICT = re.compile(
    rb"http://purl\.oclc\.org/ooxml/(officeDocument|wordprocessingml|drawingml|presentationml|spreadsheetml)/"
)
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_XLINK = "{http://www.w3.org/1999/xlink}href"

_WORD = re.compile(r"word/(?:document|footnotes|endnotes|comments|header\d*|footer\d*)\d*\.xml")
_SLIDE = re.compile(r"ppt/(slides/slide|notesSlides/notesSlide|comments/\w*?)(\d+)\.xml")
_HEADING = re.compile(r"(?i)title|titel|heading|berschrift|titre")
_FIELD_LINK = re.compile(r"HYPERLINK\s+\"([^\"]+)\"")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    archive, builder = ZipReader(body), DocumentBuilder()
    with keeping(builder, url):
        _read(archive, builder)
    return builder.page(url)


def _read(archive: ZipReader, builder: DocumentBuilder) -> None:
    names = archive.names
    if "content.xml" in names:
        _opendocument(archive, builder)
        return
    metadata(archive, builder)
    builder.note()
    if "word/document.xml" in names:
        ordered = sorted(filter(_WORD.fullmatch, names), key=lambda name: "document" not in name)
        for name in ordered:
            _word(_ooxml(archive, name), relationships(archive, name, builder), builder)
            builder.note()
    elif any(name.startswith("ppt/") for name in names):
        for name in sorted(filter(_SLIDE.fullmatch, names), key=_slide_order):
            _slide(_ooxml(archive, name), relationships(archive, name, builder), builder)
            builder.note()
    else:
        raise Unread(Outcome.DAMAGED, "it is a zip file without the parts of a document")


def metadata(archive: ZipReader, builder: DocumentBuilder) -> None:
    """docProps/core.xml, where it can be read."""
    _add_metadata(archive, "docProps/core.xml", builder)


def _add_metadata(archive: ZipReader, name: str, builder: DocumentBuilder) -> None:
    if name in archive.names:
        try:
            dublin_core(parse_xml(archive.read(name)), builder)
        except Spent:
            raise
        except Unread:
            pass  # the text may be whole


def relationships(archive: ZipReader, name: str, builder: DocumentBuilder) -> dict[str, str]:
    """External targets by their ids, those that nothing in the text names are links without one."""
    folder, _, file = name.rpartition("/")
    listed = f"{folder}/_rels/{file}.rels"
    if listed not in archive.names:
        return {}
    found = {}
    for one in parse_xml(archive.read(listed)).iter("{*}Relationship"):
        if one.get("TargetMode") == "External" and (target := one.get("Target")):
            if one.get("Type", "").endswith("/hyperlink"):
                found[one.get("Id", "")] = target
            else:
                builder.add_link(target)
    return found


def _ooxml(archive: ZipReader, name: str) -> Any:
    """The part with the names of ECMA-376 also where it has those of ISO 29500 strict."""
    data = archive.read(name)
    if b"purl.oclc.org" in data[:4_096]:
        data = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data)
    return parse_xml(data)


def _word(root: Any, targets: dict[str, str], builder: DocumentBuilder) -> None:
    for twice in list(root.iter(_MC + "Fallback")):
        twice.getparent().remove(twice)
    text_tag, paragraph, style = _W + "t", _W + "p", _W + "pStyle"
    wanted = (paragraph, text_tag, _W + "tab", _W + "br", style, _W + "hyperlink", _W + "instrText")
    pieces: list[str] = []
    heading = False
    for element in root.iter(*wanted):
        tag = element.tag
        if tag == text_tag:
            pieces.append(element.text or "")
        elif tag == paragraph:
            heading = _end_block(pieces, heading, builder)
        elif tag == style:
            heading = _HEADING.search(element.get(_W + "val", "")) is not None
        elif tag == _W + "hyperlink":
            if target := targets.pop(element.get(_R + "id", ""), ""):
                builder.add_link(target, "".join(t.text or "" for t in element.iter(text_tag)))
        elif tag == _W + "instrText":
            for target in _FIELD_LINK.findall(element.text or ""):
                builder.add_link(target)
        else:
            pieces.append(" ")
    _end_block(pieces, heading, builder)
    _links_left(targets, builder)


def _end_block(pieces: list[str], heading: bool, builder: DocumentBuilder) -> bool:
    """Hand over a paragraph; the first heading is the title of a document without one."""
    if text := "".join(pieces):
        builder.add(text)
        if heading and not builder.title and not text.isspace():
            builder.title = text
    pieces.clear()
    return False


def _links_left(targets: dict[str, str], builder: DocumentBuilder) -> None:
    for target in targets.values():
        builder.add_link(target)


def _slide_order(name: str) -> tuple[int, str]:
    found = _SLIDE.fullmatch(name)
    assert found is not None
    return int(found[2]), "" if found[1].startswith("slides") else name


def _slide(root: Any, targets: dict[str, str], builder: DocumentBuilder) -> None:
    for shape in root.iter(_P + "sp"):
        kind = shape.find(f".//{_P}nvPr/{_P}ph")
        if not builder.title and kind is not None and kind.get("type") in ("title", "ctrTitle"):
            builder.title = " ".join(text.text or "" for text in shape.iter(_A + "t"))
    for paragraph in root.iter(_A + "p"):
        if text := "".join(piece.text or "" for piece in paragraph.iter(_A + "t")):
            builder.add(text)
    for click in root.iter(_A + "hlinkClick"):
        if target := targets.pop(click.get(_R + "id", ""), ""):
            run = next(click.iterancestors(_A + "r"), None)
            texts = () if run is None else run.iter(_A + "t")
            builder.add_link(target, "".join(text.text or "" for text in texts))
    _links_left(targets, builder)


def _opendocument(archive: ZipReader, builder: DocumentBuilder) -> None:
    manifest = "META-INF/manifest.xml"
    if manifest in archive.names and b"encryption-data" in archive.read(manifest):
        raise Unread(Outcome.ENCRYPTED, "needs a password")
    _add_metadata(archive, "meta.xml", builder)
    builder.note()
    for name in ("content.xml", "styles.xml"):  # the latter has headers and footers
        if name in archive.names:
            root = parse_xml(archive.read(name))
            for link in root.iter("{*}a"):
                builder.add_link(link.get(_XLINK) or "", "".join(link.itertext()))
            for element, text in _paragraphs(root):
                builder.add(text)
                if not builder.title and local_name(element) == "h":
                    builder.title = text
            builder.note()


def _paragraphs(root: Any) -> Iterator[tuple[Any, str]]:
    """Paragraphs and headings that lie in no other one, with their text."""
    for deleted in list(root.iter(_TEXT + "tracked-changes")):
        deleted.getparent().remove(deleted)
    for space in root.iter(_TEXT + "s", _TEXT + "tab", _TEXT + "line-break"):
        space.text = " "
    inner: set[Any] = set()
    for paragraph in root.iter(_TEXT + "p", _TEXT + "h"):
        if paragraph in inner:
            continue
        for nested in paragraph.iterdescendants(_TEXT + "p", _TEXT + "h"):
            inner.add(nested)
            nested.text = " " + (nested.text or "")
            nested.tail = " " + (nested.tail or "")
        if text := "".join(paragraph.itertext()):
            yield paragraph, text
