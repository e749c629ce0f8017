"""Session ids make one page look like many: /cart;jsessionid=1A and /cart?sid=2B are /cart.

A parameter of the path (after ``;``, RFC 3986 3.3) or of the query (after ``&`` or ``;``) is
dropped, with its separator, if its name is on a list and it has a value. ``?sid`` alone stays: it
names no session.

A server may draw ids under any name. tokens_of() finds random-looking parts of a URL, and without()
removes some of them; the caller has to prove that they mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from larmspider.errors import ConfigError

DEFAULT_SESSION_IDS: tuple[str, ...] = (
    "jsessionid",
    "jservsessionid*",
    "phpsessid",
    "aspsessionid*",
    "asp.net_sessionid",
    "cfid",
    "cftoken",
    "sid",
    "sessid",
    "sessionid",
    "session_id",
    "oscsid",
    "zenid",
)
"""Names of session parameters, in any case; ``*`` is any characters (aspsessionidQQGGRT)."""

_TOKEN = re.compile(r"(?:\A|[&;])([^=&;]+)=((?=[^&;]*[0-9])[0-9A-Za-z_-]{12,})(?=[&;]|\Z)")
_SEGMENT = re.compile(r"/\(([A-Z])\(([0-9A-Za-z_-]{12,})\)\)(?=[/?]|\Z)")
IN_PATH = "path"
"""Name of a parameter that is a segment of the path: ``/(S(lit3py55t21z5v55vlm25s55))/``."""
_BARE_SEGMENT = re.compile(
    r"/(?=[^/;]*[0-9])(?=[^/;]*[A-Za-z])([0-9A-Za-z]{16,})(?=/)"  # no slug: these have hyphens
)
BARE_IN_PATH = "segment"
"""Name of a parameter that is a whole segment, but the last one: ``/9f86d081884c7d65/item``."""
_IN_SEGMENT = re.compile(r"(;[^=;/]+)=((?=[^;/]*[0-9])[0-9A-Za-z_-]{12,})(?=[;/]|\Z)")
"""A parameter behind a segment; its name begins with the semicolon: ``/item;trk=9f86d081884c``."""

_ALLOWED = re.compile(r"[A-Za-z0-9._~*-]+")


class SessionIds:
    """Drops session parameters from paths and queries whose escapes are normalized.

    ``names`` as in DEFAULT_SESSION_IDS; an empty sequence drops nothing. Raises ConfigError for a
    name with other characters than letters, digits and ``. _ ~ - *``, or of ``*`` alone.
    """

    def __init__(self, names: Sequence[str] = DEFAULT_SESSION_IDS) -> None:
        for name in names:
            if not _ALLOWED.fullmatch(name) or not name.strip("*"):
                raise ConfigError(
                    f"session id {name!r}: expected parameter names of letters, digits, "
                    "'.', '_', '~', '-' and '*' for any characters, such as aspsessionid*"
                )
        self.names = tuple(names)
        # (?!) matches nowhere: the empty list.
        any_name = "|".join(re.escape(name).replace(r"\*", "[^=&;/?]*") for name in names) or "(?!)"
        flags = re.IGNORECASE | re.ASCII
        self._in_path = re.compile(rf";(?:{any_name})=[^;/]*", flags)
        self._in_query = re.compile(rf"(?:\A|[&;])(?:{any_name})=[^&;]*", flags)

    def in_query(self, query: str) -> bool:
        """Whether ``query``, without its question mark, has a session parameter."""
        return self._in_query.search(query) is not None

    def drop_from_query(self, query: str) -> str:
        """``query``, without its question mark, less its session parameters."""
        kept = self._in_query.sub("", query)
        first = self._in_query.match(query)
        # A parameter at the very start has its separator behind it.
        return kept[1:] if first and first[0][0] not in "&;" else kept

    def drop_from_path(self, path: str) -> str:
        """``path`` less its session parameters: ``/a;jsessionid=1/b`` becomes ``/a/b``."""
        return self._in_path.sub("", path)


def tokens_of(url: str) -> dict[str, str]:
    """The parameters of a URL whose values look as if drawn at random, by name."""
    path, _, query = url.partition("#")[0].partition("?")
    found = dict(_TOKEN.findall(query)) if query else {}
    if "(" in path and (segment := _SEGMENT.search(path)) is not None:
        found[IN_PATH] = segment[2]
    if (segment := _BARE_SEGMENT.search(path)) is not None:
        found[BARE_IN_PATH] = segment[1]
    if ";" in path:
        found |= _IN_SEGMENT.findall(path)
    return found


def without(url: str, names: Collection[str]) -> str:
    """A URL less the parameters of these names."""
    head, mark, query = url.partition("?")
    if IN_PATH in names:
        head = _SEGMENT.sub("", head)
    if BARE_IN_PATH in names:
        head = _BARE_SEGMENT.sub("", head, count=1)
    if ";" in head:
        first, *parts = re.split("(;[^=;/]+=[^;/]*)", head)
        head = first + "".join(one for one in parts if one.partition("=")[0] not in names)
    if not mark:
        return head
    kept = [one for one in re.split("[&;]", query) if one.partition("=")[0] not in names]
    return f"{head}?{'&'.join(kept)}" if kept else head
