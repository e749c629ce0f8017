"""larmspider/cluster/redis_server.py: a real redis-server, for its owner alone."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from larmspider.cluster.redis_server import LOG, PROGRAM, RESTARTS, PrivateRedis, StartStopped
from larmspider.errors import ConfigError, CrawlDirError

pytestmark = pytest.mark.skipif(
    shutil.which(PROGRAM) is None, reason="redis-server is not installed (Debian: redis-server)"
)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_has_a_socket_for_its_owner_and_no_port(tmp_path: Path) -> None:
    """Folder and socket have mode 700; nothing listens on TCP."""
    with PrivateRedis(tmp_path / "redis") as server, redis.Redis.from_url(server.url) as client:
        assert client.ping()
        assert client.config_get("port") == {"port": "0"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        pid = client.info()["process_id"]
        for path in (tmp_path / "redis", server.socket):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert not _listens_on_tcp(pid)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def _listens_on_tcp(pid: int) -> bool:
    listening = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                listening.add(f"socket:[{fields[9]}]")
    return any(str(fd.readlink()) in listening for fd in Path(f"/proc/{pid}/fd").iterdir())


def test_it_goes_on_with_what_it_had_unless_fresh(tmp_path: Path) -> None:
    """On disk from one ``with`` to the next."""
    for fresh, found in ((False, None), (False, b"1"), (True, None)):
        with (
            PrivateRedis(tmp_path / "redis", fresh=fresh) as server,
            redis.Redis.from_url(server.url) as client,
        ):
            assert client.get("kept") == found
            client.set("kept", 1)


def test_data_that_has_changed_since_is_refused(tmp_path: Path) -> None:
    """Redis itself does not notice another byte in a value."""
    folder = tmp_path / "redis"
    with PrivateRedis(folder) as server, redis.Redis.from_url(server.url) as client:
        client.set("kept", "a value")
    data = next((folder / "appendonlydir").glob("*.incr.aof"))
    whole = data.read_bytes()
    for changed, what in (
        (whole.replace(b"value", b"walue"), "does not match"),
        (b"", "has 0 bytes"),
    ):
        data.write_bytes(changed)
        with pytest.raises(CrawlDirError, match=rf"{data} {what}.*: move {folder} away, then fill"):
            PrivateRedis(folder).__enter__()
    data.write_bytes(whole)
    with PrivateRedis(folder) as server, redis.Redis.from_url(server.url) as client:
        assert client.get("kept") == b"a value"


@pytest.mark.parametrize("fresh", [False, True])
def test_one_that_was_left_behind_is_taken_over(tmp_path: Path, fresh: bool) -> None:
    """Its starter was killed; the next command ends it."""
    left = PrivateRedis(tmp_path / "redis")
    left.__enter__()
    assert left.process is not None
    with redis.Redis.from_url(left.url) as client:
        client.set("kept", 1)
    with pytest.raises(CrawlDirError, match="in use"), PrivateRedis(tmp_path / "redis"):
        pass
    assert left._lock is not None
    left._lock.close()
    with (
        PrivateRedis(tmp_path / "redis", fresh=fresh) as server,
        redis.Redis.from_url(server.url) as client,
    ):
        assert client.get("kept") == (None if fresh else b"1")
    assert left.process.wait(30) == 0


def test_one_that_was_taken_over_is_started_again_too(tmp_path: Path) -> None:
    """With what it had; its log holds what both have said. Where it cannot run any more, that is an
    error, as with an own one."""
    left = PrivateRedis(tmp_path / "redis")
    left.__enter__()
    assert left.process is not None
    assert left._lock is not None
    with redis.Redis.from_url(left.url) as client:
        client.set("kept", 1)
    left._lock.close()
    with PrivateRedis(tmp_path / "redis") as server:
        assert server.tend() == ""
        left.process.kill()
        left.process.wait()
        until(lambda: server.tend().endswith("left by an earlier run: started again"))
        until(server._answers)
        with redis.Redis.from_url(server.url) as client:
            assert client.get("kept") == b"1"
        assert server.tend() == ""
        log = (tmp_path / "redis" / LOG).read_text()
        assert log.count("ready to accept connections") == 2
        server._restarts = RESTARTS
        assert server.process is not None
        server.process.kill()
        server.process.wait()
        with pytest.raises(CrawlDirError, match="ended by SIGKILL, after 5 restarts"):
            server.tend()


def test_a_start_that_is_not_waited_for_leaves_nothing(tmp_path: Path) -> None:
    """The command had to stop while the server read its file."""
    server = PrivateRedis(tmp_path / "redis", stopped=lambda: True)
    with pytest.raises(StartStopped), server:
        pass
    assert server.process is None
    with PrivateRedis(tmp_path / "redis"):
        pass


def test_a_path_too_long_for_a_socket(tmp_path: Path) -> None:
    """It is reached by a shorter one, which goes with it; a space in it does no harm."""
    folder = tmp_path / "a folder" / ("long" * 30) / "redis"
    with PrivateRedis(folder) as server:
        short = server.socket
        assert len(str(short)) < 100
        with redis.Redis.from_url(server.url) as client:
            assert client.ping()
    assert not short.parent.parent.exists()
    assert (folder / "appendonlydir").exists()


def test_it_says_why_it_does_not_start(tmp_path: Path) -> None:
    """The last line of its log; a folder that cannot be."""
    folder = tmp_path / "redis" / "appendonlydir"
    folder.mkdir(parents=True)
    (folder / "appendonly.aof.manifest").write_text("nonsense\n")
    with (
        pytest.raises(CrawlDirError, match=r"did not start in .*: .*\S"),
        PrivateRedis(folder.parent),
    ):
        pass
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ConfigError, match="cannot be made"),
        PrivateRedis(tmp_path / "file" / "redis"),
    ):
        pass


def test_without_the_program_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or what else can be done."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(ConfigError, match=r"not installed.*apt install redis-server.*REDIS_URL"),
        PrivateRedis(tmp_path / "redis"),
    ):
        pass
    assert not (tmp_path / "redis").exists()


_CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_cannot_connect() -> None:
    """Not even where the crawl's directory is open to all."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        with PrivateRedis(Path(name, "redis")) as server:
            command = ["/usr/bin/python3", "-c", _CONNECT, str(server.socket)]
            own = subprocess.run(command, check=False)
            other = subprocess.run(command, user=65534, capture_output=True, text=True, check=False)
    assert own.returncode == 0
    assert other.returncode != 0
    assert "PermissionError" in other.stderr
