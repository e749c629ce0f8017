"""What the libcurl at hand can do, checked when a crawl starts and not at its thousandth page."""

from __future__ import annotations

import pycurl

from larmspider.errors import ConfigError

_BITS = {"negotiate": pycurl.VERSION_SPNEGO, "ntlm": pycurl.VERSION_NTLM}
"""Methods of authentication that a libcurl may lack, and the bits in which it says so."""


def check_method(method: str, where: str, features: int | None = None) -> None:
    """Raise ConfigError if libcurl cannot do ``method``, a name as in Credentials.method.

    ``features`` are libcurl's feature bits (curl_version_info), by default those of the one in use.
    """
    version = pycurl.version_info()
    needed = _BITS.get(method, 0)
    if needed and not (version[4] if features is None else features) & needed:
        raise ConfigError(
            f"{where} = {method!r} is not possible: the libcurl in use ({version[1]}) is built"
            f" without it; `curl -V` lists the features of another one, against which pycurl can be"
            " built from source"
        )
