"""Tags of pictures, sound and films in odd but valid forms."""

from __future__ import annotations

import base64
import io
import struct
from collections.abc import Iterator
from xml.sax.saxutils import escape

from PIL import Image, PngImagePlugin

from benchmarks.valid_documents.made import Made
from benchmarks.valid_documents.words import EASTERN, LATIN, Words

_SCRIPTS = (*LATIN, *EASTERN, "arabic", "hebrew", "chinese", "japanese", "korean")


def files() -> Iterator[Made]:
    for number, script in enumerate(_SCRIPTS):
        yield from _pictures(number, script)
        yield from _sounds(number, script)


def _exif(words: Words, script: str) -> bytes:
    found = Image.Exif()
    found[0x010E], found[0x013B], found[0x8298] = words(), words(), words()
    for tag in (0x9C9B, 0x9C9C, 0x9C9E):
        found[tag] = f"{words(script)}\0".encode("utf-16-le")
    found.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + words(script).encode("utf-16-le")
    return found.tobytes()


def _xmp(words: Words, script: str) -> bytes:
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description '
        'rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title><rdf:Alt><rdf:li '
        f'xml:lang="x-default">{escape(words(script))}</rdf:li></rdf:Alt></dc:title><dc:description>'
        f'<rdf:Alt><rdf:li xml:lang="x-default">{words(script)}</rdf:li></rdf:Alt></dc:description>'
        f"<dc:creator><rdf:Seq><rdf:li>{words(script)}</rdf:li></rdf:Seq></dc:creator><dc:subject>"
        f"<rdf:Bag><rdf:li>{words(script)}</rdf:li><rdf:li>{words()}</rdf:li></rdf:Bag></dc:subject>"
        '</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    ).encode()


def _pictures(number: int, script: str) -> Iterator[Made]:
    picture = Image.new(("RGB", "L")[number % 2], (4, 4))

    def saved(kind: str, words: Words, **options: object) -> Made:
        out = io.BytesIO()
        picture.save(out, kind, **options)
        name = f"{number}.{kind.lower()}"
        return Made(kind, name, out.getvalue(), " ".join(words.all))

    words = Words(f"jpeg {number}")
    options: dict[str, object] = {"exif": _exif(words, script)}
    if number % 2:
        options["xmp"] = _xmp(words, script)
    if number % 3 == 0:
        options["comment"] = words(script).encode()
    yield saved("JPEG", words, progressive=number % 4 == 0, **options)
    words = Words(f"png {number}")
    info = PngImagePlugin.PngInfo()
    if number % 3 == 0:
        info.add_text("Title", words())
        info.add_text("Description", words(), zip=True)
    elif number % 3 == 1:
        info.add_itxt("Title", words(script), "de", "Titel")
        info.add_itxt("Description", words(script), zip=True)
    else:
        info.add_itxt("XML:com.adobe.xmp", _xmp(words, script).decode())
    options = {"exif": _exif(words, script)} if number % 2 else {}
    yield saved("PNG", words, pnginfo=info, **options)
    words = Words(f"tiff {number}")
    tags = {270: words(), 315: words(), 33432: words()}
    if number % 2:
        tags[700] = _xmp(words, script)  # type: ignore[assignment]
    compression = ("raw", "tiff_deflate", "tiff_lzw")[number % 3]
    yield saved("TIFF", words, tiffinfo=tags, compression=compression)
    words = Words(f"webp {number}")
    options = {"exif": _exif(words, script)} if number % 2 else {"xmp": _xmp(words, script)}
    yield saved("WEBP", words, lossless=number % 3 == 0, **options)
    words = Words(f"gif {number}")
    yield saved("GIF", words, comment=words(script).encode())


def _sounds(number: int, script: str) -> Iterator[Made]:
    for kind, make in _SOUNDS.items():
        words = Words(f"{kind} {number}")
        body = make(words, script, number)
        extension = {"MP4": ("m4a", "mp4", "mov")[number % 3]}.get(kind, kind.lower())
        yield Made(kind, f"{number}.{extension}", body, " ".join(words.all))


