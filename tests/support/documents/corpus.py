"""Small documents of every format, each with a phrase, a title, an author and a link of its own.

sample = SAMPLES["docx"]
sample.body, sample.phrase, sample.link         # b"PK...", "docxword lighthouse", "http://..."
"""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from email.message import EmailMessage
from random import Random

from tests.support.documents.ole_file import ole
from tests.support.documents.tnef_file import attachment, attribute, prop, properties, tnef

LINKED = "http://linked.example/from-{name}"
MODIFIED = 1704112496.0
"""2024-01-01T12:34:56Z"""


@dataclass(frozen=True, slots=True)
class Sample:
    """``title`` and ``author`` are "" where the format has none; ``part`` names the part that has
    the phrase, "" for the document itself."""

    name: str
    mime: str
    body: bytes
    title: str = "Harbour rules"
    author: str = "Ada Pilot"
    part: str = ""
    dated: bool = True

    @property
    def phrase(self) -> str:
        return phrase(self.name)

    @property
    def link(self) -> str:
        return LINKED.format(name=self.name)


def phrase(name: str) -> str:
    return f"{name}word lighthouse"


def zipped(files: dict[str, str | bytes], stored: tuple[str, ...] = ()) -> bytes:
    """A zip file; the members ``stored`` are not compressed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            kind = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), data, kind)
    return out.getvalue()


# PDF


def slow_pdf(size: int = 0) -> bytes:
    """A PDF that takes PDFium minutes: its page draws a form 3,000 times, that one another one as
    often, and so on. 700 bytes, or ``size`` with a comment."""

    def stream(head: bytes, content: bytes) -> bytes:
        packed = zlib.compress(content, 9)
        start = b"<<%b/Filter/FlateDecode/Length %d>>stream" % (head, len(packed))
        return b"%b\n%b\nendstream" % (start, packed)

    calls, form = b"/a Do " * 3_000, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R"
        b"/Resources<</XObject<</a 5 0 R>>>>>>",
        stream(b"", calls),
        stream(form + b"/Resources<</XObject<</a 6 0 R>>>>", calls),
        stream(form, b"0 0 1 1 re f"),
    ]
    body = b"".join(b"%d 0 obj\n%b\nendobj\n" % item for item in enumerate(objects, 1))
    end = b"trailer<</Root 1 0 R>>\n%%EOF"
    comment = b"%" + b"x" * size + b"\n" if size else b""
    return b"%PDF-1.4\n" + comment + body + end


def pdf(
    pages: list[str],
    link: str = "",
    info: str = "",
    password: bytes = b"",
    picture: bytes = b"",
) -> bytes:
    """One line of text a page; ``link`` is an annotation over the first one, ``picture`` an image
    object that fills the last one."""
    key = hashlib.md5(password).digest()[:5] if password else b""
    objects: dict[int, bytes] = {}
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(len(pages)))
    objects[1] = b"<</Type/Catalog/Pages 2 0 R/Lang(en-GB)>>"
    objects[2] = f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>".encode()
    objects[3] = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    objects[4] = f"<<{info}>>".encode()
    objects[5] = (
        f"<</Type/Annot/Subtype/Link/Rect[50 690 400 720]/A<</S/URI/URI({link})>>>>".encode()
    )
    for n, text in enumerate(pages):
        annotation = "/Annots[5 0 R]" if link and not n else ""
        objects[10 + 2 * n] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {11 + 2 * n} 0 R"
            f"/Resources<</Font<</F1 3 0 R>>/XObject<</I1 7 0 R>>>>{annotation}>>"
        ).encode()
        if picture and n == len(pages) - 1:
            objects[11 + 2 * n] = (
                b"<</Length 30>>stream\nq 595 0 0 842 0 0 cm /I1 Do Q  \nendstream"
            )
            continue
        stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode() if text else b""
        objects[11 + 2 * n] = b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream)
    if picture:
        objects[7] = picture
    encrypt = b""
    if key:  # an arbitrary one: PDFium asks for the password before it decrypts anything
        objects[6] = b"<</Filter/Standard/V 1/R 2/P -4/O<%b>/U<%b>>>" % ((b"00" * 32,) * 2)
        encrypt = b"/Encrypt 6 0 R/ID[<%b><%b>]" % ((b"ab" * 16,) * 2)
    out, places = b"%PDF-1.5\n", {}
    for number, content in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start, most = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % most
    for number in range(1, most):
        out += (
            b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 00000 f \n"
        )
    trailer = b"trailer<</Size %d/Root 1 0 R/Info 4 0 R%b>>\nstartxref\n%d\n%%%%EOF\n"
    return out + trailer % (most, encrypt, start)


def _pdf() -> bytes:
    info = "/Title(Harbour rules)/Author(Ada Pilot)/ModDate(D:20240101133456+01'00')"
    return pdf(["First of all", "nothing", f"The {phrase('pdf')}"], LINKED.format(name="pdf"), info)


# OOXML

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_CORE = """<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">
<dc:title>Harbour rules</dc:title><dc:creator>Ada Pilot</dc:creator><dc:language>en-GB</dc:language>
<dcterms:modified>2024-01-01T12:34:56Z</dcterms:modified></cp:coreProperties>"""
_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


def _rels(name: str) -> str:
    return (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="r1" TargetMode="External" Type="{_R}/hyperlink"'
        f' Target="{LINKED.format(name=name)}"/></Relationships>'
    )


MACRO = "Sub AutoOpen()"
_MACROS = {
    "word/vbaProject.bin": ole({"VBA/Module1": f"{MACRO} Shell End Sub".encode() * 200}),
    "word/_rels/vbaProject.bin.rels": b"<Relationships/>",
}


def docx(name: str = "docx", paragraphs: int = 1, extra: dict[str, bytes] | None = None) -> bytes:
    body = "".join(
        f"<w:p><w:r><w:t>The {phrase(name)[:5]}</w:t></w:r><w:r><w:t>{phrase(name)[5:]}, "
        f"paragraph {n} of the rules of this harbour</w:t></w:r></w:p>"
        for n in range(paragraphs)
    )
    return zipped(
        {
            "[Content_Types].xml": _TYPES,
            "docProps/core.xml": _CORE,
            "word/_rels/document.xml.rels": _rels(name),
            "word/document.xml": f'<w:document xmlns:w="{_W}" xmlns:r="{_R}"><w:body>{body}<w:p>'
            '<w:hyperlink r:id="r1"><w:r><w:t>the way</w:t></w:r></w:hyperlink><w:r><w:delText>'
            "struck out</w:delText></w:r></w:p></w:body></w:document>",
            **(extra or {}),
        }
    )


def _pptx() -> bytes:
    slide = (
        f'<p:sld xmlns:p="{_P}" xmlns:a="{_A}" xmlns:r="{_R}"><p:cSld><p:spTree><p:sp><p:txBody>'
        f"<a:p><a:r><a:t>The {phrase('pptx')}</a:t></a:r></a:p><a:p><a:r><a:rPr>"
        '<a:hlinkClick r:id="r1"/></a:rPr><a:t>the way</a:t></a:r></a:p>'
        "</p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
    )
    return zipped(
        {
            "[Content_Types].xml": _TYPES,
            "docProps/core.xml": _CORE,
            "ppt/slides/slide1.xml": slide,
            "ppt/slides/_rels/slide1.xml.rels": _rels("pptx"),
        }
    )


def _xlsx() -> bytes:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    return zipped(
        {
            "[Content_Types].xml": _TYPES,
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="w"'
            f' Type="{_R}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "docProps/core.xml": _CORE,
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{_R}"><sheets>'
            '<sheet name="Berths" sheetId="1" r:id="s1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
            f'<Relationship Id="s1" Type="{_R}/worksheet" Target="worksheets/sheet1.xml"/>'
            "</Relationships>",
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData><row r="1">'
            f'<c r="A1" t="inlineStr"><is><t>The {phrase("xlsx")}</t></is></c>'
            '<c r="B1"><v>42</v></c></row></sheetData></worksheet>',
            "xl/worksheets/_rels/sheet1.xml.rels": _rels("xlsx"),
        }
    )


def vsdx(
    shapes: str, pages: str = "<Page Name='Plan'/>", extra: dict[str, bytes] | None = None
) -> bytes:
    """One page of Visio; ``shapes`` are the inside of its Shapes."""
    names = f'xmlns="http://schemas.microsoft.com/office/visio/2012/main" xmlns:r="{_R}"'
    head = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'

    def leads_to(kind: str, target: str) -> str:
        place = f"http://schemas.microsoft.com/visio/2010/relationships/{kind}"
        return f'{head}<Relationship Id="r1" Type="{place}" Target="{target}"/></Relationships>'

    return zipped(
        {
            "[Content_Types].xml": _TYPES,
            "docProps/core.xml": _CORE,
            "_rels/.rels": leads_to("document", "visio/document.xml"),
            "visio/document.xml": f"<VisioDocument {names}/>",
            "visio/_rels/document.xml.rels": leads_to("pages", "pages/pages.xml"),
            "visio/pages/pages.xml": f"<Pages {names}>{pages}</Pages>",
            "visio/pages/_rels/pages.xml.rels": leads_to("page", "page1.xml"),
            "visio/pages/page1.xml": f"<PageContents {names}><Shapes>{shapes}</Shapes>"
            "</PageContents>",
            **(extra or {}),
        }
    )


def _vsdx() -> bytes:
    link = f"<Cell N='Address' V='{LINKED.format(name='vsdx')}'/>"
    return vsdx(
        f"<Shape ID='1'><Section N='Hyperlink'><Row N='a'>{link}</Row></Section>"
        f"<Text>The {phrase('vsdx')[:5]}<cp IX='0'/>{phrase('vsdx')[5:]}</Text></Shape>"
    )


# ODF, epub

_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_META = f"""<office:document-meta xmlns:office="{_OFFICE}" xmlns:dc="http://purl.org/dc/elements/1.1/">
<office:meta><dc:title>Harbour rules</dc:title><dc:creator>Ada Pilot</dc:creator>
<dc:date>2024-01-01T12:34:56</dc:date></office:meta></office:document-meta>"""
_ODF = "application/vnd.oasis.opendocument."


def _odf(name: str, kind: str, manifest: str = "<manifest/>") -> bytes:
    content = (
        f'<office:document-content xmlns:office="{_OFFICE}" xmlns:text="{_TEXT}"'
        ' xmlns:xlink="http://www.w3.org/1999/xlink"><office:body><text:p>The <text:span>'
        f"{phrase(name)[:4]}</text:span>{phrase(name)[4:]}<text:line-break/>"
        f'<text:a xlink:href="{LINKED.format(name=name)}">the way</text:a></text:p></office:body>'
        "</office:document-content>"
    )
    files = {"mimetype": _ODF + kind, "content.xml": content, "meta.xml": _META}
    return zipped({**files, "META-INF/manifest.xml": manifest}, ("mimetype",))


def _epub(rights: bool = False) -> bytes:
    package = """<package xmlns="http://www.idpf.org/2007/opf"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Harbour rules</dc:title>
