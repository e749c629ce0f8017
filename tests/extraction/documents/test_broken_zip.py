"""Documents in zip files that are cut off or overwritten: what is left of them is read."""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile
from collections.abc import Callable

import pytest

from larmspider.extraction.documents import broken_zip, parts, tika
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.reading import CUT_OFF, Unread
from larmspider.items import Page
from tests.support.documents import corpus
from tests.support.documents.corpus import SAMPLES

LINES = [f"line {number} of the harbour" for number in range(9_000)]
OF_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx() -> bytes:
    """A docx of 9,000 paragraphs."""
    paragraphs = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in LINES)
    document = f"<w:document xmlns:w='{OF_WORD}'><w:body>{paragraphs}</w:body></w:document>"
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": document})


def zipped(files: dict[str, str], *, streamed: bool = False) -> bytes:
    out = io.BytesIO()
    if streamed:  # sizes stand behind the members
        out.seekable = lambda: False  # type: ignore[method-assign]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def read(body: bytes, name: str) -> Page:
    mime = document_type(body, name)
    try:
        return parts.read(mime, body, f"http://h/{name}", None)
    except Unread as refused:
        page = refused.page or Page("")
        page.unread = refused.unread
        return page


def overwritten(body: bytes, at: int) -> bytes:
    return body[:at] + b"\xff" * 8 + body[at + 8 :]


