"""Documents and mails that are signed in one piece (CMS)."""

from __future__ import annotations

import base64
import random

import pytest

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.mails import mail
from larmspider.extraction.documents.reading import Unread
from larmspider.extraction.formats import media_type
from larmspider.items import Page

P7M = "application/pkcs7-mime"
SIGNED, DATA, ENVELOPED, OTHER = (
    bytes.fromhex(f"06092a864886f70d0107{number}") for number in ("02", "01", "03", "05")
)
HTML = b"<!doctype html><title>Rules</title><p>of the harbour"
ENTITY = b"Content-Type: text/plain; charset=utf-8\r\n\r\nsigned w\xc3\xb6rd\r\n"


def der(tag: int, *inside: bytes) -> bytes:
    data = b"".join(inside)
    if len(data) < 0x80:
        return bytes((tag, len(data))) + data
    return bytes((tag, 0x82)) + len(data).to_bytes(2, "big") + data


def ber(tag: int, *inside: bytes) -> bytes:
    return bytes((tag, 0x80)) + b"".join(inside) + b"\0\0"


def signed(content: bytes | None, make=der) -> bytes:
    octets = b""
    if content is not None and make is der:
        octets = der(0xA0, der(0x04, content))
    elif content is not None:
        octets = ber(0xA0, ber(0x24, der(0x04, content[:9]), der(0x04, content[9:])))
    about = make(0x30, DATA, octets)
    fields = make(0x30, der(0x02, b"\1"), der(0x31), about, der(0x31))
    return make(0x30, SIGNED, make(0xA0, fields))


def read(body: bytes, name: str) -> Page:
    return parts.read(media_type("", body, name), body, f"http://h/{name}", None)


def armoured(kind: bytes) -> bytes:
    text = base64.encodebytes(signed(HTML))
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (kind, text, kind)


@pytest.mark.parametrize(
    "body",
    [
        signed(HTML),
        signed(HTML, ber),
        signed(signed(HTML, ber)),
        armoured(b"PKCS7"),
        armoured(b"CMS"),
    ],
    ids=["der", "ber", "twice", "pem", "cms"],
)
def test_a_signed_document_is_a_part(body):
    page = read(body, "rules.html.p7m")
    assert (page.parts[-1].title, page.parts[-1].text) == ("Rules", "of the harbour")
    assert (page.parts[0].name, page.unread) == ("rules.html", "")


def test_a_signature_beside_its_document_stays_closed():
    assert media_type("application/pkcs7-signature", signed(None), "smime.p7s").endswith(
        "signature"
    )
    assert media_type("application/octet-stream", signed(HTML), "a") == P7M


@pytest.mark.parametrize("mime", [P7M, "application/x-pkcs7-mime"])
def test_the_text_of_a_mail_that_is_signed_in_one_piece_is_found(mime):
    head = (
        b"From: a@h\r\nTo: b@h\r\nSubject: x\r\nMIME-Version: 1.0\r\nContent-Type: %b; name=smime."
    )
    coded = b"p7m\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.encodebytes(signed(ENTITY))
    page = parts.read(mail.MAIL, head % mime.encode() + coded, "http://h/x.eml", None)
    assert page.parts[-1].text == "signed wörd"


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (der(0x30, ENVELOPED, der(0xA0, b"...")), "encrypted: it is encrypted for its recipients"),
        (signed(None), "no-text: it has a signature alone"),
        (der(0x30, OTHER, der(0xA0, b"...")), "no-reader: "),
        (signed(HTML)[:40], "damaged: its ASN.1 cannot be read"),
        (b"\x30\x80" * 9_000, "damaged: "),
        (b"\x30\x00", "damaged: "),
    ],
    ids=["encrypted", "detached", "other", "cut", "deep", "empty"],
)
def test_what_has_no_document_says_so(body, outcome):
    with pytest.raises(Unread) as refused:
        parts.read(P7M, body, "http://h/a.p7m", None)
    assert refused.value.unread.startswith(outcome)


def test_overwritten_bytes_end_in_text_or_an_outcome():
    drawn = random.Random(3)
    for make in (der, ber):
        for _ in range(200):
            body = bytearray(signed(HTML, make))
            body[drawn.randrange(len(body))] = drawn.randrange(256)
            try:
                page = parts.read(P7M, bytes(body), "http://h/a.p7m", None)
            except Unread:
                continue
            assert page.parts
