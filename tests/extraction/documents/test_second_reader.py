"""Tika and tesseract: their results, when they are called, and errors without them."""

import shutil
import struct
from importlib.util import find_spec

import pypdfium2 as pdfium
import pytest
from scrapy.settings import Settings

from larmspider import settings as defaults
from larmspider.errors import ConfigError
from larmspider.extraction.documents import parts, tika
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.ole import NEEDS_ANOTHER
from larmspider.extraction.documents.reading import Unread
from larmspider.extraction.processes import process
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.processes.process_child import PDF, Helpers
from larmspider.items import Page
from larmspider.urls.media_types import type_by_name
from tests.support.documents import corpus, packages

HAS_TIKA = find_spec("iscc_tika") is not None


def helpers(**changed: object) -> Helpers:
    return process.helpers_from_settings(Settings({"LARM_OCR_SECS": 60.0, **changed}))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"LARM_SECOND_READER": "antiword"}, "LARM_SECOND_READER=antiword: expected"),
        ({"LARM_OCR": "deu", "LARM_OCR_SECS": "soon"}, "LARM_OCR_SECS=soon: expected"),
        ({"LARM_OCR": "klingon"}, "LARM_OCR=klingon: expected languages of tesseract .*klingon is"),
        ({"LARM_OCR": "eng+"}, "LARM_OCR=eng[+]: expected languages"),
    ],
)
def test_refuses_what_is_not_there(monkeypatch, settings, message):
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/echo")  # it lists no language
    with pytest.raises(ConfigError, match=message):
        helpers(**settings)


