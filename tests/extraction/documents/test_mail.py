"""Mails as programs write them: charsets, headers, parts, saved pages, mailboxes."""

from __future__ import annotations

import base64
import time
from binascii import b2a_uu

import pytest

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.mails import mail
from larmspider.extraction.documents.mails.mail_coding import from_base64
from larmspider.extraction.documents.mails.mail_headers import parameter, text_of_header
from larmspider.extraction.formats import media_type
from larmspider.items import Page
from tests.support.documents.corpus import SAMPLES

HEAD = b"From: a@h.example\r\nTo: b@h.example\r\nMIME-Version: 1.0\r\n"
MIXED = HEAD + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"


def read(body: bytes, mime: str = mail.MAIL) -> Page:
    return parts.read(mime, body, "http://h/x.eml", None)


def word(text: str, codec: str, label: str) -> bytes:
    return b"=?%b?B?%b?=" % (label.encode(), base64.b64encode(text.encode(codec)))


# Headers.


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    "junk", [b">From anna Tue Jan  2 10:00:00 2024", b"no header", b"\xff\xfe garbage \x01", b"---"]
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_line_in_the_head_that_is_no_header_is_skipped(end: bytes, junk: bytes, at: int) -> None:
    head = [b"Subject: =?utf-8?Q?K=C3=A4se?=", b"MIME-Version: 1.0",
            b"Content-Type: text/plain;", b" charset=utf-8",
            b"Content-Transfer-Encoding: quoted-printable"]  # fmt: skip
    head.insert(at, junk)
    page = read(end.join([*head, b"", b"Gr=C3=BC=C3=9Fe"]))
    assert (page.title, page.unread) == ("K\u00e4se", "")
    assert "Gr\u00fc\u00dfe" in page.text


def test_a_text_without_a_line_before_it_stays_whole() -> None:
    page = read(b"Subject: a\nHello Ben,\nthis is it.\n\nMore: later\n")
    assert "Hello Ben, this is it." in page.text
    assert "More: later" in page.text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (word("朱镕基题目", "gbk", "gb2312"), "朱镕基题目"),
        (word("件名見本", "cp932", "x-sjis"), "件名見本"),
        (word("Grüße", "utf-8", "unknown"), "Grüße"),
        (b"=?iso-8859-1?Q?Caf=E9?=", "Café"),
        (b"=?utf-8?Q?G=C3?=\r\n =?utf-8?Q?=BCte?=", "Güte"),
        (b"=?utf-8?B?R8M=?= =?utf-8?Q?=BCte?=", "Güte"),
        (b"=?utf-8?B?R8?= =?utf-8?B?O8dGU=?=", "Güte"),
        (b"[x]=?utf-8?Q?a_b?=c =?utf-8*de?q?d?=\r\n =?latin-1?q?=FC?= e", "[x]a bc dü e"),
        ("Rohlateinübung für alle".encode("latin-1"), "Rohlateinübung für alle"),
        ("Rohutfübung".encode(), "Rohutfübung"),
        (b"=?utf-8?Q?Was?_ist?=", "Was? ist"),
        (b"=?not a word", "=?not a word"),
    ],
)
def test_a_header_is_read_as_it_was_meant(raw: bytes, text: str) -> None:
    assert text_of_header(raw) == text
    assert read(b"Subject: %b\r\n%b\r\n\r\nx" % (raw, HEAD.strip())).title == text


def test_raw_bytes_in_a_header_are_in_the_charset_of_the_mail() -> None:
    body = b"Subject: \xf0\xd2\xc9\r\n" + HEAD + b"Content-Type: text/plain; charset=koi8-r\r\n\r\n"
    assert read(body + "Привет".encode("koi8-r")).title == "При"


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b'attachment; filename="a \\"b\\".txt"', 'a "b".txt'),
        (b"attachment; filename=Plan 1.txt", "Plan 1.txt"),
        (b'attachment; filename="=?utf-8?Q?Pr=C3=BCf.txt?="', "Prüf.txt"),
        ('attachment; filename="Prüf.txt"'.encode("latin-1"), "Prüf.txt"),
        (b"attachment; filename*0*=utf-8''%C3%9Cber; filename*1=\"sicht.txt\"", "Übersicht.txt"),
        (b"attachment; filename*1=b.txt; filename*0=a", "ab.txt"),
        (b"attachment; filename*=gb2312''%D6%EC%E9F.txt; filename=x.txt", "朱镕.txt"),
        (b"attachment", ""),
    ],
)
def test_a_file_name_is_read_as_it_was_meant(raw: bytes, name: str) -> None:
    assert parameter(raw, "filename") == name