<dc:creator>Ada Pilot</dc:creator><dc:date>2024-01-01T12:34:56Z</dc:date></metadata>
<manifest><item id="c1" href="one.xhtml"/></manifest><spine><itemref idref="c1"/></spine>
</package>"""
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfile full-path="OPS/book.opf"/></container>',
        "OPS/book.opf": package,
        "OPS/one.xhtml": f"<html><body><p>The {phrase('epub')}</p>"
        f'<a href="{LINKED.format(name="epub")}">the way</a></body></html>',
    }
    return zipped(files | ({"META-INF/rights.xml": "<rights/>"} if rights else {}), ("mimetype",))


# Mail


def eml(name: str = "eml", attachment: bytes = b"", file: str = "") -> bytes:
    message = EmailMessage()
    message["From"], message["To"] = "Ada Pilot <ada@h.example>", "crew@h.example"
    message["Subject"] = "Harbour rules"
    message["Date"] = "Mon, 01 Jan 2024 13:34:56 +0100"
    message.set_content(f"The {phrase(name)}")
    message.add_alternative(
        f'<p>The {phrase(name)} <a href="{LINKED.format(name=name)}">the way</a>', subtype="html"
    )
    if attachment:
        message.add_attachment(
            attachment, maintype="application", subtype="octet-stream", filename=file
        )
    return message.as_bytes()


def _mbox() -> bytes:
    other = b"Subject: Tides\nFrom: x@h.example\n\nNothing.\n"
    return b"From x@h Mon Jan  1 12:00:00 2024\n" + other + b"\nFrom y@h Mon Jan  1\n" + eml("mbox")


def _msg() -> bytes:
    ticks = int(MODIFIED * 10_000_000) + 116_444_736_000_000_000
    sent = struct.pack("<HHIQ", 0x0040, 0x0039, 6, ticks)
    html = f'<p>The {phrase("msg")}<a href="{LINKED.format(name="msg")}">the way</a>'
    return ole(
        {
            "__properties_version1.0": b"\0" * 32 + sent,
            "__substg1.0_0037001F": "Harbour rules".encode("utf-16-le"),
            "__substg1.0_0C1A001F": "Ada Pilot".encode("utf-16-le"),
            "__substg1.0_1000001F": f"The {phrase('msg')}".encode("utf-16-le"),
            "__substg1.0_10130102": html.encode(),
            "__attach_version1.0_#00000000/__substg1.0_37010102": b"enclosed plan",
            "__attach_version1.0_#00000000/__substg1.0_3707001F": "plan.txt".encode("utf-16-le"),
        }
    )


def _mht() -> bytes:
    page = (
        "<meta charset=3Dutf-8><title>Harbour rules</title>The "
        f"{phrase('mht')} <a href=3D'{LINKED.format(name='mht')}'>the way</a>"
    )
    return (
        "From: Ada Pilot <ada@h.example>\nSubject: s\nDate: Mon, 01 Jan 2024 13:34:56 +0100\n"
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\n"
        "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n"
        f"Content-Location: http://h/x.html\n\n{page}\n--b--\n"
    ).encode()


def _tnef() -> bytes:
    ticks = int(MODIFIED * 10_000_000) + 116_444_736_000_000_000
    pairs = [
        prop(0x0040, 0x0039, struct.pack("<Q", ticks)),
        prop(0x001E, 0x0037, b"Harbour rules\0"),
        prop(0x001E, 0x0C1A, b"Ada Pilot\0"),
        prop(0x001E, 0x1000, f"{_text('tnef')}\0".encode()),
    ]
    plan = attachment(b"plan.txt\0", b"enclosed plan")
    return tnef(attribute(1, 0x9003, properties(pairs)), plan)


def xls(first: bytes = b"", more: bytes = b"") -> bytes:
    """BIFF8 with one cell; ``first`` are records at the beginning, ``more`` are of the sheet."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    text = f"The {phrase('xls')}"
    begin = struct.pack("<HHHHII", 0x0600, 0x0005, 0x0DBB, 0x07CC, 0, 6)
    sheet_begin = struct.pack("<HHHHII", 0x0600, 0x0010, 0x0DBB, 0x07CC, 0, 6)
    name = struct.pack("<BB", 6, 0) + b"Berths"
    head = record(0x0809, begin) + first + record(0x0042, struct.pack("<H", 1200))
    size = len(head) + 4 + 6 + len(name) + 4
    head += record(0x0085, struct.pack("<IBB", size, 0, 0) + name) + record(0x000A, b"")
    cell = struct.pack("<HHHHB", 0, 0, 0, len(text), 0) + text.encode("latin-1")
    sheet = record(0x0809, sheet_begin) + record(0x0200, struct.pack("<IIHHH", 0, 1, 0, 1, 0))
    monikers = [bytes.fromhex(f"{first}c9ea79f9bace118c8200aa004ba90b") for first in ("d0", "e0")]
    url = f"{LINKED.format(name='xls')}\0".encode("utf-16-le")
    link = bytes(8) + monikers[0] + struct.pack("<II", 2, 3) + monikers[1]
    link += struct.pack("<I", len(url)) + url
    sheet += more + record(0x0204, cell) + record(0x01B8, link) + record(0x000A, b"")
    return ole({"Workbook": (head + sheet).ljust(4096, b"\0")})


