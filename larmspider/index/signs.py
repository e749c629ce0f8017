"""Words that have more than letters and digits: flags, operators, key chords, ``__init__``, C++,
.NET.

The other fields have their bare words ("prefix"), the field ``signs`` has them as they are typed::

    signs("./configure --prefix=/usr, operator==, C-x C-f, Ctrl + B, C++")
    # ["--prefix", "operator==", "c-x", "c-f", "ctrl+b", "c++"]
"""

from __future__ import annotations

import re

MAX_SIGNS = 2_000
"""Different signs of one text."""

# Each pattern starts its search with its rarest character: a search for a literal is ten times as
# fast as a search for a class.
_DASHED = re.compile(
    r"-(?:(?<![\w-]-)(-?[A-Za-z][\w-]{0,60})"  # --prefix, -Wall, -m
    r"|(?<=\b[CMSA]-)((?:[CMSA]-)*(?:[^\s\w]|\w\b|[A-Z]{2,4}\b)))"  # C-x, C-M-f, M-%, C-SPC
)
_OPERATOR = re.compile(r"operator ?([-+*/%^&|~!=<>]{1,3}|,|\(\)|\[\])")
_DUNDER = re.compile(r"__(?<!\w__)\w+?__(?!\w)")
_CHORD = re.compile(
    r"(?<![\w+])(?:ctrl|control|strg|alt|altgr|shift|umschalt|cmd|command|option|meta|win|super)"
    r"(?:[ \xa0]?\+[ \xa0]?\w{1,12}){1,3}(?!\w)",
    re.IGNORECASE,
)
_CHORD_ENDS = tuple(
    end + plus
    for end in ("trl", "TRL", "lt", "LT", "ft", "FT", "trg", "md", "mand", "tion", "eta", "in")
    for plus in ("+", " +", "\xa0+")
)
"""Ends of modifier keys: most pages have none of them behind a word."""
_DOT_NET = re.compile(r"\.(?:NET|Net|net)\b(?<![\w.]....)")
_LANGUAGES = (
    ("++", re.compile(r"\+\+(?<=\b([A-Zc])\+\+)(?![\w+#])")),
    ("#", re.compile(r"#(?<=\b([A-Zc])#)(?![\w+#])")),
)


def signs(text: str) -> list[str]:
    """The signs of a normalized text in lower case, each once; the first `MAX_SIGNS`."""
    found: list[str] = []
    if "-" in text:
        for match in _DASHED.finditer(text):
            flag, key = match.groups()
            found.append("-" + flag if flag else f"{text[match.start() - 1]}-{key}")
    if "operator" in text:
        found += (f"operator{sign}" for sign in _OPERATOR.findall(text))
    # one character is looked for in a twentieth of the time of two
    if "_" in text and "__" in text:
        found += _DUNDER.findall(text)
    for sign, pattern in _LANGUAGES:
        if sign[0] in text and sign in text:
            found += (letter + sign for letter in pattern.findall(text))
    if "+" in text and any(end in text for end in _CHORD_ENDS):
        found += ("".join(chord.split()) for chord in _CHORD.findall(text))
    if ".NET" in text or ".Net" in text or ".net" in text:
        found += _DOT_NET.findall(text)
    return list(dict.fromkeys(map(str.lower, found)))[:MAX_SIGNS]


def operator_sign(text: str) -> str:
    """The sign of an operator that is typed without that word, "operator->>" for ``->>``; "" for
    any other text, and for a single character, which may mean anything."""
    sign = f"operator{text}"
    return sign if len(text) > 1 and " " not in text and _OPERATOR.fullmatch(sign) else ""
