"""Properties of MAPI, which mails of Outlook (msg.py) and winmail.dat (tnef.py) share.

The body is the text, else the HTML, else compressed RTF (MS-OXCMAIL 2.1.3.3). Links come from all
three. For an appointment, a task and a contact, the place, times, people, addresses and telephone
numbers follow the sender. Strings of 8 bits are in the code page of
PidTagMessageCodepage, then PidTagInternetCodepage (MS-OXPROPS 2.776, 2.743), then guessed.
"""

from __future__ import annotations

import struct
from base64 import b64encode, encodebytes
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate

from larmspider.extraction.documents.labels import fits, of_codepage, text_of
from larmspider.extraction.documents.mails.mail import add_html, add_plain
from larmspider.extraction.documents.parts import Member
from larmspider.extraction.documents.reading import DocumentBuilder, Unread
from larmspider.extraction.documents.rtf import add_rtf
from larmspider.items import Outcome

SUBJECT, BODY, HTML, RTF = 0x0037, 0x1000, 0x1013, 0x1009
SENDER, SENDER_ADDRESS, SENDER_SMTP, FROM = 0x0C1A, 0x0C1F, 0x5D01, 0x0042
TO, CC = 0x0E04, 0x0E03
NAME, ADDRESS, SMTP = 0x3001, 0x3003, 0x39FE
SENT, DELIVERED = 0x0039, 0x0E06
MESSAGE_CODEPAGE, INTERNET_CODEPAGE = 0x3FFD, 0x3FDE
FILE_NAME, SHORT_FILE_NAME, DATA = 0x3707, 0x3704, 0x3701
INTEGER, STRING_8, STRING, TIME, BINARY, OBJECT = 0x0003, 0x001E, 0x001F, 0x0040, 0x0102, 0x000D
VARIABLE = (STRING_8, STRING, BINARY)
NAMED = 0x8000
"""Numbers from here on have a meaning in their message alone. The wanted ones are replaced by their
long id (MS-OXPROPS 1.3.4.2)."""
_FACTS = (
    *(0x8208, 0x820D, 0x820E, 0x8232, 0x8238),  # place, start, end, how often, who: MS-OXOCAL
    *(0x811F, 0x8104, 0x8105),  # owner, start and due date of a task: MS-OXOTASK
    *(
        0x3A16,
        0x3A18,
        0x3A17,
        0x3A08,
        0x3A09,
        0x3A1C,
        0x3A15,
        0x3A51,
    ),  # of a contact: MS-OXOCNTC
    *(0x801A, 0x801B, 0x801C, 0x8083, 0x8093, 0x80A3),  # addresses, of mail too
)
WANTED = frozenset(
    {SUBJECT, BODY, HTML, RTF, SENDER, SENDER_ADDRESS, SENDER_SMTP, FROM, TO, CC}
) | {*(NAME, ADDRESS, SMTP, FILE_NAME, SHORT_FILE_NAME), *_FACTS}
"""Properties of a length of their own that are read."""
_EPOCH_TICKS = 116_444_736_000_000_000  # 1601 to 1970, in 100 ns
_LAST_TICKS = 150_842_304_000_000_000  # 2079, the end of times in Outlook
COMPRESSED, _PLAIN = 0x75465A4C, 0x414C454D  # "LZFu", "MELA"
_WINDOW = 4_096
_FIRST = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern "
    b"\\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0"
    b"\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
"""The dictionary begins with this text (MS-OXRTFCP 2.1.2.1)."""


@dataclass(slots=True)
class Properties:
    """Properties of a message, recipient or attachment. ``values``: number and type of a property
    -> its value; ``parent`` knows the code pages."""

    values: dict[tuple[int, int], bytes | int] = field(default_factory=dict)
    parent: Properties | None = None

    def bytes_of(self, tag: int, kind: int = BINARY) -> bytes:
        value = self.values.get((tag, kind), b"")
        return value if isinstance(value, bytes) else b""

    def text_of(self, *tags: int) -> str:
        """The first existing string."""
        for tag in tags:
            if data := self.bytes_of(tag, STRING):
                return data.decode("utf-16-le", "replace").partition("\0")[0]
            if data := self.bytes_of(tag, STRING_8).partition(b"\0")[0]:
                return text_of(data, self._label(data), self._sample())
        return ""

    def _label(self, data: bytes) -> str:
        owner = self.parent or self
        for tag in (MESSAGE_CODEPAGE, INTERNET_CODEPAGE):
            label = of_codepage(owner.number_of(tag))
            if label and fits(data, label):
                return label
        return ""

    def _sample(self) -> bytes:
        owner = self.parent or self
        return b"\n".join(owner.bytes_of(tag, STRING_8) for tag in (BODY, SUBJECT, TO))

    def number_of(self, tag: int) -> int:
        value = self.values.get((tag, INTEGER), 0)
        return value if isinstance(value, int) else 0

    def time_of(self, *tags: int) -> float | None:
        """The first existing time."""
        for tag in tags:
            ticks = self.values.get((tag, TIME))
            if isinstance(ticks, int) and _EPOCH_TICKS < ticks < _LAST_TICKS:
                return float((ticks - _EPOCH_TICKS) / 1e7)
        return None

    def time(self) -> float | None:
        """When it was sent or delivered."""
        return self.time_of(SENT, DELIVERED)

    def facts(self) -> list[str]:
        """Lines with the fields of an appointment, a task or a contact."""
        found = []
        for tag in _FACTS:
            time = self.time_of(tag)
            found.append(self.text_of(tag) if time is None else f"{_day(time)} UTC")
        return list(dict.fromkeys(filter(None, found)))


