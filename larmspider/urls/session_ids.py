"""Session ids make one page look like many: /cart;jsessionid=1A and /cart?sid=2B are /cart.

A parameter of the path (after ``;``, RFC 3986 3.3) or of the query (after ``&`` or ``;``) is
dropped, with its separator, if its name is on a list and it has a value. ``?sid`` alone stays: it
names no session.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
