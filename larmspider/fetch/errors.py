"""Failed fetches by kind: Scrapy's exceptions, each with a short word for logs and stats.

    raise TooBig("more than 16777216 bytes (DOWNLOAD_MAXSIZE)")    # .kind is "too-big"

Other spiders get the exceptions that Scrapy documents. A message names the limit that was reached;
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

from larmspider.dates import http_time

_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (CannotResolveHostError, "dns"),
    (DownloadConnectionRefusedError, "refused"),
    (DownloadTimeoutError, "timeout"),
    (DownloadCancelledError, "too-big"),
    (ResponseDataLossError, "reset"),
)
_TLS_WORDS = ("ssl", "tls", "certificate", "handshake")
_RESET_WORDS = ("reset", "lost", "closed", "aborted", "cleanly")
_MESSAGE_CHARS = 300


def kind_of(error: BaseException) -> str:
    """scope, address, login, bad-url, ignored, dns, refused, unmounted, timeout, slow, too-big,
    tls, reset, bad-response, sign-in, locked, unavailable, offline or error;
    frontier/politeness.py has their effects on URL and host.

    Errors of our download handler carry their kind. Class and wording tell the kind of Scrapy's
    errors.
    """
    kind = getattr(error, "kind", None)
    if isinstance(kind, str):
        return kind
    for cls, kind in _KINDS:
        if isinstance(error, cls):
            return kind
    if isinstance(error, IgnoreRequest):
        # Scrapy's word for a body that grew too large when it was unpacked
        return "too-big" if "DOWNLOAD_MAXSIZE" in str(error) else "ignored"
    if isinstance(error, DownloadFailedError):
        words = str(error).lower()
        if any(word in words for word in _TLS_WORDS):
            return "tls"
        return "reset" if any(word in words for word in _RESET_WORDS) else "bad-response"
    return "error"


def message_of(error: BaseException) -> str:
    """The error's text on one line, at most 300 characters."""
    return " ".join(str(error).split())[:_MESSAGE_CHARS] or type(error).__name__


def retry_after(value: bytes | None, now: float) -> float | None:
    """Seconds from ``now`` (since the epoch), 0 or more, of Retry-After, a number or a date (RFC
    9110 10.2.3); None for any other value."""
    if value is None:
        return None
    text = value.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    when = http_time(text)
    return None if when is None else max(0.0, when - now)


class OutOfScope(IgnoreRequest):
    """A request that was about to leave the scope."""

    kind = "scope"


class Disallowed(IgnoreRequest):
    """robots.txt no longer allows a revisit of a page."""

    kind = "robots"


class SignedOut(IgnoreRequest):
    """A page that shows the login form, or leads there, although its host's login is well."""

    kind = "login"


class DeniedAddress(IgnoreRequest):
    """The name resolves to denied addresses only."""

    kind = "address"


class BadUrl(IgnoreRequest):
    """A URL, or a request, that cannot be sent."""

    kind = "bad-url"


class Unresolved(CannotResolveHostError):
    """The name has no address."""

    kind = "dns"


class Refused(DownloadConnectionRefusedError):
    """No connection: no server listens there, or no route leads there."""

    kind = "refused"


class Unmounted(Refused):
    """A root of files is not there, or empty."""

    kind = "unmounted"


class SignInRefused(Refused):
    """A server does not accept the crawl's account, or no longer accepts it."""

    kind = "sign-in"


class Locked(DownloadFailedError):
    """Another program has locked the document."""

    kind = "locked"


class Unavailable(DownloadFailedError):
    """The document cannot be fetched now, although its server works."""

    kind = "unavailable"


class Offline(DownloadCancelledError):
    """The document lies in an archive, from where it is not read."""

    kind = "offline"


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
    """Invalid chunks inside the body."""

    kind = "bad-response"


class TooBig(DownloadCancelledError):
    """A body or a head over its limit."""

    kind = "too-big"


class BadResponse(DownloadFailedError):
    """The response is not HTTP."""

    kind = "bad-response"
