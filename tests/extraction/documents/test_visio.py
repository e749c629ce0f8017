"""Drawings of Visio 2013 and later (MS-VSDX): what is shown is found, by relationships."""

from __future__ import annotations

import pytest

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.containers import document_type
from larmspider.items import Page
from tests.support.documents.corpus import SAMPLES, overwritten, vsdx
from tests.support.documents.packages import outcome

VISIO = "application/vnd.ms-visio.drawing"
NAMES = 'xmlns="http://schemas.microsoft.com/office/visio/2012/main"'


def read(body: bytes) -> Page:
    return parts.read(VISIO, body, "http://h/a.vsdx", None)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ("<Shape><Text><cp IX='0'/>pump<pp IX='0'/> one\n</Text></Shape>", "pump one"),
        ("<Shape><Text>at <fld IX='0'>9.5 bar</fld></Text></Shape>", "at 9.5 bar"),
        ("<Shape><Text>a</Text></Shape><Shape><Text>b</Text></Shape>", "a b"),
        ("<Shape><Shapes><Shape><Text>within</Text></Shape></Shapes></Shape>", "within"),
        (
            "<Shape><Section N='Property'><Row N='Tag'><Cell N='Label' V='Asset'/>"
            "<Cell N='Value' V='P-101' U='STR'/></Row><Row N='W'><Cell N='Value' V='0.25'/></Row>"
            "</Section></Shape>",
            "Asset P-101",
        ),
        ("<Shape><Section N='Geometry'><Row><Cell N='X' V='wide'/></Row></Section></Shape>", ""),
    ],
)
def test_the_words_of_a_shape(shapes, text):
    assert read(vsdx(shapes)).text == f"Plan {text}".strip()


def test_names_of_pages_masters_and_comments_are_read_once():
    related = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="{0}" Type="http://schemas.microsoft.com/visio/2010/relationships/{0}"'
        ' Target="{1}"/></Relationships>'
    )
    body = vsdx(
        "<Shape Master='2'/><Shape Master='2'><Text>own</Text></Shape>",
        "<Page Name='Ground floor'/><Page Name='Roof'/>",
        {
            "visio/pages/_rels/page1.xml.rels": related.format("master", "../m.xml").encode(),
            "visio/m.xml": f"<MasterContents {NAMES}><Shapes><Shape><Text>valve</Text></Shape>"
            "</Shapes></MasterContents>".encode(),
            "visio/_rels/document.xml.rels": related.format("comments", "comments.xml")
            .replace(
                "</Relationships>",
                '<Relationship Id="p" Type="http://schemas.microsoft.com/visio/2010/relationships/'
                'pages" Target="pages/pages.xml"/></Relationships>',
            )
            .encode(),
            "visio/comments.xml": f"<Comments {NAMES}><CommentList><CommentEntry AuthorID='1'>"
            "check this</CommentEntry></CommentList></Comments>".encode(),
        },
    )
    text = read(body).text
    assert sorted(text.split()) == ["Ground", "Roof", "check", "floor", "own", "this", "valve"]


def test_a_hyperlink_is_a_link_with_its_description():
    shape = (
        "<Shape><Section N='Hyperlink'><Row><Cell N='Description' V='the pump'/>"
        "<Cell N='Address' V='http://l.example/p'/></Row><Row><Cell N='SubAddress' V='Page-2'/>"
        "</Row></Section></Shape>"
    )
    assert [(link.url, link.anchor) for link in read(vsdx(shape)).links] == [
        ("http://l.example/p", "the pump")
    ]


@pytest.mark.parametrize("kind", ["drawing", "template", "stencil", "drawing.macroEnabled"])
def test_is_known_by_its_content_type(kind):
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override'
        f' PartName="/visio/document.xml" ContentType="application/vnd.ms-visio.{kind}.main+xml"/>'
        "</Types>"
    )
    body = vsdx("", extra={"[Content_Types].xml": types.encode()})
    assert document_type(body, "plan") == VISIO


def test_parts_are_found_by_name_without_relationships():
    empty = b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"/>'
    names = ("_rels/.rels", "visio/_rels/document.xml.rels", "visio/pages/_rels/pages.xml.rels")
    body = vsdx("<Shape><Text>pump</Text></Shape>", extra=dict.fromkeys(names, empty))
    assert read(body).text == "Plan pump"


def test_a_damaged_drawing_ends_in_text_or_an_outcome():
    body = SAMPLES["vsdx"].body
    damaged = [body[: len(body) * tenth // 10] for tenth in range(10)]
    damaged += [overwritten(body, seed) for seed in range(20)]
    for one in damaged:
        assert outcome(VISIO, one) in ("", "damaged", "no-text", "too-large")


@pytest.mark.parametrize(("depth", "text"), [(80, "Plan deepest"), (5_000, "Plan")])
def test_shapes_deep_in_each_other(depth, text):
    deep = "<Shapes><Shape>" * depth + "<Text>deepest</Text>" + "</Shape></Shapes>" * depth
    assert read(vsdx(f"<Shape>{deep}</Shape>")).text == text
