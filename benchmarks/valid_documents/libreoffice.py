"""Valid files that LibreOffice writes of the sources of flat.py, by each of its filters.

    for made in files(Path("/tmp/x")):       # 30 calls of soffice, some minutes
        made.format, made.name, made.body, made.text

``_LACKS`` says which places of a source a filter leaves out, as unzip or another program shows.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import NamedTuple

from benchmarks.valid_documents import flat
from benchmarks.valid_documents.made import Made
from benchmarks.valid_documents.words import plain, words_of

_TIMEOUT = 600  # seconds for one filter


class _Filter(NamedTuple):
    """``format``: the row of the table; ``how``: extension, filter and options of soffice."""

    format: str
    how: str
    name: str = ""


_PDF_A = ':{"SelectPdfVersion":{"type":"long","value":"2"}}'
_TAGGED = (
    ':{"UseTaggedPDF":{"type":"boolean","value":"true"},"ExportNotes":{"type":"boolean",'
    '"value":"true"},"ExportFormFields":{"type":"boolean","value":"true"},'
    '"SelectPdfVersion":{"type":"long","value":"16"}}'
)
_FILTERS: dict[str, tuple[_Filter, ...]] = {
    "fodt": (
        _Filter("doc", "doc:MS Word 97"),
        _Filter("docx", "docx:MS Word 2007 XML"),
        _Filter("docx", "docx:Office Open XML Text", "iso"),
        _Filter("dotx", "dotx:MS Word 2007 XML Template"),
        _Filter("docm", "docm:MS Word 2007 XML VBA"),
        _Filter("odt", "odt:writer8"),
        _Filter("odt", "ott:writer8_template", "template"),
        _Filter("rtf", "rtf:Rich Text Format"),
        _Filter("pdf", "pdf:writer_pdf_Export"),
        _Filter("pdf", "pdf:writer_pdf_Export" + _PDF_A, "a"),
        _Filter("pdf", "pdf:writer_pdf_Export" + _TAGGED, "tagged"),
        _Filter("epub", "epub:EPUB"),
        _Filter("html", "html:HTML (StarWriter)"),
        _Filter("xhtml", "xhtml:XHTML Writer File"),
        _Filter("text", "txt:Text (encoded):UTF8"),
        _Filter("fodt", "fodt:OpenDocument Text Flat XML"),
        _Filter("Word 2003 XML", "xml:MS Word 2003 XML"),
    ),
    "fods": (
        _Filter("xls", "xls:MS Excel 97"),
        _Filter("xls", "xls:MS Excel 95", "95"),
        _Filter("xlsx", "xlsx:Calc MS Excel 2007 XML"),
        _Filter("xlsx", "xltx:Calc MS Excel 2007 XML Template", "template"),
        _Filter("xlsm", "xlsm:Calc MS Excel 2007 VBA XML"),
        _Filter("ods", "ods:calc8"),
        _Filter(
            "csv", "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1"
        ),
        _Filter("html", "html:HTML (StarCalc)", "sheet"),
        _Filter("fods", "fods:OpenDocument Spreadsheet Flat XML"),
        _Filter("pdf", "pdf:calc_pdf_Export", "sheet"),
        _Filter("Excel 2003 XML", "xml:MS Excel 2003 XML"),
    ),
    "fodp": (
        _Filter("ppt", "ppt:MS PowerPoint 97"),
        _Filter("pptx", "pptx:Impress MS PowerPoint 2007 XML"),
        _Filter("pptx", "ppsx:Impress MS PowerPoint 2007 XML AutoPlay", "show"),
        _Filter("pptm", "pptm:Impress MS PowerPoint 2007 XML VBA"),
        _Filter("odp", "odp:impress8"),
        _Filter("fodp", "fodp:OpenDocument Presentation Flat XML"),
        _Filter("pdf", "pdf:impress_pdf_Export", "slides"),
    ),
    "fodg": (
        _Filter("odg", "odg:draw8"),
        _Filter("fodg", "fodg:OpenDocument Drawing Flat XML"),
        _Filter("pdf", "pdf:draw_pdf_Export", "drawing"),
    ),
}
_LACKS: dict[str, set[str]] = {
    "doc": {"formula", "variable"},
    "rtf": {"formula", "variable"},
    "xls": {"result"},
    "xhtml": {"ruby"},
    "Word 2003 XML": {"tab"},
}
"""Places that a filter does not write as text: a formula is a picture with an object of its own, the
result of one that gives a text is 0. Tabs and ruby are left out, which joins the words around them."""


def is_there() -> bool:
    return shutil.which("soffice") is not None


def files(folder: Path, wanted: set[str]) -> Iterator[Made]:
    """``wanted``: formats, all if empty. What lies in ``folder`` from a run before is used."""
    sources = [*flat.texts(), *flat.sheets(), *flat.slides(), *flat.drawings()]
    for extension, filters in _FILTERS.items():
        of_kind = [source for source in sources if source.extension == extension]
        for chosen in filters:
            if wanted and chosen.format not in wanted:
                continue
            try:
                written = _converted(folder, of_kind, chosen)
            except subprocess.SubprocessError as error:
                print(f"{chosen.how} is left out: {error}"[:200], file=sys.stderr)
                continue
            for source in of_kind:
                yield from _made(source, chosen, written)


def _converted(folder: Path, sources: list[flat.Source], chosen: _Filter) -> Path:
    done = folder / f"{chosen.format}-{chosen.name}"
    paths = [_written(folder, one) for one in sources]
    waiting = [path for path in paths if not _is_done(path, done)]
    if waiting:
        program = ["soffice", "--headless", f"-env:UserInstallation=file://{folder}/profile"]
        command = [*program, "--convert-to", chosen.how, "--outdir", str(done)]
        command += map(str, waiting)
        subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT)
    return done


def _written(folder: Path, source: flat.Source) -> Path:
    """The source as a file, which is left alone where it has not changed."""
    path = folder / "sources" / source.extension / f"{source.name}.{source.extension}"
    if not path.exists() or path.read_text("utf-8") != source.xml:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.xml, "utf-8")
    return path


def _is_done(source: Path, folder: Path) -> bool:
    """Whether a file in ``folder`` is of this source, as it is now."""
    found = [*folder.glob(f"{source.stem}.*"), *folder.glob(f"{source.stem}-*")]
    return any(path.stat().st_mtime > source.stat().st_mtime for path in found)


def _made(source: flat.Source, chosen: _Filter, written: Path) -> Iterator[Made]:
    extension = chosen.how.partition(":")[0]
    lacks = {"deleted", "index", *_LACKS.get(chosen.format, ())}
    said = " ".join(words for place, words in source.said.items() if place not in lacks)
    for path in sorted(written.glob(f"{source.name}.{extension}")) or sorted(
        written.glob(f"{source.name}-*.{extension}")
    ):
        seen = view(path)
        text = said if seen is None else " ".join(filter(seen.__contains__, words_of(said)))
        yield Made(chosen.format, f"{chosen.name}-{path.name}".strip("-"), path.read_bytes(), text)


def view(path: Path) -> str | set[str] | None:
    """The text that unzip or an editor shows, as `words_of` has it, or the words that pdftotext
    shows, or a text has; None if no such program knows the format."""
    if path.suffix in (".doc", ".xls", ".ppt", ".rtf"):
        return None
    if path.suffix == ".pdf":
        done = subprocess.run(["pdftotext", str(path), "-"], capture_output=True, check=True)
        return words_of(done.stdout.decode())
    if path.suffix == ".txt":
        return words_of(path.read_text("utf-8-sig"))
    if not zipfile.is_zipfile(path):
        return _without_tags(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if name.endswith(_MARKUP)]
        return "\n".join(_without_tags(archive.read(name)) for name in members)


_MARKUP = (".xml", ".rels", ".xhtml", ".html", ".opf", ".vml")
_COMMENT, _TAG = re.compile(r"(?s)<!--.*?-->"), re.compile(r"<[^>]*>")
_ATTRIBUTE = re.compile(r'"([^"]*)"')


def _without_tags(data: bytes) -> str:
    """Names of sheets and the like are attributes."""
    text = _COMMENT.sub("", data.decode("utf-8", "replace"))
    values = " ".join(value for tag in _TAG.findall(text) for value in _ATTRIBUTE.findall(tag))
    return f"{without_tags(data)} {plain(unescape(values))}"


def without_tags(data: bytes) -> str:
    """The text between the tags, as `words_of` has it."""
    text = _COMMENT.sub("", data.decode("utf-8", "replace"))
    return plain(unescape(_TAG.sub("", text)))
