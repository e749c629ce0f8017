"""What the frontier hands out: a page to fetch, or a host's robots.txt."""

from __future__ import annotations

from dataclasses import dataclass, field

from larmspider.frontier.groups import Group
from larmspider.frontier.host_rules import HostRule
from larmspider.frontier.hosts import HostRecord
from larmspider.frontier.slots import Holding
from larmspider.frontier.storage.records import Entry


@dataclass(slots=True, eq=False)
class Host:
    """A host at run time. ``turn`` and ``turn_time`` belong to turns.py, ``need`` to places.py.

    ``group`` is None where hosts are not grouped, and until its address is known first;
    ``waits``: for its address; ``leaves``: for another worker; ``paused``: by the operator; all
    three without a turn.
    """

    record: HostRecord
    rule: HostRule
    turn: int = 0
    turn_time: float = 0.0
    need: int = 0
    in_flight: int = 0
    group: Group[Host] | None = field(default=None, repr=False)
    waits: bool = False
    leaves: bool = False
    paused: bool = False


@dataclass(slots=True, eq=False)
class Lease:
    """One fetch. ``entry`` is None for robots.txt; ``since`` is when it was handed out.

    ``holding`` is its place until the response is complete, then None, and ``reached`` a time by
    which the request had come to its host. ``judged``: the answer has counted for or against it.
    ``holder`` is what the caller fetches it by (a Request): others may hold a copy of its meta, but
    only this one may end the lease. ``is_probe``: the host has never answered nor
    failed; ``overdue``: the fetch was let go, for others.
    """

    url: str
    host: Host = field(repr=False)
    entry: Entry | None
    since: float
    holding: Holding | None = field(repr=False)
    judged: bool = field(default=False, repr=False)
    reached: float = field(default=0.0, repr=False)
    holder: object | None = field(default=None, repr=False)
    is_probe: bool = field(default=False, repr=False)
    overdue: bool = field(default=False, repr=False)

    @property
    def is_robots(self) -> bool:
        """The fetch is for the host's rules: answer with robots_loaded() or failed()."""
        return self.entry is None
