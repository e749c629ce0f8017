"""Documents in documents of Office are parts of these."""

import struct

import pytest

from larmspider.extraction.documents import parts
from larmspider.items import Page
from larmspider.urls.media_types import OOXML
from tests.support.documents.corpus import zipped
from tests.support.documents.ole_file import ole
from tests.support.documents.packages import cell, docx, lines, para, pptx, rels, xlsx

DOCX, PPTX = OOXML + "wordprocessingml.document", OOXML + "presentationml.presentation"
INNER = xlsx(f"<row r='1'>{cell('A1', 'inner')}</row>")


def holding(target: str, name: str, data: bytes, kind: str = "package") -> bytes:
    return docx(para("outer"), more=[("p", kind, target)], extra={name: data})


def found(page: Page) -> list[tuple[str, str, str]]:
    return [(part.name, part.text, part.unread) for part in page.parts]


def native(name: str, data: bytes) -> bytes:
    label = name.encode() + b"\0"
    path = b"C:\\" + label
    stream = b"\x02\0" + label + path + b"\0\0\x03\0" + struct.pack("<I", len(path)) + path
    stream += struct.pack("<I", len(data)) + data
    return struct.pack("<I", len(stream)) + stream


@pytest.mark.parametrize(
    ("name", "data", "shown"),
    [
        ("word/embeddings/a.xlsx", INNER, ("word/embeddings/a.xlsx", "List inner")),
        ("word/any.bin", ole({"Package": INNER}), ("word/any.bin", "List inner")),
        (
            "word/embeddings/oleObject1.bin",
            ole({"\x01Ole10Native": native("notes.txt", b"inner text")}),
            ("word/embeddings/oleObject1.bin/notes.txt", "inner text"),
        ),
    ],
)
def test_what_is_embedded_is_a_part(name, data, shown):
    page = parts.read(DOCX, holding(f"/{name}", name, data), "http://h/a", None)
    assert page.text == "outer"
    assert [one[:2] for one in found(page)] == [shown]
    assert parts.member(DOCX, holding(f"/{name}", name, data), "a", shown[0])


def test_what_a_header_or_a_chart_holds_is_a_part():
    chart = {
        "ppt/charts/c.xml": "<c/>",
        "ppt/charts/_rels/c.xml.rels": rels(("p", "package", "../embeddings/b.xlsx")),
        "ppt/embeddings/b.xlsx": INNER,
    }
    body = pptx([lines("x"), lines("y")], [("c", "chart", "../charts/c.xml")], chart)
    page = parts.read(PPTX, body, "http://h/a", None)
    assert found(page) == [("ppt/embeddings/b.xlsx", "List inner", "")]


def test_a_part_that_cannot_be_read_is_no_outcome_of_a_document_with_text():
    body = holding("o.bin", "word/o.bin", ole({"Equation Native": b"x"}), "oleObject")
    page = parts.read(DOCX, body, "http://h/a", None)
    assert (page.text, page.unread) == ("outer", "")
    assert page.parts[0].unread.startswith("no-reader")


def test_documents_in_documents_are_read_three_deep():
    body = docx(para("level0"))
    for level in range(1, 6):
        body = docx(
            para(f"level{level}"),
            more=[("p", "package", "in.docx")],
            extra={"word/in.docx": body},
        )
    page = parts.read(DOCX, body, "http://h/a", None)
    assert [part.text for part in page.parts] == ["level4", "level3", "level2"]
    assert page.unread.startswith("too-large: documents in documents are read 3 levels deep")


def test_a_document_without_text_in_an_archive_has_an_outcome():
    page = parts.read("application/zip", zipped({"a.docx": docx("")}), "http://h/a", None)
    assert page.parts[0].unread.startswith("no-text")
