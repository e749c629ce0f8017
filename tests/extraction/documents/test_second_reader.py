"""Tika and tesseract, where they are asked for: what they find, and errors where they are not."""

import shutil
from importlib.util import find_spec

import pypdfium2 as pdfium
import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.extraction import process
from larmspider.extraction.process import Readers
from larmspider.extraction.process_child import Helpers
from tests.support.documents import corpus


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


def test_by_default_there_is_neither():
    assert helpers() == Helpers("", "", 0.0)


@pytest.mark.acceptance
@pytest.mark.skipif(find_spec("iscc_tika") is None, reason="the extra tika is not installed")
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
