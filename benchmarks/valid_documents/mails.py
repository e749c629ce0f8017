"""Mails, calendars and cards in odd but valid forms."""

from __future__ import annotations

import base64
import quopri
import struct
from collections.abc import Iterator
from email.charset import BASE64, QP
from email.generator import BytesGenerator
from email.header import Header
from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.policy import SMTP, SMTPUTF8, default
from io import BytesIO

from benchmarks.valid_documents.made import Made
from benchmarks.valid_documents.sentences import CHARSETS, SENTENCES
from benchmarks.valid_documents.words import EASTERN, LATIN, Words
from tests.support.documents.corpus import zipped
from tests.support.documents.ole_file import ole
from tests.support.documents.tnef_file import (
    attachment,
    attribute,
    compressed,
    prop,
    properties,
    tnef,
)

_SCRIPTS = (*LATIN, *EASTERN, "arabic", "hebrew", "chinese", "japanese", "korean")


def files() -> Iterator[Made]:
    for number, body in enumerate(_mails()):
        yield Made("eml", f"{number}.eml", *body)
    yield from _mboxes()
    yield from _outlook()
    yield from _tnef()
    yield from _saved_pages()
    yield from _calendars()
    yield from _cards()


_Body = tuple[bytes, str]


def _mails() -> Iterator[_Body]:
    for language, charsets in CHARSETS.items():
        for at, charset in enumerate(charsets):
            yield _in_charset(language, charset, (BASE64, QP, None)[at % 3])
    yield from _mime_mails()


def _in_charset(language: str, charset: str, coding: int | None) -> _Body:
    text, words = SENTENCES[language], Words(f"mail {language} {charset}")
    subject = text.split(".")[0][:60].rpartition(" ")[0] or text[:12]
    data = text.encode(charset)
    name = "7bit" if charset in ("us-ascii", "iso-2022-jp") else "8bit"
    if charset == "utf-16" and coding is None:
        coding = BASE64
    if coding == BASE64:
        name, data = "base64", base64.encodebytes(data)
    elif coding == QP:
        name, data = "quoted-printable", quopri.encodestring(data)
    coded = Header(subject, "utf-8" if charset == "utf-16" else charset).encode()
    head = (
        f"From: {words()} <a@h.example>\r\nSubject: {coded}\r\nMIME-Version: 1.0\r\n"
        f"Content-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: {name}\r\n\r\n"
    )
    return head.encode() + data, f"{text} {subject} {' '.join(words.all)}"


def _mime_mails() -> Iterator[_Body]:
    for policy in (default, SMTP, SMTPUTF8):
        yield _with_everything(policy)
    words = Words("mail odd")
    yield (
        f"Subject: {words()}\nFrom: a@h.example\n\n{words()}\n".encode(),
        " ".join(words.all),
    )  # no MIME at all
    words = Words("mail folded")
    text = words(count=30)
    yield (
        (
            "SUBJECT:\r\n\t" + "\r\n\t".join(text.split()) + "\r\nfrom: x@h.example\r\n"
            f"To: undisclosed-recipients:;\r\n\r\n{words()}\r\n"
        ).encode(),
        " ".join(words.all),
    )
    words = Words("mail flowed")
    lines = " \r\n".join(words(count=20).split())
    yield (
        (
            "Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; format=flowed; "
            f"charset=us-ascii\r\n\r\n{lines}\r\n"
        ).encode(),
        " ".join(words.all),
    )
    words = Words("mail nested")
    inside = MIMEText(words(script="german"), "plain", "utf-8")
    for kind in ("related", "mixed", "signed", "mixed", "report"):
        outer = MIMEMultipart(kind)
        outer.attach(inside)
        outer.attach(MIMEText(f"<p>{words()}</p>", "html", "utf-8"))
        inside = outer
    inside["Subject"] = words()
    yield inside.as_bytes(), " ".join(words.all)
    words = Words("mail in mail")
    message = EmailMessage()
    message["Subject"] = words()
    message.set_content(words())
    for _ in range(3):
        outer_mail = EmailMessage()
        outer_mail["Subject"] = words()
        outer_mail.set_content(words())
        outer_mail.add_attachment(message)
        message = outer_mail
    yield message.as_bytes(), " ".join(words.all)
    words = Words("mail html")
    page = f"<html><head><style>p {{}}</style></head><body><p>{words(script='german')}<br>{words()}"
    yield (
        (
            b'Subject: x\nMIME-Version: 1.0\nContent-Type: TEXT/HTML; CHARSET="ISO-8859-1"\n'
            b"Content-Transfer-Encoding: 8BIT\n\n" + page.encode("iso-8859-1")
        ),
        " ".join(words.all),
    )
    words = Words("mail uuencoded")
    import binascii

    plain = words(count=30).encode()
    lines_uu = b"".join(binascii.b2a_uu(plain[at : at + 45]) for at in range(0, len(plain), 45))
    yield (
        (
            b"Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain\n"
            b"Content-Transfer-Encoding: x-uuencode\n\nbegin 644 a.txt\n" + lines_uu + b"`\nend\n"
        ),
        " ".join(words.all),
    )
    words = Words("mail names")
    message = EmailMessage()
    message["Subject"] = "x"
    message.set_content("y")
    for script in ("german", "russian", "chinese"):
        message.add_attachment(
            words(script=script).encode(),
            maintype="application",
            subtype="octet-stream",
            filename=words(script=script, count=2) + ".txt",
        )
    yield message.as_bytes(), " ".join(words.all)


