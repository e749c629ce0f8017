"""epub: the chapters in the order of the spine, each read as the XHTML that it is."""

from __future__ import annotations

from posixpath import dirname, join, normpath
from urllib.parse import unquote

from larmspider.extraction import xhtml
from larmspider.extraction.documents.archives import ZipReader
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    Unread,
    dublin_core,
    keeping,
    parse_xml,
)
from larmspider.items import Outcome, Page

_BASE = "part://book/"
_CONTAINER = "META-INF/container.xml"
_RIGHTS = ("META-INF/rights.xml", "META-INF/sinf.xml", "META-INF/license.lcpl")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    archive, builder = ZipReader(body), DocumentBuilder()
    if any(name in archive.names for name in _RIGHTS):
        raise Unread(Outcome.ENCRYPTED, "its publisher's rights management locks it")
    if _CONTAINER not in archive.names:
        raise Unread(Outcome.DAMAGED, f"it has no {_CONTAINER}")
    roots = parse_xml(archive.read(_CONTAINER)).iter("{*}rootfile")
    package = next((root.get("full-path") or "" for root in roots), "")
    if package not in archive.names:
        raise Unread(Outcome.DAMAGED, "it has no package document")
    listed = parse_xml(archive.read(package))
    dublin_core(listed, builder)
    builder.note()
    files = {item.get("id"): item.get("href") or "" for item in listed.iter("{*}item")}
    with keeping(builder, url, absolute=True):
        for reference in listed.iter("{*}itemref"):
            href = files.get(reference.get("idref"))
            path = normpath(join(dirname(package), unquote((href or "").partition("#")[0])))
            if href and path in archive.names:
                _chapter(archive.read(path), builder)
    return builder.page(url, absolute=True)


def _chapter(markup: bytes, builder: DocumentBuilder) -> None:
    page = xhtml.extract(markup, _BASE, "application/xhtml+xml")
    for link in page.links:
        builder.add_link(link.url, link.anchor)
    builder.add(page.text)
    builder.note()
