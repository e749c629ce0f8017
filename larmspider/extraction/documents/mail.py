"""Mails as the standards have them: eml and mbox, by the standard library.

The subject is the title. Attachments, and the mails of an mbox, are parts (parts.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage, MIMEPart
from email.policy import default

from larmspider.extraction import html
from larmspider.extraction.documents.parts import Budget, Member
from larmspider.extraction.documents.reading import DocumentBuilder, date_of, keeping, urls_in
from larmspider.items import Page

MBOX = "application/mbox"
_FROM = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\r?\n")
_HEADERS = ("From", "To", "Cc")


def is_mbox(body: bytes) -> bool:
    return body.startswith(b"From ")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    if is_mbox(body):
        return Page(url)
    message = _parsed(body)
    builder = DocumentBuilder()
    with keeping(builder, url):
        _read(message, url, builder)
    return builder.page(url)


def _read(message: EmailMessage, url: str, builder: DocumentBuilder) -> None:
    builder.title = _header(message, "Subject")
    builder.author = _header(message, "From")
    builder.modified = date_of(_header(message, "Date"))
    for name in _HEADERS:
        if value := _header(message, name):
            builder.add(value)
    builder.note()
    plain, markup = (message.get_body(preferencelist=(kind,)) for kind in ("plain", "html"))
    if plain is not None:
        add_plain(_content(plain), builder)
        builder.note()
    if markup is not None:
        data = _content(markup).encode("utf-8", "replace")
        add_html(data, url, builder, text=plain is None, charset="utf-8")
    builder.note()


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    if is_mbox(body):
        starts = [found.span() for found in _FROM.finditer(body)]
        ends = [start for start, _ in starts[1:]] + [len(body)]
        for number, ((_, start), end) in enumerate(zip(starts, ends, strict=True), 1):
            yield f"{number}.eml", body[start:end]
        return
    for number, part in enumerate(_parsed(body).iter_attachments(), 1):
        inner = part.get_content() if part.get_content_type() == "message/rfc822" else None
        file = part.get_filename()
        if isinstance(inner, EmailMessage):
            yield file or f"{number}.eml", inner.as_bytes()
        elif isinstance(payload := part.get_payload(decode=True), bytes):
            yield file or f"attachment-{number}", payload


def _parsed(body: bytes) -> EmailMessage:
    return message_from_bytes(body, policy=default)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message[name] or "")
    except Exception:  # noqa: BLE001 - its parser raises IndexError and others on odd headers
        return str(dict(message.raw_items()).get(name, ""))


def _content(part: MIMEPart) -> str:
    try:
        return str(part.get_content())
    except (LookupError, KeyError, ValueError, AttributeError):  # an unknown charset
        payload = part.get_payload(decode=True)
        return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""


def add_plain(text: str, builder: DocumentBuilder) -> None:
    builder.add(text)
    for target in urls_in(text):
        builder.add_link(target)


def add_html(
    markup: bytes, url: str, builder: DocumentBuilder, *, text: bool, charset: str = ""
) -> None:
    """The links that plain text has not named, and with ``text`` the text."""
    page = html.extract(markup, url, f"text/html; charset={charset}" if charset else None)
    known = {link[0] for link in builder.links}
    builder.links += [
        (link.url, link.type, link.anchor, link.nofollow)
        for link in page.links
        if link.url not in known
    ]
    if text:
        builder.add(page.text)