@pytest.mark.parametrize(
    ("damaged", "least"),
    [
        (lambda body: body[: len(body) // 2], 4_000),
        (lambda body: body[:-30], 9_000),
        (lambda body: overwritten(body, len(body) // 2), 3_000),
        (lambda body: overwritten(body, body.rfind(b"PK\1\2")), 9_000),
    ],
    ids=["cut in half", "without the end of its list", "overwritten", "with a damaged list"],
)
def test_text_before_the_damage_is_read(damaged: Callable[[bytes], bytes], least: int) -> None:
    page = read(damaged(docx()), "a.docx")
    assert len(set(LINES) & set(page.text.replace("harbour ", "harbour\n").split("\n"))) >= least
    assert page.unread.startswith("damaged: ")


@pytest.mark.parametrize("name", ["odt", "pptx", "xlsx", "epub", "zip"])
def test_a_file_without_its_list_says_so_and_is_read(name: str) -> None:
    sample = SAMPLES[name]
    whole, cut = (
        read(body, f"a.{name}")
        for body in (sample.body, sample.body[: sample.body.rfind(b"PK\1\2")])
    )
    assert cut.text.split()[:3] == whole.text.split()[:3] != []
    assert cut.unread == "damaged: the zip file cannot be read: File is not a zip file"


@pytest.mark.parametrize("streamed", [False, True])
def test_members_before_the_cut_are_parts(streamed: bool) -> None:
    files = {f"{number}.txt": f"member {number} " * 50 for number in range(10)}
    body = zipped(files, streamed=streamed)
    page = read(body[: body.find(b"7.txt")], "a.zip")
    assert [part.text.partition(" member")[0] for part in page.parts] == [
        f"member {number}" for number in range(7)
    ]
    assert page.unread.startswith("damaged: ")


def test_bytes_that_are_lost_cost_only_the_member_around_them() -> None:
    files = {f"{number}.txt": f"member {number} " * 50 for number in range(10)}
    body = zipped(files)
    at = body.find(b"PK\3\4", body.find(b"5.txt")) - 12
    page = read(body[:at] + body[at + 7 :], "a.zip")
    whole = [part.name for part in page.parts if part.text == files[part.name].strip()]
    assert whole == [name for name in files if name != "5.txt"]


DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
CELLS = "<row r='1'><c r='A1' t='s'><v>0</v></c><c r='B1'><v>4711</v></c></row>"
FILES = {
    "pptx": {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": "<Relationships><Relationship Type='x/officeDocument' "
        "Target='ppt/presentation.xml'/></Relationships>",
        "ppt/presentation.xml": "<presentation/>" + " " * 99,
        "ppt/slides/slide1.xml": f"<sld xmlns:a='{DRAWING}'><a:p><a:r><a:t>harbour</a:t></a:r>"
        "</a:p></sld>",
    },
    "xlsx": {
        "[Content_Types].xml": "<Types/>",
        "xl/workbook.xml": f"<workbook xmlns='{SHEET}'><sheets><sheet name='a'/></sheets>"
        "</workbook>",
        "xl/sharedStrings.xml": f"<sst xmlns='{SHEET}'><si><t>harbour</t></si></sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet xmlns='{SHEET}'><sheetData>{CELLS}</sheetData>"
        "</worksheet>",
    },
    "epub": {
        "META-INF/container.xml": "<container><rootfile full-path='a.opf'/></container>",
        "a.opf": "<package><manifest/></package>",
        "1.xhtml": "<html xmlns='http://www.w3.org/1999/xhtml'><body>harbour</body></html>",
    },
    "odt": {
        "META-INF/manifest.xml": "<manifest/>" + " " * 99,
        "content.xml": f"<document-content xmlns:o='{OFFICE}' xmlns:t='{TEXT}'><o:body><o:text>"
        "<t:p>harbour</t:p></o:text></o:body></document-content>",
        "meta.xml": "<document-meta/>" + " " * 99,
    },
}
"""Files with one word in one part."""


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("pptx", "ppt/presentation.xml"),
        ("xlsx", "xl/workbook.xml"),
        ("epub", "META-INF/container.xml"),
        ("epub", "a.opf"),
        ("odt", "META-INF/manifest.xml"),
        ("odt", "meta.xml"),
    ],
)
def test_a_damaged_part_that_leads_to_others_costs_none_of_them(name: str, part: str) -> None:
    body = zipped(FILES[name])
    page = read(overwritten(body, body.find(part.encode()) + len(part)), f"a.{name}")
    assert "harbour" in page.text
    assert page.unread.startswith("damaged: ")


def test_strings_of_a_damaged_sheet_are_read() -> None:
    body = zipped(FILES["xlsx"])
    page = read(overwritten(body, body.find(b"xl/worksheets") + 24), "a.xlsx")
    assert "harbour" in page.text
    assert page.unread.startswith("damaged: ")


def test_the_list_of_a_docx_inside_is_not_the_list_of_a_cut_zip() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.txt", "one")
        archive.writestr("b.docx", SAMPLES["docx"].body)
        archive.writestr("c.txt", "three " * 99)
    body = out.getvalue()
    page = read(body[: body.index(b"c.txt") + 99], "a.zip")
    assert [part.name for part in page.parts] == ["a.txt", "b.docx", "c.txt"]
    assert SAMPLES["docx"].phrase in page.parts[1].text
    assert page.unread.startswith("damaged: ")


@pytest.mark.parametrize(("name", "pack"), [("bz2", bz2.compress), ("xz", lzma.compress)])
def test_a_damaged_stream_behind_a_whole_one_is_not_the_end(
    name: str, pack: Callable[[bytes], bytes]
) -> None:
    body = pack(b"one ") + pack(b"two")
    assert read(body + bytes(512), f"a.txt.{name}").parts[0].text == "one two"
    (part,) = read(pack(b"one ") + b"?" + pack(b"two")[1:], f"a.txt.{name}").parts
    assert part.text == "one"
    assert part.unread.startswith("damaged: ")


def test_zeros_behind_a_mail_are_no_part_of_it() -> None:
    head = b"Subject: x\r\nMIME-Version: 1.0\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    assert "harbour" in read(head + b"aGFyYm91cg==" + bytes(99), "a.eml").text
    page = read(SAMPLES["tnef"].body + bytes(99), "winmail.dat")
    assert (SAMPLES["tnef"].phrase in page.text, page.unread) == (True, "")


def test_a_list_is_made_of_heads_that_lie() -> None:
    body = zipped({"a.txt": "one", "b.txt": "two"})
    at = body.find(b"PK\3\4", 1)
    lying = body[: at + 18] + b"\xff\xff\xff\x7f" * 2 + body[at + 26 : body.find(b"PK\1\2")]
    page = read(lying, "a.zip")
    assert [part.text for part in page.parts] == ["one", "two"]
    with pytest.raises(zipfile.BadZipFile):
        broken_zip.with_list(b"PK\3\4 no member")


def test_a_second_reader_leaves_a_broken_file_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tika, "_read", lambda *_: (Page("", text="half of it"), iter(())))
    first = Page("", unread="damaged: the zip file cannot be read")
    mime = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert tika.helped(mime, corpus.zipped({"a": "b"})[:-9], first).unread == first.unread
    assert tika.helped(mime, corpus.zipped({"a": "b"}), first).unread == ""
    cut = Page("", unread=f"damaged: {CUT_OFF}")
    assert tika.helped("application/pdf", b"%PDF-1.4", cut).unread == cut.unread
    assert tika.helped(mime, corpus.ole({"Book": b"x"}), first).unread == ""
