"""Words of a part as they are shown (ECMA-376-1 17.3.3): parted where they are, and no more."""

import pytest

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.reading import DocumentBuilder
from larmspider.items import Page
from larmspider.urls.media_types import OOXML
from tests.support.documents.packages import NAMES, docx, lines, para, pptx

DOCX, PPTX = OOXML + "wordprocessingml.document", OOXML + "presentationml.presentation"


def read(body: bytes, mime: str = DOCX) -> Page:
    page = parts.read(mime, body, "http://h/a", None)
    assert page.unread == ""
    return page


def words(body: str) -> list[str]:
    return read(docx(body)).text.split()


@pytest.mark.parametrize(
    "element",
    [
        *("<w:br/>", "<w:cr/>", "<w:tab/>", "<w:ptab/>", "<w:pgNum/>", "<w:dayLong/>"),
        '<w:br w:type="page"/>',
        '<w:sym w:font="Wingdings" w:char="F0E0"/>',
        '<w:sym w:font="Symbol" w:char="F0AE"/>',
        '<w:sym w:font="Symbol" w:char="no number"/>',
        *('<w:footnoteReference w:id="2"/>', '<w:endnoteReference w:id="2"/>'),
    ],
)
def test_an_element_parts_words(element):
    run = f"<w:r><w:t>one</w:t>{element}<w:t>two</w:t></w:r>"
    assert words(para(run)) == ["one", "two"]


@pytest.mark.parametrize(
    ("element", "word"),
    [
        ("<w:softHyphen/>", "onetwo"),
        ("<w:noBreakHyphen/>", "one-two"),
        ("<w:lastRenderedPageBreak/>", "onetwo"),
        ('<w:sym w:font="Calibri" w:char="00E9"/>', "oneétwo"),
        ('<w:sym w:font="Symbol" w:char="0041"/>', "oneΑtwo"),
        ('<w:sym w:font="Symbol" w:char="F06D"/>', "oneμtwo"),
    ],
)
def test_an_element_joins_letters(element, word):
    assert words(para(f"<w:r><w:t>one</w:t>{element}<w:t>two</w:t></w:r>")) == [word]


@pytest.mark.parametrize(
    ("chosen", "word"),
    [
        ('<w:result w:val="1"/>', "two"),
        ('<w:default w:val="1"/>', "two"),
        ("", "one"),
        *(('<w:result w:val="2"/>', ""), ('<w:result w:val="-1"/>', "")),
    ],
)
@pytest.mark.parametrize("separator", ["", '<w:fldChar w:fldCharType="separate"/>'])
def test_a_list_of_an_old_form_shows_what_was_chosen(chosen, word, separator):
    entries = '<w:listEntry w:val="one"/><w:listEntry w:val="two"/>'
    begin = f"<w:ffData><w:ddList>{chosen}{entries}</w:ddList></w:ffData>"
    run = f'<w:fldChar w:fldCharType="begin">{begin}</w:fldChar>'
    code = f'<w:instrText> FORMDROPDOWN </w:instrText>{separator}<w:fldChar w:fldCharType="end"/>'
    assert words(para(f"<w:r><w:t>a </w:t>{run}{code}</w:r>")) == ["a", *word.split()]


OLD = (
    f"<w:r><w:pict><v:shape><v:textbox><w:txbxContent>{para('boxed')}{para('twice')}"
    "</w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
)
NEW = (
    '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wps:wsp><wps:txbx>'
    f"<w:txbxContent>{para('boxed')}{para('twice')}</w:txbxContent></wps:txbx></wps:wsp></w:drawing>"
    f"</mc:Choice><mc:Fallback>{OLD[5:-6]}</mc:Fallback></mc:AlternateContent></w:r>"
)
ONLY_FALLBACK = (
    '<w:r><mc:AlternateContent><mc:Choice Requires="x"><w:drawing/></mc:Choice>'
    f"<mc:Fallback>{OLD[5:-6]}</mc:Fallback></mc:AlternateContent></w:r>"
)


@pytest.mark.parametrize("box", [OLD, NEW, ONLY_FALLBACK], ids=["old", "new", "fallback"])
def test_a_text_box_stands_once_and_apart(box):
    page = read(docx(para("before", box, "after")))
    assert [line.split() for line in page.text.split("\n")] == [
        ["before", "after", "boxed", "twice"]
    ]


def test_a_box_in_a_box_stands_once():
    inner = f"<w:r><w:pict><w:txbxContent>{para('inner')}</w:txbxContent></w:pict></w:r>"
    outer = f"<w:r><w:pict><w:txbxContent>{para('a', inner, 'b')}</w:txbxContent></w:pict></w:r>"
    assert sorted(words(para("x", outer, "y"))) == ["a", "b", "inner", "x", "y"]


