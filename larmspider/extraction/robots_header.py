"""The header X-Robots-Tag, which says for a PDF what meta robots says for a page.

X-Robots-Tag: noindex, nofollow
X-Robots-Tag: larmspider: none          (for us alone)
X-Robots-Tag: otherbot: noindex         (not for us)
"""

from __future__ import annotations

from larmspider.extraction.metadata import robots_directives

_WITH_VALUE = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")


def robots_header(value: str) -> tuple[bool, bool]:
    """Whether one X-Robots-Tag header says noindex, and nofollow, to us."""
    name, colon, rest = value.partition(":")
    name = name.strip().lower()
    if not colon or "," in name or name in _WITH_VALUE:
        return robots_directives("robots", value)
    return robots_directives(name, rest)
