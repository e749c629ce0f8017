"""The charset of a body: declared, valid UTF-8, or guessed."""

import base64
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.extraction.texts import charset as charset_guess
from larmspider.extraction.texts.charset import (
    PRESCAN_BYTES,
    declared_charset,
    decode,
    query_encoder,
    to_utf8,
)

SUITE = Path(__file__).parents[2] / ".." / "shared" / "suites" / "html5lib-encoding"
GERMAN = "Die Größe der Tür läßt sich ändern, schöne Grüße aus Köln. " * 20
THAI = "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม"
RUSSIAN = "Широкая электрификация южных губерний даст мощный толчок подъёму. " * 20


def sniffing_cases() -> list[tuple[bytes, str]]:
    file = SUITE / "encoding_sniff.json"
    if not file.exists():
        return []
    cases = json.loads(file.read_text())["cases"]
    return [(base64.b64decode(case["data_b64"]), case["encoding"].lower()) for case in cases]


@pytest.mark.skipif(not SUITE.exists(), reason=f"peer test data is not here: {SUITE}")
def test_all_82_sniffing_cases_of_html5lib_are_right():
    """No case is missed; where nothing is declared they expect the default of browsers."""
    cases = sniffing_cases()
    missed = [
        (body, expected, found)
        for body, expected in cases
        if (found := declared_charset(body, None) or "windows-1252") != expected
    ]
    assert len(cases) == 82
    assert missed == []


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"\xef\xbb\xbf<meta charset=latin1>", "text/html; charset=koi8-r", "utf-8"),
        (b"\xff\xfea\0", "text/html; charset=koi8-r", "utf-16le"),
        (b"\xfe\xff\0a", None, "utf-16be"),
        (b"<meta charset=koi8-r>", "text/html; charset=iso-8859-2", "iso-8859-2"),
        (b"", 'text/html; boundary=x; Charset="Shift_JIS"', "shift_jis"),
        (b"", "text/html; charset='utf-8'", "utf-8"),
        (b"", "text/html; charset=utf-16", "utf-16le"),
        (b"<meta charset=koi8-r>", "text/html; charset=nonsense", "koi8-r"),
        (b"<meta charset=koi8-r>", "text/html", "koi8-r"),
        (b"<meta charset=latin1>", None, "windows-1252"),
        (b"<meta charset=utf-16>", None, "utf-8"),
        (b"<meta charset=x-user-defined>", None, "windows-1252"),
        (b"<meta charset=nonsense>", None, None),
        (b"<meta charset=nonsense><meta charset=koi8-r>", None, "koi8-r"),
        (b"<meta charset=koi8-r charset=latin1>", None, "koi8-r"),
        (b"<meta content='text/html; charset=koi8-r'>", None, None),
        (b"<META HTTP-EQUIV=CONTENT-TYPE CONTENT='text/html; CHARSET=KOI8-R'>", None, "koi8-r"),
        (b"<!-- <meta charset=koi8-r> -->", None, None),
        (b"<!--><meta charset=koi8-r>", None, "koi8-r"),
        (b"<p title='<meta charset=koi8-r>'>", None, None),
        (b"<meta charset='koi8-r", None, None),
        (b"<?xml version='1.0' encoding='koi8-r'?><html/>", None, "koi8-r"),
        (b"<?xml version='1.0' encoding='utf-16'?><html/>", None, "utf-8"),
        (b"<\0?\0x\0m\0l\0", None, "utf-16le"),
        (b"\0<\0?\0x\0m\0l", None, "utf-16be"),
        (b"plain", None, None),
        (b"", None, None),
    ],
)
def test_declaration_is_found_in_browser_order(body, content_type, expected):
    """Byte order mark, then header, then markup; unknown labels declare nothing."""
    assert declared_charset(body, content_type) == expected


def test_declaration_behind_the_prescan_is_not_looked_for():
    declaration = b"<meta charset=koi8-r>"
    assert declared_charset(b"x" * 5_000 + declaration, None) == "koi8-r"
    assert declared_charset(b"x" * PRESCAN_BYTES + declaration, None) is None


@pytest.mark.parametrize(
    ("body", "text", "charset"),
    [
        ("Köln".encode(), "Köln", "utf-8"),
        (b"ascii", "ascii", "utf-8"),
        (b"\xef\xbb\xbfx", "x", "utf-8"),
        (b"\xff\xfea\0", "a", "utf-16le"),
        (b"<meta charset=utf-8>\xff", "<meta charset=utf-8>\ufffd", "utf-8"),
        (b"<meta charset=latin1>\x80", "<meta charset=latin1>\u20ac", "windows-1252"),
        ("Köln ö".encode()[:-1], "Köln \ufffd", "utf-8"),
    ],
)
def test_body_is_decoded(body, text, charset):
    """No byte order mark stays, bad bytes become U+FFFD; a cut last character does not matter."""
    assert decode(body, None) == (text, charset)
    assert to_utf8(body, None)[0].decode("utf-8", "replace") == text