def test_a_word_art_is_text():
    art = '<w:r><w:pict><v:shape><v:textpath string="Draft copy"/></v:shape></w:pict></w:r>'
    assert words(para("a", art)) == ["a", "Draft", "copy"]


def test_a_formula_is_text_and_its_terms_are_parted():
    def run(text):
        return f"<m:r><m:t>{text}</m:t></m:r>"

    terms = f"<m:num>{run('profit')}</m:num><m:den>{run('cost')}</m:den>"
    formula = f"<m:oMath><m:f>{terms}</m:f>{run('rate')}</m:oMath>"
    assert words(f"<w:p>{formula}</w:p>") == ["profit", "cost", "rate"]


DELETED = [
    '<w:del w:id="1"><w:r><w:delText>gone</w:delText></w:r></w:del>',
    '<w:del w:id="1"><w:r><w:t>gone</w:t></w:r></w:del>',
    '<w:moveFrom w:id="1"><w:r><w:t>gone</w:t></w:r></w:moveFrom>',
    f'<w:moveFrom w:id="1">{OLD.replace("boxed", "gone").replace("twice", "gone")}</w:moveFrom>',
]


@pytest.mark.parametrize("deleted", DELETED)
def test_what_was_deleted_or_moved_away_is_no_text(deleted):
    moved = '<w:moveTo w:id="2"><w:r><w:t>moved</w:t></w:r></w:moveTo>'
    assert words(para("kept", deleted, moved)) == ["keptmoved"]


@pytest.mark.parametrize("between", ["", '<w:bookmarkEnd w:id="0"/><w:commentRangeEnd/>'])
def test_a_paragraph_whose_end_was_deleted_goes_on_in_the_next(between):
    mark = '<w:pPr><w:rPr><w:del w:id="1"/></w:rPr></w:pPr>'
    assert words(para(mark, "one") + between + para("two") + para("three")) == ["onetwo", "three"]


def test_the_reading_of_a_ruby_is_apart():
    ruby = (
        "<w:r><w:ruby><w:rt><w:r><w:t>かんじ</w:t></w:r></w:rt>"
        "<w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    )
    assert words(para("一", ruby, "見本")) == ["一漢字見本", "かんじ"]


# Links.

BEGIN, SEPARATE, END = (
    f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")
)


def code(*texts: str) -> str:
    return "".join(f"<w:r><w:instrText>{text}</w:instrText></w:r>" for text in texts)


def field(*texts: str) -> str:
    return BEGIN + code(*texts) + SEPARATE + "<w:r><w:t>the</w:t></w:r><w:r><w:t> way</w:t></w:r>"


URL = "http://linked.example/a%20b"


@pytest.mark.parametrize(
    "runs",
    [
        field(f' HYPERLINK "{URL}" ') + END,
        field(" HYPER", f'LINK "{URL[:9]}', f'{URL[9:]}" \\t "_blank" ') + END,
        field(f' hyperlink \\o "HYPERLINK tip" "{URL}"') + END,
        field(f" HYPERLINK {URL} \\h") + END,
        field(f"HYPERLINK \u201c{URL}\u201d") + END,
        field(f'HYPERLINK "{URL}" \\l "part"') + END,
        f'<w:fldSimple w:instr=" HYPERLINK &quot;{URL}&quot; "><w:r><w:t>the way</w:t></w:r>'
        "</w:fldSimple>",
        BEGIN + code(" IF 1 = 1 ") + field(f'HYPERLINK "{URL}"') + END + SEPARATE + END,
    ],
)
def test_a_field_is_a_link_with_its_text(runs):
    page = read(docx(para("x ", runs, " y")))
    assert [(link.url, link.anchor) for link in page.links] == [(URL, "the way")]
    assert "HYPERLINK" not in page.text


def test_many_links_of_one_long_text_do_not_keep_it_each():
    builder = DocumentBuilder()
    for number in range(100):
        builder.add_link(f"http://h/{number}", "word " * 10_000)
    assert sum(len(link[2]) for link in builder.links) < 200_000


def test_a_field_that_has_no_begin_or_no_end_is_a_link():
    loose = code(f' HYPERLINK "{URL[:20]}', f'{URL[20:]}"')
    page = read(docx(para(loose, "text") + para(BEGIN + code(f'HYPERLINK "{URL}2"'), "more")))
    assert [link.url for link in page.links] == [URL, f"{URL}2"]
    assert page.text == "text more"


@pytest.mark.parametrize("text", ['HYPERLINK \\l "_Toc1"', 'PAGEREF "x"', "HYPERLINKS x", ""])
def test_other_fields_are_no_links(text):
    assert read(docx(para(field(text) + END))).links == []


def test_fields_in_each_other_have_a_limit():
    assert words(para(BEGIN * 1_000, "text", END * 2_000)) == ["text"]


# Slides.


def test_breaks_of_a_slide_part_words_and_pieces_of_a_title_do_not():
    def run(text):
        return f"<a:r><a:t>{text}</a:t></a:r>"

    title = (
        '<p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:txBody><a:p>'
        f"{run('Har')}{run('bour')}<a:br/>{run('rules')}</a:p></p:txBody>"
    )
    body = f"<a:p>{run('one')}<a:br/>{run('two')}</a:p></p:txBody></p:sp>"
    body = f"{body}<p:sp>{title}</p:sp><p:sp><p:txBody>"
    page = read(pptx([body]), PPTX)
    assert page.title == "Harbour rules"
    assert page.text == "one two Harbour rules"


def test_alternatives_of_a_slide_stand_once():
    both = (
        f'<mc:AlternateContent><mc:Choice Requires="a14">{lines("shown")}</mc:Choice>'
        f"<mc:Fallback>{lines('shown')}</mc:Fallback></mc:AlternateContent>"
    )
    assert read(pptx([both]), PPTX).text == "shown"


def test_a_chart_has_its_words_and_not_the_numbers_that_it_draws():
    def values(kind, *found):
        points = "".join(f"<c:pt><c:v>{one}</c:v></c:pt>" for one in found)
        return f"<c:{kind}>{points}</c:{kind}>"

    chart = (
        f"<c:chartSpace{NAMES}><c:chart><c:title><c:tx><c:rich>{lines('Sales')}</c:rich></c:tx>"
        f"</c:title><c:ser><c:tx>{values('strCache', 'North')}</c:tx>"
        f"<c:cat>{values('numCache', '2023')}</c:cat><c:val>{values('numCache', '4711')}</c:val>"
        "</c:ser></c:chart></c:chartSpace>"
    )
    body = docx(para("x"), more=[("c", "chart", "c.xml")], extra={"word/c.xml": chart})
    assert read(body).text == "x Sales North 2023"


def _coded(code: str) -> str:
    return (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText xml:space="preserve">'
        f'{code}</w:instrText></w:r>%s<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (" MACROBUTTON  NoMacro press &lt;here&gt; now ", "press <here> now"),
        (r" EQ \f(sales;costs) ", "sales costs"),
        (r"EQ \s\up5(above)\s\do5(below)", "above below"),
        (" GOTOBUTTON mark jump there ", "jump there"),
        (" QUOTE &quot;said so&quot; ", "said so"),
        (" PAGE ", ""),
        (" MACROBUTTON alone", ""),
    ],
)
def test_a_field_without_result_shows_its_caption(code, text):
    after = "<w:r><w:t>after</w:t></w:r>"
    empty = '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
    for field in (_coded(code) % "", _coded(code) % empty, f'<w:fldSimple w:instr="{code}"/>'):
        assert words(para(field + after)) == [*text.split(), "after"]
    result = '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>result</w:t></w:r>'
    assert words(para(_coded(code) % result)) == ["result"]


