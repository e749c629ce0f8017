"""Names in zip files, whatever program has written them."""

from __future__ import annotations

import struct
import time
import zlib

import pytest

from larmspider.extraction.documents import parts

CYRILLIC = "Кириллица.txt"


def zipped(*members: tuple[bytes, int, bytes], system: int = 0) -> bytes:
    """Raw name, flag bits and extra field of each; its content is "x"."""
    out = listed = b""
    for name, flags, extra in members:
        head = struct.pack(
            "<HHHHHIIIHH", 20, flags, 0, 0, 33, zlib.crc32(b"x"), 1, 1, len(name), len(extra)
        )
        listed += b"PK\1\2" + struct.pack("<BB", 20, system) + head
        listed += struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + name + extra
        out += b"PK\3\4" + head + name + extra + b"x"
    count = len(members)
    return (
        out + listed + b"PK\5\6" + struct.pack("<4xHHIIH", count, count, len(listed), len(out), 0)
    )


def names(body: bytes) -> list[str]:
    page = parts.read("application/zip", body, "http://h/x.zip", None)
    assert [part.text for part in page.parts] == ["x"] * len(page.parts)
    return [part.name for part in page.parts]


def field(raw: bytes, name: str, crc: int = 0) -> bytes:
    data = bytes((1,)) + (crc or zlib.crc32(raw)).to_bytes(4, "little") + name.encode()
    return b"\x55\x54\1\0x" + struct.pack("<HH", 0x7075, len(data)) + data


def test_what_is_said_of_a_name_comes_first() -> None:
    raw = "Käse".encode("cp1252")
    assert names(zipped(("ä".encode(), 0x800, b""), (raw, 0, field(raw, CYRILLIC)))) == [
        "ä",
        CYRILLIC,
    ]
    assert names(zipped((raw, 0, field(raw, CYRILLIC, crc=7)))) == ["Käse"]
    assert names(zipped(("Ko\u0308pfe".encode(), 0, b""))) == ["Ko\u0308pfe"]


def test_a_backslash_of_windows_is_a_slash() -> None:
    raw = (b"a\\", b"a\\b.txt", b"a\\Thumbs.db", "a\\機能の報告.txt".encode("cp932"))
    assert names(zipped(*((name, 0, b"") for name in raw))) == ["a/b.txt", "a/機能の報告.txt"]
    assert names(zipped((b"a\\b.txt", 0, b""), system=3)) == ["a\\b.txt"]


def test_a_false_flag_costs_no_member() -> None:
    body = zipped((b"K\x94pfe", 0x800, b""), ("ä".encode(), 0x800, b""))
    assert names(body) == names(b"junk" + body) == ["Köpfe", "ä"]


@pytest.mark.parametrize(
    ("codec", "name"),
    [
        *(("cp437", name) for name in ("Prüfmappe", "Größe", "résumé", "señor", "Über")),
        *(("cp850", name) for name in ("Größe", "São Paulo", "Blåbær")),
        *(("cp1252", name) for name in ("Größe", "Français", "ações", "Résumé – €")),
        *(("cp866", name) for name in ("Отчёт за 2023", "план", "ПРИКАЗ")),
        *(("cp1251", name) for name in ("Договор аренды", "план", "ПРИКАЗ")),
        *(("cp932", name) for name in ("議事録見本", "会議", "テスト", "お知らせ", "第1章")),
        *(("gbk", name) for name in ("合同附件", "新建文件夹", "安全管理")),
        *(("big5", name) for name in ("員工手冊", "報告")),
        *(("cp949", name) for name in ("회의록", "견본 문서")),
        *(("mac_roman", name) for name in ("Prüfung", "Français")),
    ],
)
def test_other_names_are_guessed(codec: str, name: str) -> None:
    system = 7 if codec == "mac_roman" else 0
    assert names(zipped((name.encode(codec), 0, b""), system=system)) == [name]


def test_all_names_together_are_weighed() -> None:
    assert names(zipped(*((name.encode("cp1251"), 0, b"") for name in ("й", "Договор")))) == [
        "й",
        "Договор",
    ]


def test_many_names_take_little_time() -> None:
    before = time.process_time()
    names(zipped(*((b"\x81\x94" * 100 + b"%d" % n, 0, b"\0" * 400) for n in range(200))))
    assert time.process_time() - before < 1


def test_the_field_of_info_zip_counts_for_a_name_in_ascii_too():
    assert names(zipped((b"?.txt", 0, field(b"?.txt", CYRILLIC)))) == [CYRILLIC]
    assert names(zipped((b"a.txt", 0, field(b"b.txt", CYRILLIC)))) == ["a.txt"]
