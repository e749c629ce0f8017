"""Archives in odd but valid forms, whose members are texts and documents."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator

from benchmarks.valid_documents.made import Made
from benchmarks.valid_documents.words import EASTERN, LATIN, Words
from tests.support.documents import packages

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SCRIPTS = (*LATIN, *EASTERN, "arabic", "hebrew", "chinese", "japanese", "korean")


def files() -> Iterator[Made]:
    yield from _zips()
    yield from _tars()
    yield from _packed()


def members(words: Words) -> dict[str, bytes]:
    """Names and bytes, with the words of both in ``words``."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(f"{words(count=1)}.txt", words("german"))
    return {
        f"{words(count=1)}.txt": words("german").encode(),
        f"a/b/{words(count=1)}.md": f"# {words('russian')}\n{words('greek')}".encode(),
        f"{words(count=1)}.html": f"<title>{words()}</title><p>{words('polish')}".encode(),
        f"{words(count=1)}.docx": packages.docx(packages.para(words("german"))),
        f"{words(count=1)}.xlsx": packages.xlsx(
            f'<row r="1">{packages.cell("A1", words("czech"))}</row>'
        ),
        "inner.zip": inner.getvalue(),
        f"{words(count=1)}.csv.gz": gzip.compress(words("turkish").encode()),
    }


def _zips() -> Iterator[Made]:
    kinds = (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    for number, kind in enumerate(kinds):
        words = Words(f"zip {number}")
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", kind) as archive:
            archive.comment = b"a comment"
            archive.mkdir("empty")
            for name, data in members(words).items():
                archive.writestr(name, data)
        yield Made("zip", f"{number}.zip", out.getvalue(), " ".join(words.all))
    charsets = {
        "german": ("cp437", "cp850", "utf-8"), "russian": ("cp866", "utf-8"),
        "japanese": ("utf-8",), "polish": ("cp852",),
    }  # fmt: skip
    names = {"german": "Prüfpläne für Größen", "russian": "Отчёт о проверке порта",
             "japanese": "日本語の文書", "polish": "Załącznik żółty"}  # fmt: skip
    for language, each in charsets.items():
        for charset in each:
            words, body = Words(f"zip {language} {charset}"), io.BytesIO()
            with zipfile.ZipFile(body, "w") as archive:
                archive.writestr(
                    "X" * len(names[language].encode(charset)) + ".txt", words(language)
                )
            raw = names[language].encode(charset)
            data = body.getvalue().replace(b"X" * len(raw), raw)
            yield Made(
                "zip", f"{language}-{charset}.zip", data, f"{names[language]} {' '.join(words.all)}"
            )
    words = Words("zip streamed")
    yield Made("zip", "streamed.zip", _streamed(members(words)), " ".join(words.all))
    words = Words("zip 64")
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, data in members(words).items():
            with archive.open(name, "w", force_zip64=True) as file:
                file.write(data)
    yield Made("zip", "64.zip", body.getvalue(), " ".join(words.all))
    many = Words("zip many")
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(1_500):
            archive.writestr(f"{number}.txt", many(count=2))
    yield Made("zip", "many.zip", body.getvalue(), " ".join(many.all))
    words = Words("zip slashes")
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, data in members(words).items():
            info = zipfile.ZipInfo("x")
            info.filename = "C:\\texts\\" + name.replace("/", "\\")
            archive.writestr(info, data)
    yield Made("zip", "slashes.zip", body.getvalue(), " ".join(words.all))


def _streamed(files_: dict[str, bytes]) -> bytes:
    """Sizes behind the data (APPNOTE 4.3.9), as of a zip file that is written to a pipe."""

    class _Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            self.data += bytes(data)  # type: ignore[call-overload]
            return len(bytes(data))  # type: ignore[call-overload]

    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        for name, data in files_.items():
            archive.writestr(name, data)
    return bytes(pipe.data)


def _tars() -> Iterator[Made]:
    number = 0
    for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        for mode in ("w", "w:gz", "w:bz2", "w:xz"):
            words, out = Words(f"tar {number}"), io.BytesIO()
            with tarfile.open(fileobj=out, mode=mode, format=kind) as archive:  # type: ignore[call-overload]
                folder = tarfile.TarInfo("folder")
                folder.type = tarfile.DIRTYPE
                archive.addfile(folder)
                for name, data in members(words).items():
                    deep = "d" * 90 + "/"
                    info = tarfile.TarInfo(deep + name if kind != tarfile.USTAR_FORMAT else name)
                    if kind == tarfile.PAX_FORMAT:
                        info.pax_headers = {"comment": "x"}
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
                link = tarfile.TarInfo("link")
                link.type, link.linkname = tarfile.SYMTYPE, "folder"
                archive.addfile(link)
            extension = ("tar", "tar.gz", "tar.bz2", "tar.xz")[number % 4]
            yield Made("tar", f"{number}.{extension}", out.getvalue(), " ".join(words.all))
            number += 1
    for name in ("zst", "tzst", "old"):
        words, out = Words(f"tar {name}"), io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for member, data in members(words).items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        packed = out.getvalue() if name == "old" else zstd.compress(out.getvalue())
        extension = {"zst": "tar.zst", "tzst": "tzst", "old": "tar"}[name]
        yield Made("tar", f"{name}.{extension}", packed, " ".join(words.all))


def _packed() -> Iterator[Made]:
    for number, script in enumerate(_SCRIPTS):
        for format_ in ("gz", "bz2", "xz", "zst"):
            words = Words(f"{format_} {number}")
            plain = words(script, 40).encode()
            name = f"{number}.{('txt', 'csv', 'log', 'md')[number % 4]}.{format_}"
            body = _PACK[format_](plain, number)
            yield Made(format_, name, body, " ".join(words.all))


def _gz(plain: bytes, number: int) -> bytes:
    half = len(plain) // 2
    if number % 4 == 0:  # two members (RFC 1952 2.2)
        return gzip.compress(plain[:half]) + gzip.compress(plain[half:])
    if number % 4 == 1:  # name, comment, extra field and checksum of the head
        packed = zlib.compressobj(9, zlib.DEFLATED, -15)
        head = b"\x1f\x8b\x08\x1e\0\0\0\0\0\xff" + struct.pack("<H", 4) + b"ab\0\0" + b"n.txt\0c\0"
        head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
        tail = struct.pack("<II", zlib.crc32(plain), len(plain))
        return head + packed.compress(plain) + packed.flush() + tail
    if number % 4 == 2:  # stored, and zeros behind it, as on a tape
        return gzip.compress(plain, 0) + bytes(512)
    return gzip.compress(plain)


def _bz2(plain: bytes, number: int) -> bytes:
    half = len(plain) // 2
    if number % 2:
        return bz2.compress(plain[:half], 1) + bz2.compress(plain[half:])
    return bz2.compress(plain)


def _xz(plain: bytes, number: int) -> bytes:
    if number % 3 == 0:
        return lzma.compress(plain, check=lzma.CHECK_NONE)
    if number % 3 == 1:
        return lzma.compress(plain[:40], check=lzma.CHECK_SHA256) + lzma.compress(plain[40:])
    return lzma.compress(plain) + bytes(8)


def _zst(plain: bytes, number: int) -> bytes:
    if number % 3 == 0:
        return zstd.compress(plain[:40]) + zstd.compress(plain[40:], 19)
    if number % 3 == 1:
        return b"\x50\x2a\x4d\x18\x04\0\0\0skip" * (number % 2) + zstd.compress(plain)
    return zstd.compress(plain)


_PACK = {"gz": _gz, "bz2": _bz2, "xz": _xz, "zst": _zst}