def test_the_text_of_a_link_is_parted_as_it_is_shown():
    run = "<w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:noBreakHyphen/><w:t>three</w:t></w:r>"
    body = para(f'<w:hyperlink r:id="l">{run}</w:hyperlink>')
    page = read(docx(body, more=[("l", "hyperlink", "http://h/b")]))
    assert [link.anchor for link in page.links] == ["one two-three"]


def test_results_of_fields_in_the_code_of_a_field_are_no_text():
    result = '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>%s</w:t></w:r>'
    outer = _coded("IF INNER = 1") % (result % "shown")
    inner = _coded("PAGE") % (result % "7")
    run = f'</w:instrText></w:r>{inner}<w:r><w:instrText xml:space="preserve">'
    text = "<w:r><w:t>before</w:t></w:r>" + outer.replace("INNER", run)
    assert words(para(text)) == ["beforeshown"]


def raised(number: str) -> str:
    return f'<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>{number}</w:t></w:r>'


@pytest.mark.parametrize(
    ("before", "number", "found"),
    [
        ("word", raised("3"), ["word", "3"]),
        ("in 1998", raised("12"), ["in", "1998", "12"]),
        ("mc", raised("2"), ["mc2"]),
        ("word", raised("th"), ["wordth"]),
        ("CaCO", raised("3").replace("super", "sub"), ["CaCO3"]),
        ("word", "<w:r><w:t>3</w:t></w:r>", ["word3"]),
    ],
)
def test_a_raised_number_is_no_letter_of_the_word(before, number, found):
    assert words(para(f"<w:r><w:t>{before}</w:t></w:r>", number)) == found


@pytest.mark.parametrize(
    ("how", "found"),
    [(' baseline="30000"', "word 3"), (' baseline="-25000"', "word3"), ("", "word3")],
)
def test_so_on_a_slide(how, found):
    runs = f"<a:r><a:t>word</a:t></a:r><a:r><a:rPr{how}/><a:t>3</a:t></a:r>"
    assert read(pptx([f"<a:p>{runs}</a:p>"]), PPTX).text == found
