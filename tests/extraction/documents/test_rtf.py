"""RTF in its odd forms."""

from __future__ import annotations

import time

import pytest

from larmspider.extraction.documents import rtf
from larmspider.extraction.documents.reading import Unread
from larmspider.items import Outcome, Page


def read(body: str | bytes) -> Page:
    return rtf.extract(
        body.encode("latin-1") if isinstance(body, str) else body, "http://h/x", None
    )


def hexed(text: str, codec: str) -> str:
    return "".join(f"\\'{byte:02x}" for byte in text.encode(codec))


FONTS = (
    r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial{\*\falt X};}"
    r"{\f2\fcharset128 Mincho;}{\f3\fcharset2 Symbol;}\f4\cpg1250 Y;}"
)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"\ansi\ansicpg1251 " + hexed("Договор", "cp1251"), "Договор"),
        (r"\ansi\ansicpg936" + FONTS + r"\f0 " + hexed("合同丂A", "gbk"), "合同丂A"),
        (
            r"\ansicpg1251" + FONTS + r"\f0 " + hexed("Привет", "cp1251") + r" caf\'e9",
            "Привет café",
        ),
        (
            FONTS
            + r"\f0 Gr\'fc\'df{\f1 "
            + hexed("КАП", "cp1251")
            + r"} \f2 "
            + hexed("ソ表", "cp932"),
            "GrüßКАП ソ表",
        ),
        (FONTS + r"\f2 \'83\\x \plain \'e4", "ソx ä"),
        (FONTS + r"\f4 " + hexed("Žlutý", "cp1250"), "Žlutý"),
        (r"\deff1" + FONTS + hexed("Да", "cp1251"), "Да"),
        (r"\mac Gr\'9fn", "Grün"),
        (r"\pc Gr\'81n", "Grün"),
        (r"\ansi Gr\'fcn raw Gr" + "\xfcn", "Grün raw Grün"),
        (r"\uc1 Gr\u252\'fcn \u8211? \u26085?\u-10179?\u-8694?", "Grün – 日😊"),
        (r"{\uc0\u8364 5}{\uc2\u26085\'93\'fax}{\uc1\u8217\rquote s}{\uc1\u65 \~b}", "€5日x’sAb"),
        (r"\u55357?x \u128578?", "\ufffdx 🙂"),
        (r"{\upr{\'3f}{\*\ud{\u1046?}}}", "Ж"),
    ],
)
def test_letters_are_in_the_charset_of_their_font(source: str, text: str) -> None:
    assert read("{\\rtf1" + source + "}").text == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            r"Vertrag{\super\chftn}{\footnote{\super\chftn} note}swort\par Next",
            "Vertragswort note Next",
        ),
        (r"a{\footnote\ftnalt end}b{\header head\par}{\footerf foot}\par", "ab end head foot"),
        (
            r"a {\*\atnauthor Who}\chatn{\*\annotation{\*\atndate 12}{\*\atnref 0}said}b",
            "a b said",
        ),
        (
            r"{\shp{\*\shpinst\shpleft1{\sp{\sn gtextUNICODE}{\sv Art}}{\sp{\sn wz}{\sv no}}"
            r"{\shptxt \pard Box\par}}{\shprslt{\*\do{\dptxbxtext Box}}}} text",
            "text Art Box",
        ),
        (r"{\*\do\dobxpage{\dptxbx{\dptxbxtext Old}}} text", "text Old"),
        (
            r"a{\deleted gone{\footnote gone}}b{\revised new}\deleted x\deleted0 y{\mvf moved}"
            r"\deleted z\plain ok",
            "abnewyok",
        ),
        (r"{\mmath{\*\moMath{\mf{\mfPr{\mtype bar}}{\mnum{\mr\mscr0 xyz}}}}{\mmathPict 0}}", "xyz"),
        (
            r"\trowd Eins\cell Zwei\cell\row Nach\line Neu\tab Tab\page P\sect S",
            "Eins Zwei Nach Neu Tab P S",
        ),
        (
            r"{\listtext 1.\tab}Punkt\emdash x\_y\-z" + "\\\nZeile\\\r\nEnde",
            "1. Punkt—x\u2011y\xadz Zeile Ende",
        ),
        (
            r"{\stylesheet{\s1 head;}}{\colortbl;\red0;}{\*\generator G;}{\info{\subject S}}x",
            "x",
        ),
        (
            r"{\pict\wmetafile8"
            + "0a\n" * 50
            + r"}{\*\new{\pict ff}y}{\xe{idx}}{\object{\*\objdata 01}"
            r"{\result shown}}",
            "shown",
        ),
        (r"{\pict\bin5 {{{\} a}{\b\bin3 }}}b}c", "bc"),
        (
            r"{\nonesttables old}{\field{\*\fldinst FORMTEXT {\*\formfield{\*\ffdeftext d}}}"
            r"{\fldrslt typed}}",
            "typed",
        ),
    ],
)
def test_what_is_shown_is_text_and_nothing_else(source: str, text: str) -> None:
    assert read("{\\rtf1\\ansi " + source + "}").text == text


def test_the_title_is_in_the_charset_of_the_file() -> None:
    info = r"{\info{\title " + hexed("Отчёт", "cp1251") + r"}{\author {\upr{I}{\*\ud{\u1071?}}}}}"
    page = read(r"{\rtf1\ansi\ansicpg1251" + info + "x}")
    assert (page.title, page.author, page.text) == ("Отчёт", "Я", "x")


