"""Numbers of notes and readings stand apart from the word beside them; powers do not."""

from __future__ import annotations

import time

import pytest

from larmspider.extraction.pages import deep_html, html, xhtml


def text(markup: str) -> str:
    return html.extract(markup.encode(), "http://h/", "text/html; charset=utf-8").text


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ("word<sup>3</sup>, so", "word 3, so"),
        ("word<SUP>3</SUP>", "word 3"),
        ("Größe<sup>12</sup>", "Größe 12"),
        ("Gr&ouml;&szlig;e<sup>12</sup>", "Größe 12"),
        ("M&ouml;&szlig;<sup>1</sup>", "Möß 1"),
        ("<b>word</b><sup>3</sup>", "word 3"),
        ("word<sup class=x><a href='#n3'><b>3</b></a></sup>", "word 3"),
        ("word<a href='#n3'><sup>3</sup></a>", "word 3"),
        ("in<sup><a href='p.html#n3'>3</a></sup>", "in 3"),
        ("word<sup><a href='#n'>a</a></sup>", "word a"),
        ("word<sup>1,2</sup>", "word 1,2"),
        ("in 1998<sup>3</sup>", "in 1998 3"),
        ("<a epub:type='noteref' href='n.xhtml'>3</a>", "3"),
        ("word<a epub:type='noteref' href='n.xhtml'>3</a>", "word 3"),
        ("word<a role=doc-noteref href='#n'>3</a>", "word 3"),
        ("<p><sup>3</sup>See there", "3 See there"),
        ("<p><sup><a href='#r'>3</a></sup>See there", "3 See there"),
        ("<p><sup><a href='#r'>ii</a></sup>See there", "ii See there"),
        ("word<span class=n><a href='#n' id=r>1</a></span> so", "word 1 so"),
        ("word<a href='#n'><i>1</i></a>some", "word 1 some"),
        ("<p><span><a href='#r'>1</a></span>See", "1 See"),
        ("word<a href='p1.html'>1</a> bird<a href='#s'>s</a>", "word1 birds"),
        ("x<sup>2</sup>", "x2"),
        ("cm<sup>3</sup> mc<sup>2</sup>", "cm3 mc2"),
        ("π<sup>2</sup>", "π2"),
        ("<sup>14</sup>C", "14C"),
        ("1<sup>st</sup> M<sup>lle</sup>", "1st Mlle"),
        ("XVIII<sup>e</sup>", "XVIIIe"),
        ("H<sub>2</sub>O CaCO<sub>3</sub>", "H2O CaCO3"),
        ("<table><td>word<td><sup>3</sup>", "word 3"),
    ],
)
def test_the_number_of_a_note_is_no_letter_of_the_word(markup: str, found: str) -> None:
    assert text(markup) == found


def test_so_in_a_heading_a_link_a_frame_and_xhtml() -> None:
    markup = "<h1>Title<sup>1</sup></h1><a href=b>anchor<sup>2</sup></a><iframe srcdoc='in<sup>"
    page = html.extract(f"{markup}'></iframe>".encode(), "http://h/", None)
    assert (page.title, page.links[0].anchor) == ("Title 1", "anchor 2")
    assert text("<iframe srcdoc='framed<sup>3</sup>'></iframe>") == "framed 3"
    assert xhtml.extract(b"<p>word<sup>3</sup></p>", "http://h/", None).text == "word 3"


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ("<p>一<ruby>漢字<rt>かんじ</rt></ruby>見本</p>次", "一漢字見本 かんじ 次"),
        ("<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>見", "漢字見 かんじ"),
        ("<ruby>漢字<rt>かんじ</ruby>見本", "漢字見本 かんじ"),
        ("<h1><ruby>漢字<rt>かんじ</ruby></h1>見本", "漢字 かんじ 見本"),
        ("<p>a<ruby>b<rtc>c<rt>d</rt></rtc></ruby>", "abc d"),
    ],
)
def test_a_reading_is_no_part_of_the_word(markup: str, found: str) -> None:
    assert text(markup) == found


def test_a_page_that_lexbor_does_not_read_parts_readings_too() -> None:
    page = html.Page("http://h/")
    deep_html.read("<p>一<ruby>漢字<rt>かんじ</rt></ruby>".encode()).fill(page)
    assert page.text == "一漢字 かんじ"


@pytest.mark.parametrize("piece", ["word<sup>3</sup>", "<ruby>a<rt>b</ruby>", "<sup><a href=#>"])
def test_many_of_them_take_linear_time(piece: str) -> None:
    start = time.process_time()
    text(piece * 20_000)
    assert time.process_time() - start < 20  # it is 0.2 s
