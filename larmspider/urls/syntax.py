"""Parts of a URL as strings: escapes, dot segments, the length of a host, user names and passwords.

>>> normalize_escapes("%7euser/a%2fb c"), resolve_dots("/a/./b/../c")
('~user/a%2Fb%20c', '/a/c')
>>> normalize_escapes("%61100%"), escape_percents("a100%")
('a100%', 'a100%25')
>>> without_userinfo("http://user:word@wiki/")
'http://wiki/'
"""

from __future__ import annotations

import re

from w3lib.html import replace_escape_chars

UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
"""RFC 3986 2.3: escaped or not, the same."""
DELIMITERS = "!$&'()*+,;=:@/?"
"""RFC 3986 3.3 and 3.4: further characters of a path or query. Escaped or not makes a
difference."""

# Escapes of unreserved characters, escapes with digits in lower case, percent signs that start no
# escape, and characters that have to be escaped.
_TO_NORMALIZE = re.compile(
    r"%(?:2[DEde]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee]|[0-9A-F][a-f]|[a-f][0-9A-Fa-f]"
    rf"|(?![0-9A-Fa-f]{{2}})[0-9A-Fa-f]?(?:%[0-9A-Fa-f]{{2}})?)"
    rf"|[^{re.escape(UNRESERVED + DELIMITERS)}%]"
)
_PERCENTS = re.compile("%(?![0-9A-Fa-f]{2})")
_ESCAPES = re.compile(r"((?:%[0-9A-F]{2})+)")
_ASCII = re.compile("[\0-\x7f]")
_NON_ASCII_RUN = re.compile(r"(?:%[89A-F][0-9A-F])+")
_DOT_SEGMENT = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)
LONGEST_HOST = 253
"""Characters of a host name in ASCII (RFC 1035 2.3.4)."""
LONGEST_RAW_HOST = 2048
"""Characters of a host as written: room for 253 escaped ones."""

# Schemes whose hosts go through IDNA (WHATWG URL 3.1), or a link that starts with the host.
_AUTHORITY = re.compile(r"(?:(?:https?|wss?|ftp|file):[/\\]*|[/\\]{2,})([^/\\?#]*)", re.IGNORECASE)
C0_OR_SPACE = "".join(map(chr, range(0x21)))
"""Characters that are dropped from the beginning and end of a URL (WHATWG URL 4.4)."""
# As WHATWG reads them: up to the last "@" before path, query and fragment; a scheme of the web
# takes any number of slashes, and a link may start with the host.
_USERINFO = re.compile(
    r"([\x00-\x20]*+(?:(?:https?|wss?|ftp|file):[/\\]*+|[a-z][a-z0-9+.-]*+://|[/\\]{2,}+))[^/\\?#]*@",
    re.IGNORECASE,
)


def _spellings() -> dict[str, str]:
    """The matches of _TO_NORMALIZE in an ASCII string, with their one spelling, except matches that
    begin with a percent sign that starts no escape."""
    table = {}
    for code in range(256):
        char = chr(code)
        escape = f"%{code:02X}"
        spelling = char if char in UNRESERVED else escape
        high, low = escape[1], escape[2]
        for first in {high, high.lower()}:
            for second in {low, low.lower()}:
                table[f"%{first}{second}"] = spelling
        if code < 128 and char not in UNRESERVED + DELIMITERS + "%":
            table[char] = escape
    return table


_SPELLINGS = _spellings()


def normalize_escapes(text: str) -> str:
    """``text``, an ASCII path or query as WHATWG parsing leaves it, with one spelling for each
    escape.

    - escapes of unreserved characters are undone (RFC 3986 6.2.2.2): ``%41`` is ``A``,
    - hex digits are upper case (RFC 3986 6.2.2.1): ``%2f`` is ``%2F``,
    - characters that RFC 3986 allows in no path or query are escaped: ``[`` is ``%5B``,
    - a percent sign that starts no escape stays, and so does an escape that would complete another
      escape: ``%%341`` would be ``%41``, and then ``A``.

    Escaped delimiters and bare ones differ (``%2F`` is not ``/``): servers tell them apart. ``%25``
    and a percent sign that starts no escape also differ: many servers refuse the second one.
    """
    return _TO_NORMALIZE.sub(_spelling, text)


def _spelling(found: re.Match[str]) -> str:
    match = found[0]
    if (spelling := _SPELLINGS.get(match)) is not None:
        return spelling
    return match[:-2] + match[-2:].upper() if len(match) > len("%4") else match


def escape_percents(text: str) -> str:
    """``text``, which normalize_escapes() has returned, with ``%25`` for each percent sign that
    starts no escape: ``100%`` is ``100%25``."""
    if "%" not in text or _PERCENTS.search(text) is None:
        return text
    return normalize_escapes(_PERCENTS.sub("%25", text))


def lowercase(text: str) -> str:
    """``text``, with normalized escapes, in lower case: ``/%C3%84B`` becomes ``/%C3%A4b``.

    Letters beyond ASCII are lowered as well if they are escaped UTF-8; bytes in other encodings
    keep their value. Escapes keep upper-case digits.
    """
    if "%" not in text:
        return text.lower()
    parts = _ESCAPES.split(text)  # every other one is a run of escapes
    parts[::2] = [part.lower() for part in parts[::2]]
    parts[1::2] = [_NON_ASCII_RUN.sub(_lowercase_run, run) for run in parts[1::2]]
    return "".join(parts)


def _lowercase_run(found: re.Match[str]) -> str:
    try:
        decoded = bytes.fromhex(found[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return found[0]
    lower = decoded.lower()
    escaped = f"%{lower.encode().hex('%').upper()}"
    return (
        normalize_escapes(escaped) if _ASCII.search(lower) else escaped
    )  # the Kelvin sign becomes k


def resolve_dots(path: str) -> str:
    """``path``, which begins with a slash, without dot segments, escaped or not (WHATWG URL 4.4).

    As in browsers ``..`` also removes an empty segment: ``/a//../b`` is ``/a/b``. can_ada leaves
    dot segments in a path with a segment that begins with a dot: ``/a/.b/../c``.
    """
    if not _DOT_SEGMENT.search(path):
        return path
    segments: list[str] = []
    last = ""
    for segment in path[1:].split("/"):
        last = segment.lower().replace("%2e", ".")
        if last == "..":
            del segments[-1:]
        elif last != ".":
            segments.append(segment)
    if last in (".", ".."):
        segments.append("")
    return "/" + "/".join(segments)


def host_too_long(url: str) -> bool:
    """Whether the host of ``url``, absolute or a link, is longer than any that can be looked up.

    Punycode is quadratic: ``http://a`` with 50,000 times U+0301 U+0316 took can_ada 1.9 s, 2,000
    characters take 1 ms. The host is therefore measured before it is parsed.
    """
    if len(url) <= LONGEST_RAW_HOST:
        return False
    # the parser drops white space first (WHATWG URL 4.4)
    authority = _AUTHORITY.match(replace_escape_chars(url.lstrip(C0_OR_SPACE)))
    return authority is not None and len(authority[1].rpartition("@")[2]) > LONGEST_RAW_HOST


def without_userinfo(url: str) -> str:
    """``url``, absolute or a link, valid or not, without user name and password.

    URLs without a host stay as they are (``mailto:a@b``). Linear time, never raises.
    """
    if "@" not in url:
        return url
    url = replace_escape_chars(url)
    found = _USERINFO.match(url)  # a search would be quadratic in slashes
    return found[1] + url[found.end() :] if found else url
