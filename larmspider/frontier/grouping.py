"""Which hosts share their pace: those whose names resolve to one address (LARM_GROUP_BY).

    grouping.ready(host)                        # False: a look-up began, or it has just joined
    grouping.address_known("wiki", "10.0.0.7")  # the look-up is over: wiki:80 and wiki:8080 go on

groups.py says what they share; schedule.py keeps to it.
"""

from __future__ import annotations

from collections.abc import Callable

from larmspider.frontier.groups import Group, name_of
from larmspider.frontier.lease import Host
from larmspider.frontier.schedule import Schedule


class Grouping:
    """``address_of`` a host's name, None: not known yet, a look-up begins that ends with
    address_known(). Without ``address_of`` hosts are not grouped."""

    def __init__(self, address_of: Callable[[str], str | None] | None, schedule: Schedule) -> None:
        self._address_of, self._schedule = address_of, schedule
        self._groups: dict[str, Group[Host]] = {}
        self._waiting: dict[str, list[Host]] = {}  # for the address of their name

    def __len__(self) -> int:
        """Names that hosts wait for."""
        return len(self._waiting)

    def ready(self, host: Host) -> bool:
        """Is it in the group of its address? If not it is now, or waits for address_known()."""
        if self._address_of is None:
            return True
        name = name_of(host.record.host)
        address = self._address_of(name)
        if address is None:
            host.waits = True
            self._waiting.setdefault(name, []).append(host)
            return False
        if host.group is not None and host.group.address == address:
            return True
        self._join(host, address)
        return False

    def address_known(self, name: str, address: str) -> None:
        """The look-up that ``address_of`` began is over."""
        for host in self._waiting.pop(name, ()):
            host.waits = False
            if host.group is not None:
                self._join(host, address)
            self._schedule.set(host)  # one without a group joins when it is asked, with others

    def _join(self, host: Host, address: str) -> None:
        before = host.group
        if before is not None and before.address == address:
            return
        self._groups.setdefault(address, Group(address)).join(host)
        if before is not None:
            self._schedule.set_group(before)
