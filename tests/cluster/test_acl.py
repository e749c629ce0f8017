"""deploy/users.acl allows what the backend does, and not much more."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
import redis

from larmspider.cluster.joining import wipe
from larmspider.cluster.keys import Keys
from larmspider.frontier.storage.records import Counts
from tests.support.frontier.conformance import OK, entries
from tests.support.frontier.redis_store import RedisStore

ACL = Path(__file__).parents[2] / "deploy" / "users.acl"


def test_a_worker_gets_by_with_the_commands_and_keys_of_its_user(redis_server, tmp_path):
    """A whole life: recover, commit, mail, take, give up, replay, delete; and no other keys."""
    (line,) = [line for line in ACL.read_text().splitlines() if line.startswith("user larm ")]
    hashed = sha256(b"secret").hexdigest()
    server = redis_server(user=line.removeprefix("user ").replace("0" * 64, hashed))
    client = server.client(username="larm", password="secret")
    store = RedisStore(client, tmp_path)
    store.keys = Keys("intranet", 8)
    one, two = store.join("w1", range(4)), store.join("w2", range(4, 8))
    owner, other = (one, two) if one.owns(entries("1")[0].key) else (two, one)
    owner.add(entries(*"1234"))
    done, late = owner.pop("a:80", 0.0, 2)
    owner.acknowledge([(done.key, OK)])
    owner.release([(late.key, 50.0, 1)])
    owner.put_hosts({"a:80": b"h"})
    owner.put_note("robots a:80", b"n")
    other.forward(entries("mail"))
    other.checkpoint({"s": b"1"})
    owner.checkpoint({"s": b"1"})
    owner.add(owner.take_inbox())
    owner.checkpoint({"s": b"2"})
    assert not other.replay(owner.worker)
    owner.give_up(owner.owned)
    store.assign(other, range(8))
    assert other.counts() == Counts(discovered=5, queued=4, stored=1, delayed=1)
    for backend in (one, two):
        backend.close()
    assert wipe(store.link(), store.keys) > 5
    for key in ("other:requests", "intranetX"):
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.set(key, 1)
