"""The name of a file that a response sends, by its head, its URL and the link to it.

name_in("attachment; filename=\\"a.csv\\"; filename*=UTF-8''%C3%A4.csv")    # "\u00e4.csv"
name_of("", "http://h/get?id=1", "http://h/plan.csv")                      # the redirect's
"""

from __future__ import annotations

import re
from binascii import a2b_base64, a2b_qp
from urllib.parse import unquote_to_bytes

from larmspider.urls.media_types import type_by_name

_PARAMETER = re.compile(
    r";\s*(filename\*?)(?:\*0\*?)?\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^;\s][^;]*))", re.IGNORECASE
)
_WORD = re.compile(r"=\?(utf-8|iso-8859-1)\?([bq])\?([!->@-~]*)\?=(?:\s+(?==\?))?", re.IGNORECASE)
"""A word of a mail's header (RFC 2047), which browsers decode."""
_EXTENDED = re.compile(r"([\w.:-]*)'[^']*'(.*)", re.DOTALL)


def name_in(disposition: str) -> str:
    """The file name of a Content-Disposition header, "" without one: ``filename*`` comes before
    ``filename`` (RFC 6266 4.3), and a path is left out."""
    plain = extended = ""
    for key, quoted, bare in _PARAMETER.findall(";" + disposition):
        value = re.sub(r"\\(.)", r"\1", quoted) if quoted else bare.strip()
        if key.endswith("*"):
            extended = extended or _decoded(value)
        else:
            plain = plain or value
    return (extended or _WORD.sub(_from_word, plain)).replace("\\", "/").rpartition("/")[2]


def _from_word(found: re.Match[str]) -> str:
    charset, coding, text = found.groups()
    try:
        data = a2b_base64(text) if coding in "bB" else a2b_qp(text, header=True)
    except ValueError:
        return found[0]
    return data.decode(charset.lower(), "replace")


def _decoded(value: str) -> str:
    """The value of RFC 8187 3.2; "" for other texts."""
    found = _EXTENDED.fullmatch(value)
    if found is None:
        return ""
    is_latin = found[1].lower() in ("iso-8859-1", "latin-1", "latin1")
    return unquote_to_bytes(found[2]).decode("latin-1" if is_latin else "utf-8", "replace")


def name_of(*names: str) -> str:
    """The first of some file names and URLs whose extension has a known type; if none has, the
    first of all."""
    for name in names:
        if name and type_by_name(name):
            return name
    return next(filter(None, names), "")
