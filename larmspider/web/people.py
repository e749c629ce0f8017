"""The people whom a site knows, apart from the holders of its tokens. A single crawl has none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from larmspider.web.auth import Identity, Session


PROVIDER_AWAY = "{name} cannot be reached now; sign in with a password, or try again later."
PROVIDER_REFUSED = "The sign-in by {name} failed: {why}."
DIRECTORY_AWAY = "The directory cannot be reached now; try again later."


class Way(NamedTuple):
    """A link on the sign-in page, to a provider that signs people in."""

    name: str
    path: str


class People:
    """A server of several crawls has its own (server/people/people.py)."""

    start: str = "/control"
    """The page after the sign-in."""

    @property
    def has_passwords(self) -> bool:
        """Whether the sign-in page asks for names and passwords."""
        return False

    @property
    def ways(self) -> Sequence[Way]:
        return ()

    async def prepare(self, principals: Collection[str]) -> None:
        """Look up what `expanded` needs. Raises HttpError."""

    def expanded(self, principals: Collection[str]) -> frozenset[str]:
        """The principals with other names of the same person, and with the groups of groups. Looks
        nothing up."""
        return frozenset(principals)

    def allows(self, scope: str, path: str) -> bool:
        """Whether this scope opens a path that is neither the search nor open to readers."""
        return False

    async def check(self, name: str, password: str, address: str) -> Identity | None:
        """The person with this password; None for a wrong one. Raises HttpError."""
        return None

    async def signed_out(self, session: Session, origin: str) -> str:
        """The URL at which the provider ends its own session of this user; "" for none."""
        return ""
