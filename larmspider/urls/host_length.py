"""A host of 100,000 accents costs the parser seconds: punycode is quadratic in its length.

``http://a`` + 50,000 times U+0301 U+0316 took can_ada 1.9 s; 2,000 characters take 1 ms. So the
host is looked at before the parser sees it. Only strings that are long at all pay for the look.
"""

from __future__ import annotations

import re

LONGEST_HOST = 253
"""Characters of a host name in ASCII (RFC 1035 2.3.4)."""
LONGEST_RAW_HOST = 2048
"""Characters of a host as written: room for 253 with every one escaped."""

# The schemes whose hosts go through IDNA (WHATWG URL 3.1), or a link that starts with the host.
_AUTHORITY = re.compile(r"(?:(?:https?|wss?|ftp|file):[/\\]*|[/\\]{2,})([^/\\?#]*)", re.IGNORECASE)
_C0_OR_SPACE = "".join(map(chr, range(0x21)))
_TAB_OR_NEWLINE = str.maketrans("", "", "\t\r\n")


def host_too_long(url: str) -> bool:
    """Whether the host of ``url``, absolute or a link, is longer than any that can be looked up."""
    if len(url) <= LONGEST_RAW_HOST:
        return False
    # The parser drops these before it looks (WHATWG URL 4.4).
    authority = _AUTHORITY.match(url.lstrip(_C0_OR_SPACE).translate(_TAB_OR_NEWLINE))
    return authority is not None and len(authority[1].rpartition("@")[2]) > LONGEST_RAW_HOST
