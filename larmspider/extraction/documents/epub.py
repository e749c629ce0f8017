"""epub (2 and 3): the chapters in the order of the spine, each read as the XHTML that it is.

Title, author, language and date are the package's. Links that leave the book are links. A book
without a spine has all its pages. One damaged chapter costs the others nothing. Not read: pictures,
sound, scripts, and a table of contents beside the spine. A book with rights management is
``encrypted``; fonts may be.
"""

from __future__ import annotations

from posixpath import dirname, join, normpath
from urllib.parse import unquote

from larmspider.extraction.documents.archives import ZipReader
from larmspider.extraction.documents.parts import Spent
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    Unread,
    dublin_core,
    keeping,
    parse_xml,
)
from larmspider.extraction.pages import xhtml
from larmspider.items import Outcome, Page

_BASE = "part://book/"
_CONTAINER = "META-INF/container.xml"
_CHAPTERS = (".xhtml", ".html", ".htm")
_RIGHTS = ("META-INF/rights.xml", "META-INF/sinf.xml", "META-INF/license.lcpl")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    archive, builder = ZipReader(body), DocumentBuilder()
    names = {name.lower(): name for name in archive.names}
    if any(name in archive.names for name in _RIGHTS):
        raise Unread(Outcome.ENCRYPTED, "its publisher's rights management locks it")
    with keeping(builder, url, absolute=True):
        chapters, fault = list[str](), None
        try:
            chapters = _in_order(archive, names, builder)
        except Unread as unread:
            if unread.outcome is not Outcome.DAMAGED:
                raise
            fault = unread
        if not chapters or archive.damage:  # no order is named, a wrong one, or not all of it
            by_name = sorted(name for key, name in names.items() if key.endswith(_CHAPTERS))
            chapters = list(dict.fromkeys([*chapters, *by_name]))
        for chapter in chapters:
            try:
                _chapter(archive.beginning(chapter), builder)
            except Spent:
                raise
            except Unread as unread:
                if unread.outcome is Outcome.TOO_LONG:
                    raise
                fault = fault or unread
        if fault is not None:
            raise fault
        archive.end()
    return builder.page(url, absolute=True)


def _in_order(archive: ZipReader, names: dict[str, str], builder: DocumentBuilder) -> list[str]:
    """The chapters that the package document lists; its metadata go to ``builder``. Raises
    Unread."""
    package = _package(archive, names)
    listed = parse_xml(archive.beginning(package))
    dublin_core(listed, builder)
    builder.note()
    files = {item.get("id"): item.get("href") or "" for item in listed.iter("{*}item")}
    chapters = []
    for reference in listed.iter("{*}itemref"):
        href = files.get(reference.get("idref"))
        path = normpath(join(dirname(package), unquote((href or "").partition("#")[0])))
        if href and (chapter := names.get(path.lower())):
            chapters.append(chapter)
    return chapters


def _package(archive: ZipReader, names: dict[str, str]) -> str:
    """The package document that the container names, else the first package document. Raises
    Unread. ``names``: the names of the members, by their lower-case form."""
    found = ""
    if container := names.get(_CONTAINER.lower()):
        try:
            roots = parse_xml(archive.beginning(container)).iter("{*}rootfile")
            found = next((root.get("full-path") or "" for root in roots), "")
        except Unread as unread:
            if unread.outcome is not Outcome.DAMAGED:
                raise
            archive.damage = archive.damage or unread
    package = names.get(found.lower()) or next(
        (name for key, name in sorted(names.items()) if key.endswith(".opf")), ""
    )
    if not package:
        raise Unread(Outcome.DAMAGED, "it has no package document")
    return package


def _chapter(markup: bytes, builder: DocumentBuilder) -> None:
    page = xhtml.extract(markup, _BASE, "application/xhtml+xml")
    for link in page.links:
        builder.add_link(link.url, link.anchor)
    builder.add(page.text)
    builder.note()