# Bodies.


@pytest.mark.parametrize(
    "said", [b""] + [b"; charset=" + x for x in (b"us-ascii", b"default", b"x")]
)
@pytest.mark.parametrize("codec", ["utf-8", "cp1252"])
def test_a_body_without_a_charset_is_guessed(said: bytes, codec: str) -> None:
    text = "Die Größenordnung wäre für uns möglich"
    body = HEAD + b"Content-Type: text/plain%b\r\n\r\n%b" % (said, text.encode(codec))
    assert text in read(body).text


@pytest.mark.parametrize("charset", ["utf-8", "windows-1251", "shift_jis"])
def test_html_without_a_charset_has_its_own(charset: str) -> None:
    text = "Договор"
    page = f"<meta charset={charset}><p>{text}".encode(charset)
    for said in (b"", b"; charset=us-ascii"):
        assert text in read(HEAD + b"Content-Type: text/html%b\r\n\r\n%b" % (said, page)).text


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Type: multipart/mixed\r\n\r\nplain words",
        b"Content-Type: multipart/mixed; boundary=other\r\n\r\nplain words",
        b"Content-Type: multipart/mixed\r\n\r\npreamble\r\n--x y\r\n"
        b"Content-Type: text/plain\r\n\r\nplain words\r\n--x y--",
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nplain words",
        b"Content-Type: text/enriched\r\n\r\nplain words",
        b"Content-Disposition: attachment\r\n\r\nplain words",
        b"Content-Transfer-Encoding: base64 \r\n\r\ncGxhaW4gd29yZHM",
        b"Content-Transfer-Encoding: base64\r\n\r\nplain words",
        b"Content-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n<p>plain words",
        b"Content-Transfer-Encoding: x-uuencode\r\n\r\nbegin 644 a\n+<&QA:6X@=V]R9',\n`\nend\n",
        b"Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\n \r\n--b\r\n"
        b"Content-Type: text/html\r\n\r\n<p>plain words\r\n--b--",
        b"\r\n<html><body><p>plain words</p>",
    ],
)
def test_a_body_is_read_in_whatever_it_is_wrapped(body: bytes) -> None:
    page = read(HEAD + body)
    assert page.text.endswith("plain words")
    assert page.parts == []


@pytest.mark.parametrize("said", ["application/zip", "application/octet-stream"])
@pytest.mark.parametrize("body", [b"no base64 at all", b"%%%%%!!!!!!UEsD"])
def test_an_attachment_whose_base64_is_none_is_damaged(said: str, body: bytes) -> None:
    part = (
        f"Content-Type: {said}; name=a.zip\nContent-Disposition: attachment\n"
        "Content-Transfer-Encoding: base64\n\n"
    ).encode()
    whole = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nwords\n--b\n%b%b\n--b--\n"
    page = read(HEAD + whole % (part, body))
    assert page.parts[0].unread == "damaged: its base64 cannot be decoded"
    assert page.parts[0].text == ""


def test_deleted_spaces_join_words() -> None:
    head = HEAD + b"Content-Type: text/plain; format=flowed; delsp=yes\r\n\r\n"
    assert read(head + b"Donau \r\ndampf\r\n").text.endswith("Donaudampf")


def test_base64_is_read_up_to_a_footer() -> None:
    whole = base64.encodebytes("Grüße an alle".encode() * 9)
    assert from_base64(whole + b"-- \nlist footer\n").decode() == "Grüße an alle" * 9
    assert from_base64(b"YQ==Yg==\r\nYw") == b"abc"
    assert from_base64(b"=") == b""


def test_all_texts_without_a_name_are_the_mail_s() -> None:
    page = read(MIXED + b"\r\nfirst\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>second\r\n--b--")
    assert page.text.endswith("first second")
    assert page.parts == []


@pytest.mark.parametrize(
    ("plain", "text"),
    [
        ("", "all that it says, in four words or more"),
        ("\xa0", "all that it says, in four words or more"),
        ("In HTML.", "In HTML. all that it says, in four words or more"),
        ("all that it says in plain", "all that it says in plain"),
    ],
)
def test_an_alternative_that_says_far_more_is_read(plain: str, text: str) -> None:
    inside = (
        f"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{plain}\r\n--b\r\n"
        "Content-Type: text/html\r\n\r\n<p>all that it says, in four words or more</p>\r\n--b--"
    ).encode()
    head = b"To: b\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n"
    assert read(b"From: a\r\n" + head + inside).text == f"a b {text}"


