"""Failed fetches by kind: Scrapy's exceptions, each with the word of frontier/failures.py.

    raise TooBig("more than 16777216 bytes (DOWNLOAD_MAXSIZE)")    # .kind is "too-big"

Foreign spiders meet the classes that Scrapy documents. A message names the limit that was reached;
none holds a password, a cookie or the userinfo of a URL.
"""

from __future__ import annotations

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)


class OutOfScope(IgnoreRequest):
    """A request that was about to leave the scope."""

    kind = "scope"


class DeniedAddress(IgnoreRequest):
    """The name resolves to addresses that must not be asked, and to no other."""

    kind = "address"


class BadUrl(IgnoreRequest):
    """A URL, or a request, that cannot be sent."""

    kind = "bad-url"


class Unresolved(CannotResolveHostError):
    """The name has no address."""

    kind = "dns"


class Refused(DownloadConnectionRefusedError):
    """No connection: nobody listens there, or no way leads there."""

    kind = "refused"


class TimedOut(DownloadTimeoutError):
    """No connection in time, or no complete answer."""

    kind = "timeout"


class TooSlow(DownloadTimeoutError):
    """Fewer bytes a second than the low-speed limit, for too long."""

    kind = "slow"


class TlsFailed(DownloadFailedError):
    """No TLS connection, or a certificate that does not verify."""

    kind = "tls"


class ConnectionLost(DownloadFailedError):
    """The connection ended before the answer began."""

    kind = "reset"


class CutShort(ResponseDataLossError):
    """The connection ended inside the body."""

    kind = "reset"


class BadBody(ResponseDataLossError):
    """Chunks that are none, inside the body."""

    kind = "bad-response"


class TooBig(DownloadCancelledError):
    """A body or a head over its limit."""

    kind = "too-big"


class BadResponse(DownloadFailedError):
    """What came is no answer in HTTP."""

    kind = "bad-response"
