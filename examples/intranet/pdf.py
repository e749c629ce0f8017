"""A PDF of one page of text, made from nothing: one_page_pdf("Siren H4", ["4 kW, 118 dB"])."""

from __future__ import annotations

from collections.abc import Sequence


def one_page_pdf(title: str, lines: Sequence[str]) -> bytes:
    """An A4 page with ``title`` and ``lines`` in Helvetica. Latin-1 only: UnicodeEncodeError else.

    Valid by PDF 1.4 (ISO 32000-1, 7.5): header, six objects, cross-reference table, trailer.
    """
    shown = " T* ".join(f"({_escaped(line)}) Tj" for line in (title, "", *lines))
    content = f"BT /F1 12 Tf 16 TL 72 770 Td {shown} ET".encode("latin-1")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        f"<< /Title ({_escaped(title)}) >>".encode("latin-1"),
    ]
    pdf = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(pdf))
        pdf += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    return (
        pdf
        + b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, table)
        + b"trailer\n<< /Size %d /Root 1 0 R /Info 6 0 R >>\n" % count
        + b"startxref\n%d\n%%%%EOF\n" % len(pdf)
    )


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
