"""What libcurl's result codes mean here: an error with a kind, and a message of our own.

libcurl's words are used where they name no more than host, port and cause. Codes as in curl.h of
libcurl 8; 100 (CURLE_TOO_LARGE) has no name in pycurl.
"""

from __future__ import annotations

import pycurl

from larmspider.fetch import errors
from larmspider.fetch.limits import Limits

_TOO_LARGE = 100
_TLS = frozenset(
    {
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_SSL_ENGINE_NOTFOUND,
        pycurl.E_SSL_ENGINE_SETFAILED,
        pycurl.E_SSL_CERTPROBLEM,
        pycurl.E_SSL_CIPHER,
        pycurl.E_PEER_FAILED_VERIFICATION,
        pycurl.E_USE_SSL_FAILED,
        pycurl.E_SSL_ENGINE_INITFAILED,
        pycurl.E_SSL_CACERT_BADFILE,
        pycurl.E_SSL_SHUTDOWN_FAILED,
        pycurl.E_SSL_CRL_BADFILE,
        pycurl.E_SSL_ISSUER_ERROR,
        pycurl.E_SSL_PINNEDPUBKEYNOTMATCH,
        pycurl.E_SSL_INVALIDCERTSTATUS,
    }
)
_CLASSES: dict[int, type[Exception]] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: errors.BadResponse,  # HTTP/0.9, HTTP/7
    pycurl.E_URL_MALFORMAT: errors.BadUrl,
    pycurl.E_COULDNT_RESOLVE_PROXY: errors.Unresolved,
    pycurl.E_COULDNT_RESOLVE_HOST: errors.Unresolved,
    pycurl.E_COULDNT_CONNECT: errors.Refused,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: errors.BadResponse,  # CURLE_WEIRD_SERVER_REPLY
    pycurl.E_HTTP2: errors.BadResponse,
    92: errors.BadResponse,  # CURLE_HTTP2_STREAM
    pycurl.E_PARTIAL_FILE: errors.CutShort,
    pycurl.E_GOT_NOTHING: errors.ConnectionLost,
    pycurl.E_SEND_ERROR: errors.ConnectionLost,
    pycurl.E_RECV_ERROR: errors.ConnectionLost,
    pycurl.E_INTERFACE_FAILED: errors.Refused,
    97: errors.Refused,  # CURLE_PROXY
}


def error_of(
    code: int, words: str, limits: Limits, *, total_secs: float, elapsed: float, began: bool
) -> Exception:
    """``began``: the body was under way. ``elapsed`` and ``total_secs`` in seconds."""
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return _timeout(words, limits, total_secs, elapsed)
    if code == pycurl.E_FILESIZE_EXCEEDED:
        return errors.TooBig("larger than the limit (DOWNLOAD_MAXSIZE)")
    if code == _TOO_LARGE or (code == pycurl.E_RECV_ERROR and "response headers" in words):
        words = words or "a header line over libcurl's limit of 100 KB"
        return errors.TooBig(f"{words} (LARM_HEADER_BYTES, LARM_HEADER_LINES)")
    if code in _TLS:
        return errors.TlsFailed(words or "no TLS connection")
    if words.startswith("CONNECT tunnel failed"):  # the proxy's status is in the words
        return errors.Refused(words)
    if code == pycurl.E_RECV_ERROR and "chunk" in words:
        return errors.BadBody(words)
    if code == pycurl.E_RECV_ERROR and began:
        return errors.CutShort(words)
    cls = _CLASSES.get(code, errors.BadResponse)
    return cls(words or pycurl.easy_strerror(code))


def _timeout(words: str, limits: Limits, total_secs: float, elapsed: float) -> Exception:
    if words.startswith("Operation too slow"):
        return errors.TooSlow(
            f"less than {limits.low_speed_bytes} bytes/s for {limits.low_speed_secs} s"
            " (LARM_LOW_SPEED_BYTES, LARM_LOW_SPEED_SECS)"
        )
    if elapsed < total_secs - 0.05:
        return errors.TimedOut(
            f"no connection within {limits.connect_secs:g} s (LARM_CONNECT_TIMEOUT_SECS)"
        )
    return errors.TimedOut(f"took longer than {total_secs:g} s (DOWNLOAD_TIMEOUT)")