def _with_everything(policy: object) -> _Body:
    words = Words(f"mail {id(policy)}" if policy is None else "mail everything")
    message = EmailMessage(policy=policy)  # type: ignore[arg-type]
    message["Subject"] = words(script="german") + " " + words(script="russian")
    message["From"] = "Ada <a@h.example>"
    plain = "\n".join(words(script=script) for script in _SCRIPTS)
    message.set_content(plain)
    message.add_alternative("<p>" + plain.replace("\n", "</p><p>") + "</p>", subtype="html")
    message.add_attachment(words(script="polish"), filename="plan.txt")
    message.add_attachment(
        zipped({"in.txt": words(script="greek").encode()}),
        maintype="application",
        subtype="zip",
        filename="plan.zip",
    )
    out = BytesIO()
    BytesGenerator(out, policy=policy).flatten(message)  # type: ignore[arg-type]
    return out.getvalue(), " ".join(words.all)


_FROM_LINES = (
    "From a@h.example Mon Jan  1 12:00:00 2024",
    "From a@h.example Mon Jan  1 12:00:00 2024 +0100",
    "From - Mon Jan 01 12:00:00 2024",
    "From MAILER-DAEMON Mon Jan  1 12:00:00 2024",
    "From a@h.example  Mon, 1 Jan 2024 12:00:00 +0000",
    "From a at h.example  Mon Jan  1 12:00:00 2024",
    "From 1234567890@xxx Mon Jan 01 12:00:00 +0000 2024",
    'From "a b"@h.example Mon Jan  1 12:00:00 2024',
    "From ???@??? Mon Jan 01 12:00:00 2024",
    "From a@h.example 2024-01-01 12:00:00",
)


def _mboxes() -> Iterator[Made]:
    number = 0
    for line in _FROM_LINES:
        for end in ("\n", "\r\n"):
            words = Words(f"mbox {number}")
            mails = []
            for script in ("german", "russian", "ascii"):
                coded = Header(words(script=script), "utf-8").encode()
                mails.append(
                    f"{line}\nSubject: {coded}\nMIME-Version: 1.0\nContent-Type: text/plain; "
                    f"charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{words(script=script)}\n"
                    f">From {words()}\nFrom {words()} of the sea\n\n"
                )
            text = "".join(mails).replace("\n", end)
            yield Made("mbox", f"{number}.mbox", text.encode(), " ".join(words.all))
            number += 1