@pytest.mark.parametrize("detector", ["installed", "normalizer"])
@pytest.mark.parametrize(
    ("text", "charset"), [(GERMAN, "cp1252"), (RUSSIAN, "cp1251"), (THAI, "cp874")]
)
def test_undeclared_charset_is_guessed(text, charset, detector, monkeypatch):
    """The text is right with either detector, even when 100 KB of ASCII come first."""
    if detector == "normalizer":
        monkeypatch.setattr(charset_guess, "_detect", charset_guess._by_normalizer)
    padding = "x " * 50_000
    assert decode((padding + text).encode(charset), None)[0] == padding + text


def test_unguessable_charset_is_windows_1252(monkeypatch):
    monkeypatch.setattr(charset_guess, "_detect", lambda sample: None)
    assert decode(b"caf\xe9 ", None) == ("café ", "windows-1252")


POLISH = "Zażółć gęślą jaźń, świętość, źródło \u201ei\u201d"
JAPANESE = "これは日本語の文章です。カタカナもあります。"
GREEK = "Καλημέρα κόσμε, \u201cΆγιος\u201d"


@pytest.mark.parametrize(
    ("text", "real", "declared"),
    [
        ("Köln, Grüße", "utf-8", "iso-8859-1"),
        ("Öl", "utf-8", "windows-1252"),
        (GERMAN, "utf-8", "us-ascii"),
        (RUSSIAN, "utf-8", "windows-1251"),
        (RUSSIAN, "utf-8", "koi8-r"),
        (JAPANESE, "utf-8", "shift_jis"),
        ("这是一个中文网页", "utf-8", "gb2312"),
        ("plain", "utf-8", "utf-16"),
        (GREEK, "utf-8", "utf-16be"),
        (GERMAN, "cp1252", "utf-8"),
        ("Grün", "cp1252", "utf-8"),
        ("Öl und Käse", "cp1252", "utf-8"),
        (RUSSIAN, "cp1251", "utf-8"),
        ("A text of ASCII. " * 500 + "Köln, Grüße", "cp1252", "utf-8"),
        (POLISH, "cp1250", "iso-8859-2"),
        (GREEK, "cp1253", "iso-8859-7"),
        (JAPANESE * 5, "shift_jis", "iso-8859-1"),
        (JAPANESE * 5, "shift_jis", "euc-jp"),
        ("A page", "utf-16-le", "utf-8"),
        ("A page: Köln", "utf-16-be", "iso-8859-1"),
        (RUSSIAN, "utf-16-le", "utf-8"),
        (GREEK, "utf-16-be", "iso-8859-7"),
        (JAPANESE + "\n", "utf-16-le", "shift_jis"),
    ],
)
@pytest.mark.parametrize("is_header", [True, False], ids=["header", "meta"])
@pytest.mark.skipif(find_spec("chardetng_py") is None, reason="the extra charset guesses better")
def test_a_false_declaration_does_not_count(
    text: str, real: str, declared: str, is_header: bool
) -> None:
    """Where the bytes prove another charset, that is used; for documents too."""
    meta = f"<meta charset={declared}>" if not is_header else "<p>............"
    body = (meta + text).encode(real)
    content_type = f"text/html; charset={declared}" if is_header else None
    assert decode(body, content_type)[0] == meta + text
    assert to_utf8(body, content_type)[0].decode() == meta + text


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        (GERMAN, "windows-1252"),
        ("\u20ac \u201equoted\u201c \u2026", "windows-1252"),
        (RUSSIAN, "windows-1251"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN, "iso-8859-5"),
        (RUSSIAN, "ibm866"),
        (POLISH.replace("\u201e", "").replace("\u201d", ""), "iso-8859-2"),
        ("Καλημέρα κόσμε", "iso-8859-7"),
        (JAPANESE, "euc-jp"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "iso-2022-jp"),
        ("这是一个中文网页", "gbk"),
        ("繁體中文", "big5"),
        ("한국어 문장", "euc-kr"),
        (JAPANESE, "utf-16le"),
        (JAPANESE, "utf-8"),
        ("A text of ASCII. " * 500 + "Köln, Grüße", "utf-8"),
    ],
)
def test_a_true_declaration_counts(text: str, declared: str) -> None:
    body = ("<p>" + text).encode("cp866" if declared == "ibm866" else declared)
    assert decode(body, f"text/html; charset={declared}")[0] == "<p>" + text


def test_a_page_of_two_charsets_is_in_the_one_of_most_characters() -> None:
    body = "Käse, Öl, Grün, ".encode() * 5 + "Köln".encode("latin-1")
    assert charset_guess.charset_of(body, "text/html; charset=utf-8") == "utf-8"
    assert decode(body, "text/html; charset=utf-8")[0].startswith("Käse, Öl")


@pytest.mark.acceptance
@given(st.binary(max_size=300), st.none() | st.text(max_size=40))
def test_any_bytes_decode(body, content_type):
    """Never raises, and both ways to read a body agree on its charset."""
    text, charset = decode(body, content_type)
    assert to_utf8(body, content_type)[1] == charset
    text.encode("utf-8")


