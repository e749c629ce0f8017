"""Mails as programs write them: eml, mbox, MHTML (RFC 5322, 2045 to 2047, 2231, 2557, 4155), and
mailboxes of MMDF and of Emacs (Babyl).

The reader takes the subject as title, From, To and Cc, the date, and the text: each part of plain
text or HTML without a file name. If there are alternatives, it takes the plain text, the links of
the others, and their text if they have far more of it. All other parts are attachments, and so are
files that stand uuencoded in a plain text; the mails of a mailbox are its members. Both become
parts of the document (parts.py).

labels.py decodes charsets; an HTML part without a charset is decoded by its own ``<meta>``. A
multipart without its boundary is parsed by the first line that looks like one, else it is text. In
an mbox "From " begins a mail if it follows an empty line, and an address, a date and a header
follow; or, without the empty line, if a time and a header of mails follow.

MHTML, the file of a saved page, is the page of its root part: its title, its language, its links
relative to Content-Location, and the text of its frames. A body of RTF, or a calendar, is a
part. A mail signed in one piece has its text as a part (signed.py). Encrypted mails are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.errors import MissingHeaderBodySeparatorDefect
from email.feedparser import BytesFeedParser
from email.message import Message
from email.policy import compat32
from typing import Any

from larmspider.extraction.body_type import is_signed
from larmspider.extraction.documents.labels import known, text_of
from larmspider.extraction.documents.mails.mail_coding import (
    coding_of,
    decoded,
    is_base64,
    uuencoded,
    without_uuencoded,
)
from larmspider.extraction.documents.mails.mail_headers import Near, parameter, text_of_header
from larmspider.extraction.documents.parts import MAX_MEMBERS, Budget, Member
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    Unread,
    date_of,
    keeping,
    urls_in,
)
from larmspider.extraction.pages import html
from larmspider.items import Outcome, Page
from larmspider.urls.media_types import module_of, type_by_name
from larmspider.urls.resolve import resolve

MAIL, MBOX = "message/rfc822", "application/mbox"
_SAYING_NOTHING = ("application/octet-stream", "text/plain")
"""Types under which mail programs send any attachment."""
_FROM = re.compile(
    rb"(?:(?<=\n\n)|(?<=\n\r\n))From (?:(?:\S+|\"[^\"\r\n]*\"\S*|\S+ at \S+)?[ \t]+"
    rb"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b[^\r\n]*\d|\d{4}-\d\d-\d\d)[^\r\n]*"
    rb"|\S+[ \t][^\r\n]*\d:\d\d:\d\d[^\r\n]*\d{4}[^\r\n]*|[^\s@]+@[^\s@]+)\r?\n"
    rb"(?=[!-9;-~]+[ \t]*:|>From )"
    rb"|(?<=\n)From (?:\S+|\S+ at \S+)[ \t]+(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b[^\r\n]*"
    rb"\d:\d\d[^\r\n]*\r?\n(?=(?i:return-path|received|delivered-to|from|to|subject|date"
    rb"|message-id|mime-version|x-[\w-]+|status|content-type|reply-to)[ \t]*:)"
)
"""The first line of a mail: after an empty line; or before the headers of a mail, as some programs
leave the empty line out."""
_FIRST_FROM = re.compile(rb"From [^\r\n]*\r?\n?")
_UUCP = re.compile(rb"(?:>From [^\r\n]*\r?\n)+")
"""Lines of the way of a mail (RFC 976 2.4)."""
_MMDF, _BABYL = b"\1\1\1\1", b"BABYL OPTIONS:"
_MMDF_LINE = re.compile(rb"\x01{4}\r?\n")
_BABYL_MAIL = re.compile(rb"\x1f\r?\n?\f\r?\n[^\r\n]*\r?\n")
"""The line of labels before a mail of Babyl."""
_BABYL_HEAD = re.compile(rb"^\*\*\* EOOH \*\*\*\r?\n", re.MULTILINE)
"""Behind the whole head, before the head as it was shown."""
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_SHOWN = re.compile(
    rb"^(subject|from|to|cc|date)[ \t]*:((?:[^\n]*\n?)(?:[ \t][^\n]*\n?)*)",
    re.IGNORECASE | re.MULTILINE,
)
_CHARSET = re.compile(rb"charset[ \t]*=[ \t]*\"?([\w.:+-]{1,60})", re.IGNORECASE)
_HEADER = re.compile(rb"[ \t]|[!-9;-~]+[ \t]*:")  # or the continuation of one
_MAIL_HEADER = re.compile(
    rb"(?:content-[a-z-]+|mime-version|subject|from|to|cc|date|received|message-id|x-[a-z-]+):",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(
    rb"^--([!#-\[\]-~](?:[ !#-\[\]-~]{0,200}[!#-\[\]-~])?)[ \t]*\r?\n(?=content-[\w-]+:)",
    re.IGNORECASE | re.MULTILINE,
)
_HTML = re.compile(r"\s*<(?:!doctype html|html|head|body)[\s>]", re.IGNORECASE)
"""The beginning of a body of HTML without a type."""
_SAVED_BY = re.compile(r"[\W_]*(?:saved by|gespeichert von|enregistr\w+ par)\b", re.IGNORECASE)
"""A browser in place of an author: ``From: <Saved by Blink>``."""
_LETTER = re.compile(r"\w")
_CODED = ("rtf", "content_lines")
"""Readers of texts with escapes: RTF, calendars, cards."""
_MARKED = ("text/enriched", "text/richtext")
_MARK_UP = re.compile(r"(?is)(?<!<)<(?:param>.{0,1000}?</param|/?[a-z-]{1,60})>")
"""RFC 1896: tags, and what only tags need."""
_FAR_MORE = 4
"""HTML with more than this many times the characters of its plain form is read beside it."""
_DELETED_SPACE = re.compile(r" \r?\n(?!>)")
_BEFORE = b"\xef \t\r\n123456789"
_SIZE = re.compile(rb"(\d{1,9})[ \t]*\n(?=[!-9;-~]+:)")
_MARK, _BLANK = b"\xef\xbb\xbf", b" \t\r\n"
_ADDRESSED = ("to", "cc", "bcc", "received", "delivered-to", "newsgroups")
"""Headers that a saved page lacks."""
MAX_HEAD = 1 << 20
"""Bytes of a head."""
MAX_HEADER = 20_000
"""Characters of a header, some 500 addresses."""
MAX_NESTED = 200
"""Nested parts; a mail that was forwarded 20 times has 40. Python's parser raises
RecursionError at 900, and compares each line with the boundary of each part around it."""
_PIECE, _SAMPLE = 1 << 20, 1 << 16


def is_mbox(body: bytes) -> bool:
    return _beginning(body).startswith((b"From ", _MMDF, _BABYL))


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    if is_mbox(body):
        return Page(url)
    builder = DocumentBuilder()
    with keeping(builder, url):
        body = _beginning(body)
        near = _near(body)
        _read_head(body, builder, near)
        message, fault = _parsed(body)
        _Reader(url, builder, near).read(message)
        if fault is not None:
            raise fault
    return builder.page(url)


def _beginning(body: bytes) -> bytes:
    """``body`` without the parts before its head (a byte order mark, empty lines, the size that
    Apple Mail writes), and without zeros at its end."""
    if b"\n" not in body[:_SAMPLE]:
        body = body.replace(b"\r", b"\n")  # of an old Mac
    if body[:1] in _BEFORE:
        body = body.removeprefix(_MARK).lstrip(_BLANK)
        if found := _SIZE.match(body):
            body = body[found.end() : found.end() + int(found[1])]
    return body.rstrip(b"\0")  # a disk or a copy may have filled it up


def _near(body: bytes) -> Near:
    """The first charset that a part declares, and the first bytes."""
    sample = body[:_SAMPLE]
    labels = (found.decode("latin-1") for found in _CHARSET.findall(sample))
    return Near(next((label for label in labels if known(label) not in ("", "utf-8")), ""), sample)


def _read_head(body: bytes, builder: DocumentBuilder, near: Near) -> None:
    """Read the head before the rest is parsed, because that may use up the time limit."""
    end = _HEAD_END.search(body, 0, MAX_HEAD)
    shown: dict[bytes, str] = {}
    for name, value in _SHOWN.findall(body, 0, end.start() if end else MAX_HEAD):
        shown.setdefault(name.lower(), text_of_header(value[:MAX_HEADER], near))
    if _SAVED_BY.match(shown.get(b"from", "")):
        del shown[b"from"]
    builder.title = shown.get(b"subject", "")
    builder.author = shown.get(b"from", "")
    builder.modified = date_of(shown.get(b"date", ""))
    for name in (b"from", b"to", b"cc"):
        if value := shown.get(name):
            builder.add(value)
            builder.note()
    builder.note()


class _Reader:
    """Adds the texts of a mail to ``builder``."""

    def __init__(self, url: str, builder: DocumentBuilder, near: Near) -> None:
        self.url, self.builder, self.near = url, builder, near
        self.named: set[str] = set()
        """URLs of the links."""
        self.plain = 0
        """Characters of plain text."""

    def read(self, message: _Message) -> None:
        title = self.builder.title
        texts, _ = _sorted(message)
        is_page = _is_saved_page(message)
        for part, has_text in texts:
            links = len(self.builder.links)
            if part.get_content_maintype() == "message":
                self._add_report(part)
            elif _is_html(part):
                found = self._add_html(part, has_text=has_text)
                if is_page:
                    self.builder.title = found.title or title
                    self.builder.language = found.language
                    is_page = False
            elif has_text:
                text = _plain(part, self.near)
                self.plain += len(text)
                add_plain(text, self.builder)
            self.named.update(link[0] for link in self.builder.links[links:])
            self.builder.note()

    def _add_html(self, part: _Message, *, has_text: bool) -> Page:
        label = known(_charset(part))
        data = _payload(part)
        if label and not label.startswith("utf-16"):
            data, label = text_of(data, label).encode("utf-8", "replace"), "utf-8"
        place = _location(part, self.url)
        page = add_html(data, place, self.builder, text=has_text, charset=label, named=self.named)
        if not has_text and 0 < _FAR_MORE * self.plain < len(page.text):
            self.builder.add(page.text)
        return page

    def _add_report(self, part: _Message) -> None:
        """A report names the mail and says why it was not delivered (RFC 3464)."""
        for group in part.inside:
            lines = (f"{name}: {text_of_header(_bytes(raw))}" for name, raw in group.raw_items())
            self.builder.add("\n".join(lines))


def _is_saved_page(message: _Message) -> bool:
    """Whether a browser or a wiki has written it. A mail has recipients."""
    is_page = message.get_content_type() in ("multipart/related", "text/html")
    return is_page and not any(name in message for name in _ADDRESSED)


def _sorted(message: _Message) -> tuple[list[tuple[_Message, bool]], list[_Message]]:
    """The texts of a mail, each with whether its text is wanted in addition to its links; and its
    attachments."""
    texts: list[tuple[_Message, bool]] = []
    enclosed: list[_Message] = []
    saved = _is_saved_page(message)

    def sort(part: _Message, *, is_whole: bool = False) -> None:
        kind = part.get_content_type()
        if part.is_multipart() and part.get_content_maintype() != "message":
            inside = part.inside
            if kind == "multipart/alternative":
                _sort_alternatives(inside, texts, enclosed, sort)
                return
            if kind == "multipart/related" and (root := _root(part, inside)):
                sort(root, is_whole=True)
                inside = [other for other in inside if other is not root]
            for other in inside:
                sort(other)
        elif kind in ("message/delivery-status", "message/disposition-notification"):
            (texts.append((part, True)) if part.is_multipart() else enclosed.append(part))
        elif (saved and _is_html(part)) or (
            _is_text(part, is_whole=is_whole) and (is_whole or not _is_attached(part))
        ):
            texts.append((part, True))
        else:
            enclosed.append(part)

    sort(message, is_whole=True)
    return texts, enclosed


def _sort_alternatives(inside: list[_Message], texts: Any, enclosed: Any, sort: Any) -> None:
    """Read the plain one of several forms of a text, and the links of the others."""
    at = len(texts)
    for part in inside:
        if part.get_content_type() != "text/x-amp-html":
            sort(part)
    added = texts[at:]
    plain = any(not _is_html(part) and _has_words(part) for part, _ in added)
    texts[at:] = [(part, wanted and not (plain and _is_html(part))) for part, wanted in added]


def _has_words(part: _Message) -> bool:
    """Whether a part has words. A no-break space alone has none; some programs send it as text."""
    data = _payload(part)
    return bool(data.strip()) and _LETTER.search(text_of(data, _charset(part))) is not None


def _root(part: _Message, inside: list[_Message]) -> _Message | None:
    """The part that the others belong to (RFC 2387 3.2)."""
    start = parameter(_raw(part, "content-type"), "start").strip("<> ")
    named = (
        one for one in inside if start and _raw(one, "content-id").strip(b"<> ") == start.encode()
    )
    pages = (one for one in inside if _is_html(one) or one.is_multipart())
    return next(named, None) or next(pages, None) or next(iter(inside), None)


def _is_html(part: _Message) -> bool:
    if part.get_content_type() in ("text/html", "application/xhtml+xml"):
        return True
    if "content-type" in part and part.get_content_maintype() != "multipart":
        return False
    return _HTML.match(part.written) is not None


def _is_text(part: _Message, *, is_whole: bool) -> bool:
    """``is_whole``: the part is the mail itself, or all of its text."""
    if part.get_content_maintype() == "multipart":
        return True  # without its parts
    kind = part.get_content_type()
    if is_whole and kind.startswith("text/") and module_of(kind) not in _CODED:
        return True
    return kind in ("text/plain", *_MARKED) or _is_html(part)


def _is_attached(part: _Message) -> bool:
    disposition = _raw(part, "content-disposition").strip().lower()
    return disposition.startswith(b"attachment") or bool(_file_name(part))


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    body = _beginning(body)
    if is_mbox(body):
        yield from _mails(body)
        return
    message, fault = _parsed(body)
    near = _near(body)
    texts, enclosed = _sorted(message)
    for number, part in enumerate(enclosed, 1):
        yield from _member(part, number, near)
    for part, _ in texts:
        for file, data in uuencoded(_payload(part)) if not part.is_multipart() else ():
            yield Member(text_of_header(file, near), data)
    if fault is not None:
        raise fault


def _mails(body: bytes) -> Iterator[Member]:
    if body.startswith(_MMDF):
        mails = filter(None, _between(_MMDF_LINE, body))
        yield from (Member(f"{number}.eml", mail, MAIL) for number, mail in enumerate(mails, 1))
    elif body.startswith(_BABYL):
        for number, mail in enumerate(_between(_BABYL_MAIL, body)):
            if number:  # options stand before the first mail
                yield Member(f"{number}.eml", _of_babyl(mail), MAIL)
    else:
        yield from _mails_of_mbox(body)


def _between(line: re.Pattern[bytes], body: bytes) -> Iterator[bytes]:
    at = 0
    for found in line.finditer(body):
        yield body[at : found.start()]
        at = found.end()
    yield body[at:]


def _of_babyl(mail: bytes) -> bytes:
    """A mail with its whole head, if it is there."""
    found = _BABYL_HEAD.search(mail)
    if found is None:
        return mail
    whole, shown = mail[: found.start()].strip(), mail[found.end() :].rstrip(b"\x1f")
    end = _HEAD_END.search(shown)
    if not whole or end is None:
        return shown
    return whole + shown[end.start() :]


def _mails_of_mbox(body: bytes) -> Iterator[Member]:
    """The mails of an mbox. ">From " is "From " again (mboxrd)."""
    first = _FIRST_FROM.match(body)
    spans = [first.span()] if first else []
    spans += [found.span() for found in _FROM.finditer(body)]
    ends = [start for start, _ in spans[1:]] + [len(body)]
    for number, ((_, start), end) in enumerate(zip(spans, ends, strict=True), 1):
        if uucp := _UUCP.match(body, start, end):
            start = uucp.end()
        yield Member(f"{number}.eml", _QUOTED_FROM.sub(rb"\1", body[start:end]), MAIL)


def _member(part: _Message, number: int, near: Near) -> Iterator[Member]:
    file, said = _file_name(part, near), part.get_content_type()
    if part.is_multipart():  # message/rfc822 and its like
        for inner in part.inside:
            yield Member(file or f"{number}.eml", _again(inner, part), MAIL)
        return
    if not file and (place := _location(part, "")):
        file = place.partition("?")[0].rpartition("/")[2]
    if said in _SAYING_NOTHING:
        said = ""
    around = part.around.get_content_type() if part.around is not None else ""
    if around == "multipart/encrypted":
        if number == 1:  # of the two parts (RFC 1847 2.2)
            why = Unread(Outcome.ENCRYPTED, "it is encrypted for its recipients")
            yield Member("encrypted", why)
        return
    data: bytes | Unread = _payload(part)
    is_coded = _coding(part) == "base64" and is_signed(said or type_by_name(file))
    if is_coded and data and not is_base64(_encoded(part)):
        data = Unread(Outcome.DAMAGED, "its base64 cannot be decoded")
    yield Member(file or f"attachment-{number}", data, said)


def _again(inner: _Message, part: _Message) -> bytes:
    """The bytes of a mail inside a mail. Some programs encode them, although RFC 2046 5.2 forbids
    it."""
    try:
        data: bytes = inner.as_bytes()
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unread(Outcome.DAMAGED, f"a mail in it cannot be read: {error}") from None
    coding = _coding(part)
    return decoded(data, coding) if coding in ("base64", "quoted-printable") else data


class _Message(Message):
    """``depth``: parts around it; ``around``: the part that it is in; ``place``: `_location`."""

    depth = 0
    around: _Message | None = None
    place = ""
    _payload: Any = None

    @property
    def inside(self) -> list[_Message]:
        """The parts in this one."""
        return self._payload if isinstance(self._payload, list) else []

    @property
    def written(self) -> str:
        """The body as it stands, with bytes beyond ASCII as surrogates."""
        return self._payload if isinstance(self._payload, str) else ""

    def attach(self, payload: Any) -> None:
        payload.depth, payload.around = self.depth + 1, self
        if payload.depth > MAX_NESTED:
            why = f"it has more than {MAX_NESTED} nested parts"
            raise Unread(Outcome.TOO_LARGE, why)
        super().attach(payload)


def _parse(body: bytes) -> tuple[_Message, Unread | None]:
    """The mail, or its parts before the fault that ended the parser."""
    made: list[_Message] = []

    def make(policy: Any) -> _Message:
        if len(made) > 2 * MAX_MEMBERS:
            raise Unread(Outcome.TOO_LARGE, f"it holds more than {MAX_MEMBERS:,} documents")
        made.append(_Message(policy))
        return made[-1]

    parser = BytesFeedParser(policy=compat32.clone(message_factory=make))
    try:
        for at in range(0, len(body), _PIECE):
            parser.feed(body[at : at + _PIECE])
        parser.close()
    except Unread as fault:
        return made[0], fault
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # from odd headers
        return made[0], Unread(Outcome.DAMAGED, f"the mail cannot be parsed: {error!r}"[:300])
    return made[0], None


def _parsed(body: bytes) -> tuple[_Message, Unread | None]:
    """The result of `_parse`. If the boundary of a multipart is missing or wrong, the first line
    that looks like a boundary separates its parts. Lines in the head that are no headers are
    skipped."""
    message, fault = _parse(body)
    if any(isinstance(one, MissingHeaderBodySeparatorDefect) for one in message.defects):
        message, fault = _parse(_without_junk(body))
    if message.get_content_maintype() != "multipart" or message.is_multipart():
        return message, fault
    body = _payload(message)
    if found := _BOUNDARY.search(body, 0, _SAMPLE):
        head = b'Content-Type: multipart/mixed; boundary="%b"\n\n' % found[1]
        parts, fault = _parse(head + body[found.start() :])
        if parts.is_multipart():
            message.set_payload([])
            for part in parts.inside:
                message.attach(part)
    return message, fault


def _without_junk(body: bytes) -> bytes:
    """Without the lines before the last header of the head that are neither header nor its
    continuation, as ``>From`` of a mailbox."""
    head, blank, rest = body.partition(b"\n\r\n" if b"\r\n" in body[:_SAMPLE] else b"\n\n")
    lines = head[:_SAMPLE].splitlines(keepends=True)
    headers = [number for number, line in enumerate(lines) if _MAIL_HEADER.match(line)]
    if not blank or len(head) > _SAMPLE or not headers:
        return body
    kept = [line for line in lines[: headers[-1]] if _HEADER.match(line)]
    return b"".join([*kept, *lines[headers[-1] :], blank, rest])


def _bytes(header: Any) -> bytes:
    return str(header)[:MAX_HEADER].encode("utf-8", "surrogateescape")


def _raw(part: _Message, name: str) -> bytes:
    """The first header of that name as it stands, "" without one."""
    return next((_bytes(value) for key, value in part.raw_items() if key.lower() == name), b"")


def _payload(part: _Message) -> bytes:
    return decoded(_encoded(part), _coding(part))


def _encoded(part: _Message) -> bytes:
    return part.written.encode("utf-8", "surrogateescape")


def _coding(part: _Message) -> str:
    return coding_of(_raw(part, "content-transfer-encoding").decode("latin-1"))


def _charset(part: _Message) -> str:
    return parameter(_raw(part, "content-type"), "charset")


def _plain(part: _Message, near: Near) -> str:
    text = text_of(without_uuencoded(_payload(part)), _charset(part), near.sample)
    content_type = _raw(part, "content-type")
    if part.get_content_type() in _MARKED:
        text = _MARK_UP.sub("", text).replace("<<", "<")
    if b"flowed" in content_type.lower() and parameter(content_type, "delsp").lower() == "yes":
        text = _DELETED_SPACE.sub("", text)  # RFC 3676 4.2
    return text


def _file_name(part: _Message, near: Near = Near()) -> str:  # noqa: B008 - it is a tuple
    return parameter(_raw(part, "content-disposition"), "filename", near) or parameter(
        _raw(part, "content-type"), "name", near
    )


def _location(part: _Message | None, url: str) -> str:
    """The URL that links in a part are relative to (RFC 2557 5). This is its Content-Location,
    which may be relative to the parts around it; ``url`` if no part has a URL of the web."""
    if part is None:
        return url
    if not part.place:
        around = part.place = _location(part.around, url)
        for name in ("content-location", "content-base", "snapshot-content-location"):
            place = "".join(text_of_header(_raw(part, name)).split())
            found = resolve(around or place, place) if place else None
            if found is not None and found.startswith(("http://", "https://")):
                part.place = found
                break
    return part.place


def add_plain(text: str, builder: DocumentBuilder) -> None:
    builder.add(text)
    for target in urls_in(text):
        builder.add_link(target)


def add_html(
    markup: bytes,
    url: str,
    builder: DocumentBuilder,
    *,
    text: bool,
    charset: str = "",
    named: set[str] | None = None,
) -> Page:
    """Add the links that ``named``, else ``builder`` lacks, and with ``text`` the text. Returns the
    page."""
    page = html.extract(markup, url, f"text/html; charset={charset}" if charset else None)
    named = {link[0] for link in builder.links} if named is None else named
    builder.links += [
        (link.url, link.type, link.anchor, link.nofollow)
        for link in page.links
        if link.url not in named
    ]
    if text:
        builder.add(page.text)
    return page
