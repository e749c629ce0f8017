"""User names and passwords in URLs are asked for nowhere and shown nowhere.

>>> without_userinfo("http://user:word@[bad")
'http://[bad'
"""

from __future__ import annotations

import re

# As WHATWG reads them: up to the last "@" before path, query and fragment; a scheme of the web
# takes any number of slashes, and a link may start with the host.
_USERINFO = re.compile(
    r"([\x00-\x20]*+(?:(?:https?|wss?|ftp|file):[/\\]*+|[a-z][a-z0-9+.-]*+://|[/\\]{2,}+))[^/\\?#]*@",
    re.IGNORECASE,
)
_TAB_OR_NEWLINE = str.maketrans("", "", "\t\r\n")  # a parser drops these before it looks


def without_userinfo(url: str) -> str:
    """``url``, absolute or a link, parsed or what cannot be, without user name and password.

    Others than those with a host stay as they are (``mailto:a@b``). Linear time, never raises.
    """
    if "@" not in url:
        return url
    url = url.translate(_TAB_OR_NEWLINE)
    found = _USERINFO.match(url)  # a search would be quadratic in slashes
    return found[1] + url[found.end() :] if found else url
