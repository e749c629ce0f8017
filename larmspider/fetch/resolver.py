"""What the system knows of a host name: its addresses, or why there are none.

    resolve("wiki")       # Answer(addresses=("10.0.0.7",)), by getaddrinfo(): hosts file, DNS, ...
    resolve("nobody")     # Answer(problem="Could not resolve host: nobody", final=True)

It blocks, half a minute and longer where no server of names answers.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

_FINAL = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
"""What getaddrinfo() says where there is no such name, and not that nobody could be asked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``addresses`` in the order in which they should be tried; none: ``problem`` says why.

    ``final``: there are none, by the word of a server of names.
    """

    addresses: tuple[str, ...] = ()
    problem: str = ""
    final: bool = False


def resolve(name: str) -> Answer:
    """Addresses with a zone (fe80::1%eth0) are left out: libcurl takes none from us."""
    try:
        # as bytes: what a str is put through refuses names that DNS has
        found = socket.getaddrinfo(name.encode("ascii"), None, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: a name that nobody can be asked for
        final = isinstance(error, ValueError) or error.errno in _FINAL
        return Answer(problem=f"Could not resolve host: {name}", final=final)
    texts = dict.fromkeys(str(address[0]) for *_, address in found)
    addresses = tuple(text for text in texts if "%" not in text)
    if not addresses:
        return Answer(problem=f"Could not resolve host: {name}: no address without a zone")
    return Answer(addresses)
