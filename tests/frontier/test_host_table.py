"""All hosts by name, and which records a commit writes."""

from larmspider.frontier.hosts import HostPace, HostRules, HostState, HostTable, unpack_host
from larmspider.frontier.storage.records import QueuedUrl, url_key
from tests.support.frontier.memory_backend import Disk, MemoryBackend

RULES = HostRules([HostPace("slow", delay=9.0)], HostPace(delay=2.0))


def table(disk):
    backend = MemoryBackend(disk)
    backend.recover()
    return HostTable(backend, RULES), backend


def test_a_host_is_made_once_with_its_rule():
    hosts, _ = table(Disk())
    host = hosts.of("slow:80", scheme="https")
    assert hosts.of("slow:80") is host
    assert (host.rule.delay, host.record.scheme) == (9.0, "https")
    assert hosts == {"slow:80": host}


def test_only_records_that_changed_are_written():
    hosts, backend = table(Disk())
    one, two = hosts.of("one:80"), hosts.of("two:80")
    hosts.save()
    assert set(backend.hosts()) == {"one:80", "two:80"}, "new ones too"
    one.record.failures = two.record.failures = 3
    hosts.touch(one)
    hosts.save()
    failures = {name: unpack_host(data).failures for name, data in backend.hosts().items()}
    assert failures == {"one:80": 3, "two:80": 0}


def test_after_a_restart_records_are_there_and_hosts_without_one_are_new():
    disk = Disk()
    hosts, backend = table(disk)
    hosts.of("one:80").record.change(HostState.LOADING)
    backend.add([QueuedUrl(f"http://{n}/", "", url_key(f"http://{n}/"), f"{n}:80") for n in "ab"])
    hosts.of("a:80").record.failures = 2
    hosts.save()
    backend.checkpoint({})
    hosts, _ = table(disk)
    assert {host.record.host for host in hosts.load()} == {"a:80", "b:80"}
    assert hosts["a:80"].record.failures == 2
    assert hosts["one:80"].record.state is HostState.NEW, "what was asked is asked again"
