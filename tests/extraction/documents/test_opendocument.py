"""OpenDocument in a zip file and in one XML file: each test is of both."""

import io
import re
import zipfile

import pytest

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.containers import document_type
from larmspider.items import Page
from larmspider.urls.media_types import FLAT_ODF, ODF
from tests.support.documents.corpus import overwritten, zipped
from tests.support.documents.ole_file import ole
from tests.support.documents.packages import ODF_NAMES, flat, opendocument, outcome, renamed


def both(body: str, kind: str = "text") -> list[Page]:
    pages = [
        parts.read(ODF + kind, opendocument(body, kind), "http://h/a", None),
        parts.read(FLAT_ODF.format(kind=kind), flat(body, kind), "http://h/a", None),
    ]
    assert [page.unread for page in pages] == ["", ""]
    return pages


NOTE = (
    '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation>'
    "<text:note-body><text:p>The note</text:p></text:note-body></text:note>"
)
COMMENT = (
    "<office:annotation><dc:creator>Author</dc:creator><dc:date>2024-01-01T00:00:00</dc:date>"
    "<text:p>The comment</text:p></office:annotation>"
)
BOX = "<draw:frame><draw:text-box><text:p>The box</text:p></draw:text-box></draw:frame>"


@pytest.mark.parametrize(
    ("paragraph", "shown"),
    [
        (f"one{NOTE}two", "one two The note"),
        (f"one{NOTE}", "one The note"),
        (NOTE.replace("footnote", "endnote") + " one", "one The note"),
        (f"one{COMMENT}two", "onetwo The comment"),
        (f"one <text:span>t{COMMENT}wo</text:span> three", "one two three The comment"),
        (f"one{BOX}two", "one two The box"),
        ("one<draw:custom-shape><text:p>The box</text:p></draw:custom-shape>", "one The box"),
        (f"one<draw:g>{BOX}{BOX}</draw:g>", "one The box The box"),
        (f"one{BOX.replace('The box', f'The{NOTE} box')}two", "one two The box The note"),
        ("one<text:s/>two<text:s text:c='9'/>three<text:tab/>four", "one two three four"),
        ("one<text:line-break/>two<text:soft-page-break/>x", "one twox"),
        ("o<text:span>n</text:span>e<text:bookmark/>s", "ones"),
        (
            "一<text:ruby><text:ruby-base>漢字</text:ruby-base><text:ruby-text>かんじ</text:ruby-text>"
            "</text:ruby>見本",
            "一漢字見本 かんじ",
        ),
        ("one<text:script>code()</text:script>", "one"),
        (
            "<math:math><math:mi>profit</math:mi><math:mo>=</math:mo><math:mi>loss</math:mi>"
            "<math:annotation>source</math:annotation></math:math>",
            "profit = loss",
        ),
    ],
)
def test_a_paragraph_is_read_as_it_is_shown(paragraph, shown):
    for page in both(f"<text:p>{paragraph}</text:p><text:p>end</text:p>"):
        assert page.text == f"{shown} end"


@pytest.mark.parametrize(
    ("position", "shown"),
    [("super 58%", "word 3, x2"), ("33% 58%", "word 3, x2"), ("sub 58%", "word3, x2")],
)
def test_a_raised_number_is_no_letter_of_the_word(position, shown):
    name = "urn:oasis:names:tc:opendocument:xmlns:style:1.0"
    style = (
        f'<style:style xmlns:style="{name}" style:name="T1"><style:text-properties '
        f'style:text-position="{position}"/></style:style>'
    )
    raised = '<text:span text:style-name="T1">{}</text:span>'
    body = f"{style}<text:p>word{raised.format(3)}, x{raised.format(2)}</text:p>"
    for page in both(body):
        assert page.text == shown


def test_deleted_text_is_no_text():
    deleted = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>gone</text:p>"
        "</text:deletion></text:changed-region></text:tracked-changes>"
    )
    for page in both(f"{deleted}<text:p>kept</text:p>"):
        assert page.text == "kept"
    for page in both(
        deleted.replace("text:", "table:").replace("table:p", "text:p"), "spreadsheet"
    ):
        assert "gone" not in page.text