def test_a_mail_that_is_encoded_in_a_mail_is_read() -> None:
    inner = base64.encodebytes(b"Subject: inner\r\n\r\ndeep words")
    page = read(
        MIXED
        + b"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        + inner
        + b"\r\n--b--"
    )
    assert [(part.title, part.text) for part in page.parts] == [("inner", "deep words")]


def test_a_report_says_why() -> None:
    page = read(
        MIXED + b"Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; h\r\n\r\n"
        b"Diagnostic-Code: smtp; 550 gone away\r\n\r\n--b--"
    )
    assert "550 gone away" in page.text


def test_a_mail_that_is_one_document_has_it_as_its_part() -> None:
    page = read(HEAD + b"Content-Type: text/csv; name=a.csv\r\n\r\na,b")
    assert page.text.endswith("a,b")
    page = read(HEAD + b"Content-Type: application/json; name=a.json\r\n\r\n[1]")
    assert [(part.name, part.text) for part in page.parts] == [("a.json", "[1]")]


# Saved pages.


def saved(*more: bytes, head: bytes = b"") -> bytes:
    start = b"From: <Saved by Blink>\r\nSubject: s\r\nMIME-Version: 1.0\r\n%b" % head
    kind = b'Content-Type: multipart/related; type="text/html"; boundary=b\r\n\r\n'
    return start + kind + b"".join(b"--b\r\n%b\r\n" % part for part in more) + b"--b--\r\n"


PICTURE = b"Content-Type: image/png\r\nContent-Location: http://w/i/a.png\r\n\r\n\x89PNG\r\n\x1a\n"
PAGE = (
    b"Content-Type: text/html\r\nContent-ID: <root>\r\nContent-Transfer-Encoding: quoted-printable"
    b"\r\nContent-Location: http://w/docs/x.html\r\n\r\n<meta charset=3Dutf-8><title>Seite</title>"
    b'<p>f=C3=BCr <a href=3D"q">alle</a>'
)
FRAME = b"Content-Type: text/html\r\nContent-Location: http://w/f/y.html\r\n\r\n<a href=z>frame</a>"


def test_a_saved_page_is_the_page_of_its_root_part() -> None:
    for body in (saved(PAGE, PICTURE, FRAME), saved(PICTURE, PAGE, FRAME)):
        page = read(body)
        assert (page.title, page.author, page.text) == ("Seite", "", "für alle frame")
        assert [link.url for link in page.links] == ["http://w/docs/q", "http://w/f/z"]
        assert [part.name for part in page.parts] == ["a.png"]
        for said in ("", "application/msword", "multipart/related", "text/html"):
            assert media_type(said, body, "/export.doc") == mail.MAIL
    kind = b'Content-Type: multipart/related; start="<root>"; boundary=b\r\n\r\n--b\r\n'
    body = (
        b"Subject: s\r\nMIME-Version: 1.0\r\n" + kind + FRAME + b"\r\n--b\r\n" + PAGE + b"\r\n--b--"
    )
    assert read(body).text == "für alle frame"


def test_relative_locations_are_resolved() -> None:
    part = b"Content-Type: text/html\r\nContent-Location: sub/x.html\r\n\r\n<a href=q>a</a>"
    body = saved(part, head=b"Content-Location: http://w/top/\r\n")
    assert [link.url for link in read(body).links] == ["http://w/top/sub/q"]
    part = part.replace(b"sub/", b"file:///C:/")
    assert [link.url for link in read(saved(part)).links] == ["http://h/q"]


# Mailboxes.


def test_from_in_a_text_begins_no_mail() -> None:
    first = b"From a@h Mon Jan  1 10:00:00 2024\nSubject: one\n\nHello\n\n"
    texts = b"From now on\nNote: x\n\nFrom Mon to Fri 8:00 2024\ny\n>From me\n>>From you\n\n"
    others = (
        b"From jane at h.example  Tue Jan  2 10:00:00 2024\nSubject: two\n\nx\n\n"
        b"From - Tue Jan  2 10:00:00 2024\r\nSubject: three\r\n\r\ny\r\n\r\n"
        b'From "j d"@h Tue Jan 2\nSubject: four\n\nz\n'
    )
    page = read(first + texts + others, mail.MBOX)
    assert [part.title for part in page.parts] == ["one", "two", "three", "four"]
    said = "From now on Note: x From Mon to Fri 8:00 2024 y From me >From you"
    assert page.parts[0].text == f"Hello {said}"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_mails_without_an_empty_line_between_them_are_apart(end: str) -> None:
    mails = (
        "From a@h Mon Jan  1 10:00:00 2024\nSubject: one\n\nHello\n"
        "From b at h  Tue Jan  2 10:00:00 2024\nReceived: x\nSubject: two\n\nHi\nFrom b Tue 3:30\n"
        "Note: y\nFrom - Tue Jan  2 10:00:00 2024\nX-Mozilla-Status: 1\nSubject: three\n\nz\n"
    )
    page = read(mails.replace("\n", end).encode(), mail.MBOX)
    assert [(part.title, part.text.split()[-1]) for part in page.parts] == [
        ("one", "Hello"),
        ("two", "y"),
        ("three", "z"),
    ]