def excel5(text: bytes, codepage: int) -> bytes:
    """BIFF5 with one cell."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    begin, sheet_begin = (
        record(0x0809, struct.pack("<HHHH", 0x0500, kind, 0x0DBB, 0x07CC)) for kind in (5, 0x10)
    )
    name = b"\x06Berths"
    head = begin + record(0x0042, struct.pack("<H", codepage))
    size = len(head) + 4 + 6 + len(name) + 4
    head += record(0x0085, struct.pack("<IBB", size, 0, 0) + name) + record(0x000A, b"")
    cell = record(0x0204, struct.pack("<HHHH", 0, 0, 0, len(text)) + text)
    sheet = sheet_begin + record(0x0200, struct.pack("<HHHHH", 0, 1, 0, 1, 0)) + cell
    return ole({"Book": (head + sheet + record(0x000A, b"")).ljust(4096, b"\0")})


# Archives


def tar(files: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _member(name: str) -> dict[str, bytes]:
    text = f"# Harbour rules\n\nThe {phrase(name)}, [the way]({LINKED.format(name=name)})\n"
    return {"port/other.txt": b"Nothing here", "port/rules.md": text.encode()}


def _text(name: str) -> str:
    return f"The {phrase(name)}, see {LINKED.format(name=name)}."


def _samples() -> list[Sample]:
    ooxml = "application/vnd.openxmlformats-officedocument."
    markdown = f"# Harbour rules\n\nThe {phrase('md')}, [the way]({LINKED.format(name='md')})\n"
    rtf = (
        r"{\rtf1\ansi{\info{\title Harbour rules}{\author Ada Pilot}}The " + phrase("rtf")
        + r' caf\'e9 {\field{\*\fldinst HYPERLINK "' + LINKED.format(name="rtf")
        + r'"}{\fldrslt the way}}\par}'
    )  # fmt: skip
    feed = (
        "<rss><channel><title>Harbour rules</title><item><description>The "
        f"{phrase('xml')}</description><link>{LINKED.format(name='xml')}</link></item></channel></rss>"
    )
    calendar = (
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nSUMMARY:Harbour rules\r\n"
        f"DESCRIPTION:The {phrase('ics')[:6]}\r\n {phrase('ics')[6:]}\\, "
        f"{LINKED.format(name='ics')}\r\n"
    )
    card = f"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Harbour rules\r\nNOTE:{_text('vcf')}\r\nEND:VCARD\r\n"
    source = f"# Harbour rules\n{_text('ipynb')}"
    notebook = {"nbformat": 4, "cells": [{"cell_type": "markdown", "source": [source]}]}
    bare, member, alone = (("", "", part, False) for part in ("", "port/rules.md", "sample"))
    return [
        Sample("pdf", "application/pdf", _pdf()),
        Sample("docx", ooxml + "wordprocessingml.document", docx()),
        Sample("docm", ooxml + "wordprocessingml.document", docx("docm", extra=_MACROS)),
        Sample("pptx", ooxml + "presentationml.presentation", _pptx()),
        Sample("xlsx", ooxml + "spreadsheetml.sheet", _xlsx()),
        Sample("xls", "application/vnd.ms-excel", xls(), title="", author="", dated=False),
        Sample("vsdx", "application/vnd.ms-visio.drawing", _vsdx()),
        Sample("odt", _ODF + "text", _odf("odt", "text")),
        Sample("ods", _ODF + "spreadsheet", _odf("ods", "spreadsheet")),
        Sample("odp", _ODF + "presentation", _odf("odp", "presentation")),
        Sample("rtf", "application/rtf", rtf.encode("latin-1"), dated=False),
        Sample("epub", "application/epub+zip", _epub()),
        Sample("eml", "message/rfc822", eml(), author="Ada Pilot <ada@h.example>"),
        Sample("msg", "application/vnd.ms-outlook", _msg()),
        Sample("mbox", "application/mbox", _mbox(), part="2.eml", title="", author="", dated=False),
        Sample("mht", "message/rfc822", _mht(), author="Ada Pilot <ada@h.example>"),
        Sample("tnef", "application/ms-tnef", _tnef()),
        Sample("ics", "text/calendar", calendar.encode(), author="", dated=False),
        Sample("vcf", "text/vcard", card.encode(), author="", dated=False),
        Sample("ipynb", "application/json", json.dumps(notebook).encode(), author="", dated=False),
        Sample("md", "text/markdown", markdown.encode(), author="", dated=False),
        Sample("csv", "text/csv", _text("csv").encode(), *bare),
        Sample("json", "application/json", json.dumps([_text("json")]).encode(), *bare),
        Sample("xml", "application/xml", feed.encode(), author="", dated=False),
        Sample("zip", "application/zip", zipped(dict(_member("zip"))), *member),
        Sample("tar", "application/x-tar", tar(_member("tar")), *member),
        Sample("tgz", "application/gzip", tar(_member("tgz"), "w:gz"), *member),
        Sample("gz", "application/gzip", gzip.compress(_text("gz").encode(), mtime=0), *alone),
        Sample("bz2", "application/x-bzip2", bz2.compress(_text("bz2").encode()), *alone),
        Sample("xz", "application/x-xz", lzma.compress(_text("xz").encode()), *alone),
    ]  # fmt: skip


SAMPLES = {sample.name: sample for sample in _samples()}


# Broken documents


def encrypted() -> dict[str, bytes]:
    """By the name of the format."""
    member = bytearray(zipped({"secret.txt": "hidden"}))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        member[member.index(signature) + flags] |= 1
    manifest = "<manifest><file-entry><encryption-data/></file-entry></manifest>"
    package = ole({"EncryptedPackage": b"?" * 5_000, "EncryptionInfo": b"?" * 100})
    word = b"\xec\xa5\xc1\0\x09\x06\x09\x04\0\0\xf0\x13" + b"?" * 5_000
    current = b"\0\0\xf6\x0f\x31\0\0\0\x14\0\0\0" + bytes.fromhex("dfc4d1f3") + b"?" * 30
    return {
        "doc": ole({"WordDocument": word}),
        "ppt": ole({"PowerPoint Document": b"?" * 5_000, "Current User": current}),
        "xls": xls(struct.pack("<HH", 0x2F, 6) + b"\0" * 6),
        "pdf": pdf(["secret"], password=b"x"),
        "docx": package,
        "xlsx": package,
        "pptx": package,
        "odt": _odf("odt", "text", manifest),
        "epub": _epub(rights=True),
        "zip": bytes(member),
    }


def overwritten(body: bytes, seed: int, number: int = 200) -> bytes:
    """``number`` bytes at random places replaced at random."""
    random, damaged = Random(seed), bytearray(body)
    for _ in range(number):
        damaged[random.randrange(len(body))] = random.randrange(256)
    return bytes(damaged)


def bombs() -> dict[str, bytes]:
    """Small files that unpack to much; their names are names of files that servers offer."""
    blank = b"\0" * 12_000_000
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    large = packed.compress(blank) + packed.flush()
    laughs = '<!DOCTYPE z [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 50}">' for n in range(8)
    )
    word = f"{laughs}]><w:document xmlns:w='{_W}'><w:p><w:r><w:t>&i;</w:t></w:r></w:p></w:document>"
    nested = zipped({"0.txt": "innermost"})
    for depth in range(1, 7):
        nested = zipped({f"{depth}.zip": nested})
    return {
        "bomb.zip": zipped({f"{n}.txt": blank for n in range(4)}),
        "bomb.docx": docx(extra={"word/header1.xml": blank}),
        "bomb.gz": large,
        "laughs.docx": docx(extra={"word/document.xml": word.encode()}),
        "laughs.xml": f"{laughs}]><z>&i;</z>".encode(),
        "nested.zip": nested,
    }


def foreign_entities(path: str, url: str) -> dict[str, bytes]:
    """Documents that ask their reader for a file of this machine and for a URL."""
    dtd = f'<!DOCTYPE z [<!ENTITY f SYSTEM "file://{path}"><!ENTITY u SYSTEM "{url}">]>'
    word = (
        f"{dtd}<w:document xmlns:w='{_W}'><w:p><w:r><w:t>kept &f;&u;</w:t></w:r></w:p></w:document>"
    )
    odt = f"{dtd}<o xmlns:text='{_TEXT}'><text:p>kept &f;&u;</text:p></o>"
    return {
        "x.xml": f"{dtd}<z><a>kept</a>&f;&u;</z>".encode(),
        "x.docx": docx(extra={"word/document.xml": word.encode()}),
        "x.odt": zipped({"mimetype": _ODF + "text", "content.xml": odt}, ("mimetype",)),
    }
