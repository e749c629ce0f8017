"""A label means what it means to browsers; without one, bytes are UTF-8 or guessed."""

from __future__ import annotations

import pytest

from larmspider.extraction.documents.labels import known, of_codepage, text_of


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("gb2312", "gbk", "朱镕基"),
        ("gbk", "gb18030", "员工手册㐂"),
        ("ks_c_5601-1987", "cp949", "똠방각하"),
        ("x-sjis", "cp932", "見積書㈱"),
        ("cp932", "cp932", "①見積"),
        ("big5", "big5hkscs", "員工手冊着"),
        ("iso-2022-kr", "iso2022_kr", "견본"),
        ("hz-gb-2312", "hz", "合同"),
        ("iso-8859-1", "cp1252", "„Zitat“ €"),
        ("iso 8859-1", "cp1252", "Café"),
        ("x-mac-roman", "mac_roman", "Köln"),
        ("win-1251", "cp1251", "Договор"),
        ("cp-850", "cp850", "Größe"),
        ("utf-7", "utf-7", "Übung"),
        ('"utf-8";', "utf-8", "Größe"),
        ("tis-620", "tis_620", "ระเบียบ"),
    ],
)
def test_a_label_means_what_programs_mean_by_it(label: str, codec: str, text: str) -> None:
    assert text_of(text.encode(codec), label) == text


@pytest.mark.parametrize("label", ["", "us-ascii", "default", "unknown-8bit", "x-unknown", "hex"])
@pytest.mark.parametrize("codec", ["utf-8", "cp1252"])
def test_a_label_that_says_nothing_leaves_it_to_the_bytes(label: str, codec: str) -> None:
    assert known(label) == ""
    text = "Straßenbau über Köln und Düsseldorf"
    assert text_of(text.encode(codec), label) == text


def test_a_last_letter_is_no_half_of_a_character() -> None:
    assert text_of(b"Caf\xe9", "iso-8859-1") == "Café"
    assert text_of(b"Caf\xe9") == "Café"
    assert text_of("Größ".encode()[:-1]) == "Gr\u00f6\ufffd"


def test_japanese_has_the_characters_of_nec_and_ibm() -> None:
    assert text_of(b"\x1b$B\x2d\x21\x2d\x6a\x7c\x62\x1b(B ok", "iso-2022-jp") == "①㈱髙 ok"
    assert text_of(b"\xad\xa1\xfc\xe2", "euc-jp") == "①髙"
    assert text_of("打合せ".encode("iso2022_jp")) == "打合せ"


@pytest.mark.parametrize(
    ("number", "label"),
    [
        (1251, "windows-1251"),
        (932, "shift_jis"),
        (65001, "utf-8"),
        (28605, "iso-8859-15"),
        (20127, ""),
        (0, ""),
        (99999, ""),
    ],
)
def test_a_code_page_has_a_label(number: int, label: str) -> None:
    assert known(of_codepage(number)) == label