def _day(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def add_head(message: Properties, recipients: list[Properties], builder: DocumentBuilder) -> None:
    builder.title = message.text_of(SUBJECT)
    builder.author = message.text_of(SENDER, FROM, SENDER_SMTP, SENDER_ADDRESS)
    builder.modified = message.time()
    shown = [builder.author, message.text_of(SENDER_SMTP, SENDER_ADDRESS)]
    shown += [message.text_of(tag) for tag in (TO, CC)]
    for one in recipients:
        shown += one.text_of(NAME), one.text_of(SMTP, ADDRESS)
    shown += message.facts()
    for value in dict.fromkeys(filter(None, shown)):
        builder.add(value)
    builder.note()


def add_body(message: Properties, url: str, builder: DocumentBuilder) -> None:
    text, markup = message.text_of(BODY), message.bytes_of(HTML)
    charset = of_codepage(message.number_of(INTERNET_CODEPAGE))
    if not markup and (written := message.text_of(HTML)):
        markup, charset = written.encode("utf-8", "replace"), "utf-8"
    if text.strip():
        add_plain(text, builder)
        builder.note()
    if markup:
        if charset and charset != "utf-8" and fits(markup, charset):
            markup, charset = text_of(markup, charset).encode("utf-8", "replace"), "utf-8"
        add_html(markup, url, builder, text=not text.strip(), charset=charset)
    elif not text.strip() and (packed := message.bytes_of(RTF)):
        add_rtf(decompressed(packed), builder)
    builder.note()


def as_mail(message: Properties, to: str, enclosed: Iterable[Member], depth: int) -> bytes:
    """A mail of RFC 5322 with the head and bodies of ``message``, and its attachments. ``depth``
    makes its boundary differ from the boundaries around it."""
    sender = message.text_of(SENDER, FROM, SENDER_SMTP, SENDER_ADDRESS)
    address = message.text_of(SENDER_SMTP, SENDER_ADDRESS)
    sender = f"{sender} <{address}>" if "@" in address and address != sender else sender
    head = {"Subject": message.text_of(SUBJECT), "From": sender, "To": to}
    head["Cc"] = message.text_of(CC)
    lines = [f"{name}: {_word(value)}" for name, value in head.items() if value]
    if (sent := message.time()) is not None:
        lines.append(f"Date: {formatdate(sent)}")
    boundary = f"=_{depth}"
    lines += "MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{boundary}"', ""
    parts = ["\r\n".join(lines).encode()]

    def add(kind: str, data: bytes, name: str = "") -> None:
        lines = [f"--{boundary}", f"Content-Type: {kind}", "Content-Transfer-Encoding: base64"]
        if name:
            lines.append(f'Content-Disposition: attachment; filename="{_word(name)}"')
        parts.append("\r\n".join((*lines, "", "")).encode() + encodebytes(data))

    if facts := "\n".join(message.facts()):
        add("text/plain; charset=utf-8", facts.encode("utf-8", "replace"))
    charset = of_codepage(message.number_of(INTERNET_CODEPAGE))
    if text := message.text_of(BODY):
        add("text/plain; charset=utf-8", text.encode("utf-8", "replace"))
    elif written := message.text_of(HTML):
        add("text/html; charset=utf-8", written.encode("utf-8", "replace"))
    elif markup := message.bytes_of(HTML):
        add(f"text/html; charset={charset}" if charset else "text/html", markup)
    elif packed := message.bytes_of(RTF):
        add("application/rtf", decompressed(packed), "message.rtf")
    for name, data, said in enclosed:
        if isinstance(data, bytes):
            add(said or "application/octet-stream", data, name)
    return b"\r\n".join((*parts, f"--{boundary}--\r\n".encode()))


def _word(text: str) -> str:
    """An encoded word of RFC 2047."""
    return f"=?utf-8?B?{b64encode(text.encode('utf-8', 'replace')).decode()}?="


def decompressed(data: bytes) -> bytes:
    """Compressed RTF (MS-OXRTFCP 2.2). Two bytes become 17 at most, so it has no bomb."""
    if len(data) < 16:
        raise Unread(Outcome.DAMAGED, "its compressed RTF is cut off")
    size, kind = struct.unpack_from("<II", data, 4)
    if kind == _PLAIN:
        return data[16 : 16 + size]
    if kind != COMPRESSED:
        raise Unread(Outcome.DAMAGED, "its compressed RTF has another signature")
    out, at, end = bytearray(_FIRST), 16, len(data)
    while at < end:
        flags = data[at]
        at += 1
        for bit in range(8):
            if not flags >> bit & 1:
                if at < end:
                    out.append(data[at])
                at += 1
            elif at + 1 < end:
                pair = data[at] << 8 | data[at + 1]
                at += 2
                back = (len(out) - (pair >> 4)) % _WINDOW
                length = (pair & 15) + 2
                if not back or back > len(out):
                    return bytes(out[len(_FIRST) :])  # the end, or a place before the dictionary
                for place in range(len(out) - back, len(out) - back + length):
                    out.append(out[place])
            else:
                at = end
    return bytes(out[len(_FIRST) :])
