"""A body has one type, whichever way it comes: HTTP, a share, an import, an archive, a mail."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scrapy.http import Response

from larmspider.extraction.body_type import END_BYTES, is_text, media_type
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.formats import extractor_for, without_text
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.xml_root import root_of
from larmspider.fetch.blobs import Room
from larmspider.fetch.file_handler import FileReader
from larmspider.fetch.limits import Limits
from larmspider.fetch.response_type import body_type
from larmspider.items import Page
from larmspider.plugins.warc.archives import Archive
from larmspider.urls.file_urls import FileRoots, url_of
from tests.support.documents import corpus
from tests.support.documents.corpus import SAMPLES, zipped
from tests.support.documents.ole_file import ole

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PDF, RTF, ZIP, XML = "application/pdf", "application/rtf", "application/zip", "application/xml"
EXCEL, GZIP, BZIP2 = "application/vnd.ms-excel", "application/gzip", "application/x-bzip2"
ODT, OCTETS = "application/vnd.oasis.opendocument.text", "application/octet-stream"
HTML = b"<!doctype html><p>x"
XHTML = b'<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"/>'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
MAIN = '<Types><Override PartName="/odd/main.xml" ContentType="{kind}.main+xml"/></Types>'
RELS = '<Relationships><Relationship Type="{kind}/officeDocument" Target="odd/main.xml"/>'
DEFAULT = '<Types><t:Default Extension="XML" ContentType="{kind}.main+xml"/></Types>'
WORD = {
    "odd/main.xml": "<x/>",
    "_rels/.rels": RELS.format(kind="http://schemas.openxmlformats.org/officeDocument"),
    "[Content_Types].xml": MAIN.format(kind=DOCX),
}


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    with Readers() as readers:
        yield readers


# Five sources. Each answers with the Page of a file that has this name and these bytes.


def over_http(name: str, body: bytes, readers: Readers, _: Path) -> Page:
    return _page(Response(f"http://h/{name}", body=body), readers)


def as_download(name: str, body: bytes, readers: Readers, _: Path) -> Page:
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return _page(Response("http://h/get?id=1", body=body, headers=headers), readers)


def as_unknown_type(name: str, body: bytes, readers: Readers, _: Path) -> Page:
    headers = {"Content-Type": "application/x-unheard-of"}
    return _page(Response(f"http://h/{name}", body=body, headers=headers), readers)


def on_a_share(name: str, body: bytes, readers: Readers, folder: Path) -> Page:
    (folder / name).write_bytes(body)
    url = url_of(os.fsencode(folder / name))
    answer = FileReader(FileRoots([os.fsencode(folder)]), Limits()).read(
        url, {"If-None-Match": "", "If-Modified-Since": ""}
    )
    return _page(Response(url, body=answer.body, headers=answer.headers), readers)


def by_import(name: str, body: bytes, readers: Readers, folder: Path) -> Page:
    (folder / "mirror" / "h.example").mkdir(parents=True, exist_ok=True)
    (folder / "mirror" / "h.example" / name).write_bytes(body)
    archive = Archive([folder / "mirror"])
    capture = archive.find(f"http://h.example/{name}")
    assert capture is not None
    answer = capture.source.read(capture, Room(1 << 24, 0, folder))
    return _page(
        Response(f"http://h.example/{name}", body=answer.body, headers=dict(answer.headers)),
        readers,
    )


def in_a_zip(name: str, body: bytes, readers: Readers, _: Path) -> Page:
    return readers.read_again(ZIP, zipped({name: body, "z.bin": b"\0\1"}), "http://h/all.zip")


def in_a_mail(name: str, body: bytes, readers: Readers, _: Path) -> Page:
    return readers.read_again(
        "message/rfc822", corpus.eml("outer", body, name), "http://h/letter.eml"
    )


SOURCES = (over_http, as_download, as_unknown_type, on_a_share, by_import, in_a_zip, in_a_mail)
Source = Callable[[str, bytes, Readers, Path], Page]


def _page(response: Response, readers: Readers) -> Page:
    return readers.read_again(body_type(response), response.body, response.url)


def _texts(page: Page) -> str:
    return " ".join([page.text, *(part.text for part in page.parts)])


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_every_format_gives_its_text_whichever_way_it_comes(
    source: Source, readers: Readers, tmp_path: Path
) -> None:
    lost = [
        name
        for name, sample in SAMPLES.items()
        if sample.phrase not in _texts(source(f"sample.{name}", sample.body, readers, tmp_path))
    ]
    assert not lost


PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
TEXTS = {
    "README": b"Textwort one\n",
    "run.sh": b"#!/bin/sh\necho Textwort\n",
    "a.yml": b"key: Textwort\n",
    "a.log.1": b"Textwort\r\n\x1a",
    "page.html": b"<!doctype html><p>Textwort",
    "page.xhtml": b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><title/>Textwort</html>",
    "drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><text>Textwort</text></svg>",
    "flat": b"<?xml version='1.0'?><office:document xmlns:office='urn:oasis:names:tc:opendocument:"
    b"xmlns:office:1.0'><office:body>Textwort</office:body></office:document>",
    "wide.txt": "Textwort".encode("utf-16"),
    "saved.doc": b"MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<p>Textwort",
    "table.xls": b"a\tb\nTextwort\t1\n",
    "report.docx": b"only a Textwort\n",
}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_every_text_is_found_whichever_way_it_comes(
    source: Source, readers: Readers, tmp_path: Path
) -> None:
    found = {name: _texts(source(name, body, readers, tmp_path)) for name, body in TEXTS.items()}
    assert [name for name, text in found.items() if "Textwort" not in text] == []
    assert [name for name, text in found.items() if "xmlns" in text] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_a_picture_is_binary_whichever_way_it_comes(
    source: Source, readers: Readers, tmp_path: Path
) -> None:
    page = source("a.png", PICTURE, readers, tmp_path)
    unread = {part.name: part.unread for part in page.parts}.get("a.png", page.unread)
    assert unread.startswith("binary:")
    if source is in_a_mail:
        assert page.unread == ""


# By content.


def _renamed(**more: str | bytes) -> bytes:
    return zipped({**{f"media/{number}": b"x" for number in range(1_200)}, **WORD, **more})


CONTENTS = {
    "pdf behind a mark": (b"\xef\xbb\xbf" + SAMPLES["pdf"].body, PDF),
    "pdf behind a head": (b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n" + SAMPLES["pdf"].body, PDF),
    "docx behind a line": (b"\r\n" + SAMPLES["docx"].body, DOCX),
    "docx of odd names": (zipped(WORD), DOCX),
    "docx by a default": (zipped(WORD | {"[Content_Types].xml": DEFAULT.format(kind=DOCX)}), DOCX),
    "docx behind a warning": (b"<br />\n<b>Notice</b>: x\n" + SAMPLES["docx"].body, DOCX),
    "xls behind a warning": (b"<br />\n<b>Notice</b>: x\n" + SAMPLES["xls"].body, EXCEL),
    "gzip behind a warning": (b"\nNotice: Undefined variable\n" + gzip.compress(b"x"), GZIP),
    "gzip behind a mark": (b"\xef\xbb\xbf" + gzip.compress(b"x"), GZIP),
    "bz2 behind a warning": (b"Type mismatch\r\n\r\n" + bz2.compress(b"x" * 99), BZIP2),
    "xz behind a warning": (b"\nWarning: x\n" + lzma.compress(b"x" * 99), "application/x-xz"),
    "docx of many members": (_renamed(), DOCX),
    "docx of backslashes": (
        zipped({name.replace("/", "\\"): data for name, data in WORD.items()}),
        DOCX,
    ),
    "docx without lists": (zipped({"word/document.xml": "<x/>"}), DOCX),
    "odt, type last and packed": (
        zipped({"content.xml": "<x/>", "META-INF/manifest.xml": "<x/>", "mimetype": ODT}),
        ODT,
    ),
    "ods by its manifest": (
        zipped(
            {
                "content.xml": "<x/>",
                "META-INF/manifest.xml": "<manifest:file-entry manifest:full-path='/'"
                " manifest:media-type='application/vnd.oasis.opendocument.spreadsheet'/>",
            }
        ),
        "application/vnd.oasis.opendocument.spreadsheet",
    ),
    "epub, type last": (
        zipped({"META-INF/container.xml": "<x/>", "a.opf": "<x/>"}),
        "application/epub+zip",
    ),
    "keynote": (
        zipped({"Index/Document.iwa": b"x", "Index/Slide-1.iwa": b"x"}),
        "application/vnd.apple.keynote",
    ),
    "xps": (
        zipped(
            {
                "[Content_Types].xml": '<Override PartName="/f.fdseq" ContentType='
                '"application/vnd.ms-package.xps-fixeddocumentsequence+xml"/>'
            }
        ),
        "application/vnd.ms-xpsdocument",
    ),
    "zip": (zipped({"a.txt": "x"}), ZIP),
    "zip of a docx": (zipped({"a.docx": SAMPLES["docx"].body}), ZIP),
    "doc": (ole({"WordDocument": b"x" * 5_000}), "application/msword"),
    "rtf behind a mark": (b"\xef\xbb\xbf{\\rtf1 x}", RTF),
    "mhtml": (
        b"From: <Saved>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b"
        b"\r\n\r\nx",
        "message/rfc822",
    ),
    "gzip": (gzip.compress(b"x"), "application/gzip"),
    "zstd": (b"\x28\xb5\x2f\xfd\x20\1\x09\0\0x", "application/zstd"),
    "flat odt": (
        TEXTS["flat"],
        "application/vnd.oasis.opendocument.text-flat-xml",
    ),
}
TYPES = (
    *("", "application/octet-stream", "application/octetstream", "application/vnd.ms-word"),
    *("text/pdf", "application/x-msexcel", "pdf", "text/html", "text/plain", "application/msword"),
    *("application/vnd.ms-excel", PDF, DOCX, ZIP, XML, "multipart/related", "application/x-gzip"),
)


@pytest.mark.parametrize("content", CONTENTS)
def test_content_that_is_unmistakable_outranks_every_type(content: str) -> None:
    body, mime = CONTENTS[content]
    for said in TYPES:
        if "behind a warning" in content and said == "text/html":
            continue  # a page that warns
        crawl = media_type(said, body, "http://h/x")
        assert document_type(body, "http://h/x", crawl) == mime, said


@pytest.mark.parametrize("said", TYPES)
def test_the_type_of_a_type_is_that_type(said: str) -> None:
    """`scrapy reindex` reads a stored body by its stored type."""
    for body in (*TEXTS.values(), *(body for body, _ in CONTENTS.values()), PICTURE, b"", HTML):
        mime = media_type(said, body, "http://h/x")
        assert media_type(mime, body, "http://h/x") == mime


@pytest.mark.parametrize(
    ("said", "body", "name", "mime"),
    [
        ("image/png", PICTURE, "", "image/png"),
        ("image/x-unheard-of", b"\0\1", "", "image/x-unheard-of"),
        ("image/png", b"words", "a.csv", "image/png"),
        ("image/png", HTML, "", "text/html"),
        ("text/html", b"<b>Warning</b>: x\n" + SAMPLES["pdf"].body, "", PDF),
        ("text/html", b"<br />\n<b>Notice</b>: x\n" + SAMPLES["docx"].body, "", DOCX),
        ("text/html", b"<p>A PDF begins with %PDF-1.4", "", "text/html"),
        ("image/pdf", SAMPLES["pdf"].body, "", PDF),
        ("image/x-citrix-png", PICTURE, "", "image/png"),
        ("application/octetstream", b"ID3\3" + bytes(99), "", "audio/mpeg"),
        ("video/3gpp", b"\0\0\0\x18ftyp3gp4", "", "video/mp4"),
        ("text/html", b"<?xml version='1.0'?><?mso-application x?><Workbook/>", "", XML),
        (
            "application/java-archive",
            zipped({"A.class": b"x"}),
            "a.jar",
            "application/java-archive",
        ),
        ("application/x-rpm", b"\xed\xab\xee\xdb", "", "application/x-rpm"),
        ("application/x-msdownload", b"MZ\x90\0\3\0", "a.exe", "application/x-msdownload"),
        ("application/x-msdownload", zipped({"a.txt": b"x"}), "a.zip", ZIP),
        ("text/css", b"a{}", "", "text/css"),
        ("application/javascript", b"var a", "a.js", "application/javascript"),
        ("video/mp2t", b"export const a = 1;\n", "a.ts", "text/plain"),
        ("application/x-gzip", b"unpacked on its way\n", "notes.txt.gz", "text/plain"),
        ("application/gzip", b"a;b\n", "notes.csv.gz", "text/csv"),
        ("application/ld+json", b"{}", "", "application/ld+json"),
        ("application/kml+xml", b"<?xml version='1.0'?><kml/>", "", "application/kml+xml"),
        ("text/xml", XHTML, "", "application/xhtml+xml"),
        ("", XHTML, "", "application/xhtml+xml"),
        ("text/html", XHTML, "", "text/html"),
        ("text/plain", XHTML, "", "text/plain"),
        (OCTETS, XHTML, "http://h/get", OCTETS),
        (OCTETS, HTML, "http://h/get", OCTETS),
        ("application/x-octet-stream", HTML, "http://h/get", "text/html"),
        ("text/plain", b"<?xml version='1.0'?><rss/>", "", XML),
        ("text/x-opml", b"<?xml version='1.0'?><opml/>", "", XML),
        ("text/plain", b"<?xml version='1.0'?><project/>", "pom", "text/plain"),
        ("", b"#!/bin/sh\n" + bytes(range(256)) * 300, "", OCTETS),
        ("", b"A log\n" * 1_000 + b"\0" * 5 + b"more\n" * 1_000, "", "text/plain"),
        ("", b"A log\n" * 90 + b"\0" * 4_000 + "gestört\n".encode() * 90, "", "text/plain"),
        ("", "größer\n".encode() * 40_000 + b"\0" * 5_000 + b"end\n" * 9_999, "", "text/plain"),
        ("", b"words of a log\0" + b"more\n" * 99, "", "text/plain"),
        ("", b"\0" * 4_000 + b"\1\2\3\4\5\6\7\b" * 90 + b"\0" * 4_000, "", OCTETS),
        ("", "<?xml version='1.0'?><x/>".encode("utf-16-be"), "", XML),
        (OCTETS, b"\xff\xfb\x90\x64" + b"\0" * 400 + b"TAG" + b"x" * 125, "", "audio/mpeg"),
        ("", b"\1\2\3" * 100, "a.docx", DOCX),
        ("", b"\1\2\3" * 100, "a.txt", OCTETS),
        ("application/x-unheard-of", b"\1\2\3" * 100, "", "application/x-unheard-of"),
        ("application/pdf", b"Not found\n", "", "text/plain"),
        (DOCX, b"Not found\n", "", "text/plain"),
        (XLSX, b"a;b\n", "", "text/csv"),
        ('"application/pdf"', SAMPLES["pdf"].body, "", PDF),
        ("", b"BZhang wrote this\n", "", "text/plain"),
        ("", b"N\x08NA\x08AM\x08M\x08E\n" * 20, "cat.1", "text/plain"),
        ("", b"a line\x0bbroken\n", "", "text/plain"),
        ("", b"LZIP\x01...", "", "application/x-lzip"),
        ("", b"\x31\xbe\0\0\0\xab\0\0", "", "application/x-mswrite"),
        ("", b"\0\1\0\0Standard Jet DB\0", "", "application/x-msaccess"),
        ("", b"\0\0\2\0\6\4\6\0", "", "application/vnd.lotus-1-2-3"),
        (OCTETS, b"AC1032\0\0\0\0\0\2\3", "plan.dwg", "image/vnd.dwg"),
        ("", ole({"BodyText/Section0": b"x", "FileHeader": b"x"}), "", "application/x-hwp"),
        ("", b"See %PDF-1.4 in the standard, which is text.\n", "", "text/plain"),
        ("", b"From a@b Mon Jan  1 00:00:00 2024\nFrom: a@b\n\nx", "inbox", "application/mbox"),
    ],
)
def test_the_type_of_a_body(said: str, body: bytes, name: str, mime: str) -> None:
    assert media_type(said, body, name) == mime


@pytest.mark.parametrize("size", [END_BYTES, 20 * END_BYTES])
def test_a_body_is_looked_at_from_its_ends_alone(size: int) -> None:
    """Bytes between 64 KB at each end change nothing."""
    names = {f"{number:05}" + "x" * 200: b"" for number in range(2 * size // 250)}
    for body in (b"words " * (size // 2), zipped(names), b"\0" * 3 * size):
        middle = len(body) // 2 - 100
        changed = body[:middle] + b"\0[Content_Types].xml word/ %PDF-1.4" + body[middle + 40 :]
        assert media_type("", body) == media_type("", changed)


@pytest.mark.parametrize(
    "warning", [b"<br />\n<b>Notice</b>: x\n", b"\xef\xbb\xbf", b"Error 5\r\n"]
)
def test_a_document_behind_a_warning_is_read(warning: bytes, readers: Readers) -> None:
    for name in ("msg", "xls", "gz", "bz2", "xz"):
        body, phrase = warning + SAMPLES[name].body, SAMPLES[name].phrase
        mime = media_type("text/html", body, "http://h/get.php")
        assert phrase in _texts(readers.read_again(mime, body, "http://h/get.php"))
        assert phrase in _texts(readers.read_again(ZIP, zipped({"a": body}), "http://h/a.zip"))


TERMINAL = b"\x1b]0;user@host\x07\x1b[01;32muser\x1b[00m$ ls\r\n\x1b(B\x0fnotes\r\n"
MARKED = {
    "terminal": TERMINAL,
    "progress": b"Loading 10%\b\b\b20%\b\b\b done\n" * 5,
    "bell": b"Error!\x07 retry\n",
    "zeros": b"PATH=/usr/bin\0HOME=/root\0LANG=de_DE.UTF-8\0",
    "ends of blocks": b"a line of a log" + bytes(8) + b"and another\n",
    "FIX": b"8=FIX.4.2\x019=178\x0135=8\x0149=PHLX\x01",
    "HL7": b"\x0bMSH|^~\\&|LAB|HOSP\rPID|1||12345\r\x1c\r",
    "separators": b"name\x1fvalue\x1fother\x1e\n",
    "form feeds": b"page one\n\x0cpage two\n",
}
PROGRAMS = {
    "ELF": b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\x3e\0\1" + b"a text in it " * 40,
    "PE": b"MZ\x90\0\3\0\0\0\4\0" + b"This program cannot be run in DOS mode" * 20,
    "class": b"\xca\xfe\xba\xbe\0\0\0\x34\0\x1d\x0a\0\6\0\x0f" + b"java/lang/Object" * 20,
    "font": b"\0\1\0\0\0\x0f\0\x80" + b"GDEFcmapglyf" * 40,
    "sqlite": b"SQLite format 3\0\x10\0\1\1\0\x40\x20\x20" + b"CREATE TABLE a(b)" * 40,
    "pcap": b"\xd4\xc3\xb2\xa1\2\0\4\0" + bytes(16) + b"GET / HTTP/1.1\r\n" * 40,
    "compiled": b"\xa7\r\r\n\0\0\0\0\x65\x92" + b"some_name_of_python" * 40,
    "terminfo": b"\x1a\1\x2a\0\x26\0\x0f\0" + b"xterm|terminal emulator" * 40,
    "protobuf": b"\x0a\x05hello\x12\x05world\x1a\x07another" * 40,
    "dBase": b"\3\x7c\1\x0f\3\0\0\0\x61\0\x1f\0" + b"NAME".ljust(40) * 40,
    "records": b"\5\0\0\0words\7\0\0\0letters" * 40,
    "one byte": b"\1",
}


@pytest.mark.parametrize("name", MARKED)
def test_a_text_with_lone_control_characters_is_text(name: str) -> None:
    for body in (MARKED[name], MARKED[name] * 50, MARKED[name] + "größer\n".encode()):
        assert media_type("application/octet-stream", body, "a.log") == "text/plain"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_no_text(name: str) -> None:
    for body in (PROGRAMS[name], PROGRAMS[name] * 99):
        assert not is_text(body)
        assert extractor_for(media_type(OCTETS, body, "a")) is None


def test_a_zip_in_a_way_that_nothing_unpacks_is_not_damaged(readers: Readers) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.txt", "x" * 100)
    body = made.getvalue()
    at, listed = body.index(b"PK\x03\x04"), body.index(b"PK\x01\x02")
    changed = bytearray(body)
    changed[at + 8] = changed[listed + 10] = 9  # Deflate64
    (part,) = readers.read_again(ZIP, bytes(changed), "http://h/a.zip").parts
    assert part.unread.startswith("no-reader:")


def test_what_is_closed_says_that_it_is_binary() -> None:
    assert without_text("image/png") == "binary: image/png is not a document"
    for mime in ("image/x-icon", "text/css", "font/woff2", "application/x-unheard-of", OCTETS):
        assert extractor_for(mime) is None
        assert without_text(mime) == f"binary: {mime} is not a document"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"<?xml version='1.0'?>\n<!-- <a> -->\n<?x y?><b:c d='>'/>", "c"),
        (b"<!DOCTYPE a [<!ENTITY b '>'>]><a>", "a"),
        (b"<?xml version='1.0'?><!-- no end", ""),
        (b"<" * 1_000, ""),
        (b"<!DOCTYPE a [" * 1_000, ""),
    ],
)
def test_the_root_of_xml(head: bytes, name: str) -> None:
    assert root_of(head).name == name


@pytest.mark.parametrize("mime", ["text/html", "text/css"])
def test_a_head_that_is_sent_twice_makes_no_mail(mime: str) -> None:
    """As by a program behind a server that writes a head of its own."""
    body = b"MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<html><title>A page</title>"
    assert media_type(mime, body, "") == mime


@pytest.mark.parametrize("filler", [b"\r", b"\n", b" ", b"\r%", b"\n%a\n", b"1 ", b"\r1 1"])
def test_the_beginning_of_a_pdf_is_looked_for_in_linear_time(filler: bytes) -> None:
    body = b"x%PDF-1.4" + filler * (100_000 // len(filler)) + b"z"
    before = time.process_time()
    assert media_type("text/html", body, "") == "text/html"
    assert time.process_time() - before < 0.5


@pytest.mark.parametrize(
    ("start", "mime"),
    [
        (b"FORM\0\0\1\0AIFFCOMM", "audio/x-aiff"),
        (b"FORM\0\0\1\0AIFCFVER", "audio/x-aiff"),
        (bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c") + bytes(20), "audio/x-ms-wma"),
        (b"\x50\x2a\x4d\x18\4\0\0\0skip\x28\xb5\x2f\xfd", "application/zstd"),
        (b"\x5f\x2a\x4d\x18\0\0\0\0\x28\xb5\x2f\xfd", "application/zstd"),
    ],
)
def test_sound_and_skipped_frames_are_known_by_their_start(start: bytes, mime: str) -> None:
    assert media_type("", start + bytes(64)) == mime
    assert media_type("application/octet-stream", start + bytes(64)) == mime


@pytest.mark.parametrize(
    ("said", "body", "name", "mime"),
    [
        ("", "Größe und viel mehr Text".encode("utf-16-le"), "a", "text/plain"),
        ("", "Größe und viel mehr Text".encode("utf-16-be"), "a", "text/plain"),
        ("", "Größe und viel mehr Text".encode("utf-32"), "a", "text/plain"),
        ("", "<html><p>Größe".encode("utf-16-le"), "a", "text/html"),
        ("", b"a line of a log\n" + bytes(4_000), "a.log", "text/plain"),
        ("", bytes(4_000) + b"a line of a log\n", "a.log", "text/plain"),
        ("", bytes(4_000), "a.log", OCTETS),
        ("", b"a line of a log\n" * 99 + bytes(2 * END_BYTES), "a.log", "text/plain"),
        ("", bytes(2 * END_BYTES) + b"a line of a log\n" * 99, "a.log", "text/plain"),
        ("", b"\1\2\3\4\5\6\7\b" * 90 + bytes(2 * END_BYTES), "a.log", OCTETS),
        ("", "Все люди рождаются свободными\n".encode("utf-16-le"), "a", "text/plain"),
        ("", "Όλοι οι άνθρωποι είναι ίσοι\n".encode("utf-16-be"), "a", "text/plain"),
        ("", "人人生而自由，在尊严和权利上一律平等。\n".encode("utf-16-le"), "a", "text/plain"),
        ("", b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", "get", "text/calendar"),
        ("text/html", b"\xef\xbb\xbfBEGIN:VCARD\nEND:VCARD\n", "get.php", "text/vcard"),
        ("", b'[{"na\\u00efve": "\\u00e4"}]', "get", "application/json"),
        ("text/plain", b'{\n  "a": 1}', "get.php", "application/json"),
        ("text/plain", b"{a: 1}", "get.php", "text/plain"),
        ("", b"\0few" + bytes(500), "a", OCTETS),
        ("application/rls-services+xml", b"fn main() {}\n", "a.rs", "text/plain"),
        ("application/xml", b'{"a": 1}', "a.xml", "application/json"),
        ("text/plain", b'{"a": 1}', "a.xml", "text/plain"),
        ("application/xml", b"Warning: x\n<a/>", "a.xml", XML),
        ("audio/x-mpegurl", b"#EXTM3U\n#EXTINF:1,Song\n", "a.m3u", "audio/x-mpegurl"),
    ],
)
def test_text_is_text_whatever_is_around_it(said, body, name, mime):
    assert media_type(said, body, name) == mime
    assert extractor_for(mime) is not None or mime == OCTETS


def test_a_text_with_the_letters_of_a_tar_file_in_their_place_is_a_text() -> None:
    text = b"a" * 250 + b" me gustar" + b"ia la carta. " * 30
    at = text.index(b"ustar")
    assert media_type("text/plain", b"a" * (257 - at) + text) == "text/plain"
    for magic in (b"ustar\x0000", b"ustar  \0", b"ustar\0\0\0"):
        assert media_type("", b"name".ljust(257, b"\0") + magic + bytes(247)) == "application/x-tar"
