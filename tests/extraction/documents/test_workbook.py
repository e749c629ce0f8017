"""Shown values of an xlsx, and the parts beside its cells."""

import io
import zipfile

import pytest

from larmspider.extraction.documents import parts
from larmspider.items import Page
from larmspider.urls.media_types import OOXML
from tests.support.documents.corpus import zipped
from tests.support.documents.packages import (
    NAMES,
    R,
    S,
    cell,
    lines,
    outcome,
    rels,
    renamed,
    sheet,
    xlsx,
)

XLSX = OOXML + "spreadsheetml.sheet"


def read(body: bytes) -> Page:
    page = parts.read(XLSX, body, "http://h/a", None)
    assert page.unread == ""
    return page


def unzipped(body: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def row(*cells: str) -> str:
    return f'<row r="1">{"".join(cells)}</row>'


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("dd.mm.yyyy", "45357", "2024-03-06 06.03.2024"),
        ("14", "45357", "2024-03-06 06.03.2024 3/6/2024"),
        ("00000000", "47115", "47115 00047115"),
        ("0.0%", "0.195", "0.195 19.5%"),
        ("10", "0.195", "0.195 19.50%"),
        ('#,##0.00 "€"', "1234.5", "1234.5 1,234.50 €"),
        ("General", "42", "42"),
        ("0", "42", "42"),
        ("General", "0.30000000000000004", "0.3"),
        ("0.00", "words", "words"),
    ],
)
def test_a_cell_is_found_as_it_is_shown(code, value, text):
    rows = row(cell("B1", "left"), cell("D1", value, 1), cell("E1", "right"))
    assert read(xlsx(rows, code)).text == f"List left {text} right"


@pytest.mark.parametrize(
    "rows",
    [
        "<row><c s='1'><v>47115</v></c></row>",
        '<row r="1"><c s="1" r="A1"><f>1+1</f><v>47115</v></c></row>',
        '<row r="1"><c r="A1" t="n" s="1"><f t="shared"/> <v>47115</v></c></row>',
        '<row r="1"><c r="A1" s="1" t="str"><v>x</v></c><c r="B1" s="1"><v>47115</v></c></row>',
    ],
)
def test_cells_are_written_in_many_ways(rows):
    assert "00047115" in read(xlsx(rows, "00000000")).text


COMMENT = (
    f'<comments xmlns="{S}"><authors><author>Nobody</author><author>tc=1</author></authors>'
    '<commentList><comment ref="A1" authorId="{}"><text><r><t>found</t></r></text></comment>'
    "</commentList></comments>"
)
THREADED = (
    '<ThreadedComments xmlns="http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments">'
    '<threadedComment personId="Nobody"><text>found</text></threadedComment></ThreadedComments>'
)
DRAWING = (
    f"<d:wsDr{NAMES}"
    ' xmlns:d="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing">'
    f"<d:sp><d:txBody>{lines('found')}</d:txBody></d:sp></d:wsDr>"
)
VML = (
    f"<xml{NAMES}><v:shape><v:textbox><div><font>found</font><br></div></v:textbox></v:shape></xml>"
)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("comments", COMMENT.format(0)),
        ("threadedComment", THREADED),
        ("drawing", DRAWING),
        ("vmlDrawing", VML),
    ],
)
def test_what_lies_beside_the_cells_is_text(kind, content):
    related = [("k", kind, "../any.xml")]
    assert read(xlsx("", more=related, extra={"xl/any.xml": content})).text == "List found"


def test_an_escaped_end_of_a_line_is_none_of_its_words():
    comment = COMMENT.format(0).replace("found", "one_x000D_\ntwo _x005F_x000D_ _x00e4_ a_xadef_b")
    after = "<headerFooter><oddHeader>&amp;Lover_x000A_view</oddHeader></headerFooter>"
    related = [("k", "comments", "../c.xml")]
    page = read(xlsx("", after=after, more=related, extra={"xl/c.xml": comment}))
    assert page.text == "List over view one two _x000D_ _x00e4_ a_xadef_b"


def test_a_threaded_comment_stands_once():
    related = [("k", "comments", "../c.xml"), ("t", "threadedComment", "../t.xml")]
    extra = {"xl/c.xml": COMMENT.format(1), "xl/t.xml": THREADED}
    assert read(xlsx("", more=related, extra=extra)).text == "List found"


def test_a_chart_of_a_drawing_is_text():
    chart = f"<c:chartSpace{NAMES}>{lines('Sales')}</c:chartSpace>"
    extra = {
        "xl/drawings/d.xml": DRAWING,
        "xl/drawings/_rels/d.xml.rels": rels(("c", "chart", "../c.xml")),
        "xl/c.xml": chart,
    }
    body = xlsx("", more=[("d", "drawing", "../drawings/d.xml")], extra=extra)
    assert read(body).text == "List found Sales"


def test_head_and_foot_are_text_without_their_codes():
    after = (
        '<headerFooter><oddHeader>&amp;LLeft&amp;C&amp;"Arial,Bold"&amp;12Head &amp;&amp; more'
        "&amp;RPage &amp;P of &amp;N</oddHeader><firstFooter>&amp;KFF0000Foot</firstFooter>"
        "</headerFooter>"
    )
    assert read(xlsx("", after=after)).text == "List Left Head & more Page of Foot"


def test_a_sheet_that_is_a_chart_is_read():
    chart = f"<c:chartSpace{NAMES}>{lines('Sales')}</c:chartSpace>"
    head = "<headerFooter><oddHeader>Head</oddHeader></headerFooter>"
    extra = {
        "xl/_rels/workbook.xml.rels": rels(("s1", "chartsheet", "chartsheets/any.xml")),
        "xl/chartsheets/any.xml": f'<chartsheet xmlns="{S}">{head}</chartsheet>',
        "xl/chartsheets/_rels/any.xml.rels": rels(("d", "drawing", "d.xml")),
        "xl/chartsheets/d.xml": DRAWING,
        "xl/chartsheets/_rels/d.xml.rels": rels(("c", "chart", "c.xml")),
        "xl/chartsheets/c.xml": chart,
    }
    assert read(xlsx("", extra=extra)).text == "List Head found Sales"


