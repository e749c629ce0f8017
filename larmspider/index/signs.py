"""Words that have more than letters and digits: flags, operators, key chords, ``__init__``, C++,
.NET.

The other fields have their bare words ("prefix"), the field ``signs`` has them as they are typed::

    signs("./configure --prefix=/usr, operator==, C-x C-f, Ctrl + B, C++")
    # ["--prefix", "operator==", "c-x", "c-f", "ctrl+b", "c++"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
_MODIFIERS: tuple[str, ...]
_MODIFIERS = ("ctrl", "control", "strg", "alt", "altgr", "shift", "umschalt", "cmd", "command")
_MODIFIERS += ("option", "meta", "win", "super")
_LONGEST_MODIFIER = 10  # with a space
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
    if "+" in text:
        found += _chords(text)
    found += _DOT_NET.findall(text)  # takes the time of one "in"
    return list(dict.fromkeys(map(str.lower, found)))[:MAX_SIGNS]


def _chords(text: str) -> Iterator[str]:
    """Shortcuts such as Ctrl+B. An expression alone would take 0.3 ms for 10 KB."""
    at = text.find("+")
    while at >= 0:
        start = max(0, at - _LONGEST_MODIFIER)
        chord = None
        if text[start:at].rstrip(" \xa0").lower().endswith(_MODIFIERS):
            chord = _CHORD.search(text, start)
        if chord is not None:
            yield "".join(chord[0].split())
        at = text.find("+", max(at + 1, chord.end() if chord else 0))


def operator_sign(text: str) -> str:
    """The sign of an operator that is typed without the word "operator": "operator->>" for ``->>``.
    "" for any other text, and for a single character, which may have any meaning."""
    sign = f"operator{text}"
    return sign if len(text) > 1 and " " not in text and _OPERATOR.fullmatch(sign) else ""