def _mp3(words: Words, script: str, number: int) -> bytes:
    version = (3, 4, 2)[number % 3]
    codecs = {0: "latin-1", 1: "utf-16", 2: "utf-16-be", 3: "utf-8"}
    coding = (1, 3, 1)[number % 3]
    if version == 4 and number % 2:
        coding = 2

    def text(value: str) -> bytes:
        return bytes((coding,)) + value.encode(codecs[coding])

    names = ("TIT2", "TPE1", "TALB", "TCOM") if version > 2 else ("TT2", "TP1", "TAL", "TCM")
    frames = [(name, text(words(script))) for name in names]
    comment = (
        bytes((coding,))
        + b"eng"
        + "\0".encode(codecs[coding])
        + words(script).encode(codecs[coding])
    )
    frames.append(("COMM" if version > 2 else "COM", comment))
    lyrics = (
        bytes((coding,))
        + b"eng"
        + "\0".encode(codecs[coding])
        + words(script).encode(codecs[coding])
    )
    frames.append(("USLT" if version > 2 else "ULT", lyrics))
    data = b""
    for name, value in frames:
        if version == 2:
            data += name.encode() + struct.pack(">I", len(value))[1:] + value
        else:
            size = _synchsafe(len(value)) if version == 4 else struct.pack(">I", len(value))
            data += name.encode() + size + b"\0\0" + value
    data += bytes(256)  # padding
    return b"ID3" + bytes((version, 0, 0)) + _synchsafe(len(data)) + data + _FRAME * 20


_FRAME = b"\xff\xfb\x90\x00" + bytes(413)
"""A frame of MPEG 1 layer III, 128 kbit/s."""


def _synchsafe(size: int) -> bytes:
    return bytes((size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127))


def _mp4(words: Words, script: str, number: int) -> bytes:
    def atom(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data) + 8) + name + data

    names = (b"\xa9nam", b"\xa9ART", b"\xa9alb", b"\xa9cmt", b"\xa9lyr")
    listed = b"".join(
        atom(name, atom(b"data", b"\0\0\0\1\0\0\0\0" + words(script).encode())) for name in names
    )
    handler = atom(b"hdlr", bytes(8) + b"mdirappl" + bytes(10))
    meta = atom(b"meta", b"\0\0\0\0" + handler + atom(b"ilst", listed))
    film = atom(b"moov", atom(b"mvhd", bytes(100)) + atom(b"udta", meta))
    brand = (b"M4A ", b"mp42", b"qt  ")[number % 3]
    sound = atom(b"mdat", bytes(2_000))
    begin = atom(b"ftyp", brand + bytes(4))
    return begin + (sound + film if number % 2 else film + sound)


def _comments(words: Words, script: str) -> bytes:
    names = ("TITLE", "artist", "Album", "COMMENT", "COMPOSER")
    each = [f"{name}={words(script)}".encode() for name in names]
    vendor = b"a maker"
    listed = b"".join(struct.pack("<I", len(one)) + one for one in each)
    return struct.pack("<I", len(vendor)) + vendor + struct.pack("<I", len(each)) + listed


def _flac(words: Words, script: str, number: int) -> bytes:
    info = struct.pack(">HH", 4096, 4096) + bytes(6) + bytes.fromhex("0ac442f000000000") + bytes(16)
    blocks = [(0, info), (4, _comments(words, script)), (1, bytes(64))]
    if number % 2:
        blocks[1], blocks[2] = blocks[2], blocks[1]
    out = b"fLaC"
    for at, (kind, data) in enumerate(blocks):
        last = 0x80 if at == len(blocks) - 1 else 0
        out += bytes((kind | last,)) + struct.pack(">I", len(data))[1:] + data
    return out + bytes(100)


