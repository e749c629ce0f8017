"""Documents of Word in one XML file. test_opendocument.py has the same for OpenDocument."""

import base64
from itertools import pairwise

import pytest

from larmspider.extraction.documents import parts, reading
from tests.support.documents.packages import NAMES, W, para, rels, word

BODY = (
    "<w:body>"
    + para("<w:r><w:t>wh</w:t></w:r>", "<w:r><w:t>ole</w:t><w:br/><w:t>words</w:t></w:r>")
    + "</w:body>"
)
LINK = "http://h/a"
PACKAGE = (
    '<pkg:package xmlns:pkg="http://schemas.microsoft.com/office/2006/xmlPackage">'
    f"<pkg:part><pkg:xmlData>{rels(('r', 'hyperlink', LINK))}</pkg:xmlData></pkg:part>"
    f"<pkg:part><pkg:xmlData>{word(BODY)}</pkg:xmlData></pkg:part></pkg:package>"
)
WORD_2003 = (
    f'<w:wordDocument{NAMES}>{BODY}<w:p><w:hlink w:dest="{LINK}"/></w:p></w:wordDocument>'
).replace(W, "http://schemas.microsoft.com/office/word/2003/wordml")


@pytest.mark.parametrize("body", [PACKAGE, WORD_2003], ids=["package", "2003"])
def test_a_document_of_word_in_one_file_has_whole_words(body):
    page = parts.read("application/xml", body.encode(), "http://h/a.xml", None)
    assert (page.text, page.unread) == ("whole words", "")
    assert [link.url for link in page.links] == [LINK]


def test_a_comment_of_word_2003_is_no_part_of_the_word_behind_it():
    comment = para("<w:r><w:t>remark</w:t></w:r>")
    aml = 'xmlns:aml="http://schemas.microsoft.com/aml/2001/core"'
    inside = f"<aml:annotation {aml}><aml:content>{comment}</aml:content></aml:annotation>"
    words = para(f"<w:r><w:t>one</w:t></w:r><w:r>{inside}</w:r><w:r><w:t>two</w:t></w:r>")
    title = (
        '<o:DocumentProperties xmlns:o="urn:schemas-microsoft-com:office:office"><o:Title>Rules'
        "</o:Title><o:Author>Ada</o:Author></o:DocumentProperties>"
    )
    body = WORD_2003.replace("<w:body>", f"{title}<w:body>{words}", 1)
    page = parts.read("application/xml", body.encode(), "http://h/a.xml", None)
    assert page.text == "one remark two whole words"
    assert (page.title, page.author) == ("Rules", "Ada")


def test_a_workbook_of_excel_2003_has_names_of_sheets_whole_words_and_headers():
    body = (
        '<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet" xmlns:ss="urn:schemas-'
        'microsoft-com:office:spreadsheet" xmlns:x="urn:schemas-microsoft-com:office:excel">'
        '<Styles><Style ss:ID="a"/></Styles><Worksheet ss:Name="Berths"><Table><Row><Cell '
        'ss:HRef="http://h/b"><Data ss:Type="String">wh<B>ole</B></Data></Cell><Cell><Data>words'
        "</Data><Comment><Data>remark</Data></Comment></Cell></Row></Table><x:WorksheetOptions>"
        '<x:PageSetup><x:Header x:Data="&amp;LHead&amp;P"/></x:PageSetup></x:WorksheetOptions>'
        "</Worksheet></Workbook>"
    )
    page = parts.read("application/xml", body.encode(), "http://h/a.xml", None)
    assert (page.text, page.unread) == ("Berths whole words remark Head", "")
    assert [(link.url, link.anchor) for link in page.links] == [("http://h/b", "whole")]


def test_an_office_document_without_paragraphs_has_its_text():
    name = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    body = f'<o:document xmlns:o="{name}"><o:meta/><o:body>a text</o:body></o:document>'
    assert parts.read("application/xml", body.encode(), "http://h/a", None).text == "a text"


def test_text_behind_a_large_picture_in_base64_is_read():
    before, _, after = PACKAGE.partition("<pkg:part>")
    picture = (
        f"<pkg:part><pkg:binaryData>{'QUJD' * 2_600_000}</pkg:binaryData></pkg:part><pkg:part>"
    )
    body = (before + picture + after).encode()
    assert parts.read("application/xml", body, "http://h/a.xml", None).text == "whole words"


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("caf&eacute;s &co; &unknown; a&lt;b end", "cafés A firm a<b end"),
        ("one&nbsp;two", "one two"),
        ("one<!-- remark -->s <?pi?>two", "ones two"),
    ],
)
def test_text_behind_an_entity_or_a_comment_is_read(inside, text):
    entity = "<!DOCTYPE a SYSTEM 'a.dtd' [<!ENTITY co 'A firm'><!ENTITY f SYSTEM 'file:///a'>]>"
    body = f"{entity}<a>{inside}</a>".encode()
    assert parts.read("application/xml", body, "http://h/a.xml", None).text == text


