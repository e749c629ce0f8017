"""Which documents are too much work for the crawl's own process: large ones, and many tags.

While one page is read nothing else happens, so what may take longer than a blink is read in another
process (reader.py). Below both limits the worst pages that are known (tests/hostile/
document_cases.py, tags of 2 KB all through, thousands of links open at once) take 0.12 s; an
ordinary one of 40 KB takes 1.4 ms.
"""

from __future__ import annotations

MAX_BYTES = 524_288
"""Ten MB take up to 1.2 s, if they are all NUL."""
MAX_TAGS = 10_000
"""Of "<"; so many take 0.06 s if they are links, 0.1 s if they are nested."""


def is_large(body: bytes) -> bool:
    """Whether another process should read ``body``; 1 us for 40 KB."""
    return len(body) > MAX_BYTES or body.count(b"<") > MAX_TAGS
