"""Large buffers go back to the system when they are freed.

glibc raises the size from which it maps a buffer by itself whenever such a buffer is freed, up to
32 MB; bodies then come from the heap and leave holes in it. With the size fixed at 256 KB a crawl
of hostile documents of 10 MB took 156 to 195 MB more than an idle one, before 155 to 232.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, NoReturn

from scrapy.exceptions import NotConfigured

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

MAPPED_BYTES = 256 * 1024
_M_MMAP_THRESHOLD = -3  # malloc.h


class AllocatorExtension:
    """Sets it, for the whole process, and is gone. Nothing on systems without glibc."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoReturn:
        fix_mapping_threshold()
        raise NotConfigured


def fix_mapping_threshold() -> bool:
    """Whether the C library took it."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES))
