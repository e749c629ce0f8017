"""All hosts of the crawl by name, in memory, and which of their records the next commit writes.

host = table.of("wiki:80")    # made as a new one if there is none yet
host.record.next_time = ...
table.touch(host)             # cut() hands its record to the backend
"""

from __future__ import annotations

from collections.abc import Iterator

from larmspider.frontier.host_rules import HostRules
from larmspider.frontier.hosts import HostRecord, pack_host, unpack_host
from larmspider.frontier.lease import Host
from larmspider.frontier.storage.backend import Backend


class HostTable:
    """``by_name`` holds them all; some 1 KB each."""

    def __init__(self, backend: Backend, rules: HostRules) -> None:
        self._backend, self._rules = backend, rules
        self.by_name: dict[str, Host] = {}
        self._changed: set[str] = set()

    def of(self, name: str, scheme: str = "http") -> Host:
        """The host of that name. ``scheme``: by which a new one is asked for its robots.txt."""
        host = self.by_name.get(name)
        return self._put(name, HostRecord(name, scheme)) if host is None else host

    def _put(self, name: str, record: HostRecord) -> Host:
        host = self.by_name[name] = Host(record, self._rules.of(name))
        self._changed.add(name)
        return host

    def touch(self, host: Host) -> None:
        """Its record has changed."""
        self._changed.add(host.record.host)

    def load(self) -> Iterator[Host]:
        """After a restart, once: the records of the last commit; each host that has or had URLs."""
        for name, data in self._backend.hosts().items():
            record = unpack_host(data)
            record.restart()
            self._put(name, record)
        for name in self._backend.host_names():
            yield self.of(name)

    def enter(self, name: str, data: bytes | None, *, new_run: bool) -> Host:
        """A host that another worker had, with its record; None: it has none yet.

        ``new_run``: hosts that were given up are tried again.
        """
        record = HostRecord(name) if data is None else unpack_host(data)
        record.restart() if new_run else record.move()
        host = self.by_name[name] = Host(record, self._rules.of(name))
        return host

    def leave(self, name: str) -> None:
        """Another worker has it; its record was committed."""
        del self.by_name[name]
        self._changed.discard(name)

    def cut(self) -> None:
        """What has changed since the last time goes to the backend."""
        changed, self._changed = self._changed, set()
        self._backend.put_hosts({name: pack_host(self.by_name[name].record) for name in changed})