def _outlook() -> Iterator[Made]:
    """Mails of Outlook: strings in UTF-16 and in code pages, bodies as text, HTML and RTF."""
    stream, stored = "__substg1.0_", "__properties_version1.0"
    pages = {
        "german": 1252, "polish": 1250, "russian": 1251, "greek": 1253, "turkish": 1254,
        "hebrew": 1255, "arabic": 1256, "japanese": 932, "chinese": 936, "korean": 949,
        "taiwanese": 950,
    }  # fmt: skip
    for language, page in pages.items():
        text = SENTENCES[language]
        codec = f"cp{page}"
        fixed = bytes(32) + struct.pack("<HHIQ", 3, 0x3FFD, 6, page)
        body = ole(
            {
                stored: fixed,
                f"{stream}0037001E": text[:30].encode(codec),
                f"{stream}1000001E": text.encode(codec),
            }
        )
        yield Made("msg", f"{page}.msg", body, text)
    for kind in ("text", "html", "rtf", "attached", "inside", "unicode"):
        words = Words(f"msg {kind}")
        streams = {stored: bytes(32), f"{stream}0037001F": words().encode("utf-16-le")}
        streams[f"{stream}0C1A001F"] = words(count=2).encode("utf-16-le")
        streams[f"{stream}0E04001F"] = words(count=2).encode("utf-16-le")
        if kind == "html":
            page_text = f"<html><body><p>{words(script='german')}<p>{words()}</body></html>"
            streams[f"{stream}10130102"] = page_text.encode()
            streams[stored] = bytes(32) + struct.pack("<HHIQ", 3, 0x3FDE, 6, 65001)
        elif kind == "rtf":
            rtf = r"{\rtf1\ansi\ansicpg1252 " + words() + r"\par " + words() + "}"
            streams[f"{stream}10090102"] = compressed(rtf.encode())
        elif kind == "unicode":
            streams[f"{stream}1000001F"] = words.mixed(_SCRIPTS).encode("utf-16-le")
        else:
            streams[f"{stream}1000001F"] = words(script="russian").encode("utf-16-le")
        if kind == "attached":
            for number in range(3):
                folder = f"__attach_version1.0_#0000000{number}/{stream}"
                streams[f"{folder}3707001F"] = f"{words(count=1)}.txt".encode("utf-16-le")
                streams[f"{folder}37010102"] = words().encode()
        if kind == "inside":
            inner = f"__attach_version1.0_#00000000/{stream}3701000D"
            streams[f"{inner}/{stored}"] = bytes(24)
            streams[f"{inner}/{stream}0037001F"] = words().encode("utf-16-le")
            streams[f"{inner}/{stream}1000001F"] = words(script="greek").encode("utf-16-le")
        yield Made("msg", f"{kind}.msg", ole(streams), " ".join(words.all))


def _tnef() -> Iterator[Made]:
    for number, (language, page) in enumerate(
        {"german": 1252, "polish": 1250, "russian": 1251, "greek": 1253, "japanese": 932}.items()
    ):
        text = SENTENCES[language]
        pairs = [prop(0x001E, 0x0037, text[:30].encode(f"cp{page}") + b"\0")]
        pairs.append(prop(0x001E, 0x1000, text.encode(f"cp{page}") + b"\0"))
        body = tnef(attribute(1, 0x9003, properties(pairs)), codepage=page)
        yield Made("tnef", f"{number}.dat", body, text, "application/ms-tnef")
    for number in range(12):
        words = Words(f"tnef {number}")
        pairs = [prop(0x001F, 0x0037, f"{words()}\0".encode("utf-16-le"))]
        script = _SCRIPTS[number]
        if number % 3 == 0:
            pairs.append(prop(0x001F, 0x1000, f"{words(script)}\0".encode("utf-16-le")))
        elif number % 3 == 1:
            pairs.append(prop(0x0102, 0x1013, f"<p>{words(script)}<br>{words()}".encode()))
            pairs.append(prop(0x0003, 0x3FDE, struct.pack("<I", 65001)))
        else:
            rtf = r"{\rtf1\ansi " + words() + r"\par " + words() + "}"
            pairs.append(prop(0x0102, 0x1009, compressed(rtf.encode())))
        parts = [
            attachment(f"{words(count=1)}.txt\0".encode(), words().encode())
            for _ in range(number % 4)
        ]
        body = tnef(attribute(1, 0x9003, properties(pairs)), *parts)
        name = "winmail.dat" if number % 2 else f"{number}.tnef"
        yield Made("tnef", name, body, " ".join(words.all))


