"""The other side of helper_process.py: the messages, and the programs of the processes of
language.py and simhasher.py. A process loads no more than it needs: asyncio alone takes 0.06 s.

Standard input has messages, standard output the answers: length (4 bytes, big endian) and msgpack.
A process ends with its input, so it does not outlive the crawl.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

import msgpack

LENGTH = struct.Struct(">I")
PASS = 300_000
"""Characters that numpy takes at once; their numbers take 15 MB."""
KEPT_BYTES = 16 << 20
"""Free memory that stays with a process, for the next page."""
_BUFFER = 16_384
"""Bytes of msgpack's buffer, in place of 256 KB that malloc returns each time: 41 us for 62."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_NICE = 10
_LIKELY = 0.05  # among all languages: a Polish page gives 0.9 to German, of German, English, French


def send(pipe: IO[bytes], message: Any) -> None:
    """An answer, whose texts are needed no more: with each its UTF-8 may be kept."""
    try:
        data: bytes = msgpack.packb(message, buf_size=_BUFFER)
    except UnicodeEncodeError:  # lone surrogates; to allow for them takes half as long again
        pipe.write(packed(message))
    else:
        pipe.write(LENGTH.pack(len(data)) + data)


def packed(message: Any) -> bytes:
    """A message in the form in which it is sent: its length, then its bytes."""
    data: bytes = msgpack.packb(message, unicode_errors="surrogatepass", buf_size=_BUFFER)
    return LENGTH.pack(len(data)) + data


def unpacked(received: bytearray, at: int = 0) -> tuple[Any, int] | None:
    """The first message in ``received`` from ``at`` on, and its bytes; None if it is
    incomplete."""
    begin = at + LENGTH.size
    if len(received) < begin:
        return None
    end = begin + LENGTH.unpack_from(received, at)[0]
    if len(received) < end:
        return None
    with memoryview(received) as view:
        return msgpack.unpackb(view[begin:end], unicode_errors="surrogatepass"), end - at


def receive(pipe: IO[bytes]) -> Any:
    """The next message. Raises EOFError if none follows, or only a part."""
    head = pipe.read(LENGTH.size)
    size = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 0
    data = pipe.read(size)
    if not data or len(data) < size:
        raise EOFError
    return msgpack.unpackb(data, unicode_errors="surrogatepass")


def keep_memory() -> bool:
    """Whether the C library accepted it; only glibc does. Otherwise it returned the memory of a
    page, and the next page allocated it again: 64 page faults for 20 KB, a tenth of the time."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES) & mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES))


def guess_languages(languages: Sequence[str]) -> None:
    """Answer each text with the likeliest of ``languages`` and how sure that is, from 0 to 1."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    with suppress(EOFError, BrokenPipeError):
        while True:
            # rank all languages, then restrict: a text that is like none of them gets no guess
            ranked = identifier.rank(receive(sys.stdin.buffer))
            asked = [(language, share) for language, share in ranked if language in languages]
            language, share = asked[0]
            sure = share / sum(share for _, share in asked) if share >= _LIKELY else 0.0
            send(sys.stdout.buffer, (language, sure))
            sys.stdout.buffer.flush()


def compare_texts() -> None:
    """Answer each message in the form that `Simhasher.submit` describes."""
    from larmspider.extraction.texts.navigation import Navigation
    from larmspider.extraction.texts.words import Words

    if hasattr(os, "nice"):
        os.nice(_NICE)
    keep_memory()
    navigation = Navigation()
    with suppress(EOFError, BrokenPipeError):
        while True:
            found: list[tuple[int, list[tuple[int, int]]]] = []
            for some in _passes(receive(sys.stdin.buffer)):
                known = Words([text for _, text in some])
                spans = navigation.spans(some, known)
                found += zip(known.simhashes(), spans, strict=True)
            send(sys.stdout.buffer, found)
            sys.stdout.buffer.flush()


def _passes(texts: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    some: list[tuple[str, str]] = []
    size = 0
    for one in texts:
        some.append(one)
        size += len(one[1])
        if size >= PASS:
            yield some
            some, size = [], 0
    if some:
        yield some