@given(st.lists(st.sampled_from(
    [b"<", b"meta ", b"charset", b"=", b'"', b"'", b">", b"/", b"utf-8", b"<!--", b"-->", b" "]
)))  # fmt: skip
def test_any_markup_is_prescanned(pieces):
    assert declared_charset(b"".join(pieces), None) in (None, "utf-8")


def test_japanese_in_seven_bits_needs_no_declaration() -> None:
    """As browsers read it."""
    body = "Plan: 日本語のテキスト".encode("iso-2022-jp")
    assert decode(body, None) == ("Plan: 日本語のテキスト", "iso-2022-jp")
    assert decode(b"\x1b[1mbold", None)[1] == "utf-8"


_GERMAN = "Größe und Käse für die Prüfung, schöne Grüße"


@pytest.mark.parametrize("codec", ["cp850", "cp437", "mac_roman"])
@pytest.mark.parametrize(
    "text",
    [
        _GERMAN,
        "Größe;Käse;Übergröße;Prüfung;Änderung\r\nFür;Lösung",
        "Le café est fermé à côté du théâtre, où les élèves étaient",
        "La città è più bella perché c'è il sole, ma non può",
        "El niño pidió más café y después salió al jardín",
        "Smörgåsbord på västkusten, också för små barn",
    ],
)
def test_texts_of_dos_and_of_old_macs_are_read_in_their_charset(codec, text):
    assert decode(text.encode(codec), None)[0] == text


def test_a_table_of_dos_is_no_word():
    text = "┌────────┐\r\n│Größe   │ Käse und Öl\r\n└────────┘"
    assert decode(text.encode("cp437"), None)[0] == text


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("cp1252", "Er sagte: „Gut“ – und ging… 5 € für l’été, naïve Übung"),
        ("cp1252", "The price is £5 – don’t · see §4 • one • two, 20°, a naïve façade"),
        ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy, Škoda a Žižkov"),
        ("cp1250", "Zażółć gęślą jaźń – „cytat” i więcej słów po polsku"),
        ("cp1257", "Šiandien žmonės eina į mišką, ąžuolas ir eglė"),
        ("cp1251", "Привет, мир! Это страница на русском языке"),
        ("cp1253", "Καλημέρα κόσμε, αυτή είναι μια σελίδα"),
        ("shift_jis", "日本語のページです。これはテストです"),
    ],
)
def test_charsets_of_windows_are_not_taken_for_those_of_dos(codec, text):
    assert decode(text.encode(codec), None)[0] == text


def test_links_of_a_page_of_dos_have_their_query():
    encode = query_encoder("cp850")
    assert encode is not None
    assert encode("ü\u2713") == b"\x81%26%2310003%3B"


@pytest.mark.parametrize(
    ("declared", "codec", "text"),
    [
        ("koi8-r", "cp1251", "Привет, мир! Москва и Санкт-Петербург на русском языке"),
        ("windows-1251", "koi8-r", "Привет, мир! Москва и Санкт-Петербург на русском языке"),
        (
            "shift_jis",
            "euc-jp",
            "日本語のページです。これはテストです。東京から大阪まで行きました。",
        ),
        ("gb2312", "big5", "這是繁體中文的網頁，請多多指教。臺灣的天氣今天很好，我們去散步。"),
        ("koi8-r", "cp1251", "Привет из порта. Кран работает каждый день кроме воскресенья"),
        ("iso-8859-1", "cp1251", "Привет из порта, кран работает каждый день"),
        ("iso-8859-1", "iso-8859-7", "Καλημέρα από το λιμάνι, ο γερανός εργάζεται"),
        ("windows-1252", "gbk", "港口起重机的维护计划，和安全规定说明。今天天气很好，我们去散步。"),
        ("iso-8859-2", "koi8-r", "Привет из порта, кран работает каждый день"),
    ],
)
def test_a_declaration_that_its_bytes_disprove_does_not_count(declared, codec, text):
    assert decode(text.encode(codec), f"text/html; charset={declared}")[0] == text
    with_one_bad_byte = text.encode(codec) + b" \xff "
    assert decode(with_one_bad_byte, f"text/html; charset={codec}")[0].startswith(text)


@pytest.mark.parametrize("codec", ["utf-32", "utf-32-be"])
def test_text_of_four_bytes_a_character_is_read_by_its_mark(codec):
    body = ("\ufeff" * (codec != "utf-32") + _GERMAN).encode(codec)
    assert decode(body, "text/plain")[0] == _GERMAN


@pytest.mark.parametrize(
    "text", ["Ça coûte 5 €, à l’hôtel", "»»»»» Größe ««««« ·····", "ÄÖÜ ÄÖÜß äöüß"]
)
def test_text_of_the_west_is_left_in_its_charset(text):
    assert decode(text.encode("cp1252"), "text/html; charset=iso-8859-1")[0] == text
