"""PDFs by reportlab, Chromium and groff, and 7z archives: by programs other than LibreOffice.

    for made in files(Path("/tmp/x"), {"pdf"}):
        made.format, made.name, made.body, made.text

The words are those of the source that pdftotext shows, and those beside the pages that it does not
show (forms, notes, the outline). What is not installed (``pip install reportlab``, ``chromium``,
``groff``, ``7z``) is left out, and a line says so.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.valid_documents.archives import members
from benchmarks.valid_documents.made import Made
from benchmarks.valid_documents.sentences import SENTENCES
from benchmarks.valid_documents.words import Words, words_of

FORMATS = {"pdf", "7z"}
_TIMEOUT = 120  # seconds for one file
_SHOWN = (
    "german",
    "french",
    "polish",
    "czech",
    "turkish",
    "nordic",
    "greek",
    "russian",
    "ukrainian",
)
"""Scripts that DejaVu, reportlab's fonts here, and Chromium's have."""


def files(folder: Path, wanted: set[str]) -> Iterator[Made]:
    """``wanted``: formats, all if empty."""
    if (not wanted or "pdf" in wanted) and not shutil.which("pdftotext"):
        print("pdftotext is not installed: PDF files are left out", file=sys.stderr)
    elif not wanted or "pdf" in wanted:
        yield from _by("reportlab", _is_importable("reportlab"), _reportlab)
        yield from _by("chromium", shutil.which("chromium"), lambda: _chromium(folder))
        yield from _by("groff", shutil.which("groff"), _groff)
    if not wanted or "7z" in wanted:
        yield from _by("7z", shutil.which("7z"), lambda: _sevenzip(folder))


def _by(program: str, is_there: object, make: Callable[[], Iterator[Made]]) -> Iterator[Made]:
    if is_there:
        yield from make()
    else:
        print(f"{program} is not installed: its files are left out", file=sys.stderr)


def _is_importable(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def _made(name: str, body: bytes, words: Words, beside: str = "") -> Made:
    """``beside``: words that pdftotext does not show."""
    done = subprocess.run(["pdftotext", "-", "-"], input=body, capture_output=True, check=True)
    shown = words_of(done.stdout.decode())
    found = [word for word in words_of(" ".join(words.all)) if word in shown]
    return Made("pdf", name, body, f"{' '.join(found)} {beside}")


# reportlab


def _reportlab() -> Iterator[Made]:
    from reportlab.lib.pagesizes import A4, landscape
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont
    from reportlab.pdfgen.canvas import Canvas

    pdfmetrics.registerFont(TTFont("D", "DejaVuSans.ttf"))
    for name, draw in _DRAWN.items():
        words, out = Words(f"reportlab {name}"), io.BytesIO()
        options = _OPTIONS.get(name, {})
        if name == "encrypted":
            from reportlab.lib.pdfencrypt import StandardEncryption

            options = {"encrypt": StandardEncryption("", "owner", canPrint=0)}
        size = landscape(A4) if name == "landscape" else A4
        canvas = Canvas(out, pagesize=size, **options)
        canvas.setFont("D", 12)
        beside = draw(canvas, words) or ""
        canvas.showPage()
        canvas.save()
        yield _made(f"reportlab-{name}.pdf", out.getvalue(), words, beside)
    for name in ("paragraphs", "table", "columns", "toc"):
        words, out = Words(f"platypus {name}"), io.BytesIO()
        _platypus(name, out, words)
        yield _made(f"platypus-{name}.pdf", out.getvalue(), words)


def _lines(canvas: Any, words: Words, scripts: tuple[str, ...] = _SHOWN) -> None:
    for at, script in enumerate(scripts):
        canvas.drawString(60, 560 - 20 * at, words(script, 5))


def _text_object(canvas: Any, words: Words) -> None:
    text = canvas.beginText(60, 780)
    text.setFont("Helvetica", 11)
    text.setCharSpace(1.5)
    text.textLine(words())
    text.setCharSpace(0)
    text.setWordSpace(9)
    text.textLine(words())
    text.setWordSpace(0)
    text.setHorizScale(60)
    text.textLine(words())
    text.setHorizScale(100)
    text.setTextRenderMode(1)
    text.textLine(words())
    canvas.drawText(text)


def _notes(canvas: Any, words: Words) -> None:
    text = canvas.beginText(60, 780)
    text.setFont("Helvetica", 11)
    for number in range(1, 6):
        text.textOut(words())
        text.setRise(4)
        text.setFont("Helvetica", 7)
        text.textOut(str(number))
        text.setRise(0)
        text.setFont("Helvetica", 11)
        text.textLine(f" {words()}")
    canvas.drawText(text)


def _turned(canvas: Any, words: Words) -> None:
    _lines(canvas, words, _SHOWN[:3])
    for angle, x in ((90, 100), (270, 300), (45, 350), (30, 150)):
        canvas.saveState()
        canvas.translate(x, 300)
        canvas.rotate(angle)
        canvas.setFont("Helvetica", 12)
        canvas.drawString(0, 0, words())
        canvas.drawString(0, -16, words())
        canvas.restoreState()


def _pairs(canvas: Any, words: Words) -> None:
    """Each letter by itself, as programs for typesetting write them."""
    from reportlab.pdfbase.pdfmetrics import stringWidth

    for line in range(8):
        x = 60.0
        for char in words():
            canvas.drawString(x, 780 - 20 * line, char)
            x += stringWidth(char, "D", 12) if char != " " else 4.5


def _form(canvas: Any, words: Words) -> str:
    _lines(canvas, words, _SHOWN[:2])
    value, note, mark = (Words(f"beside {one}")() for one in ("value", "note", "mark"))
    canvas.acroForm.textfield(name="a", value=value, x=60, y=500, width=400, height=30)
    canvas.textAnnotation(note, Rect=[60, 300, 80, 320])
    canvas.bookmarkPage("k")
    canvas.addOutlineEntry(mark, "k", 0)
    canvas.linkURL("http://h.example/a", (60, 760, 200, 800))
    return f"{value} {note} {mark}"


def _pages(canvas: Any, words: Words) -> None:
    for _ in range(5):
        canvas.setFont("D", 12)
        _lines(canvas, words, _SHOWN[:4])
        canvas.showPage()
    canvas.setFont("D", 12)


def _columns_drawn(canvas: Any, words: Words) -> None:
    for line in range(20):
        canvas.drawString(60, 780 - 18 * line, words(count=3))
        canvas.drawString(320, 780 - 18 * line, words(count=3))


def _invisible(canvas: Any, words: Words) -> None:
    """As a scan with its text behind the picture."""
    text = canvas.beginText(60, 780)
    text.setFont("Helvetica", 11)
    text.setTextRenderMode(3)
    for _ in range(6):
        text.textLine(words())
    canvas.drawText(text)


_DRAWN: dict[str, Callable[[Any, Words], str | None]] = {
    "lines": _lines, "text": _text_object, "notes": _notes, "turned": _turned, "letters": _pairs,
    "form": _form, "pages": _pages, "columns": _columns_drawn, "invisible": _invisible,
    "encrypted": _lines, "landscape": _lines, "plain": _lines,
}  # fmt: skip
_OPTIONS: dict[str, dict[str, object]] = {
    "plain": {"pageCompression": 0},
    "pages": {"invariant": 1},
}


def _platypus(name: str, out: io.BytesIO, words: Words) -> None:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import (
        BaseDocTemplate,
        Frame,
        PageTemplate,
        Paragraph,
        SimpleDocTemplate,
        Table,
    )

    style = getSampleStyleSheet()["BodyText"]
    story: list[Any] = [Paragraph(words(), getSampleStyleSheet()["Title"])]
    if name == "table":
        rows = [[words(count=2), Paragraph(words(count=6), style), "42.5"] for _ in range(20)]
        story.append(Table(rows, colWidths=[160, 120, 60]))
    for number in range(12):
        inside = f"<b>{words()}</b> {words()}<super>{number}</super> <font size=7>{words()}</font>"
        style.alignment = number % 5 if number % 5 != 3 else 4
        story.append(Paragraph(f"{inside} {words(count=40)}", style))
    if name == "columns":
        document = BaseDocTemplate(out)
        frames = [Frame(40 + 260 * at, 40, 240, 750) for at in range(2)]
        document.addPageTemplates([PageTemplate(frames=frames)])
        document.build(story)
    else:
        SimpleDocTemplate(out, title=words(count=2)).build(story)


# Chromium


def _chromium(folder: Path) -> Iterator[Made]:
    place = folder / "chromium"
    place.mkdir(parents=True, exist_ok=True)
    for name, page in _PAGES.items():
        words = Words(f"chromium {name}")
        source, done = place / f"{name}.html", place / f"{name}.pdf"
        markup = f"<!DOCTYPE html><meta charset=utf-8><title>{words(count=2)}</title>{page(words)}"
        if not done.exists() or source.read_text("utf-8") != markup:
            source.write_text(markup, "utf-8")
            command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu"]
            command += [f"--user-data-dir={folder}/chromium-profile", f"--print-to-pdf={done}"]
            command += ["--no-pdf-header-footer", source.as_uri()]
            subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT)
        yield _made(f"chromium-{name}.pdf", done.read_bytes(), words)


def _each(words: Words, tag: str, count: int = 4) -> str:
    return "".join(f"<{tag}>{words(script, count)}</{tag.split()[0]}>" for script in _SHOWN)


def _sentences(words: Words) -> str:
    text = " ".join(SENTENCES[one] for one in ("german", "french", "polish", "czech", "russian"))
    words.all += text.split()
    return f"<p style='text-align:justify;hyphens:auto;width:9cm' lang=de>{text}</p>"


_PAGES: dict[str, Callable[[Words], str]] = {
    "scripts": lambda words: _each(words, "p", 12),
    "right-to-left": lambda words: f"<p dir=rtl>{words('arabic', 9)}<p dir=rtl>{words('hebrew', 9)}",
    "georgian": lambda words: f"<p>{words('georgian', 9)}<p>{words('armenian', 9)}",
    "table": lambda words: "<table border=1>" + "".join(
        f"<tr><td>{words()}<td>{words(count=1)}<td>{words()}" for _ in range(20)) + "</table>",
    "tight": lambda words: "<table style='border-collapse:collapse'>" + "".join(
        "<tr>" + "".join(f"<td style='padding:0'>{words(count=1)}" for _ in range(5))
        for _ in range(20)) + "</table>",
    "columns": lambda words: f"<div style='columns:3'>{_each(words, 'p', 20)}</div>",
    "notes": lambda words: "".join(
        f"<p>{words()}<sup>{at}</sup> {words()}, {words(count=1)}<sup><a href='#n'>{at}</a></sup>"
        for at in range(1, 9)) + f"<p id=n><sup>1</sup>{words()}",
    "turned": lambda words: "".join(
        f"<p>{words()}<div style='{how};width:8cm;margin:4cm'>{words()}</div>" for how in (
            "writing-mode:vertical-rl", "transform:rotate(90deg)", "transform:rotate(-45deg)")),
    "spaced": lambda words: "".join(
        f"<p style='{how}'>{words()}" for how in (
            "letter-spacing:3px", "word-spacing:12px", "text-transform:uppercase",
            "font-variant:small-caps", "font-kerning:none", "letter-spacing:-1px")),
    "sentences": _sentences,
    "lists": lambda words: f"<ol>{_each(words, 'li')}</ol><dl><dt>{words()}<dd>{words()}</dl>",
    "svg": lambda words: "<svg width=500 height=300>" + "".join(
        f"<text x={20 + 9 * at} y={30 * at + 20}>{words()}</text>" for at in range(8)) + "</svg>",
    "flex": lambda words: "<div style='display:flex;flex-wrap:wrap;gap:4px'>"
        + _each(words, "div style='width:6cm'", 6) + "</div>",
    "grid": lambda words: "<div style='display:grid;grid-template-columns:1fr 1fr 1fr'>"
        + _each(words, "span", 6) + "</div>",
    "pages": lambda words: _each(words, "p style='page-break-after:always'", 30),
    "fixed": lambda words: f"<div style='position:fixed;top:0'>{words()}</div>"
        + _each(words, "p style='page-break-after:always;padding-top:2cm'", 9),
    "pre": lambda words: f"<pre>{escape(words())}\n\t{words()}\n{words()}</pre><code>{words()}</code>",
    "form": lambda words: f"<input value='{words()}' size=60><p><textarea cols=60>{words()}"
        f"</textarea><p><select><option>{words(count=2)}</select>",
    "long": lambda words: f"<p>{words(count=3_000)}",
    "ligatures": lambda words: "<p>" + " ".join(
        put(words, f"{lead}{words(count=1)}") for lead in ("ffi", "fl", "fi", "ff", "ffl") * 6),
}  # fmt: skip


def put(words: Words, text: str) -> str:
    """``text`` in place of the last word of ``words``."""
    words.all[-1] = text
    return text


# groff


def _groff() -> Iterator[Made]:
    for name, (options, make) in _ROFF.items():
        words = Words(f"groff {name}")
        source = make(words)
        command = ["groff", "-Tpdf", "-k", "-Kutf8", *options]
        done = subprocess.run(
            command, input=source.encode(), capture_output=True, check=True, timeout=_TIMEOUT
        )
        yield _made(f"groff-{name}.pdf", done.stdout, words)


_LATIN_1 = ("ascii", "german", "french", "nordic")
_PAR = "\n.LP\n"


def _paragraphs(words: Words, count: int = 60) -> str:
    return "".join(f"{_PAR}{words(script, count)}" for script in _LATIN_1)


def _table_rows(words: Words) -> str:
    rows = "\n".join(f"{words(count=2)}\t{words('german', 2)}\t42.5" for _ in range(15))
    return f".TS\nallbox;\nl l n.\n{rows}\n.TE"


def _footnoted(words: Words) -> str:
    return "".join(
        f"{_PAR}{words(count=20)}\\**\n.FS\n{words()}\n.FE\n{words(count=20)}" for _ in range(6)
    )


_ROFF: dict[str, tuple[tuple[str, ...], Callable[[Words], str]]] = {
    "plain": (("-ms",), _paragraphs),
    "heads": (("-ms",), lambda w: f".TL\n{w()}\n.AU\n{w()}\n.NH\n{w()}{_paragraphs(w)}\n.SH\n{w()}"),
    "columns": (("-ms",), lambda w: f".2C{_paragraphs(w, 120)}"),
    "notes": (("-ms",), _footnoted),
    "table": (("-ms", "-t"), _table_rows),
    "long-table": (("-ms", "-t"), lambda w: _paragraphs(w) + "\n" + _table_rows(w)),
    "formula": (("-ms", "-e"), lambda w: f"{_PAR}{w()}\n.EQ\nx sup 2 + {w(count=1)} over y\n.EN\n{w()}"),
    "man": (("-man",), lambda w: f".TH X 1\n.SH {w()}\n{w()}\n.TP\n.B {w()}\n{w()}\n.IP \\(bu 4\n{w()}"),
    "mdoc": (("-mdoc",), lambda w: f".Dd today\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd {w()}\n.Sh S\n{w()}"),
    "me": (("-me",), lambda w: f".pp\n{w(count=50)}\n.(q\n{w()}\n.)q\n.pp\n{w('german', 50)}"),
    "mm": (("-mm",), lambda w: f".H 1 \"{w()}\"\n.P\n{w(count=50)}\n.BL\n.LI\n{w()}\n.LE"),
    "lists": (("-ms",), lambda w: "".join(f"\n.IP \\(bu\n{w('french', 20)}" for _ in range(9))),
    "fonts": (("-ms",), lambda w: f"{_PAR}\\fB{w()}\\fP \\fI{w()}\\fP \\f(CW{w()}\\fP \\s+8{w()}\\s0"),
    "narrow": (("-ms",), lambda w: f".nr LL 5c{_paragraphs(w, 80)}"),
    "raised": (("-ms",), lambda w: "".join(f"{_PAR}{w()}\\u\\s-3{n}\\s0\\d {w()}" for n in range(9))),
    "nofill": (("-ms",), lambda w: f".DS L\n{w()}\n\t{w()}\n{w()}\n.DE"),
    "landscape": (("-ms", "-P-l"), _paragraphs),
}  # fmt: skip


# 7z


def _sevenzip(folder: Path) -> Iterator[Made]:
    for number, options in enumerate(_SEVENZIP):
        words = Words(f"7z {number}")
        place = folder / "7z" / str(number)
        shutil.rmtree(place, ignore_errors=True)
        for name, data in members(words).items():
            path = place / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_with_types(data) if name.endswith(("docx", "xlsx")) else data)
        command = ["7z", "a", "-bd", *options, str(place / "x.7z"), "."]
        subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT, cwd=place / "in")
        yield Made("7z", f"{number}.7z", (place / "x.7z").read_bytes(), " ".join(words.all))


def _with_types(data: bytes) -> bytes:
    """A document of Office with the types of its parts, which POI insists on (ECMA-376-2 M1.14)."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        overrides = "".join(
            f'<Override PartName="/{name}" ContentType="{_PARTS}.{kind}+xml"/>'
            for name, kind in _KINDS.items()
            if name in old.namelist()
        )
        new.writestr("[Content_Types].xml", _TYPES.format(overrides))
        for name in old.namelist():
            if name != "[Content_Types].xml":
                new.writestr(name, old.read(name))
    return out.getvalue()


_PARTS = "application/vnd.openxmlformats-officedocument"
_KINDS = {
    "word/document.xml": "wordprocessingml.document.main",
    "xl/workbook.xml": "spreadsheetml.sheet.main",
    "xl/worksheets/sheet1.xml": "spreadsheetml.worksheet",
    "xl/styles.xml": "spreadsheetml.styles",
    "xl/sharedStrings.xml": "spreadsheetml.sharedStrings",
}
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default '
    'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>{}</Types>'
)
_SEVENZIP = (
    *((f"-m0={method}",) for method in ("LZMA", "LZMA2", "PPMd", "BZip2", "Deflate", "Copy")),
    *(("-ms=off", f"-m0={method}") for method in ("LZMA", "LZMA2", "BZip2")),
    *((f"-mx={level}",) for level in (0, 1, 9)),
    *(("-mhc=off",), ("-m0=Delta:2", "-m1=LZMA"), ("-m0=BCJ", "-m1=LZMA2"), ("-mtc=on", "-mta=on")),
)
