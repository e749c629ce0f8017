"""Words that have more than letters and digits: flags, operators, key chords, ``__init__``, C++.

The other fields have their bare words ("prefix"), the field ``signs`` has them as they are typed::

    signs("./configure --prefix=/usr, operator==, C-x C-f, C++")
    # ["--prefix", "operator==", "c-x", "c-f", "c++"]
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
    return list(dict.fromkeys(map(str.lower, found)))[:MAX_SIGNS]


def operator_sign(text: str) -> str:
    """The sign of an operator that is typed without that word, "operator->>" for ``->>``; "" for
    any other text, and for a single character, which may mean anything."""
    sign = f"operator{text}"
    return sign if len(text) > 1 and " " not in text and _OPERATOR.fullmatch(sign) else ""
