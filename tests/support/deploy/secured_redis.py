"""A real redis-server with deploy/redis.conf and deploy/users.acl."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.crawling import PROJECT
from tests.support.servers.certificate import Authority
from tests.support.servers.processes import free_port, listens, wait_for

ADDRESS = "127.34.0.3"
PASSWORDS = {"larm": "worker quay", "seeds": "seed quay", "operator": "operator quay"}
Connect = Callable[..., redis.Redis]


def users() -> str:
    """users.acl with the hashes of PASSWORDS."""
    lines = []
    for line in (PROJECT / "deploy" / "users.acl").read_text("utf-8").splitlines():
        hashed = sha256(PASSWORDS.get(line.split()[1], "").encode()).hexdigest()
        lines.append(line.replace("0" * 64, hashed))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def secured_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    """Connects as a user of users.acl: ``secured_redis("larm")``."""
    program = shutil.which("redis-server", path="/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    folder = tmp_path_factory.mktemp("redis")
    authority = Authority(folder)
    certificate, key = authority.issue(ADDRESS)
    (folder / "users.acl").write_text(users(), "utf-8")
    port = free_port(ADDRESS)
    here = {
        "bind": ADDRESS,
        "tls-port": str(port),
        "tls-cert-file": str(certificate),
        "tls-key-file": str(key),
        "tls-ca-cert-file": str(authority.ca),
        "aclfile": str(folder / "users.acl"),
        "dir": str(folder),
        "maxmemory": "64mb",
    }
    arguments = [word for name, value in here.items() for word in (f"--{name}", value)]
    log = (folder / "log").open("wb")
    server = subprocess.Popen(
        [program, str(PROJECT / "deploy" / "redis.conf"), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )
    clients: list[redis.Redis] = []

    def connect(user: str = "", password: str | None = None, scheme: str = "rediss"):
        secret = PASSWORDS.get(user, "") if password is None else password
        client = redis.Redis.from_url(
            f"{scheme}://{ADDRESS}:{port}/0",
            username=user or None,
            password=secret or None,
            retry=Retry(NoBackoff(), 0),
            **({"ssl_ca_certs": str(authority.ca)} if scheme == "rediss" else {}),
        )
        clients.append(client)
        return client

    try:
        wait_for(server, folder / "log", partial(listens, ADDRESS, port))
        yield connect
    finally:
        for client in clients:
            client.close()
        server.terminate()
        server.wait(20)
        log.close()