@pytest.mark.parametrize(
    ("attributes", "shown", "text"),
    [
        ('office:date-value="2024-03-06"', "06.03.2024", "06.03.2024 2024-03-06"),
        ('office:value="0.195"', "19.5%", "19.5% 0.195"),
        ('office:value="42"', "42", "42"),
        ("", "plain", "plain"),
    ],
)
def test_a_cell_has_its_value_beside_what_it_shows(attributes, shown, text):
    cell = f"<table:table-cell {attributes}><text:p>{shown}</text:p></table:table-cell>"
    row = f"<table:table-row>{cell}</table:table-row>"
    for page in both(f"<table:table>{row}</table:table>", "spreadsheet"):
        assert page.text == text
    empty = row.replace(f"<text:p>{shown}</text:p>", "")
    for page in both(f"<table:table>{empty}</table:table>", "spreadsheet"):
        assert page.text == (text.split()[-1] if attributes else "")


def test_names_of_sheets_are_text():
    table = '<table:table table:name="Sheet">{}</table:table>'.format
    for page in both(table("<table:table-row/>"), "spreadsheet"):
        assert page.text == "Sheet"


def test_a_comment_of_a_cell_is_apart():
    cell = f"<table:table-cell>{COMMENT}<text:p>cell</text:p></table:table-cell>"
    for page in both(f"<table:table><table:table-row>{cell}</table:table-row></table:table>"):
        assert sorted(page.text.split()) == ["The", "cell", "comment"]


def test_links_have_their_text():
    linked = '<text:a xlink:href="http://h/a">the <text:span>way</text:span></text:a>'
    section = '<text:section><text:section-source xlink:href="http://h/b"/></text:section>'
    boxed = BOX.replace("The box", linked.replace("h/a", "h/c"))
    for page in both(f"<text:p>{linked}{boxed}</text:p>{section}"):
        found = {(link.url, link.anchor) for link in page.links}
        assert found == {
            ("http://h/a", "the way"),
            ("http://h/b", ""),
            ("http://h/c", "the way"),
        }


def test_footers_of_slides_are_text():
    for page in both(
        "<presentation:footer-decl>The foot</presentation:footer-decl>", "presentation"
    ):
        assert page.text == "The foot"


def test_one_xml_file_has_title_and_whole_words():
    page = both("<text:p>O<text:span>ne</text:span> word</text:p>")[1]
    assert (page.title, page.text) == ("Flat title", "One word")


MASTER = (
    "<office:master-styles><style:master-page><style:header><text:p>The head</text:p>"
    "</style:header><style:footer><text:p>The foot</text:p></style:footer></style:master-page>"
    "</office:master-styles>"
)
OBJECT = '<text:p>text<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame></text:p>'


def content(body: str) -> str:
    return f"<office:document-content{ODF_NAMES}>{body}</office:document-content>"


def test_heads_and_feet_and_objects_are_text():
    chart = content("<text:p>Chart title</text:p><draw:object xlink:href='../Object 2'/>")
    body = opendocument(
        OBJECT,
        master=MASTER,
        extra={"Object 1/content.xml": chart, "Object 2/content.xml": content(OBJECT)},
    )
    for one in (body, renamed(body, change=lambda name: name.replace("/", "\\"))):
        page = parts.read(ODF + "text", one, "http://h/a", None)
        assert page.text == "text The head The foot Chart title text"


def test_an_object_of_another_program_is_a_part():
    manifest = (
        '<manifest:manifest><manifest:file-entry manifest:full-path="Object 1"'
        ' manifest:media-type="application/vnd.sun.star.oleobject"/></manifest:manifest>'
    )
    inside = ole({"CONTENTS": b"a text of its own"})
    body = opendocument(OBJECT, manifest=manifest, extra={"Object 1": inside})
    page = parts.read(ODF + "text", body, "http://h/a", None)
    assert [(part.name, part.text) for part in page.parts] == [("Object 1", "a text of its own")]


