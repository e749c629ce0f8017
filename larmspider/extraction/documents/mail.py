"""Mails as the standards have them: eml and mbox, by the standard library.

The subject is the title. Attachments, and the mails of an mbox, are parts (parts.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.feedparser import BytesFeedParser
from email.message import EmailMessage, MIMEPart
from email.parser import BytesHeaderParser
from email.policy import default
from typing import Any

from larmspider.extraction import html
from larmspider.extraction.documents.parts import MAX_MEMBERS, Budget, Member
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    Unread,
    date_of,
    keeping,
    urls_in,
)
from larmspider.items import Outcome, Page

MAIL, MBOX = "message/rfc822", "application/mbox"
_SAYING_NOTHING = ("application/octet-stream", "text/plain")
"""Mail programs send any attachment under these."""
_FROM = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\r?\n")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_HEADERS = ("From", "To", "Cc")
_SHOWN = re.compile(
    rb"^(?:subject|from|to|cc|date)[ \t]*:.*\n?(?:[ \t].*\n?)*", re.IGNORECASE | re.MULTILINE
)
MAX_HEAD = 1 << 20
"""Bytes of a head."""
MAX_HEADER = 20_000
"""Characters of a header, some 500 addresses: their parser takes 0.1 s for them."""
MAX_NESTED = 200
"""Parts in each other; a mail that was forwarded 20 times has 40. Python's parser raises
RecursionError at 900, and compares each line with the boundary of each part around it."""
_PIECE = 1 << 20


def is_mbox(body: bytes) -> bool:
    return body.startswith(b"From ")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    if is_mbox(body):
        return Page(url)
    builder = DocumentBuilder()
    with keeping(builder, url):
        _read_head(body, builder)
        message, fault = _parsed(body)
        _read(message, url, builder)
        if fault is not None:
            raise fault
    return builder.page(url)


def _read_head(body: bytes, builder: DocumentBuilder) -> None:
    """Before the rest is parsed, which may take all the time that there is."""
    end = _HEAD_END.search(body, 0, MAX_HEAD)
    head = body[: end.start() if end else MAX_HEAD]
    shown = b"".join(found.rstrip(b"\r\n") + b"\n" for found in _SHOWN.findall(head))
    message = BytesHeaderParser(policy=default).parsebytes(shown)  # not those that take long
    builder.title = _header(message, "Subject")
    builder.author = _header(message, "From")
    builder.modified = date_of(_header(message, "Date"))
    for name in _HEADERS:
        if value := _header(message, name):
            builder.add(value)
            builder.note()
    builder.note()


def _read(message: EmailMessage, url: str, builder: DocumentBuilder) -> None:
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
            yield Member(f"{number}.eml", body[start:end], MAIL)
        return
    message, fault = _parsed(body)
    for number, part in enumerate(message.iter_attachments(), 1):
        inner = part.get_content() if part.get_content_type() == "message/rfc822" else None
        file = part.get_filename()
        if isinstance(inner, EmailMessage):
            yield Member(file or f"{number}.eml", inner.as_bytes(), MAIL)
        elif isinstance(payload := part.get_payload(decode=True), bytes):
            said = part.get_content_type()
            said = "" if said in _SAYING_NOTHING else said
            yield Member(file or f"attachment-{number}", payload, said)
    if fault is not None:
        raise fault


class _Message(EmailMessage):
    """``depth``: parts around it."""

    depth = 0

    def attach(self, payload: Any) -> None:
        payload.depth = self.depth + 1
        if payload.depth > MAX_NESTED:
            why = f"it has more than {MAX_NESTED} parts in each other"
            raise Unread(Outcome.TOO_LARGE, why)
        super().attach(payload)


def _parsed(body: bytes) -> tuple[EmailMessage, Unread | None]:
    """The mail, or its parts before the fault that ended the parser."""
    made: list[_Message] = []

    def make(policy: Any) -> EmailMessage:
        if len(made) > 2 * MAX_MEMBERS:
            raise Unread(Outcome.TOO_LARGE, f"it holds more than {MAX_MEMBERS:,} documents")
        made.append(_Message(policy))
        return made[-1]

    parser = BytesFeedParser(policy=default.clone(message_factory=make))
    try:
        for at in range(0, len(body), _PIECE):
            parser.feed(body[at : at + _PIECE])
        parser.close()
    except Unread as fault:
        return made[0], fault
    return made[0], None


def _header(message: EmailMessage, name: str) -> str:
    """The beginning of a header; "" if there is none."""
    values = (value for key, value in message.raw_items() if key.lower() == name.lower())
    raw = str(next(values, ""))[:MAX_HEADER]
    try:
        return str(default.header_fetch_parse(name, raw)) if raw else ""
    except Exception:  # noqa: BLE001 - its parser raises IndexError and others on odd headers
        return raw


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
