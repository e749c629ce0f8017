"""Dot segments: ``/a/./b/../c`` is ``/a/c`` (WHATWG URL 4.4, "path state").

can_ada resolves them while it parses, but not in a path that has a segment which begins with a dot
and is none itself: ``/a/.b/../c`` stays as it is.
"""

from __future__ import annotations

import re

_DOT_SEGMENT = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)


def resolve_dots(path: str) -> str:
    """``path``, which begins with a slash, without segments that are dots, escaped or not.

    As in browsers ``..`` takes an empty segment back as well: ``/a//../b`` is ``/a/b``.
    """
    if not _DOT_SEGMENT.search(path):
        return path
    segments: list[str] = []
    last = ""
    for segment in path[1:].split("/"):
        last = segment.lower().replace("%2e", ".")
        if last == "..":
            del segments[-1:]
        elif last != ".":
            segments.append(segment)
    if last in (".", ".."):
        segments.append("")
    return "/" + "/".join(segments)
