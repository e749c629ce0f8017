"""Hosts such as ``xn--pokxncvks``: punycode that decodes to nothing, and a DNS name all the same.

WHATWG's test cases take them, the parser (can_ada) does not. Letters, digits and hyphens need no
IDNA, so it is given another host in their place, and theirs is put back. Only URLs that it has
refused come here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_STAND_IN = "odd-punycode.invalid"
# Scheme, host with punycode in ASCII, and what follows.
_URL = re.compile(
    r"(https?):[/\\]*+(?:[^/\\?#]*@)?(?=(?:[a-z0-9_-]*\.)*xn--)([a-z0-9._-]++)((?:[:/\\?#].*)?)\Z",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_C0_OR_SPACE = "".join(map(chr, range(0x21)))
_TAB_OR_NEWLINE = str.maketrans("", "", "\t\r\n")  # a parser drops these before it looks


class Disguised(NamedTuple):
    """``url`` with another host in place of ``host``, which is in lower case."""

    url: str
    host: str

    def restore(self, url: str) -> str:
        """``url``, made from ``self.url``, with ``host`` again if it is still there."""
        scheme, slashes, rest = url.partition("//")
        if not rest.startswith(_STAND_IN) or rest[len(_STAND_IN) :][:1] not in ("", "/", ":", "?"):
            return url
        return scheme + slashes + self.host + rest.removeprefix(_STAND_IN)


def disguised(url: str) -> Disguised | None:
    """None where ``url`` is not refused for such a host, or not for it alone."""
    found = _URL.match(url.strip(_C0_OR_SPACE).translate(_TAB_OR_NEWLINE))
    if found is None:
        return None
    scheme, host, rest = found.groups()
    host = host.lower()
    last = host.removesuffix(".").rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):
        return None  # WHATWG: it ends in a number, so it is an IPv4 address, and no good one
    return Disguised(f"{scheme}://{_STAND_IN}{rest}", host)
