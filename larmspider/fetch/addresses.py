"""What the frontier asks about names before a host has its turn: the look-up holds no place.

    addresses = Addresses(names, known, eased)
    addresses.of("wiki")         # None: a look-up begins; known("wiki", "10.0.0.7") is called later
    addresses.of("wiki")         # "10.0.0.7"

Of several addresses it is the smallest, IPv4 before IPv6: the order of answers varies, this does
not. A name that does not resolve is its own address; its fetch says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from larmspider.fetch.dns import Names
from larmspider.fetch.resolver import Answer
from larmspider.frontier.grouping import AddressBook


class Addresses:
    """``known(name, address)`` is called in the event loop that ran when of() was asked, ``eased``
    where it is not so crowded any more."""

    def __init__(
        self, names: Names, known: Callable[[str, str], None], eased: Callable[[], None]
    ) -> None:
        self._names, self._tell = names, known
        names.heard, names.eased = self._heard, eased

    def book(self, own_address: Callable[[str], bool]) -> AddressBook:
        """For the frontier."""
        return AddressBook(self.of, own_address=own_address, crowded=lambda: self._names.crowded)

    def close(self) -> None:
        """Nothing is told after this; look-ups under way are not waited for."""
        self._names.close()

    def of(self, name: str) -> str | None:
        """The address, or None: then a look-up is under way."""
        literal = _text(name.removeprefix("[").removesuffix("]"))
        if literal is not None:
            return literal
        answer = self._names.known(name)
        if answer is None:
            self._names.look_up(name)
            return None
        return smallest(answer) or name

    def _heard(self, name: str, answer: Answer) -> None:
        self._tell(name, smallest(answer) or name)


@lru_cache(4096)
def smallest(answer: Answer) -> str | None:
    """None where there is none."""
    texts = [text for text in map(_text, answer.addresses) if text is not None]
    return min(texts, key=lambda text: (":" in text, text), default=None)


@lru_cache(4096)
def _text(address: str) -> str | None:
    """One spelling for each address; None for what is none."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    return parsed.compressed
