"""The charset in which the crawl read a page of which only the header named it.

No log keeps the header, but the title and the text that were made of the page are known:

    charset_as_read(b"... \\xf0\\xd2\\xc9\\xd7\\xc5\\xd4 ...", "text/plain", "Привет")    # koi8-r
"""

from __future__ import annotations

from itertools import islice

import webencodings

from larmspider.extraction.charset import decode

WORDS = 20
LOOKED_AT = 200_000
"""Bytes of the body, as much as 50 ms of searching in the worst case."""
_CHARSETS = (
    "utf-8", "windows-1252", "iso-8859-15", "iso-8859-2", "windows-1250", "windows-1251", "koi8-r",
    "koi8-u", "iso-8859-5", "ibm866", "x-mac-cyrillic", "iso-8859-7", "windows-1253",
    "windows-1254", "windows-1255", "windows-1256", "windows-1257", "windows-1258", "windows-874",
    "iso-8859-3", "iso-8859-4", "iso-8859-6", "iso-8859-8", "iso-8859-10", "iso-8859-13",
    "iso-8859-14", "iso-8859-16", "macintosh", "shift_jis", "euc-jp", "gb18030", "big5", "euc-kr",
    "utf-16le", "utf-16be",
)  # fmt: skip
"""Of the Encoding Standard; of two that write the words alike the first is taken."""


def charset_as_read(body: bytes, mime: str, text: str) -> str:
    """Of all charsets the one in which most words of ``text`` that are not ASCII stand in ``body``;
    the one that the body itself tells of, if no other has more of them."""
    head = body[:LOOKED_AT]
    told = decode(head, mime)[1]
    words = dict.fromkeys(
        word for word in text.split() if not word.isascii() and "\ufffd" not in word
    )
    some = list(islice(words, WORDS))
    if not some or _found(head, some, told) == len(some):
        return told
    return max((told, *_CHARSETS), key=lambda charset: _found(head, some, charset))


def _found(body: bytes, words: list[str], charset: str) -> int:
    encode = webencodings.lookup(charset).codec_info.encode
    found = 0
    for word in words:
        try:
            found += encode(word)[0] in body
        except UnicodeError:
            continue
    return found