# Limits.


@pytest.mark.parametrize(
    "body",
    [
        b"Subject: " + b"=?a?q?" * 100_000,
        b"Subject: x" + b"; a*0*=''%" * 100_000,
        HEAD + b"Content-Type: text/plain" + b"; name*1=a" * 50_000 + b"\n\nx",
        HEAD + b"Content-Transfer-Encoding: base64\n\n" + b"=" * 1_000_000,
        HEAD + b"Content-Transfer-Encoding: base64\n\n" + b"a " * 500_000,
        b"From a@h Mon 1\n" + b"\n\nFrom " * 50_000,
        b"From a@h Mon 1\n" + b'\n\nFrom "' + b"a" * 500_000,
        HEAD + b"Content-Type: multipart/mixed\n\n" + b"--x\nContent-Type: a\n" * 1_000,
        b"Content-Location: a\nMIME-Version: 1.0\n"
        + b"".join(
            b"Content-Type: multipart/related; boundary=b%d\nContent-Location: a\n"
            b"Content-Base: b\n\n--b%d\n" % (n, n)
            for n in range(150)
        ),
    ],
)
def test_an_odd_mail_takes_linear_time(body: bytes) -> None:
    before = time.process_time()
    try:
        read(body, mail.MBOX if mail.is_mbox(body) else mail.MAIL)
    except mail.Unread:
        pass
    assert time.process_time() - before < 2


@pytest.mark.parametrize("header", ["BASE64 (encoded)", '"base64"', "base-64", "Base 64;"])
def test_a_coding_with_a_comment_or_another_spelling_is_known(header):
    text = base64.b64encode("grüne Wörter".encode())
    body = HEAD + b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: "
    assert "grüne Wörter" in read(body + header.encode() + b"\r\n\r\n" + text).text


@pytest.mark.parametrize(
    "separator",
    [
        b"From  Mon May  6 10:00:00 2024",
        b"From a@h Mo Mai  6 10:00:00 2024",
        b"From a@h",
        b"From a@h 06 May 2024 10:00:00 +0200",
    ],
)
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\r\n"])
def test_mails_of_a_mailbox_begin_at_lines_of_other_programs(separator, before):
    one, two = (b"From: a@h\nSubject: %b\n\n%b\n" % (word, word) for word in (b"one", b"two"))
    page = read(before + separator + b"\n" + one + b"\n" + separator + b"\n" + two, mail.MBOX)
    assert [part.title for part in page.parts] == ["one", "two"]


def test_a_line_in_a_text_begins_no_mail():
    body = b"From a@h Mon May  6 10:00:00 2024\nSubject: x\n\ntext\n\nFrom here on\nfrom: there\n"
    assert len(read(body, mail.MBOX).parts) == 1


def test_a_line_of_the_way_of_a_mail_is_no_mail():
    body = b"From a!b Mon May  6 10:00:00 2024\n>From b Mon May 6 10:00:00 2024\nSubject: x\n\ntext"
    assert [(part.title, part.text) for part in read(body, mail.MBOX).parts] == [("x", "text")]


def test_a_mail_of_apple_mail_is_read():
    inner = HEAD + b"Subject: s\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nK=C3=B6ln"
    body = b"%d        \n%b<?xml version='1.0'?><plist/>" % (len(inner), inner)
    assert media_type("", body, "1.emlx") == mail.MAIL
    page = read(body)
    assert (page.title, "Köln" in page.text, "plist" in page.text) == ("s", True, False)