def test_entities_in_entities_make_no_text_that_is_longer_than_the_document():
    names = [f"e{number}" for number in range(9)]
    entities = "".join(f"<!ENTITY {a} '{f'&{b};' * 9}'>" for a, b in pairwise(names))
    body = f"<!DOCTYPE a [{entities}<!ENTITY e8 '{'x' * 900}'>]><a>{'&e0;&e8;' * 900}</a>".encode()
    page = parts.read("application/xml", body, "http://h/a.xml", None)
    assert len(page.text) <= 2 * len(body)


@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_xml_that_says_utf_16_and_is_none_is_read(before):
    body = f"{before}<?xml version='1.0' encoding='utf-16'?><a>Größe</a>".encode()
    assert parts.read("application/xml", body, "http://h/a.xml", None).text == "Größe"
    wide = "<?xml version='1.0' encoding='utf-16'?><a>Größe</a>".encode("utf-16")
    assert parts.read("application/xml", wide, "http://h/a.xml", None).text == "Größe"


@pytest.mark.parametrize("depth", [300, 3_000])
@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize("start", ["", '<!DOCTYPE r [<!ENTITY x "y">]>'])
def test_deep_elements_cost_no_text(depth, charset, start):
    inside = "<a b='>'>" * depth + "Größe<!-- x --><![CDATA[<c>]]><e/>" + "</a>" * depth
    xml = f"<?xml version='1.0' encoding='{charset}'?>{start}<r>first{inside}<z>last</z></r>"
    page = parts.read("application/xml", xml.encode(charset), "http://h/a.xml", None)
    assert page.text.split() == ["first", "Größe<c>", "last"]


_DECLARED = b'<?xml version="1.0"?>'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            b"<log>one</log>\n<log><![CDATA[<two>]]></log>\n<log>three &amp; x</log>",
            "one <two> three",
        ),
        (_DECLARED + b"<a>one</a>\ntwo", "one two"),
        (_DECLARED + b'<r><c>one</c><d a=1 b="x">two</d><e>three</e></r>', "one two three"),
        (_DECLARED + b"<r><c>one</d></c></r><b>two</b>", "one two"),
        (_DECLARED + b"<r><c>one</c><![CDATA[two", "one two"),
        (b"Warning: x\n" + _DECLARED + b"<r>one</r>", "Warning: x one"),
        (_DECLARED + b"<r>one &nbsp;&foo;&uuml;ber<b>two</b></r>", "one über two"),
        (_DECLARED + b"<r>one &#xD800;<b>two</b></r>", "one two"),
        (b'<?xml version="1.0" encoding="utf-8"?><r>K\xf6ln <b>two</b></r>', "Köln two"),
        (b'<?xml version="1.0" encoding="ISO-10646-UCS-2"?><r>K\xc3\xb6ln</r>', "Köln"),
        (_DECLARED + b"<r>one<p>" + b"word, " * 1_700_000 + b"</p>two</r>", "one word, word"),
    ],
)
def test_text_behind_a_broken_place_is_read(body, text):
    try:
        found = parts.read("application/xml", body, "http://h/a.xml", None).text
    except reading.Unread as unread:
        found = unread.page.text
    assert found.startswith(text)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            b'<opml><body><outline text="News &amp; more" xmlUrl="http://h/f"/></body></opml>',
            "News & more",
        ),
        (b'<definitions><task id="t1" name="Check"><a value="12"/></task></definitions>', "Check"),
        (
            b'<svg xmlns="http://www.w3.org/2000/svg"><g label="Layer"/><text>see</text></svg>',
            "see",
        ),
    ],
)
def test_attributes_that_are_text_for_people_are_read(body, text):
    assert parts.read("application/xml", _DECLARED + body, "http://h/a.xml", None).text == text


def test_pictures_within_xml_are_no_text():
    picture = base64.encodebytes(bytes(range(256)) * 8)
    body = _DECLARED + b"<FictionBook><p>word</p><binary>" + picture + b"</binary></FictionBook>"
    assert parts.read("application/xml", body, "http://h/a.fb2", None).text == "word"


def test_spans_of_a_drawn_text_are_one_text():
    drawn = (
        "<svg xmlns='http://www.w3.org/2000/svg'><text><tspan>quay</tspan><tspan>side</tspan>"
        "<tspan x='0' dy='1em'>north</tspan><a href='/m'><tspan y='2'>moor</tspan>ing</a></text>"
        "<text>east</text></svg>"
    )
    page = parts.read("image/svg+xml", drawn.encode(), "http://h/a.svg", None)
    assert (page.text, [link.url for link in page.links]) == (
        "quayside north mooring east",
        ["http://h/m"],
    )


@pytest.mark.parametrize("name", ["url", "xmlUrl", "htmlUrl"])
def test_attributes_that_name_a_page_are_links(name):
    body = f"<list><one {name}='{LINK}'>text</one><one {name}='local'/></list>"
    page = parts.read("application/xml", body.encode(), "http://h/a.xml", None)
    assert [(link.url, link.anchor) for link in page.links] == [(LINK, "text")]


def test_a_file_of_declarations_is_a_text():
    dtd = b"<?xml version='1.0'?>\n<!ELEMENT quay (ship*)>\n<!ATTLIST quay depth CDATA #IMPLIED>"
    page = parts.read("application/xml", dtd, "http://h/a.dtd", None)
    assert ("<!ELEMENT quay (ship*)>" in page.text, page.unread) == (True, "")
