"""What a body is, where Content-Type does not say or cannot be right."""

import pytest

from larmspider.extraction.formats import media_type

HTML = b"<!DOCTYPE html><title>x</title>"
PDF = b"%PDF-1.7\n"


@pytest.mark.parametrize(
    ("content_type", "body", "mime"),
    [
        ("text/html", HTML, "text/html"),
        ("Text/HTML; charset=utf-8", HTML, "text/html"),
        ("text/html, text/plain", HTML, "text/html"),
        ("text/html", b"", "text/html"),
        ("text/html", PDF, "application/pdf"),
        ("text/html", b"\x89PNG\r\n\x1a\n...", "image/png"),
        ("text/html", b"PK\x03\x04...", "application/zip"),
        ("text/plain", b"GIF89a...", "image/gif"),
        ("text/plain", HTML, "text/plain"),
        ("text/plain", b"a\0b", "text/plain"),
        ("application/pdf", HTML, "application/pdf"),
        ("application/octet-stream", HTML, "application/octet-stream"),
        ("", HTML, "text/html"),
        ("", b"\xef\xbb\xbf\r\n <HTML >", "text/html"),
        ("", b"<!-- hello -->", "text/html"),
        ("", b"<abbreviation>", "text/plain"),
        ("", b"words", "text/plain"),
        ("", b"", "text/plain"),
        ("", b"\xff\xfew\0o\0", "text/plain"),
        ("", b"a\0b", "application/octet-stream"),
        ("", PDF, "application/pdf"),
        ("html", HTML, "text/html"),
        ("*/*", HTML, "text/html"),
        ("unknown/unknown", b"words", "text/plain"),
        ("text/html/x", HTML, "text/html"),
        ("\xff\x00", HTML, "text/html"),
    ],
)
def test_media_type(content_type, body, mime):
    assert media_type(content_type, body) == mime