def test_a_link_of_a_formula_is_a_link():
    formula = '<c r="A1" t="str"><f>HYPERLINK("http://h/a?b&amp;c","the way")</f><v>the way</v></c>'
    assert [link.url for link in read(xlsx(row(formula))).links] == ["http://h/a?b&c"]


CELL = row(cell("A1", "found"))


@pytest.mark.parametrize(
    "body",
    [
        xlsx(CELL, main="content/book.xml"),
        renamed(xlsx(CELL), change=lambda name: name.replace("/", "\\")),
        renamed(xlsx(CELL), {"xl/worksheets/sheet1.xml": "XL/Worksheets/SHEET1.xml"}),
        xlsx(
            "",
            extra={
                "xl/_rels/workbook.xml.rels": rels(("s1", "worksheet", "/any/place.xml")),
                "any/place.xml": sheet(CELL),
            },
        ),
        xlsx(CELL, extra={"_rels/.rels": ""}),
        xlsx(CELL, extra={"xl/_rels/workbook.xml.rels": ""}),
    ],
)
def test_sheets_are_found_whatever_their_names(body):
    assert read(body).text == "List found"


def test_sheets_are_in_the_order_of_the_workbook():
    listed = "".join(f'<sheet name="S{n}" sheetId="{n}" r:id="s{n}"/>' for n in (2, 1, 3))
    extra = {
        "xl/workbook.xml": f'<workbook xmlns="{S}" xmlns:r="{R}">{listed}</workbook>',
        "xl/_rels/workbook.xml.rels": rels(
            *[(f"s{n}", "worksheet", f"worksheets/any{n}.xml") for n in (1, 2, 3)]
        ),
        **{f"xl/worksheets/any{n}.xml": sheet(row(cell("A1", f"cell{n}"))) for n in (1, 2, 3)},
    }
    assert read(xlsx("", extra=extra)).text == "S2 cell2 S1 cell1 S3 cell3"


def test_a_missing_or_damaged_sheet_costs_the_others_nothing():
    listed = "".join(f'<sheet name="S{n}" sheetId="{n}" r:id="s{n}"/>' for n in (1, 2))
    extra = {
        "xl/workbook.xml": f'<workbook xmlns="{S}" xmlns:r="{R}">{listed}</workbook>',
        "xl/_rels/workbook.xml.rels": rels(("s2", "worksheet", "worksheets/sheet1.xml")),
    }
    page = parts.read(XLSX, xlsx(CELL, extra=extra), "http://h/a", None)
    assert (page.text, page.unread) == ("S1 S2 found", "damaged: a sheet is missing")


def test_a_picture_that_is_damaged_is_no_damage_of_the_text():
    body = xlsx(CELL, extra={"xl/media/image1.png": b"picture" * 99})
    at = body.rindex(b"xl/media/image1.png", 0, body.rindex(b"PK\x01\x02")) + len(
        b"xl/media/image1.png"
    )
    broken = body[:at] + b"\xff\xff" + body[at + 2 :]
    assert read(broken).text == "List found"


def test_a_repeated_opening_takes_no_time():
    for inside in (' s="1"' * 20_000, "<f>HYPERLINK(" * 5_000, "f " * 50_000 + "HYPERLINK("):
        assert outcome(XLSX, xlsx(inside, "dd.mm.yyyy")) in ("", "damaged")


def test_an_embedded_document_is_a_part():
    inner = xlsx(row(cell("A1", "inner")))
    extra = {"xl/embeddings/Inner.xlsx": inner}
    page = read(xlsx(CELL, more=[("p", "package", "../embeddings/Inner.xlsx")], extra=extra))
    (part,) = page.parts
    assert (page.text, part.name, part.text) == (
        "List found",
        "xl/embeddings/Inner.xlsx",
        "List inner",
    )


def test_cells_far_apart_are_read(monkeypatch) -> None:
    """Each cell between the first and the last takes memory of calamine."""
    monkeypatch.setattr("larmspider.extraction.documents.office.workbook._MAX_AREA", 1_000)
    rows = (
        f'<row r="1">{cell("A1", "first")}</row><row r="2">{cell("XFD2", "45357", 1)}</row>'
        f'<row r="9000">{cell("B9000", "stray")}{cell("ZZ9000", "last")}</row>'
    )
    assert read(xlsx(rows, "dd.mm.yyyy")).text.split() == (
        ["List", "first", "2024-03-06", "stray", "last", "06.03.2024"]
    )


def test_parts_in_utf_16_are_read() -> None:
    """ECMA-376-2 8.1.4."""
    strings = f'<sst xmlns="{S}"><si><t>Größe</t></si></sst>'
    listed = [("s1", "worksheet", "worksheets/sheet1.xml"), ("s3", "sharedStrings", "s.xml")]
    after = "<headerFooter><oddHeader>&amp;Lheader</oddHeader></headerFooter>"
    body = xlsx(
        '<row r="1"><c r="A1" t="s"><v>0</v></c></row>',
        after=after,
        extra={"xl/_rels/workbook.xml.rels": rels(*listed), "xl/s.xml": strings},
    )
    wide = {
        name: f'<?xml version="1.0" encoding="UTF-16"?>{data.decode()}'.encode("utf-16")
        for name, data in unzipped(body).items()
    }
    assert read(zipped(wide)).text == "List Größe header"
