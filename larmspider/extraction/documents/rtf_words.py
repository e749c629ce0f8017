"""The words of RTF (1.9.1) that change the text: destinations, characters, charsets.

DESTINATIONS["footnote"]      # ASIDE: its text is a block of its own
"""

from __future__ import annotations

TEXT, ASIDE, QUIET, DEAD = "text", "aside", "quiet", "dead"
"""Kinds of groups: text; a separate block; no text, but inner groups may have some; nothing."""
INSTRUCTION, RESULT, TITLE, AUTHOR, FONTS, NAME, VALUE, TAG, CHOICE = (
    *("instruction", "result", "title", "author", "fonts", "name", "value", "tag", "choice"),
)
_WORDS = {
    ASIDE: """header headerl headerr headerf footer footerl footerr footerf footnote annotation
        shptxt dptxbxtext""",
    QUIET: "formfield info shpinst do shpgrp shppict sp upr momath momathpara mmath background",
    DEAD: """colortbl stylesheet pict objdata objclass objname nonshppict shprslt mmathpict
        nonesttables xe rxe tc tcn txe pnseclvl ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn revtbl
        rsidtbl listtable listoverridetable filetbl generator template private private1 bkmkstart
        bkmkend datafield ffdeftext fontemb fontfile panose falt keycode operator subject
        keywords comment doccomm hlinkbase company manager category atnid atnauthor atntime atnicn
        atnref atndate atnparent atrfstart atrfend""",
    TEXT: "ud mr",
}
DESTINATIONS = {word: kind for kind, words in _WORDS.items() for word in words.split()} | {
    "fldinst": INSTRUCTION, "fldrslt": RESULT, "title": TITLE, "author": AUTHOR,
    "fonttbl": FONTS, "sn": NAME, "sv": VALUE, "htmltag": TAG, "ffl": CHOICE,
}  # fmt: skip
"""Words in lower case. Any other word after ``\\*`` begins a dead group."""
GATHERED = frozenset((INSTRUCTION, TITLE, AUTHOR, NAME, VALUE, TAG, CHOICE))
WORD_ART = "gtextUNICODE"
CHARACTERS = {
    "tab": "\t", "cell": "\t", "nestcell": "\t", "line": "\n", "lbr": "\n", "softline": "\n",
    "emdash": "\u2014", "endash": "\u2013", "emspace": "\u2003", "enspace": "\u2002",
    "qmspace": "\u2005", "bullet": "\u2022", "lquote": "\u2018", "rquote": "\u2019",
    "ldblquote": "\u201c", "rdblquote": "\u201d", "zwj": "\u200d", "zwnj": "\u200c",
    "zwbo": "\u200b", "zwnbo": "\u2060", "ltrmark": "\u200e", "rtlmark": "\u200f",
}  # fmt: skip
ENDS = frozenset(("par", "row", "nestrow", "sect", "page", "column"))
SYMBOLS = {b"~": "\xa0", b"-": "\xad", b"_": "\u2011", b"\t": "\t"}
LATIN = 1252
WIDE = (932, 936, 949, 950, 1361, 54936, 65001)
"""Code pages with characters of several bytes."""
CHARSETS = {
    0: 1252, 2: 1252, 77: 10000, 78: 10001, 79: 949, 80: 936, 81: 950, 85: 10006, 86: 10081,
    87: 874, 88: 10029, 89: 10007, 128: 932, 129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253,
    162: 1254, 163: 1258, 177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250,
    254: 437, 255: 850,
}  # fmt: skip
"""Code pages of ``\\fcharset``."""
