"""Names of URLs, hosts and queue places as bytes that sort in a useful order.

``url_key("http://wiki/a")`` is 16 bytes: 4 from ``wiki:80`` and 12 from the whole URL, so the URLs
of one host are neighbours. A queue key sorts by host, then by order of fetching.

BLAKE2b and not hash(): the key must be the same in every process. It takes 0.7 us.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

READY = 0
"""Run of a host's queue in which URLs wait for their turn, by priority, then age."""
DELAYED = 1
"""Run of a host's queue in which URLs wait for their earliest time."""

MAX_PRIORITY = 0xFFFF
_PORTS = {"http:": ":80", "https:": ":443"}


def host_of(url: str) -> str:
    """``wiki:80`` for ``http://me@Wiki/a``: host and port of an absolute URL, lower case."""
    scheme, _, rest = url.partition("//")
    netloc = rest
    for end in "/?#":
        netloc = netloc.partition(end)[0]
    if "@" in netloc:
        netloc = netloc.rpartition("@")[2]
    netloc = netloc.lower()
    if ":" in netloc and not netloc.endswith("]"):
        return netloc if netloc[-1] != ":" else netloc[:-1] + _PORTS.get(scheme.lower(), "")
    return netloc + _PORTS.get(scheme.lower(), "")


@lru_cache(maxsize=16_384)
def host_prefix(host: str) -> bytes:
    """8 bytes for a host; two of 5,000 hosts share one with odds of 7e-13."""
    return blake2b(host.encode(), digest_size=8).digest()


@lru_cache(maxsize=4_096)
def _origin_prefix(origin: str) -> bytes:
    return host_prefix(host_of(origin))[:4]


def url_key(normalized: str) -> bytes:
    """16 bytes for a canonical URL. 1.2 us."""
    slash = normalized.find("/", 8)
    origin = normalized if slash < 0 else normalized[:slash]
    data = normalized.encode("utf-8", "surrogatepass")
    return _origin_prefix(origin) + blake2b(data, digest_size=12).digest()


def ready_key(host: str, priority: int, serial: int) -> bytes:
    """Queue place by priority (0..65535, 0 first), then serial number (48 bits)."""
    return b"%b\x00%b%b" % (
        host_prefix(host),
        min(MAX_PRIORITY, max(0, priority)).to_bytes(2, "big"),
        serial.to_bytes(6, "big"),
    )


def delayed_key(host: str, earliest: float, serial: int) -> bytes:
    """Queue place by earliest time (whole milliseconds, rounded up), then serial number."""
    millis = -int(-earliest * 1000 // 1)
    return b"%b\x01%b%b" % (host_prefix(host), millis.to_bytes(6, "big"), serial.to_bytes(6, "big"))


def delayed_prefix(host: str) -> bytes:
    """Of all delayed_key() of a host."""
    return host_prefix(host) + b"\x01"


def run_of(queue_key: bytes) -> int:
    """READY or DELAYED."""
    return queue_key[8]


def earliest_of(queue_key: bytes) -> float:
    """Earliest time of a DELAYED key, in seconds."""
    return int.from_bytes(queue_key[9:15], "big") / 1000


def serial_of(queue_key: bytes) -> int:
    """Serial number of either kind of queue key."""
    return int.from_bytes(queue_key[-6:], "big")
