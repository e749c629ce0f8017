"""Fields of Word without a result, in docx and RTF: the text that they show.

shown("MACROBUTTON Print press here")     # "press here"
shown(r"EQ \\f(sales;costs)")              # "sales costs"
"""

from __future__ import annotations

import re

_BUTTON = re.compile(r"(?is)\s*(?:MACRO|GOTO)BUTTON\s+\S+\s+(.*)")
_QUOTE = re.compile(r'(?is)\s*QUOTE\s+(?:"([^"]*)"?|(\S+)).*')
_EQUATION = re.compile(r"(?is)\s*EQ\s+(.*)")
_CODE = re.compile(r"\\[A-Za-z]+\d*|\\.|[();,]")


def shown(code: str) -> str:
    """The caption of MACROBUTTON and GOTOBUTTON, the words of QUOTE and EQ (ECMA-376-1 17.16.5); ""
    for other fields, which show nothing until a program computes them."""
    if found := _BUTTON.fullmatch(code) or _QUOTE.fullmatch(code):
        return " ".join("".join(filter(None, found.groups())).split())
    found = _EQUATION.fullmatch(code)
    return " ".join(_CODE.sub(" ", found[1]).split()) if found else ""
