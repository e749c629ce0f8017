"""Which parts of an Office file are read, by relationships (ECMA-376-2), and what leads nowhere."""

import pytest

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.reading import Unread
from larmspider.items import Page
from larmspider.urls.media_types import OOXML
from tests.support.documents.corpus import overwritten
from tests.support.documents.packages import (
    NAMES,
    W,
    docx,
    lines,
    outcome,
    para,
    pptx,
    rels,
    renamed,
    slide,
    word,
    xlsx,
)

DOCX, PPTX = OOXML + "wordprocessingml.document", OOXML + "presentationml.presentation"


def read(body: bytes, mime: str = DOCX) -> Page:
    return parts.read(mime, body, "http://h/a", None)


def upper(name: str) -> str:
    return name.upper() if name != "[Content_Types].xml" else name


HEADED = docx(
    para("text"),
    "word/document2.xml",
    [("h", "header", "kopf.xml")],
    {"word/kopf.xml": word(para("header"), "hdr")},
)


@pytest.mark.parametrize(
    "body",
    [
        HEADED,
        renamed(HEADED, change=lambda name: name.replace("/", "\\")),
        renamed(HEADED, change=lambda name: f"/{name}"),
        renamed(HEADED, change=upper),
        docx(
            para("text"),
            "content/main.xml",
            [("h", "header", "/other%20place/../other%20place/h.xml")],
            {"other place/h.xml": word(para("header"), "hdr")},
        ),
        docx(
            para("text"),
            more=[("h", "header", "parts\\h.xml")],
            extra={"word/parts/h.xml": word(para("header"), "hdr")},
        ),
        docx(
            para("text"),
            more=[("h", "header", "word/h.xml")],
            extra={"word/h.xml": word(para("header"), "hdr")},
        ),
        docx(para("text"), extra={"_rels/.rels": "", "word/header1.xml": word(para("header"))}),
        docx(
            para("text"),
            extra={"word/_rels/document.xml.rels": "", "word/header1.xml": word(para("header"))},
        ),
    ],
)
def test_a_part_is_found_whatever_its_name(body):
    page = read(body)
    assert (page.text, page.unread) == ("text header", "")


def test_a_part_that_nothing_leads_to_is_no_text():
    body = docx(
        para("text"),
        more=[("f", "footer", "f.xml"), ("x", "header", "missing.xml")],
        extra={"word/f.xml": word(para("foot")), "word/header1.xml": word(para("old"))},
    )
    page = read(body)
    assert (page.text, page.unread) == ("text foot", "")


def test_a_strict_document_is_read():
    content = word(para("text", "<w:r><w:br/><w:t>more</w:t></w:r>"))
    strict = content.replace(W, "http://purl.oclc.org/ooxml/wordprocessingml/main")
    assert read(docx("", extra={"word/document.xml": strict})).text == "text more"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("footnotes", word(f'<w:footnote w:id="1">{para("found")}</w:footnote>', "footnotes")),
        ("endnotes", word(f'<w:endnote w:id="1">{para("found")}</w:endnote>', "endnotes")),
        (
            "comments",
            word(f'<w:comment w:author="Nobody">{para("found")}</w:comment>', "comments"),
        ),
        ("header", word(para("found"), "hdr")),
        ("footer", word(para("found"), "ftr")),
        (
            "diagramData",
            f"<dgm:dataModel{NAMES}><dgm:t>{lines('found')}</dgm:t></dgm:dataModel>",
        ),
        ("chart", f"<c:chartSpace{NAMES}>{lines('found')}</c:chartSpace>"),
        ("chartUserShapes", f"<c:userShapes{NAMES}>{lines('found')}</c:userShapes>"),
        ("notesSlide", slide(lines("found"), "notes")),
        (
            "comments",
            f"<p:cmLst{NAMES}><p:cm><p:text>found</p:text></p:cm></p:cmLst>",
        ),
        (
            "comments",
            f'<x:cmLst{NAMES} xmlns:x="http://schemas.microsoft.com/office/powerpoint/2018/8/main">'
            f"<x:cm><x:txBody>{lines('found')}</x:txBody></x:cm></x:cmLst>",
        ),
    ],
)
def test_a_related_part_is_read(kind, content):
    more = [("k", kind, "../parts/any.xml")]
    texts = [
        read(docx(para("x"), more=more, extra={"parts/any.xml": content})).text,
        read(
            pptx([lines("x")], [("k", kind, "../../parts/any.xml")], {"parts/any.xml": content}),
            PPTX,
        ).text,
    ]
    assert texts == ["x found", "x found"]


def test_slides_are_in_the_order_of_the_presentation():
    notes = ("n", "notesSlide", "../notes.xml")
    body = pptx(
        [lines("first"), lines("second"), lines("third")],
        [notes, ("s", "slide", "slide1.xml")],
        {"ppt/notes.xml": slide(lines("noted"), "notes")},
    )
    assert read(body, PPTX).text == "first noted second third"