def _ogg_page(packets: list[bytes], sequence: int, flags: int) -> bytes:
    lacing = b"".join(b"\xff" * (len(one) // 255) + bytes((len(one) % 255,)) for one in packets)
    head = b"OggS\0" + bytes((flags,)) + bytes(8) + struct.pack("<III", 7, sequence, 0)
    page = bytearray(head + bytes((len(lacing),)) + lacing + b"".join(packets))
    page[22:26] = struct.pack("<I", _ogg_checksum(page))
    return bytes(page)


def _ogg_checksum(page: bytes | bytearray) -> int:
    value = 0
    for byte in page:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value & 0x80000000 else 0)) & 0xFFFFFFFF
    return value


def _ogg(words: Words, script: str, number: int) -> bytes:
    if number % 2:
        first = b"OpusHead" + struct.pack("<BBHIhB", 1, 2, 312, 48000, 0, 0)
        packets = [b"OpusTags" + _comments(words, script)]
    else:
        first = b"\x01vorbis" + struct.pack("<IBIiiiBB", 0, 2, 44100, 0, 128000, 0, 0xB8, 1)
        packets = [b"\x03vorbis" + _comments(words, script) + b"\1", b"\x05vorbis" + bytes(60)]
    return _ogg_page([first], 0, 2) + _ogg_page(packets, 1, 0) + _ogg_page([bytes(50)], 2, 4)


def _wav(words: Words, script: str, number: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)

    sound = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16))
    sound += chunk(b"data", bytes(400))
    if number % 2:
        tags = chunk(b"id3 ", _mp3(words, script, 0).partition(_FRAME)[0])
    else:
        names = (b"INAM", b"IART", b"ICMT", b"IPRD")
        listed = b"".join(chunk(name, words().encode() + b"\0") for name in names)
        tags = chunk(b"LIST", b"INFO" + listed)
    data = b"WAVE" + sound + tags
    return b"RIFF" + struct.pack("<I", len(data)) + data


def _aiff(words: Words, script: str, number: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return name + struct.pack(">I", len(data)) + data + bytes(len(data) % 2)

    sound = chunk(b"COMM", struct.pack(">hIh", 1, 200, 16) + bytes.fromhex("400bfa00000000000000"))
    if number % 2:
        tags = chunk(b"ID3 ", _mp3(words, script, 0).partition(_FRAME)[0])
    else:
        tags = b"".join(
            chunk(name, words().encode()) for name in (b"NAME", b"AUTH", b"ANNO", b"(c) ")
        )
    data = b"AIFF" + sound + tags + chunk(b"SSND", bytes(408))
    return b"FORM" + struct.pack(">I", len(data)) + data


def _wma(words: Words, script: str, number: int) -> bytes:
    def wide() -> bytes:
        return f"{words(script)}\0".encode("utf-16-le")

    texts = [wide(), wide(), wide(), wide(), b"\0\0"]
    described = struct.pack("<HHHHH", *map(len, texts)) + b"".join(texts)
    content = bytes.fromhex("3326b2758e66cf11a6d900aa0062ce6c")
    name = "WM/AlbumTitle\0".encode("utf-16-le")
    value = wide()
    more = struct.pack("<HH", 1, len(name)) + name + struct.pack("<HH", 0, len(value)) + value
    extended = bytes.fromhex("40a4d0d207e3d21197f000a0c95ea850")
    objects = [content + struct.pack("<Q", len(described) + 24) + described]
    objects.append(extended + struct.pack("<Q", len(more) + 24) + more)
    inside = b"".join(objects[:: -1 if number % 2 else 1])
    head = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
    return head + struct.pack("<QIBB", len(inside) + 30, len(objects), 1, 2) + inside + bytes(100)


_SOUNDS = {
    "MP3": _mp3, "MP4": _mp4, "FLAC": _flac, "Ogg": _ogg, "WAV": _wav, "AIFF": _aiff, "WMA": _wma,
}  # fmt: skip


def picture_of_text() -> str:
    """A picture as a data URL, for pages and slides."""
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "PNG")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"