@pytest.mark.parametrize(
    ("field", "links"),
    [
        (
            r'{\field{\*\fldinst HYPERLINK "http://h/a"}{\fldrslt {\b the} way}}',
            [("http://h/a", "the way")],
        ),
        (
            r'{\field{\*\fldinst {\rtlch HYPERLINK }{\b "http://h}{/a"}}{\fldrslt x}}',
            [("http://h/a", "x")],
        ),
        (
            r'{\field\flddirty{\*\fldinst  HYPERLINK http://h/a \\t "_blank"}{\fldrslt x}}',
            [("http://h/a", "x")],
        ),
        (
            r'{\field{\*\fldinst HYPERLINK \\o "tip" "http://h/a" \\l "b"}{\fldrslt x}}',
            [("http://h/a", "x")],
        ),
        (r'{\field{\*\fldinst HYPERLINK \\l "bookmark"}{\fldrslt x}}', []),
        (r'{\field{\*\fldinst HYPERLINK "http://h/gr\'fcn"}}', [("http://h/gr%C3%BCn", "")]),
        (r"{\field{\*\fldinst PAGE}{\fldrslt 7}}", []),
        (
            r'{\field{\*\fldinst HYPERLINK "http://h/a"}{\fldrslt t{\field{\*\fldinst PAGEREF x}'
            r"{\fldrslt 7}}}}",
            [("http://h/a", "t7")],
        ),
        (r'{\*\htmltag84 <a href="http://h/?a=1&amp;b=2">}link', [("http://h/?a=1&b=2", "")]),
    ],
)
def test_hyperlinks_are_links(field: str, links: list[tuple[str, str]]) -> None:
    page = read("{\\rtf1\\ansi " + field + "}")
    assert [(link.url, link.anchor) for link in page.links] == links
    assert "HYPERLINK" not in page.text


@pytest.mark.parametrize(
    "body",
    [
        "\xef\xbb\xbf\r\n{\\rtf1 words}",
        "{\\rtf words",
        "{\\rtf1 {\\b words",
        "{\\rtf1 }words}}}",
        "{\\rtf1{{{{}}words}\0\0\0\\",
        "{ \\rtf1 words}",
        "{\\urtf1 words}",
        "{\\rtf1\\ansicpg0\\ansicpg99999\\f77 words}",
        "{\\rtf1{\\fonttbl}\\f wor\\b0 ds}",
    ],
)
def test_no_valid_file_is_lost(body: str) -> None:
    page = read(body)
    assert (page.text, page.unread) == ("words", "")


def test_what_is_no_rtf_is_damaged() -> None:
    with pytest.raises(Unread, match="does not begin"):
        read("{\\html x}")


@pytest.mark.parametrize(
    "body",
    [
        b"{\\rtf1" + b"{" * 100_000,
        b"{\\rtf1" + b"}" * 100_000,
        b"{\\rtf1" + b"{\\footnote " * 50_000 + b"x",
        b"{\\rtf1" + b"{\\fldrslt x" * 50_000 + b"}" * 50_000,
        b"{\\rtf1{\\field{\\*\\fldinst " + b"HYPERLINK " * 50_000,
        b"{\\rtf1{\\*\\htmltag " + b"<a " * 100_000,
        b"{\\rtf1" + b"\\'e4" * 200_000,
        b"{\\rtf1" + b"\\bin-5 \\bin " * 50_000,
        b"{\\rtf1{\\pict " + b"00" * 5_000_000,
    ],
)
def test_an_odd_file_takes_linear_time(body: bytes) -> None:
    before = time.process_time()
    read(body)
    assert time.process_time() - before < 3


def test_a_long_text_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rtf, "MAX_TEXT", 1_000)
    with pytest.raises(Unread) as caught:
        read("{\\rtf1 begin \\par" + "x{}" * 2_000 + "}")
    assert caught.value.outcome is Outcome.TOO_LONG
    assert caught.value.page is not None
    assert caught.value.page.text.startswith("begin")


@pytest.mark.parametrize(
    ("chosen", "result", "text"),
    [
        (r"\ffres1\ffdefres0", "", "a two b"),
        (r"\ffres25\ffdefres1", " ", "a two b"),
        ("", "", "a one b"),
        (r"\ffres9", "", "a b"),
        (r"\ffres1", "shown", "a shown b"),
    ],
)
def test_a_list_of_a_form_shows_what_was_chosen(chosen: str, result: str, text: str) -> None:
    form = rf"{{\*\formfield{{\fftype2{chosen}{{\*\ffname n}}{{\*\ffl one}}{{\*\ffl two}}}}}}"
    field = rf"{{\field{{\*\fldinst {{ FORMDROPDOWN }}{form}}}{{\fldrslt {result}}}}}"
    assert read(rf"{{\rtf1 a {field} b}}").text == text


@pytest.mark.parametrize(
    ("code", "text"),
    [("MACROBUTTON  None press here", "press here"), (r"EQ \\f(sales;costs)", "sales costs")],
)
def test_a_field_without_result_shows_its_caption(code: str, text: str) -> None:
    field = rf"{{\field{{\*\fldinst {code}}}}}"
    assert read(rf"{{\rtf1 before{field}after}}").text.split() == ["before", *text.split(), "after"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"word{\super 3}, so", "word 3, so"),
        (r"word\super 12\nosupersub  so", "word 12 so"),
        (r"word{\up6 3}", "word 3"),
        (r"mc{\super 2} int{\sub 3} word3", "mc2 int3 word3"),
        (r"{\super word}3\super\plain word3", "word3word3"),
    ],
)
def test_a_raised_number_is_no_letter_of_the_word(source, text):
    assert read(rf"{{\rtf1 {source}\par}}").text == text