def test_parts_that_lead_to_each_other_are_read_once():
    related = {
        "word/_rels/h.xml.rels": rels(("a", "header", "h.xml"), ("b", "footer", "document.xml"))
    }
    body = docx(
        para("text"),
        more=[("h", "header", "h.xml"), ("i", "header", "h.xml"), ("d", "chart", "document.xml")],
        extra={"word/h.xml": word(para("header"), "hdr"), **related},
    )
    page = read(body)
    assert (page.text, page.parts) == ("text header", [])


def test_what_lies_outside_is_a_link_and_is_not_opened():
    body = docx(
        para("text"),
        more=[
            ("a", "header", "http://h/header.xml"),
            ("b", "package", "file:///etc/passwd"),
            ("c", "aFChunk", "http://h/chunk.html"),
        ],
        extra={},
    )
    page = read(body)
    assert page.text == "text"
    assert [link.url for link in page.links] == [
        "http://h/header.xml",
        "file:///etc/passwd",
        "http://h/chunk.html",
    ]


def test_a_damaged_part_costs_the_others_nothing():
    body = docx(
        para("text"),
        more=[("h", "header", "h.xml"), ("f", "footer", "f.xml")],
        extra={"word/h.xml": b"\0no xml", "word/f.xml": word(para("foot"), "ftr")},
    )
    page = read(body)
    assert (page.text, page.unread.partition(":")[0]) == ("text foot", "damaged")


# Chunks (17.17.2.1).

CHUNK = '<w:altChunk r:id="c"/>'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.html", "<html><title>t</title><body><p>chunk <a href='http://h/a'>here</a></p></body>"),
        ("c.xhtml", '<html xmlns="http://www.w3.org/1999/xhtml"><body>chunk <a href="http://h/a">here</a></body></html>'),
        ("c.rtf", r'{\rtf1\ansi chunk {\field{\*\fldinst HYPERLINK "http://h/a"}{\fldrslt here}}}'),
        ("c.txt", "chunk here"),
        ("c.docx", docx(para("chunk", "<w:r><w:br/></w:r>", "here"), more=[("x", "hyperlink", "http://h/a")])),
    ],
)  # fmt: skip
def test_a_chunk_is_text_where_it_stands(name, content):
    text = para("before") + CHUNK + para("after")
    body = docx(text, more=[("c", "aFChunk", name)], extra={f"word/{name}": content})
    page = read(body)
    assert (page.text.split(), page.unread, page.parts) == (
        ["before", "chunk", "here", "after"],
        "",
        [],
    )
    if name != "c.txt":
        assert [link.url for link in page.links] == ["http://h/a"]


def nested(depth: int) -> bytes:
    body = docx(para("innermost"))
    for level in range(depth):
        body = docx(
            para(f"level{level}") + CHUNK,
            more=[("c", "aFChunk", "c.docx")],
            extra={"word/c.docx": body},
        )
    return body


def test_chunks_in_chunks_are_read_three_deep():
    assert read(nested(3)).text == "level2 level1 level0 innermost"
    page = read(nested(4))
    assert page.text == "level3 level2 level1 level0"
    assert page.unread == "too-large: documents in documents are read 3 levels deep, not deeper"


def test_chunks_share_the_limits_of_their_document():
    blank = docx(para("x"), more=[("h", "header", "h.xml")], extra={"word/h.xml": " " * 900_000})
    names = range(20)
    body = docx(
        "".join(f'<w:altChunk r:id="c{n}"/>' for n in names),
        more=[(f"c{n}", "aFChunk", f"c{n}.docx") for n in names],
        extra={f"word/c{n}.docx": blank for n in names},
    )
    assert read(body).unread.startswith("too-large: it unpacks to more than")


def test_a_chunk_that_cannot_be_read_costs_the_others_nothing():
    chunks = '<w:altChunk r:id="c"/><w:altChunk r:id="d"/>'
    body = docx(
        para("before") + chunks + para("after"),
        more=[("c", "aFChunk", "c.docx"), ("d", "aFChunk", "d.txt")],
        extra={"word/c.docx": docx(para("lost"))[:40], "word/d.txt": "found"},
    )
    assert read(body).text == "before found after"


@pytest.mark.parametrize("body", [HEADED, nested(2), pptx([lines("x")])], ids=len)
def test_a_cut_or_overwritten_file_ends_in_an_outcome(body):
    for damaged in [
        *(body[: len(body) * part // 10] for part in range(1, 10)),
        *(overwritten(body, seed, number) for seed in range(3) for number in (5, 200)),
    ]:
        assert outcome(DOCX, damaged) in ("", "damaged", "no-reader", "encrypted")


def test_a_workbook_is_no_document_of_word():
    with pytest.raises(Unread, match="without the parts"):
        read(renamed(xlsx(""), {"xl/workbook.xml": "x.xml", "_rels/.rels": "y"}))
