"""The names in a zip file, for all programs that write them (APPNOTE 4.4.4, 4.6.9, appendix D).

    names = ZipNames(archive.infolist())
    names.of(info)                          # "Prüfplan.txt" in place of "Pr\u0192fplan.txt"

A name is UTF-8 if bit 11 says so or it decodes. The field 0x7075 of Info-ZIP counts if its CRC is
the CRC of the name. Otherwise the charset is guessed from all names together, because programs
write names in the charset of their system: by scripts, case, and the frequent letters of a
language. The first of equal guesses counts; cp437 is the first, because the format names it.
Programs of Windows write backslashes in place of slashes.
"""

from __future__ import annotations

import re
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable
from functools import cache

_IS_UTF_8 = 0x800
_UNICODE_PATH = 0x7075
_UNICODE_PATH_TAG = b"\x75\x70"
_MAC_SYSTEMS = (7, 19)
_DOS_SYSTEM = 0
_SAMPLE = 4_000
"""Bytes of names that are weighed."""
_MAC = "mac_roman"
_CHARSETS = {
    "cp437": 0.0, "cp850": -0.01, "cp866": 0.0, "cp1252": -0.01, "cp1251": -0.01, "cp932": 0.0,
    "gbk": 0.0, "big5": 0.0, "cp949": 0.0, "cp852": -0.1, "cp1250": -0.1, _MAC: -0.12,
}  # fmt: skip
"""Points before a look. Mac OS has more where the zip file names it as its system."""
_WORD = re.compile(r"[^\W\d_]+")
_COMMON = frozenset("äöüßÄÖÜéèêàâçñáíóúøæôîëïûœùÉÅØÆ")
_LESS_COMMON = frozenset("åãõÑÈÇÀÂÊÎÔÛÁÍÓÚÃÕìòýþðąćęłńśźżĄĆĘŁŃŚŹŻčďěňřšťůžČĎĚŇŘŠŤŮŽőűŐŰăşţıİğ")
_COMMON_CYRILLIC = frozenset("оеаинтсрвлкмдпу")
_CYRILLIC = frozenset("бгжзйхцчшщъыьэюяёіїє")
_COMMON_HANGUL = frozenset(
    "가고공관과기계국결나다대도동록리로무문물보본부분사서시수신안약업연영용원의이인일자장전정제조지진주청출평표품하한합해현회획차치"
    "최초트스크드을를은는에년월및라마바아어여요우유으음있그건검견경교구내단당등명모민발방번법변별비상새생선설성세소속실심양역예"
    "외운위임입작저적접준중증직참채처체추충측통투특판편포필학항행협형호화확환황활"
)
_SYMBOLS = frozenset("–—‘’“”„«»§°№€　、。「」『』【】（）ー・～！－")


class ZipNames:
    """The names of the members that ``infos`` describe."""

    def __init__(self, infos: Iterable[zipfile.ZipInfo]) -> None:
        unsure: list[bytes] = []
        size, is_mac = 0, False
        for info in infos:
            if size < _SAMPLE and (raw := _unsure(info)):
                unsure.append(raw)
                size += len(raw)
                is_mac |= info.create_system in _MAC_SYSTEMS
        self._charset = _guess(b"\n".join(unsure)[: 2 * _SAMPLE], is_mac=is_mac) if unsure else ""

    def of(self, info: zipfile.ZipInfo) -> str:
        name = self._decoded(info)
        if info.create_system == _DOS_SYSTEM and "/" not in name:
            return name.replace("\\", "/")  # as Info-ZIP's unzip does
        return name

    def _decoded(self, info: zipfile.ZipInfo) -> str:
        if not (raw := _raw(info)):
            return info.filename
        named = _unicode_path(info, raw)
        if named is None:
            named = _utf_8(raw)
        if named is None:
            named = raw.decode(self._charset or "cp437", "replace")
        return named.partition("\0")[0]


def _raw(info: zipfile.ZipInfo) -> bytes:
    """The bytes of a name that nothing calls UTF-8, if it has a character beyond ASCII or the field
    of Info-ZIP; "" for any other one."""
    is_plain = info.orig_filename.isascii() and _UNICODE_PATH_TAG not in info.extra
    if info.flag_bits & _IS_UTF_8 or is_plain:
        return b""
    try:
        return info.orig_filename.encode("cp437")
    except UnicodeEncodeError:
        return b""


def _unsure(info: zipfile.ZipInfo) -> bytes:
    raw = _raw(info)
    return raw if raw and _unicode_path(info, raw) is None and _utf_8(raw) is None else b""


