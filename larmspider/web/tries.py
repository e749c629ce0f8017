"""Limits the wrong tokens that one address, and all addresses together, may try.

    tries = Tries(per_address=20, in_all=200)
    tries.wait("198.51.100.7")    # seconds until this address may try again; 0.0: now
    tries.failed("198.51.100.7")  # what it sent was wrong

Each address has ``per_address`` wrong tries a minute, and all addresses together ``in_all``. If all
have used these up, each address has one until the minute is over: a user with the token still gets
in, and many addresses guess hardly more than one. Sessions do not count here: their names cannot be
guessed.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass

from larmspider.errors import HttpError

WINDOW_SECS = 60.0
MAX_ADDRESSES = 10_000
"""Addresses that are remembered, some 3 MB; one more takes the place of the oldest."""
_IPV6_BITS = 64
"""Each customer of a provider has at least such a network: it counts as one address."""


def tried_too_often(secs: float) -> HttpError:
    """The error for an address that has to wait; ``values["seconds"]`` is Retry-After."""
    seconds = max(1, round(secs + 0.5))
    return HttpError(
        "Too many wrong tokens were sent; try again in {seconds} s.", 429, seconds=seconds
    )


@dataclass(slots=True)
class _Count:
    ends: float
    number: int = 0
    last: int = 0
    """The hash of the last wrong token."""


class Tries:
    """Counts wrong tokens and cookies. A count ends WINDOW_SECS after its first one."""

    def __init__(
        self,
        per_address: int = 20,
        in_all: int = 200,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.per_address, self.in_all = per_address, in_all
        self._clock = clock
        self._all = _Count(0.0)
        self._by_address: dict[str, _Count] = {}

    def __len__(self) -> int:
        return len(self._by_address)

    def wait(self, address: str) -> float:
        """Seconds until a token from this address is looked at again; 0.0: it is now."""
        now = self._clock()
        found = self._by_address.get(network_of(address))
        if found is None or now >= found.ends:
            return 0.0
        most = 1 if self._exhausted(now) else self.per_address
        return found.ends - now if found.number >= most else 0.0

    def failed(self, address: str, wrong: str, *, again: bool = True) -> float:
        """Count a ``wrong`` token. Without ``again``, the last wrong token of this address does not
        count a second time; it may be the cookie of an ended session. Returns the seconds to wait,
        as wait() does."""
        now, name = self._clock(), network_of(address)
        found = self._by_address.get(name)
        if found is None or now >= found.ends:
            self._by_address.pop(name, None)  # it becomes the newest
            while len(self._by_address) >= MAX_ADDRESSES:
                del self._by_address[next(iter(self._by_address))]
            found = self._by_address[name] = _Count(now + WINDOW_SECS)
        if found.number and not again and found.last == hash(wrong):
            return 0.0
        if now >= self._all.ends:
            self._all = _Count(now + WINDOW_SECS)
        over = self._exhausted(now) or found.number >= self.per_address
        found.number, found.last = found.number + 1, hash(wrong)
        self._all.number += 1
        return found.ends - now if over else 0.0

    def _exhausted(self, now: float) -> bool:
        return now < self._all.ends and self._all.number >= self.in_all


def network_of(address: str) -> str:
    """The name that an address is counted under: IPv6 by its first 64 bits, IPv4 in IPv6 as IPv4.

    >>> network_of("2001:db8::7:8"), network_of("::ffff:192.0.2.1"), network_of("192.0.2.1")
    ('2001:db8::', '192.0.2.1', '192.0.2.1')
    """
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((found, _IPV6_BITS), strict=False).network_address)
