"""Office files by hand, in forms that the standard allows and few programs write."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO

from benchmarks.valid_documents.made import Made
from benchmarks.valid_documents.words import ASIAN, EASTERN, LATIN, RIGHT_TO_LEFT, Words
from tests.support.documents import packages
from tests.support.documents.corpus import vsdx, zipped
from tests.support.documents.packages import OPEN, A, S, cell, lines, para, rels, word

SCRIPTS = (*LATIN, *EASTERN, *RIGHT_TO_LEFT, *ASIAN)
_Say = Callable[..., str]


def files() -> Iterator[Made]:
    for format_, makers in (("docx", _DOCX), ("pptx", _PPTX), ("xlsx", _XLSX)):
        for name, make in makers.items():
            words = Words(f"{format_} by hand {name}")
            yield Made(format_, f"{name}.{format_}", make(words), " ".join(words.all))
            for form, change in _FORMS.items():
                words = Words(f"{format_} by hand {name}")
                body = change(make(words), format_)
                if body:
                    yield Made(format_, f"{name}-{form}.{format_}", body, " ".join(words.all))
    for number, script in enumerate(SCRIPTS):
        words = Words(f"xlsb {number}")
        yield Made("xlsb", f"{number}.xlsb", _xlsb(words, script, number), " ".join(words.all))
    yield from _epubs()
    yield from _rtfs()
    yield from _xps()
    yield from _vsdxs()


# Forms of any package


def _each(body: bytes, change: Callable[[str, bytes], tuple[str, bytes]], **options: int) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(body)) as old, zipfile.ZipFile(out, "w", **options) as new:  # type: ignore[arg-type]
        for name in old.namelist():
            new.writestr(*change(name, old.read(name)))
    return out.getvalue()


def _wide(name: str, data: bytes) -> tuple[str, bytes]:
    """XML in UTF-16 (ECMA-376-2 8.1.4)."""
    if not name.endswith((".xml", ".rels")):
        return name, data
    text = data.decode()
    text = text.partition("?>")[2] if text.startswith("<?xml") else text
    return name, f'<?xml version="1.0" encoding="UTF-16"?>{text}'.encode("utf-16")


_STRICT = {
    f"{OPEN}/wordprocessingml/2006/main": "http://purl.oclc.org/ooxml/wordprocessingml/main",
    f"{OPEN}/drawingml/2006/main": "http://purl.oclc.org/ooxml/drawingml/main",
    f"{OPEN}/drawingml/2006/chart": "http://purl.oclc.org/ooxml/drawingml/chart",
    f"{OPEN}/presentationml/2006/main": "http://purl.oclc.org/ooxml/presentationml/main",
    f"{OPEN}/spreadsheetml/2006/main": "http://purl.oclc.org/ooxml/spreadsheetml/main",
    f"{OPEN}/officeDocument/2006/relationships": "http://purl.oclc.org/ooxml/officeDocument/relationships",
    f"{OPEN}/officeDocument/2006/math": "http://purl.oclc.org/ooxml/officeDocument/math",
}


def _strict(name: str, data: bytes) -> tuple[str, bytes]:
    """The namespaces of ISO/IEC 29500 Strict, as Word saves "Strict Open XML Document"."""
    for old, new in _STRICT.items():
        data = data.replace(old.encode(), new.encode())
    return name, data


def _prefixed(name: str, data: bytes) -> tuple[str, bytes]:
    """Other prefixes for the same namespaces."""
    text = data.decode()
    for prefix in ("w", "a", "p"):
        text = text.replace(f"<{prefix}:", f"<x{prefix}:").replace(f"</{prefix}:", f"</x{prefix}:")
        text = text.replace(f" {prefix}:", f" x{prefix}:").replace(
            f"xmlns:{prefix}=", f"xmlns:x{prefix}="
        )
    return name, text.encode()


_FORMS: dict[str, Callable[[bytes, str], bytes]] = {
    "stored": lambda body, _: _each(body, lambda name, data: (name, data)),
    "backslash": lambda body, _: packages.renamed(
        body, change=lambda name: name.replace("/", "\\")
    ),
    "utf-16": lambda body, _: _each(body, _wide),
    "strict": lambda body, _: _each(body, _strict),
    "prefixes": lambda body, format_: b"" if format_ == "xlsx" else _each(body, _prefixed),
}


# Word


def _docx_scripts(words: Words) -> bytes:
    return packages.docx("".join(para(words(script, 6)) for script in SCRIPTS))


def _docx_runs(words: Words) -> bytes:
    def run(inside: str) -> str:
        return f"<w:r>{inside}</w:r>"

    split = "".join(
        run(f"<w:t>{one[:2]}</w:t>") + run(f"<w:t>{one[2:]}</w:t><w:t xml:space='preserve'> </w:t>")
        for one in words(count=8).split()
    )
    soft = "".join(
        run(f"<w:t>{one[:2]}</w:t><w:softHyphen/><w:t>{one[2:]}</w:t><w:tab/>")
        for one in words(count=8).split()
    )
    broken = "<w:br/>".join(f"<w:t>{one}</w:t>" for one in words(count=8).split())
    hyphen = run("<w:noBreakHyphen/>".join(f"<w:t>{one}</w:t>" for one in words(count=4).split()))
    proof = "".join(
        f'<w:proofErr w:type="spellStart"/>{run(f"<w:t>{one}</w:t>")}<w:proofErr w:type="spellEnd"/>'
        + run("<w:lastRenderedPageBreak/><w:t xml:space='preserve'> </w:t>")
        for one in words(count=8).split()
    )
    return packages.docx(para(split) + para(soft) + para(run(broken)) + para(hyphen) + para(proof))


def _docx_nested(words: Words) -> bytes:
    def in_table(inside: str) -> str:
        return f"<w:tbl><w:tr><w:tc>{inside}</w:tc><w:tc>{para(words())}</w:tc></w:tr></w:tbl>"

    inside = para(words())
    for _ in range(5):
        inside = in_table(inside + para(words()))
    control = f"<w:sdt><w:sdtPr/><w:sdtContent>{para(words())}</w:sdtContent></w:sdt>"
    smart = f'<w:p><w:smartTag w:element="x"><w:r><w:t>{words()}</w:t></w:r></w:smartTag></w:p>'
    custom = f'<w:customXml w:element="x">{para(words())}</w:customXml>'
    inserted = f'<w:p><w:ins w:id="1"><w:r><w:t>{words()}</w:t></w:r></w:ins></w:p>'
    two_ways = f'<w:p><w:bdo w:val="rtl"><w:dir><w:r><w:t>{words("arabic")}</w:t></w:r></w:dir></w:bdo></w:p>'
    return packages.docx(inside + control + smart + custom + inserted + two_ways)


def _docx_parts(words: Words) -> bytes:
    more = [
        ("h1", "header", "kopf.xml"), ("f1", "footer", "../fuss/eins.xml"),
        ("n1", "footnotes", "noten.xml"), ("e1", "endnotes", "/word/enden.xml"),
        ("c1", "comments", "wort/c.xml"), ("g1", "glossaryDocument", "glossar/x.xml"),
    ]  # fmt: skip
    extra = {
        "word/kopf.xml": word(para(words()), "hdr"),
        "fuss/eins.xml": word(para(words()), "ftr"),
        "word/noten.xml": word(f'<w:footnote w:id="2">{para(words())}</w:footnote>', "footnotes"),
        "word/enden.xml": word(f'<w:endnote w:id="2">{para(words())}</w:endnote>', "endnotes"),
        "word/wort/c.xml": word(f'<w:comment w:id="0">{para(words())}</w:comment>', "comments"),
        "word/glossar/x.xml": word(para(Words("no")()), "glossaryDocument"),
    }
    noted = f"<w:r><w:t>{words(count=1)}</w:t><w:footnoteReference w:id='2'/></w:r><w:r><w:t>{words(count=1)}</w:t></w:r>"
    return packages.docx(para(words()) + para(noted), "word/dokument7.xml", more, extra)


def _docx_boxes(words: Words) -> bytes:
    def inside(text: str) -> str:
        return f"<w:txbxContent>{para(text)}</w:txbxContent>"

    text = words()
    new = f"<w:drawing><wps:wsp><wps:txbx>{inside(text)}</wps:txbx></wps:wsp></w:drawing>"
    old = f"<w:pict><v:shape><v:textbox>{inside(text)}</v:textbox></v:shape></w:pict>"
    both = (
        f'<w:r><mc:AlternateContent><mc:Choice Requires="wps">{new}</mc:Choice><mc:Fallback>{old}'
        "</mc:Fallback></mc:AlternateContent></w:r>"
    )
    art = f'<w:r><w:pict><v:shape><v:textpath string="{words()}"/></v:shape></w:pict></w:r>'
    return packages.docx(
        para(words()) + para(both) + para(art) + para(f"<w:r><w:t>{words()}</w:t></w:r>")
    )


def _docx_fields(words: Words) -> bytes:
    def field(code: str, *result: str) -> str:
        shown = "".join(f"<w:r><w:t>{one}</w:t></w:r>" for one in result)
        separate = '<w:r><w:fldChar w:fldCharType="separate"/></w:r>' if result else ""
        return (
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText xml:space="preserve"> '
            f'{code} </w:instrText></w:r>{separate}{shown}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
        )

    button = field(f"MACROBUTTON NoMacro {words()}")
    formula = field(rf"EQ \f({words(count=1)};{words(count=1)})")
    simple = f'<w:fldSimple w:instr="REF x"><w:r><w:t>{words()}</w:t></w:r></w:fldSimple>'
    link = field(r'HYPERLINK "http://h.example/a" \o "tip"', words())
    inside = "</w:instrText></w:r>" + field("PAGE", "1") + '<w:r><w:instrText xml:space="preserve">'
    nested = field(f'IF {inside} = 1 "x"', words())
    return packages.docx("".join(map(para, (button, formula, simple, link, nested))))


def _docx_links(words: Words) -> bytes:
    link = f'<w:hyperlink r:id="l1"><w:r><w:t>{words()}</w:t></w:r></w:hyperlink>'
    math = f"<m:oMath><m:f><m:num><m:r><m:t>{words(count=1)}</m:t></m:r></m:num><m:den><m:r><m:t>{words(count=1)}</m:t></m:r></m:den></m:f></m:oMath>"
    ruby = (
        f"<w:r><w:ruby><w:rt><w:r><w:t>{words('japanese', 1)}</w:t></w:r></w:rt><w:rubyBase><w:r>"
        f"<w:t>{words('chinese', 1)}</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    )
    symbol = f'<w:r><w:t xml:space="preserve">{words()} </w:t><w:sym w:font="Wingdings" w:char="F04A"/></w:r>'
    more = [("l1", "hyperlink", "http://h.example/a")]
    return packages.docx(para(link) + para(math) + para(ruby) + para(symbol), more=more)


_DOCX = {
    "scripts": _docx_scripts, "runs": _docx_runs, "nested": _docx_nested, "parts": _docx_parts,
    "boxes": _docx_boxes, "fields": _docx_fields, "links": _docx_links,
}  # fmt: skip


# PowerPoint


def _pptx_scripts(words: Words) -> bytes:
    return packages.pptx([lines(words(one), words(one)) for one in SCRIPTS])


def _pptx_notes(words: Words) -> bytes:
    notes = packages.slide(lines(words(), words()), "notes")
    comments = f'<p:cmLst xmlns:p="{packages.P}"><p:cm authorId="0"><p:text>{words()}</p:text></p:cm></p:cmLst>'
    more = [("n", "notesSlide", "../notesSlides/n.xml"), ("c", "comments", "../comments/c.xml")]
    extra = {"ppt/notesSlides/n.xml": notes, "ppt/comments/c.xml": comments}
    return packages.pptx([lines(words()), lines(words())], more, extra)


def _pptx_table(words: Words) -> bytes:
    rows = "".join(
        f"<a:tr><a:tc><a:txBody>{lines(words())}</a:txBody></a:tc><a:tc><a:txBody>{lines(words())}"
        "</a:txBody></a:tc></a:tr>"
        for _ in range(3)
    )
    broken = "<a:br/>".join(f"<a:r><a:t>{one}</a:t></a:r>" for one in words(count=5).split())
    field = f'<a:p><a:fld id="x" type="slidenum"><a:t>1</a:t></a:fld><a:r><a:t> {words()}</a:t></a:r></a:p>'
    split = "".join(
        f"<a:r><a:t>{one[:3]}</a:t></a:r><a:r><a:t>{one[3:]} </a:t></a:r>"
        for one in words().split()
    )
    return packages.pptx(
        [f"<a:tbl>{rows}</a:tbl>", f"<a:p>{broken}</a:p>{field}<a:p>{split}</a:p>"]
    )


def _pptx_diagram(words: Words) -> bytes:
    data = (
        f'<dgm:dataModel xmlns:dgm="{packages.DGM}" xmlns:a="{A}"><dgm:ptLst><dgm:pt><dgm:t>'
        f"{lines(words())}</dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"
    )
    chart = (
        f'<c:chartSpace xmlns:c="{packages.C}" xmlns:a="{A}"><c:chart><c:title><c:tx><c:rich>'
        f"{lines(words())}</c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser><c:tx><c:strRef>"
        f"<c:strCache><c:pt><c:v>{words()}</c:v></c:pt></c:strCache></c:strRef></c:tx></c:ser>"
        "</c:barChart></c:plotArea></c:chart></c:chartSpace>"
    )
    more = [("d", "diagramData", "../diagrams/d.xml"), ("c", "chart", "../charts/c.xml")]
    extra = {"ppt/diagrams/d.xml": data, "ppt/charts/c.xml": chart}
    return packages.pptx([lines(words())], more, extra)


_PPTX = {
    "scripts": _pptx_scripts, "notes": _pptx_notes, "table": _pptx_table, "diagram": _pptx_diagram,
}  # fmt: skip


# Excel


def _xlsx_scripts(words: Words) -> bytes:
    rows = "".join(
        f'<row r="{n}">{cell(f"A{n}", words(one))}{cell(f"C{n}", words(one))}</row>'
        for n, one in enumerate(SCRIPTS, 1)
    )
    return packages.xlsx(rows)


def _xlsx_shared(words: Words) -> bytes:
    rich = "".join(
        f"<si><r><t>{one[:3]}</t></r><r><rPr><b/></rPr><t>{one[3:]}</t></r></si>"
        for one in words(count=8).split()
    )
    spoken = f'<si><t>{words("chinese", 1)}</t><rPh sb="0" eb="1"><t>x</t></rPh></si>'
    strings = (
        f'<sst xmlns="{S}">{rich}{spoken}<si><t xml:space="preserve"> {words()} </t></si></sst>'
    )
    rows = "".join(f'<row><c t="s"><v>{n}</v></c></row>' for n in range(10))  # without references
    rows += f'<row><c t="str"><f>A1</f><v>{words()}</v></c><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c></row>'
    rows += f'<row><c t="inlineStr"><is><r><t>{words()}</t></r><r><t xml:space="preserve"> {words()}</t></r></is></c></row>'
    return _with_strings(rows, strings)


def _with_strings(rows: str, strings: str) -> bytes:
    listed = [("s1", "worksheet", "worksheets/sheet1.xml"), ("s2", "styles", "styles.xml")]
    listed.append(("s3", "sharedStrings", "texte.xml"))
    extra = {"xl/_rels/workbook.xml.rels": rels(*listed), "xl/texte.xml": strings}
    return packages.xlsx(rows, extra=extra)


def _xlsx_values(words: Words) -> bytes:
    rows = (
        f'<row r="1">{cell("A1", "45357", 1)}{cell("B1", "47115", 2)}{cell("C1", "0.195", 3)}'
        f'{cell("D1", words())}</row><row r="2">{cell("XFD2", words())}</row>'
        f'<row r="1048576" hidden="1">{cell("A1048576", words())}</row>'
    )
    after = f"<headerFooter><oddHeader>&amp;L{words()}&amp;C{words()}</oddHeader></headerFooter>"
    return packages.xlsx(rows, "dd.mm.yyyy", "00000000", "0.0%", after=after)


def _xlsx_beside(words: Words) -> bytes:
    comments = (
        f'<comments xmlns="{S}"><authors><author>x</author></authors><commentList><comment ref="A1" '
        f'authorId="0"><text><r><t>{words()}</t></r></text></comment></commentList></comments>'
    )
    drawing = (
        f'<xdr:wsDr xmlns:xdr="{OPEN}/drawingml/2006/spreadsheetDrawing" xmlns:a="{A}"><xdr:sp>'
        f"<xdr:txBody>{lines(words())}</xdr:txBody></xdr:sp></xdr:wsDr>"
    )
    more = [("c", "comments", "../comments1.xml"), ("d", "drawing", "../drawings/d.xml")]
    extra = {"xl/comments1.xml": comments, "xl/drawings/d.xml": drawing}
    row = f'<row r="1">{cell("A1", words())}</row>'
    return packages.xlsx(row, more=more, extra=extra, after='<drawing r:id="d"/>')


_XLSX = {
    "scripts": _xlsx_scripts, "shared": _xlsx_shared, "values": _xlsx_values,
    "beside": _xlsx_beside,
}  # fmt: skip


def _xlsb(words: Words, script: str, number: int) -> bytes:
    """MS-XLSB 2.1.7: records with a type and a size in seven bits a byte."""

    def record(kind: int, data: bytes = b"") -> bytes:
        head = bytes((kind,)) if kind < 128 else bytes((kind & 0x7F | 0x80, kind >> 7))
        size, out = len(data), b""
        while size > 127:
            out, size = out + bytes((size & 0x7F | 0x80,)), size >> 7
        return head + out + bytes((size,)) + data

    def wide(text: str) -> bytes:
        return struct.pack("<I", len(text)) + text.encode("utf-16-le")

    shared = [words(script) for _ in range(3)]
    strings = record(159, struct.pack("<II", 3, 3))
    strings += b"".join(record(19, b"\0" + wide(one)) for one in shared) + record(160)
    rows = record(129) + record(148, struct.pack("<IIII", 0, 9, 0, 9)) + record(145)
    for at in range(3):
        row = struct.pack("<IIHHBI", at, 0, 300, 0, 0, 0)
        rows += record(0, row)
        rows += record(7, struct.pack("<III", 0, 0, at))  # BrtCellIsst
        rows += record(6, struct.pack("<II", 1, 0) + wide(words(script)))  # BrtCellSt
        rows += record(5, struct.pack("<IId", 2, 0, 42.5 + number))  # BrtCellReal
    rows += record(146) + record(130)
    name = words(count=1)
    sheet = record(156, struct.pack("<II", 0, 1) + wide("s1") + wide(name))
    book = record(131) + record(143) + sheet + record(144) + record(132)
    types = (
        f'<Types xmlns="{OPEN}/package/2006/content-types"><Default Extension="bin" '
        'ContentType="application/vnd.ms-excel.sheet.binary.macroEnabled.main"/></Types>'
    )
    listed = [
        ("s1", "worksheet", "worksheets/sheet1.bin"),
        ("s2", "sharedStrings", "sharedStrings.bin"),
    ]
    return zipped(
        {
            "[Content_Types].xml": types,
            "_rels/.rels": rels(("r1", "officeDocument", "xl/workbook.bin")),
            "xl/workbook.bin": book,
            "xl/_rels/workbook.bin.rels": rels(*listed),
            "xl/sharedStrings.bin": strings,
            "xl/worksheets/sheet1.bin": rows,
        }
    )


def _epubs() -> Iterator[Made]:
    for number, script in enumerate(SCRIPTS):
        words = Words(f"epub {number}")
        folder = ("OPS/", "", "a b/", "EPUB/")[number % 4]
        names = [
            f"{folder}k{n} %41.xhtml" if number % 2 else f"{folder}text/k{n}.xhtml"
            for n in range(3)
        ]
        from urllib.parse import quote

        listed = "".join(
            f'<item id="i{n}" href="{quote(name.removeprefix(folder))}" media-type="application/xhtml+xml"/>'
            for n, name in enumerate(names)
        )
        order = "".join(f'<itemref idref="i{n}"/>' for n in range(3))
        package = (
            '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{words(script)}</dc:title>'
            f"<dc:creator>{words(script)}</dc:creator></metadata><manifest>{listed}</manifest>"
            f"<spine>{order}</spine></package>"
        )
        if number % 5 == 4:
            package = (
                package.replace("<dc:", "<x:")
                .replace("</dc:", "</x:")
                .replace("xmlns:dc", "xmlns:x")
            )
        chapter = (
            '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/'
            'xhtml"><head><title/><script/></head><body><a id="x"/><h1>{}</h1><p>{}<br/>{}</p><aside>{}'
            "</aside><table><tr><td>{}</td></tr></table></body></html>"
        )
        container = (
            '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            f'<rootfiles><rootfile full-path="{folder}book.opf" '
            'media-type="application/oebps-package+xml"/></rootfiles></container>'
        )
        codec = "utf-16" if number % 6 == 5 else "utf-8"
        files_ = {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            f"{folder}book.opf": package.encode(),
        }
        for name in names:
            text = chapter.format(*(words(script) for _ in range(5)))
            if codec == "utf-16":
                text = text.replace("utf-8", "utf-16")
            files_[name] = text.encode(codec)
        body = zipped(files_, ("mimetype",) if number % 3 else ())
        yield Made("epub", f"{number}.epub", body, " ".join(words.all))


_RTF_CHARSETS = {
    "german": (1252, 0), "polish": (1250, 238), "czech": (1250, 238), "russian": (1251, 204),
    "greek": (1253, 161), "turkish": (1254, 162), "hebrew": (1255, 177), "arabic": (1256, 178),
    "japanese": (932, 128), "chinese": (936, 134), "korean": (949, 129),
}  # fmt: skip


def _rtfs() -> Iterator[Made]:
    def hexed(text: str, page: int) -> str:
        return "".join(
            char
            if char.isascii()
            else "".join(f"\\'{byte:02x}" for byte in char.encode(f"cp{page}"))
            for char in text
        )

    for script, (page, number) in _RTF_CHARSETS.items():
        for by_font in (False, True):
            words = Words(f"rtf {script} {by_font}")
            declared = 1252 if by_font else page
            text = (
                rf"{{\rtf1\ansi\ansicpg{declared}\deff0{{\fonttbl{{\f0\fnil\fcharset{number} x;}}}}"
                rf"{{\info{{\title {hexed(words(script), page)}}}}}\f0 {hexed(words(script), page)}\par"
                rf"{{\footnote {hexed(words(script), page)}}}\trowd\intbl {hexed(words(script), page)}"
                rf"\cell\row{{\header {hexed(words(script), page)}}}}}"
            )
            yield Made("rtf", f"{script}-{by_font}.rtf", text.encode(), " ".join(words.all))
    for number, script in enumerate(SCRIPTS):
        words = Words(f"rtf unicode {number}")

        def unicoded(text: str) -> str:
            return "".join(
                char
                if char.isascii()
                else f"\\u{ord(char) - 65536 if ord(char) > 32767 else ord(char)}?"
                for char in text
            )

        text = (
            rf"{{\rtf1\ansi\uc1 {unicoded(words(script))}\par {{\b {unicoded(words(script))}}}"
            rf"{{\field{{\*\fldinst HYPERLINK "
            "http://h.example/"
            "}}{{\fldrslt {unicoded(words(script))}}}}}"
            rf"\par{{\*\annotation {unicoded(words(script))}}}{{\shp{{\*\shpinst{{\shptxt {unicoded(words(script))}}}}}}}}}"
        )
        yield Made("rtf", f"unicode-{number}.rtf", text.encode(), " ".join(words.all))


def _xps() -> Iterator[Made]:
    schema = "http://schemas.microsoft.com/xps/2005/06"
    for number, script in enumerate(SCRIPTS[:16]):
        words = Words(f"xps {number}")
        glyphs = "".join(
            f'<Glyphs UnicodeString="{words(script)}" OriginX="9" OriginY="{20 * n}" FontUri="/f.odttf" '
            'FontRenderingEmSize="12" Fill="#ff000000"/>'
            for n in range(1, 5)
        )
        page = f'<FixedPage xmlns="{schema}" Width="800" Height="1000" xml:lang="de">{glyphs}</FixedPage>'
        document = f'<FixedDocument xmlns="{schema}"><PageContent Source="/Pages/1.fpage"/></FixedDocument>'
        sequence = f'<FixedDocumentSequence xmlns="{schema}"><DocumentReference Source="/doc.fdoc"/></FixedDocumentSequence>'
        types = (
            f'<Types xmlns="{OPEN}/package/2006/content-types"><Default Extension="rels" ContentType="'
            'application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="fdseq" '
            'ContentType="application/vnd.ms-package.xps-fixeddocumentsequence+xml"/><Default '
            'Extension="fdoc" ContentType="application/vnd.ms-package.xps-fixeddocument+xml"/><Default '
            'Extension="fpage" ContentType="application/vnd.ms-package.xps-fixedpage+xml"/></Types>'
        )
        related = (
            f'<Relationships xmlns="{OPEN}/package/2006/relationships"><Relationship Id="r" Type="'
            f'{schema}/fixedrepresentation" Target="/FixedDocSeq.fdseq"/></Relationships>'
        )
        body = zipped(
            {
                "[Content_Types].xml": types,
                "_rels/.rels": related,
                "FixedDocSeq.fdseq": sequence,
                "doc.fdoc": document,
                "Pages/1.fpage": page,
            }
        )
        yield Made("XPS", f"{number}.xps", body, " ".join(words.all))


# vsdx


def _vsdxs() -> Iterator[Made]:
    for number, script in enumerate(SCRIPTS):
        words = Words(f"vsdx {number}")
        shapes = (
            f"<Shape><Text><cp IX='0'/>{words(script)}\n<pp IX='1'/>{words(script)}\n</Text></Shape>"
            f"<Shape><Shapes><Shape><Text>{words(script)} <fld IX='0'>{words(script)}</fld></Text>"
            f"</Shape></Shapes><Text>{words(script)}</Text></Shape><Shape><Section N='Property'>"
            f"<Row><Cell N='Label' V='{words(script)}'/><Cell N='Value' V='{words(script)}'/></Row>"
            "</Section></Shape>"
        )
        body = vsdx(shapes, f"<Page Name='{words(script)}'/>")
        if number % 2:
            body = _each(body, _wide)
        yield Made("vsdx", f"{number}.vsdx", body, " ".join(words.all))