def test_a_form_has_its_labels_and_values():
    form = (
        '<office:forms><form:form><form:fixed-text form:label="Name"/>'
        '<form:text form:current-value="Ann" form:value="before"/><form:listbox>'
        '<form:option form:label="one"/><form:option form:label="two" form:selected="true"/>'
        '</form:listbox><form:password form:current-value="secret"/></form:form></office:forms>'
    )
    number = "<text:h><text:number>1.</text:number>Head</text:h>"
    assert [page.text for page in both(form + number)] == ["Name Ann two 1. Head"] * 2


def test_a_document_that_is_encrypted_as_a_whole_says_so():
    manifest = "<manifest:manifest><manifest:encryption-data/></manifest:manifest>"
    names = {"content.xml": "encrypted-package"}
    body = renamed(opendocument("<text:p/>", manifest=manifest), names)
    assert outcome(ODF + "text", body) == "encrypted"


def test_a_damaged_part_costs_the_others_nothing():
    body = opendocument("<text:p>text</text:p>", extra={"styles.xml": "\0"})
    page = parts.read(ODF + "text", body, "http://h/a", None)
    assert (page.text, page.unread.partition(":")[0]) == ("text", "damaged")


@pytest.mark.parametrize("count", [200])
def test_many_notes_in_one_paragraph_take_no_time(count):
    pages = both(f"<text:p>one{NOTE * count}two</text:p>")
    assert all(page.text.count("note") == count for page in pages)


def test_a_cut_or_overwritten_file_ends_in_an_outcome():
    body = opendocument(f"<text:p>one{NOTE}{COMMENT}</text:p>", master=MASTER)
    for damaged in [
        *(body[: len(body) * part // 10] for part in range(1, 10)),
        *(overwritten(body, seed, number) for seed in range(3) for number in (5, 200)),
    ]:
        assert outcome(ODF + "text", damaged) in ("", "damaged", "no-reader", "encrypted")


def test_a_database_is_read_but_for_its_rows():
    names = f"{ODF_NAMES} xmlns:db='urn:oasis:names:tc:opendocument:xmlns:database:1.0'"
    content = (
        f"<office:document-content{names}><office:body><office:database><db:queries>"
        "<db:query db:name='Late ships' db:command='SELECT ship'/></db:queries></office:database>"
        "</office:body></office:document-content>"
    )
    form = opendocument("<text:p>Which ship</text:p>")
    with zipfile.ZipFile(io.BytesIO(form)) as archive:
        form_content = archive.read("content.xml")
    body = zipped(
        {
            "mimetype": ODF + "base",
            "content.xml": content,
            "forms/Obj11/content.xml": form_content,
            "database/data": bytes(range(256)),
        }
    )
    mime = document_type(body, "ships.odb", "application/octet-stream")
    page = parts.read(mime, body, "http://h/ships.odb", None)
    assert (mime, page.text) == (ODF + "base", "Late ships SELECT ship Which ship")


def old(body: bytes) -> bytes:
    """``body`` with the namespaces of OpenOffice.org 1."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    return zipped(
        {
            name: re.sub(r"urn:oasis:names:tc:opendocument:xmlns:(\w+):1.0", OLD, text)
            for name, text in files.items()
        }
    )


OLD = r"http://openoffice.org/2000/\1"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<text:h>Head</text:h><text:p>one<text:tab/>two</text:p>", "Head one two"),
        (
            "<text:p>word<text:footnote><text:footnote-citation>1</text:footnote-citation>"
            "<text:footnote-body><text:p>note</text:p></text:footnote-body></text:footnote>s</text:p>",
            "word s note",
        ),
        ("<text:p>a<draw:text-box><text:p>box</text:p></draw:text-box>b</text:p>", "a b box"),
        (
            "<table:table table:name='S'><table:table-row><table:table-cell table:value='2'>"
            "<text:p>cell</text:p></table:table-cell></table:table-row></table:table>",
            "cell",
        ),
    ],
)
def test_files_of_openoffice_1_are_read(body, text):
    made = old(opendocument(body))
    page = parts.read(document_type(made, "a.sxw"), made, "http://h/a.sxw", None)
    assert page.text.split() == text.split()
