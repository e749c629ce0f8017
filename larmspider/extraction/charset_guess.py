"""The charset of a body that declares none and is not UTF-8: ``caf\\xe9`` of an old editor.

chardetng (the detector of Firefox, the optional extra ``charset``) guesses if it is installed, else
charset-normalizer, right less often. Both look at a sample: what decides lies near the first byte
that is not ASCII.
"""

from __future__ import annotations

from collections.abc import Callable

import webencodings

SAMPLE_BYTES = 20_480
"""Length of the sample; detectors read 5 to 11 MB a second."""
_BEFORE = 1_024
FALLBACK = "windows-1252"
"""What is left when nobody knows: the default of browsers in the West; every byte has a meaning."""


def guess(body: bytes, error: UnicodeDecodeError) -> str:
    """The charset of ``body``, given why it is not UTF-8; never None, often right.

    A body that is UTF-8 but cut off in the middle of its last character is UTF-8.
    """
    if error.reason == "unexpected end of data":
        return "utf-8"
    start = max(0, error.start - _BEFORE)
    encoding = webencodings.lookup(_detect(body[start : start + SAMPLE_BYTES]) or FALLBACK)
    return FALLBACK if encoding is None else encoding.name


def _by_normalizer(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes  # 40 ms to import, and few pages need it

    best = from_bytes(sample).best()
    return None if best is None else best.encoding.replace("_", "-")


def _detector() -> Callable[[bytes], str | None]:
    try:
        from chardetng_py import detect
    except ImportError:
        return _by_normalizer
    return detect  # type: ignore[no-any-return]


_detect = _detector()