ONE = b"From: ada@h.example\nSubject: One\n\nfirst text\n"
TWO = b"From: bob@h.example\nSubject: Two\n\nsecond text\n"
BETWEEN = b"\1\1\1\1\n"
BABYL = (
    b"BABYL OPTIONS: -*- rmail -*-\nVersion: 5\n\x1f\x0c\n1, answered,,\n"
    b"From: ada@h.example\nContent-Type: text/plain; charset=iso-8859-2\nSubject: One\n\n"
    b"*** EOOH ***\nFrom: ada@h.example\nSubject: One\n\nfirst text \xb1\n"
    b"\x1f\x0c\n0,,\n*** EOOH ***\n" + TWO + b"\x1f"
)


@pytest.mark.parametrize("said", ["", "text/plain", "application/octet-stream"])
@pytest.mark.parametrize(
    ("body", "first"),
    [
        (BETWEEN + ONE + BETWEEN + BETWEEN + TWO + BETWEEN, "first text"),
        ((BETWEEN + ONE + BETWEEN).replace(b"\n", b"\r\n") + BETWEEN + TWO, "first text"),
        (BABYL, "first text ą"),
    ],
    ids=["MMDF", "MMDF with CRLF", "Babyl"],
)
def test_mailboxes_of_other_programs_are_read(body: bytes, first: str, said: str) -> None:
    page = read(body, media_type(said, body, "inbox"))
    assert [(part.title, part.text.removeprefix("ada@h.example ")) for part in page.parts] == [
        ("One", first),
        ("Two", "bob@h.example second text"),
    ]


def uuencoded(data: bytes, name: str) -> bytes:
    rows = b"".join(b2a_uu(data[at : at + 45]) for at in range(0, len(data), 45))
    return b"begin 644 %b\n%b`\nend\n" % (name.encode(), rows)


def test_a_file_that_stands_uuencoded_in_a_text_is_an_attachment() -> None:
    body = ONE + uuencoded(b"enclosed " * 20, "a b.txt") + b"between\n" + uuencoded(b"more", "c.md")
    page = read(body.replace(b"\n", b"\r\n"))
    assert page.text == "ada@h.example first text between"
    assert [(part.name, part.text[:8]) for part in page.parts] == [
        ("a b.txt", "enclosed"),
        ("c.md", "more"),
    ]


def test_a_uuencoded_file_by_itself_has_its_file_as_a_part() -> None:
    body = uuencoded(SAMPLES["docx"].body, "plan.docx")
    mime = media_type("application/octet-stream", body, "plan.uu")
    (part,) = read(body, mime).parts
    assert (part.name, SAMPLES["docx"].phrase in part.text) == ("plan.docx", True)


@pytest.mark.parametrize("text", ["begin 644 x", "begin 7 days\nbefore the\nend"])
def test_a_text_that_begins_as_uuencode_stays(text: str) -> None:
    assert read(ONE + text.encode()).text.endswith(" ".join(text.split()))


# Bodies of other kinds.


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/rtf", rb"{\rtf1 the \b crane}", "the crane"),
        ("text/calendar", b"BEGIN:VEVENT\nSUMMARY:crane\\, north\nEND:VEVENT\n", "crane, north"),
        ("text/enriched", b"<bold>the</bold> <param>red</param>crane << 5 t", "the crane < 5 t"),
        ("text/x-log", b"the crane", "the crane"),
        ("text/css", b"the {crane}", "the {crane}"),
    ],
)
def test_a_body_of_another_kind_of_text_is_read_by_its_kind(kind, body, text):
    page = read(HEAD + b"Content-Type: %b\r\n\r\n%b" % (kind.encode(), body))
    assert text in (page.text or "") or text in page.parts[0].text
    assert not any("rtf1" in part.text for part in page.parts)
    assert "rtf1" not in page.text
    assert "<bold>" not in page.text


def test_an_encrypted_mail_says_so():
    body = HEAD + (
        b'Subject: secret\r\nContent-Type: multipart/encrypted; protocol="application/'
        b'pgp-encrypted"; boundary=b\r\n\r\n--b\r\nContent-Type: application/pgp-encrypted\r\n\r\n'
        b"Version: 1\r\n--b\r\nContent-Type: application/octet-stream\r\n\r\n"
        b"-----BEGIN PGP MESSAGE-----\r\nhQEMA\r\n-----END PGP MESSAGE-----\r\n--b--\r\n"
    )
    page = read(body)
    assert [part.unread for part in page.parts] == ["encrypted: it is encrypted for its recipients"]
    assert (page.title, "hQEMA" in page.text) == ("secret", False)


def test_a_mail_whose_lines_end_as_on_an_old_mac():
    page = read(b"Subject: old\rFrom: a@h.example\r\rthe crane\ris locked\r")
    assert (page.title, page.text.endswith("is locked")) == ("old", True)