def _utf_8(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _unicode_path(info: zipfile.ZipInfo, raw: bytes) -> str | None:
    """The field 0x7075; None if it is missing or belongs to another name."""
    extra = info.extra
    while len(extra) >= 4:
        tag, size = struct.unpack_from("<HH", extra)
        data, extra = extra[4 : 4 + size], extra[4 + size :]
        head = bytes((1, *zlib.crc32(raw).to_bytes(4, "little")))
        if tag == _UNICODE_PATH and data.startswith(head):
            return _utf_8(data[len(head) :])
    return None


def _guess(raw: bytes, *, is_mac: bool) -> str:
    points = {}
    for charset, before in _CHARSETS.items():
        try:
            text = raw.decode(charset)
        except UnicodeDecodeError:
            continue
        points[charset] = _plausible(text, charset) + (
            0.2 if charset == _MAC and is_mac else before
        )
    return max(points, key=lambda charset: points[charset], default="cp437")


def _plausible(text: str, charset: str) -> float:
    """Points for each character beyond ASCII, from -1 to 1, on average."""
    points = 0.0
    for word in _WORD.findall(text):
        if word.isascii():
            continue
        scripts = {_script(char) for char in word}
        is_mixed = len(scripts) > 1 and not scripts <= {"CJK", "HIRAGANA", "KATAKANA", "LATIN"}
        is_odd = is_mixed or not (word == word.upper() or word[1:] == word[1:].lower())
        for at, char in enumerate(word):
            if not char.isascii():
                beside = word[at - 1 : at] + word[at + 1 : at + 2]
                points += _letter(char, beside, charset) - is_odd
    for at, char in enumerate(text):
        if not char.isascii() and not char.isalpha():
            within = text[at - 1 : at].islower() and text[at + 1 : at + 2].islower()
            points += 0.5 if char in _SYMBOLS and (not within or char == "’") else -1
    return points / max(1, sum(not char.isascii() for char in text))


@cache
def _script(char: str) -> str:
    return unicodedata.name(char, "?").partition(" ")[0]


def _letter(char: str, beside: str, charset: str) -> float:
    """Points for a letter, by how often texts in its charset have it."""
    script = _script(char)
    if script == "LATIN":  # hardly two such letters stand side by side
        known = 1 if char in _COMMON else 0.8 if char in _LESS_COMMON else -0.5
        return known if beside.isascii() or "ß" in beside + char else known - 0.6
    if script == "CYRILLIC":
        small = char.lower()
        return 1 if small in _COMMON_CYRILLIC else 0.3 if small in _CYRILLIC else -0.5
    if len(beside) == 2 and beside.isascii() and beside.islower():
        return -0.5  # a sign within a Latin word
    if script in ("HIRAGANA", "KATAKANA"):
        return 1
    if script == "HANGUL":
        return 1 if char in _COMMON_HANGUL else 0.2
    return _hanzi(char, charset) if script == "CJK" else -0.5


def _hanzi(char: str, charset: str) -> float:
    """Each of these charsets has its common characters in front."""
    lead, trail = char.encode(charset)[:2]
    if charset == "cp932":
        return 0.8 if 0x88 <= lead <= 0x97 else 0.1
    if charset == "gbk":
        return 0.7 if 0xB0 <= lead <= 0xD7 and trail >= 0xA1 else -0.3
    if charset == "big5":
        return 0.75 if 0xA4 <= lead <= 0xC6 else -0.3
    return -0.5


def without_false_flags(body: bytes) -> bytes:
    """``body`` without bit 11 at names that are not UTF-8, for which Python reads no member."""
    end = body.rfind(b"PK\x05\x06")
    at = end - int.from_bytes(body[end + 12 : end + 16], "little")
    before = at - int.from_bytes(body[end + 16 : end + 20], "little")  # bytes of another file
    mended = bytearray(body)
    while 0 <= at <= end - 46 and body.startswith(b"PK\x01\x02", at):
        flags, name, extra, comment = struct.unpack_from("<8xH18xHHH", body, at)
        if flags & _IS_UTF_8 and _utf_8(body[at + 46 : at + 46 + name]) is None:
            local = before + int.from_bytes(body[at + 42 : at + 46], "little")
            for head, flag in ((at, at + 8), (local, local + 6)):
                if head >= 0 and body.startswith(b"PK", head):
                    struct.pack_into("<H", mended, flag, flags & ~_IS_UTF_8)
        at += 46 + name + extra + comment
    return bytes(mended)
