"""What the index keeps of a page as it was: all fields in one piece, compressed by itself.

Pages of an intranet have much in common, so each is compressed with a dictionary, which zstd trains
on some of the first ones, and anew when a run has seen many more. The dictionaries lie beside the
index; a page names its own::

    pages = PackedPages(Path("crawl/index"))
    packed = pages.pack({"key": "http://wiki.example/", "body": "..."})
    pages.unpack(packed)["body"]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack

from larmspider.files import replace_file

if sys.version_info >= (3, 14):
    from compression.zstd import (
        ZstdCompressor,
        ZstdDict,
        ZstdError,
        decompress,
        get_frame_info,
        train_dict,
    )
else:
    from backports.zstd import (
        ZstdCompressor,
        ZstdDict,
        ZstdError,
        decompress,
        get_frame_info,
        train_dict,
    )

LEVEL = 3
"""10 KB take 0.03 ms and 1.4 KB (2.4 without a dictionary, 2.6 in Tantivy's own store)."""
SAMPLES = 128
"""Pages that a dictionary is trained on, every other one at first; 0.05 s."""
SAMPLE_BYTES = 8_192
"""Of each of them."""
DICTIONARY_BYTES = 65_536
MORE = 32
"""So many times as many pages are seen before the next dictionary is trained."""
_NAME = "pages-{}.zdict"


class PackedPages:
    """Of the index in ``directory``. `pack` is called by its one writer."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[int, ZstdDict] = {}
        self._number = 0  # of the newest dictionary
        self._compressor = ZstdCompressor(LEVEL)
        self._seen = 0
        self._samples: list[bytes] = []
        self._load()

    def _load(self) -> None:
        while (path := self._directory / _NAME.format(self._number + 1)).exists():
            self._use(ZstdDict(path.read_bytes()))

    def _use(self, dictionary: ZstdDict) -> None:
        self._known[dictionary.dict_id] = dictionary
        self._compressor = ZstdCompressor(LEVEL, zstd_dict=dictionary.as_digested_dict)
        self._number += 1

    def pack(self, fields: Mapping[str, Any]) -> bytes:
        data = msgpack.packb(dict(fields), datetime=True, unicode_errors="replace")
        self._seen += 1
        if self._seen % (2 * MORE**self._number) == 0:
            self._samples.append(data[:SAMPLE_BYTES])
            if len(self._samples) == SAMPLES:
                self._train()
        return self._compressor.compress(data, ZstdCompressor.FLUSH_FRAME)

    def _train(self) -> None:
        samples, self._samples, self._seen = self._samples, [], 0
        try:
            dictionary = train_dict(samples, DICTIONARY_BYTES)
        except ZstdError:  # too little text, or none in common
            return
        path = self._directory / _NAME.format(self._number + 1)
        # before the commit that has pages which need it
        replace_file(path, dictionary.dict_content, synced=True)
        self._use(dictionary)

    def unpack(self, packed: bytes) -> dict[str, Any]:
        """Raises ValueError for what cannot be read."""
        try:
            name = get_frame_info(packed).dictionary_id
            if name and name not in self._known:
                self._load()  # trained by a writer since
            data = decompress(packed, self._known[name].as_digested_dict if name else None)
        except (ZstdError, KeyError, OSError) as error:
            raise ValueError(f"a page in it cannot be unpacked: {error!r}") from error
        fields: dict[str, Any] = msgpack.unpackb(data, timestamp=3)
        return fields