def _saved_pages() -> Iterator[Made]:
    for number, (language, charsets) in enumerate(CHARSETS.items()):
        charset = charsets[-1]
        if charset in ("utf-16", "us-ascii"):
            charset = "utf-8"
        words, text = Words(f"mht {language}"), SENTENCES[language]
        page = (
            f"<html><head><meta charset={charset}><title>{words()}</title></head><body><p>{text}</p>"
            f"<iframe src='cid:f@h'></iframe></body></html>"
        ).encode(charset)
        frame = f"<p>{words()}</p>".encode()
        coded = quopri.encodestring(page) if number % 2 else base64.encodebytes(page)
        coding = "quoted-printable" if number % 2 else "base64"
        extension = ("mht", "mhtml", "doc")[number % 3]
        body = (
            b"From: <Saved by Blink>\r\nSubject: =?utf-8?Q?x?=\r\nMIME-Version: 1.0\r\n"
            b'Content-Type: multipart/related;\r\n\ttype="text/html";\r\n\tboundary="----b"\r\n\r\n'
            b"------b\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: "
            + f"{coding}\r\nContent-Location: http://h.example/x\r\n\r\n".encode()
            + coded
            + b"\r\n------b\r\nContent-Type: text/html\r\nContent-ID: <f@h>\r\n"
            b"Content-Location: http://h.example/frame\r\n\r\n" + frame + b"\r\n------b--\r\n"
        )
        yield Made("mht", f"{number}.{extension}", body, f"{text} {' '.join(words.all)}")


def _folded(line: str, width: int = 75) -> str:
    """As RFC 5545 3.1 folds, which counts bytes and may part a character."""
    pieces = [line[at : at + width // 3] for at in range(0, len(line), width // 3)]
    return "\r\n ".join(pieces)


def _calendars() -> Iterator[Made]:
    for number, script in enumerate((*_SCRIPTS, "ascii", "german")):
        words = Words(f"ics {number}")
        say = lambda words=words, script=script: words(script)  # noqa: E731
        lines = [
            "BEGIN:VCALENDAR", "VERSION:2.0", f"X-WR-CALNAME:{say()}", "BEGIN:VEVENT",
            f"SUMMARY;LANGUAGE=de:{say()}", "DTSTART;TZID=Europe/Berlin:20240306T100000",
            f"LOCATION:{say()}\\, {say()}", f"DESCRIPTION:{say()}\\n{say()}\\;\\\\{say()}",
            f'ATTENDEE;CN="{say()}":mailto:a@h.example', f"CATEGORIES:{say()},{say()}",
            "BEGIN:VALARM", f"DESCRIPTION:{say()}", "END:VALARM", "END:VEVENT", "BEGIN:VTODO",
            f"SUMMARY:{say()}", "END:VTODO", "BEGIN:VJOURNAL", f"SUMMARY:{say()}", "END:VJOURNAL",
            "END:VCALENDAR",
        ]  # fmt: skip
        text = "\r\n".join(_folded(line) for line in lines) + "\r\n"
        if number % 3 == 1:
            text = text.replace("\r\n", "\n")
        body = text.encode("utf-8-sig" if number % 4 == 3 else "utf-8")
        yield Made("ics", f"{number}.ics", body, " ".join(words.all))


def _cards() -> Iterator[Made]:
    for number, script in enumerate((*_SCRIPTS, "ascii", "german")):
        words = Words(f"vcf {number}")
        version = ("2.1", "3.0", "4.0")[number % 3]
        lines = []
        for _ in range(2):
            name, note, street = words(script, 2), words(script), words(script)
            if version == "2.1":
                coded = quopri.encodestring(note.encode(), quotetabs=True).replace(b"=\n", b"=\r\n")
                lines += [
                    "BEGIN:VCARD", "VERSION:2.1", f"FN;CHARSET=UTF-8:{name}",
                    f"NOTE;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:{coded.decode()}",
                    f"ADR;HOME;CHARSET=UTF-8:;;{street};;;;", "END:VCARD",
                ]  # fmt: skip
                continue
            lines += [
                "BEGIN:VCARD", f"VERSION:{version}", f"FN:{name}", f"N:{words(script, 1)};;;;",
                _folded(f"NOTE:{note}\\n{words(script)}"), f"item1.ADR;TYPE=home:;;{street};;;;",
                f"ORG:{words(script)};{words(script)}", "PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQ",
                "END:VCARD",
            ]  # fmt: skip
        body = ("\r\n".join(lines) + "\r\n").encode()
        yield Made("vcf", f"{number}.{'vcf' if number % 2 else 'vcard'}", body, " ".join(words.all))
