"""Hosts wait for the address of their name, and those of one address may share their pace.

    grouping.ready(host)                        # False: a look-up began, or it has just joined
    grouping.address_known("wiki", "10.0.0.7")  # the look-up is over: wiki:80 and wiki:8080 go on

A host that waits holds no download place: a silent server of names would have all of them held.
groups.py says what the hosts of a group share (LARM_GROUP_BY); schedule.py keeps to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from larmspider.frontier.dispatch import Schedule
from larmspider.frontier.groups import Group, name_of
from larmspider.frontier.lease import Host


@dataclass(frozen=True, slots=True)
class AddressBook:
    """``address_of`` a host's name, None: not known yet, a look-up begins that ends with
    address_known(). ``grouped``: hosts of one address share their pace; else only the hosts wait
    whose robots.txt, by its URL, needs an ``own_address``. ``crowded``: a look-up has to wait, so
    hosts that never answered had better."""

    address_of: Callable[[str], str | None]
    grouped: bool = True
    own_address: Callable[[str], bool] = bool
    crowded: Callable[[], bool] = lambda: False


class Grouping:
    """Without a ``book`` no host waits, and none are grouped."""

    def __init__(self, book: AddressBook | None, schedule: Schedule) -> None:
        self._book, self._schedule = book, schedule
        self._groups: dict[str, Group[Host]] = {}
        self._waiting: dict[str, list[Host]] = {}  # for the address of their name

    def __len__(self) -> int:
        """Names that hosts wait for."""
        return len(self._waiting)

    def ready(self, host: Host) -> bool:
        """May it be asked? Else it waits for address_known(), or is in the group of its address
        now, whose turn may be another."""
        book = self._book
        if book is None or not (book.grouped or book.own_address(host.record.robots_url)):
            return True
        name = name_of(host.record.host)
        address = book.address_of(name)
        if address is None:
            host.waits = True
            self._waiting.setdefault(name, []).append(host)
            return False
        if not book.grouped:
            return True
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

    def forget(self, host: Host) -> None:
        """It is another worker's now."""
        for hosts in self._waiting.values():
            if host in hosts:
                hosts.remove(host)
        if host.group is not None:
            host.group.part(host)

    def _join(self, host: Host, address: str) -> None:
        before = host.group
        if before is not None and before.address == address:
            return
        self._groups.setdefault(address, Group(address)).join(host)
        if before is not None:
            self._schedule.set_group(before)