def test_names_what_is_to_be_installed(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="tesseract is not installed"):
        helpers(LARM_OCR="deu")
    monkeypatch.setattr(process, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'larmspider\[tika\]'"):
        helpers(LARM_SECOND_READER="tika")


def test_by_default_there_is_tika_where_it_is_installed(monkeypatch):
    default = defaults.LARM_SECOND_READER
    assert helpers(LARM_SECOND_READER=default) == Helpers("tika" if HAS_TIKA else "", "", 0.0)
    monkeypatch.setattr(process, "find_spec", lambda name: None)
    assert helpers(LARM_SECOND_READER=default) == helpers(LARM_SECOND_READER="") == Helpers()


needs_tika = pytest.mark.skipif(not HAS_TIKA, reason="iscc-tika is not installed")
XLS, DOC = "application/vnd.ms-excel", "application/msword"
PPT = "application/vnd.ms-powerpoint"


def excel4(text: bytes) -> bytes:
    """A sheet of Excel 4 with one cell: BOF, LABEL and EOF (Excel file format 5.8, 5.61)."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    label = struct.pack("<HHHH", 0, 0, 0, len(text)) + text
    return record(0x409, struct.pack("<HHH", 0, 0x10, 0)) + record(0x204, label) + record(10, b"")


def first(mime: str, body: bytes) -> Page:
    """The Page of the first reader."""
    try:
        return parts.read(mime, body, "http://h/a", None)
    except Unread as refused:
        page = refused.page or Page("http://h/a")
        page.unread = refused.unread
        return page


@needs_tika
def test_excel_4_is_read_and_is_not_damaged():
    body = excel4(b"Liegeplatz")
    page = first(XLS, body)
    assert page.unread.startswith("no-reader:")
    page = tika.helped(XLS, body, page)
    assert ("Liegeplatz" in page.text.split(), page.unread) == (True, "")


@needs_tika
def test_passages_that_the_first_reader_lacks_are_added_once():
    body = excel4(b"Liegeplatz 12")
    known = tika.helped(XLS, body, Page("http://h/a", text="Liegeplatz 12 Sheet1", title="own"))
    assert (known.text, known.title) == ("Liegeplatz 12 Sheet1", "own")
    lacking = tika.helped(XLS, body, Page("http://h/a", text="Liegeplatz"))
    assert lacking.text.startswith("Liegeplatz ")
    assert lacking.text.split().count("12") == 1


@needs_tika
def test_bytes_are_not_read_as_letters():
    body = b"%XXX-1.4\n" + corpus.SAMPLES["pdf"].body[9:]
    page = tika.helped("application/pdf", body, first("application/pdf", body))
    assert (page.text, page.unread.partition(":")[0]) == ("", "damaged")


def test_two_cells_in_the_corners_of_an_old_sheet_need_the_second_reader():
    far = struct.pack("<HHHHB", 0xFFFF, 0xFF, 0, 3, 0) + b"far"
    body = corpus.xls(more=struct.pack("<HH", 0x0204, len(far)) + far)
    page = first(XLS, body)
    assert page.unread == f"no-reader: {NEEDS_ANOTHER}"
    if HAS_TIKA:
        assert {"far", "lighthouse"} <= set(tika.helped(XLS, body, page).text.split())


@needs_tika
def test_a_dbase_table_is_read():
    head = struct.pack("<B3BIHH20x", 3, 124, 1, 1, 1, 65, 11)
    field = b"QUAY".ljust(11, b"\0") + b"C" + bytes(4) + b"\x0a" + bytes(15)
    body = head + field + b"\r" + b" north     " + b"\x1a"
    assert document_type(body, "quays.dbf") == "application/x-dbf"
    page = tika.helped(
        "application/x-dbf", body, Page("http://h/a", unread=f"no-reader: {NEEDS_ANOTHER}")
    )
    assert "north" in page.text


@needs_tika
def test_the_header_of_a_sheet_is_found_behind_its_cells():
    header = b'&LLinks&C&"Arial,Bold"&12Kopfzeile&RSeite &P'
    body = corpus.xls(more=struct.pack("<HHHB", 0x14, len(header) + 3, len(header), 0) + header)
    page = first(XLS, body)
    assert "Kopfzeile" not in page.text
    cells, links = page.text, [link.url for link in page.links]
    page = tika.helped(XLS, body, page)
    assert page.text == f"{cells} Links Kopfzeile Seite"
    assert [link.url for link in page.links] == links


@pytest.mark.parametrize(
    ("mime", "unread"),
    [
        ("application/x-7z-compressed", "damaged: Tika cannot read 2 of the documents in it"),
        (DOC, ""),  # a picture of an old kind costs no words
    ],
)
def test_an_archive_says_so_if_a_document_in_it_is_not_read(monkeypatch, mime, unread):
    class Extractor:
        def extract_bytes_to_string(self, body):
            return "<html><body>words</body></html>", {tika._FAULTS: ["one", "two"]}

    monkeypatch.setattr(tika, "_extractor", Extractor)
    page = tika.helped(mime, b"7z", Page("http://h/a", unread="no-reader: nothing"))
    assert (page.text, page.unread) == ("words", unread)


@pytest.mark.parametrize(
    ("mime", "unread", "text"),
    [
        (PDF, "no-text: a scan", ""),
        (PDF, "", "text"),
        (DOC, "", "text"),
        (PDF, "encrypted: needs a password", ""),
        (XLS, "too-long: it has more than", "text"),
        ("application/zip", "damaged: the zip file cannot be read", ""),
        ("message/rfc822", "no-text: it was read", ""),
        ("image/jpeg", "binary: image/jpeg is not a document", ""),
    ],
)
def test_tika_is_not_asked_where_it_finds_nothing_more(monkeypatch, mime, unread, text):
    monkeypatch.setattr(tika, "_read", pytest.fail)
    page = Page("http://h/a", text=text, unread=unread)
    assert tika.helped(mime, b"x", page) is page


@needs_tika
@pytest.mark.parametrize(
    ("mime", "body", "outcome"),
    [
        ("image/vnd.djvu", b"AT&TFORM\0\0\0\x0cDJVUINFO\0\0\0\0", "no-reader"),
        ("application/vnd.ms-project", corpus.ole({"Props": b"x"}), "no-reader"),
        (
            "application/vnd.apple.pages",
            corpus.zipped({"Index/Document.iwa": b"x", "preview.jpg": b"x"}),
            "no-reader",
        ),
        ("application/x-msaccess", b"\0\1\0\0Standard Jet DB\0", "no-reader"),
        ("application/vnd.lotus-1-2-3", b"\0\0\2\0\6\4\6\0", "no-reader"),
        ("application/x-hwp", b"HWP Document File V3.00", "no-reader"),
        ("application/x-cpio", b"070701" + b"0" * 20, "damaged"),
        (PPT, corpus.ole({"PP40": b"x" * 5_000}), "no-reader"),
        (PPT, corpus.ole({"PowerPoint Document": b"x", "Current User": b"x" * 15}), "no-reader"),
        (DOC, b"\xdb\xa5\x2d\0" + b"\0" * 100, "no-reader"),
        (DOC, corpus.ole({"WordDocument": b"x"}), "damaged"),
        (DOC, b"\0" * 9, "damaged"),
    ],
)
def test_what_tika_does_not_read_says_so(mime, body, outcome):
    page = tika.helped(mime, body, first(mime, body))
    assert (page.text, page.unread.partition(":")[0]) == ("", outcome)


@needs_tika
@pytest.mark.parametrize("name", corpus.encrypted())
def test_what_is_encrypted_stays_so(name):
    body = corpus.encrypted()[name]
    page = first(mime := document_type(body, f"a.{name}", type_by_name(f"a.{name}")), body)
    assert page.unread.startswith("encrypted:")
    assert tika.helped(mime, body, page).unread.startswith("encrypted:")


def test_pages_of_apple_until_2009_are_known_by_their_root():
    for root, name in (("sl:document", "pages"), ("ls:document", "numbers")):
        body = corpus.zipped({"index.xml": f'<?xml version="1.0"?><{root} xmlns:sf="x"/>'})
        assert document_type(body) == f"application/vnd.apple.{name}"


@pytest.mark.acceptance
@needs_tika
def test_tika_reads_what_the_first_reader_refuses():
    body = rb"{\rtf1\ansi The secondword lighthouse\par}"
    with Readers(helpers=Helpers("tika")) as readers:
        page = readers.read_again("application/msword", body, "http://h/a.doc")
        assert ("secondword" in page.text, page.unread) == (True, "")
        broken = readers.read_again("application/msword", corpus.ole({"WordDocument": b"x"}), "")
        assert broken.unread.startswith("damaged: Tika")
        body = corpus.zipped({"a.doc": body, "b.txt": "hello"})
        page = readers.read_again("application/zip", body, "http://h/a.zip")
        assert ("secondword" in page.parts[0].text, page.parts[0].unread) == (True, "")
        locked = corpus.encrypted()["pdf"]
        unread = readers.read_again("application/pdf", locked, "http://h/").unread
        assert unread.startswith("encrypted:")


def scanned(text: str) -> bytes:
    """A PDF of two pages: one with text, one with a picture of ``text``."""
    with pdfium.PdfDocument(corpus.pdf([text])) as document:
        bitmap = document[0].render(scale=3, grayscale=True)
        size, stride, data = (bitmap.width, bitmap.height), bitmap.stride, bytes(bitmap.buffer)
    pixels = b"".join(data[at * stride : at * stride + size[0]] for at in range(size[1]))
    picture = b"<</Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceGray" % size
    picture += b"/BitsPerComponent 8/Length %d>>stream\n%b\nendstream" % (len(pixels), pixels)
    return corpus.pdf(["typed page", ""], picture=picture)


@pytest.mark.acceptance
@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_a_scanned_page_is_read():
    body = scanned("The harbour master closes at seven")
    with Readers() as readers:
        assert readers.read_again("application/pdf", body, "http://h/").text == "typed page\f"
    with Readers(helpers=helpers(LARM_OCR="eng")) as readers:
        page = readers.read_again("application/pdf", body, "http://h/")
        packed = corpus.zipped({"scan.pdf": body, "b.txt": "hello"}, stored=("scan.pdf",))
        (part, _) = readers.read_again("application/zip", packed, "http://h/a.zip").parts
    assert page.text == part.text == "typed page\fThe harbour master closes at seven"
    assert page.unread == part.unread == ""


@needs_tika
def test_a_document_without_text_does_not_become_its_markup():
    empty = packages.docx("")  # a zip file to Tika, because it lists no content types
    page = tika.helped(
        type_by_name("a.docx"), empty, Page("http://h/a", unread="no-text: it was read")
    )
    assert (page.text, page.unread) == ("", "no-text: it was read")
