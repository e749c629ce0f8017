"""The environment on disk: growth, full disks, versions, two writers, readers, kill -9."""

import resource
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace

import lmdb
import pytest

from larmspider.errors import CrawlDirError, OtherFormatError
from larmspider.frontier.storage.backend import BackendError, FormatError
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_env import LmdbFiles, WriteBatch
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import url_key
from tests.support.frontier.conformance import OK, Q, S, U, entries, entry, urls


@pytest.fixture
def path(tmp_path):
    return tmp_path / "frontier"


def opened(path, **options):
    backend = LmdbBackend(path, **options)
    backend.recover()
    return backend


def child(code, *args):
    program = textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path.cwd(),
        check=False,
    )


def test_the_map_grows_and_nothing_is_lost(path):
    backend = opened(path, map_bytes=64 << 10)
    for start in range(0, 4000, 1000):
        backend.add([entry(f"http://a/{n}") for n in range(start, start + 1000)])
        backend.checkpoint({"s": str(start).encode()})
    assert backend.files.env.info()["map_size"] > 500_000
    backend.close()
    again = LmdbBackend(path, map_bytes=64 << 10)
    assert again.recover().positions == {"s": b"3000"}
    assert again.audit().queued == 4000
    again.close()


def test_a_full_disk_is_a_clear_error_and_the_last_commit_stays(path):
    backend = opened(path)
    backend.add(entries("1"))
    backend.checkpoint({"s": b"1"})
    backend.add([entry(f"http://a/{n}") for n in range(2, 20_000)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(BackendError, match=r"cannot write the frontier in .*File too large"):
            backend.checkpoint({"s": b"2"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with FrontierReaderInChild(path) as seen:
        assert seen == "1 b'1'"
    backend.checkpoint({"s": b"3"})  # room again: the batch was kept
    assert backend.audit().queued == 19_999
    backend.close()
    again = LmdbBackend(path)
    assert again.recover().positions == {"s": b"3"}
    again.close()


class FrontierReaderInChild:
    """What another process reads: (queued, position of s)."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        done = child(
            """
            import sys
            from pathlib import Path
            from larmspider.frontier.storage.lmdb_reader import FrontierReader
            with FrontierReader(Path(sys.argv[1])) as frontier:
                print(frontier.counts().queued, frontier.positions()["s"])
            """,
            self.path,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def __exit__(self, *error):
        pass


def test_another_process_reads_the_last_commit_while_the_crawl_writes(path):
    backend = opened(path, map_bytes=64 << 10)
    backend.add(entries("1", "2"))
    backend.checkpoint({"s": b"1"})
    with FrontierReaderInChild(path) as seen:
        assert seen == "2 b'1'"
    backend.add([entry(f"http://a/{n}") for n in range(9_000)])
    with FrontierReaderInChild(path) as seen:
        assert seen == "2 b'1'"
    backend.checkpoint({"s": b"2"})
    with FrontierReaderInChild(path) as seen:
        assert seen == "9000 b'2'"
    backend.close()


def test_a_reader_that_stays_open_follows_a_map_that_grows(path):
    backend = opened(path, map_bytes=64 << 10)
    backend.checkpoint({"s": b"1"})
    program = """
    import sys
    from pathlib import Path
    from larmspider.frontier.storage.lmdb_reader import FrontierReader
    with FrontierReader(Path(sys.argv[1])) as frontier:
        for _ in sys.stdin:
            print(frontier.counts().queued, flush=True)
    """
    reader = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for queued in (0, 9_000):
        if queued:
            backend.add([entry(f"http://a/{n}") for n in range(queued)])
            backend.checkpoint({})
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == f"{queued}\n"
    reader.communicate()
    assert reader.returncode == 0
    backend.close()


def test_a_reader_sees_state_place_visit_and_host(path):
    backend = opened(path)
    backend.add(entries("1", "2", "3", "4"))
    backend.pop("a:80", 0.0, 2)
    backend.acknowledge([(url_key("http://a/1"), OK)])
    backend.release([(url_key("http://a/2"), 70.0, 1)])
    backend.put_hosts({"a:80": b"health"})
    backend.put_note("robots a:80", b"User-agent: *")
    backend.checkpoint({})
    backend.close()
    with FrontierReader(path) as reader:
        keys = [url_key(f"http://a/{n}") for n in (1, 2, 4, 5)]
        assert [reader.state(key) for key in keys] == [S, Q, Q, U]
        assert reader.visit(keys[0]).etag == OK.etag
        assert reader.visit(keys[1]) is None
        assert [reader.place(key) for key in keys] == [None, (0, 70.0), (1, 0.0), None]
        assert reader.entry(keys[1]).attempts == 1
        assert reader.entry(keys[0]) is None
        assert urls(reader.queued("a:80", 2)) == ["http://a/3", "http://a/4"]
        record, counts = reader.hosts()["a:80"]
        assert (record, counts.stored, counts.queued) == (b"health", 1, 3)
        assert reader.note("robots a:80") == b"User-agent: *"


def test_no_frontier_is_said(tmp_path):
    with pytest.raises(CrawlDirError, match="no frontier in"):
        FrontierReader(tmp_path)


def test_another_version_is_refused(path):
    backend = opened(path)
    with backend.files.env.begin(write=True) as txn:
        txn.put(b"format", b"larmspider frontier 99", db=backend.files.meta)
    backend.close()
    for kind in (LmdbBackend, FrontierReader):
        with pytest.raises(OtherFormatError, match=r"frontier 99.*reads 'larmspider frontier 3'"):
            kind(path)


def test_a_foreign_environment_is_refused(path):
    path.mkdir()
    env = lmdb.open(str(path), max_dbs=2)
    with env.begin(write=True) as txn:
        txn.put(b"some", b"thing")
    env.close()
    with pytest.raises(FormatError, match="is not a frontier"):
        LmdbBackend(path)


def test_a_file_that_is_not_lmdb_is_refused(path):
    path.mkdir()
    (path / "data.mdb").write_bytes(b"text" * 5000)
    with pytest.raises(FormatError, match="cannot open"):
        LmdbBackend(path)


def test_a_second_crawl_in_the_directory_is_refused(path):
    backend = opened(path)
    done = child(
        """
        import sys
        from pathlib import Path
        from larmspider.frontier.storage.lmdb_backend import LmdbBackend
        LmdbBackend(Path(sys.argv[1]))
        """,
        path,
    )
    assert "CrawlDirError: another crawl is writing to" in done.stderr
    backend.close()
    opened(path).close()


def test_a_commit_in_a_thread_while_work_goes_on(path):
    backend = opened(path, map_bytes=64 << 10, head_entries=1)
    stored = []
    for round_number in range(8):
        backend.add([entry(f"http://a/{round_number}-{n}") for n in range(500)])
        backend.seal()
        thread = threading.Thread(target=backend.commit, args=({},))
        thread.start()
        while True:
            done = not thread.is_alive()
            popped = backend.pop("a:80", 0.0, 5)
            backend.acknowledge([(one.key, OK) for one in popped])
            stored += urls(popped)
            if done:
                break
        thread.join()
        backend.discard()
    stored += urls(backend.pop("a:80", 0.0, 9999))
    assert len(stored) == len(set(stored)) == 4000
    assert backend.counts() == backend.audit()
    backend.close()


WRITER = """
    import sys
    from pathlib import Path
    from tests.support.frontier.conformance import OK, entry
    from larmspider.frontier.storage.lmdb_backend import LmdbBackend
    backend = LmdbBackend(Path(sys.argv[1]))
    recovery = backend.recover()
    number = int(recovery.positions.get("s", b"0"))
    while True:
        number += 1
        backend.add([entry(f"http://a/{number}-{n}") for n in range(20)])
        popped = backend.pop("a:80", 0.0, 10)
        backend.acknowledge([(one.key, OK) for one in popped[:9]])
        backend.checkpoint({"s": str(number).encode()})
        print(number, flush=True)
"""


@pytest.mark.acceptance
def test_kill_9_leaves_a_whole_commit(path):
    reached = 0
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6):
            reached = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split()
        reached = int(rest[-1]) if rest else reached
        backend = LmdbBackend(path)
        recovery = backend.recover()
        number = int(recovery.positions["s"])
        assert number in (reached, reached + 1)
        counts = backend.audit()
        assert counts == backend.counts()
        assert (counts.discovered, counts.stored) == (20 * number, 9 * number)
        assert len(backend.pop("a:80", 0.0, 99_999)) == counts.queued
        backend.close()


@pytest.mark.parametrize("nth", range(1, 9))
def test_killed_while_it_is_made_it_is_made_again(path, nth):
    """At each of the steps: what is there then is no frontier of another version."""
    done = child(
        """
        import os, pathlib, signal, sys, lmdb
        from larmspider.frontier.storage.lmdb_env import LmdbFiles

        class Env:
            def __init__(self, env):
                self.env, self.left = env, int(sys.argv[2])

            def open_db(self, *args, **options):
                self.left -= 1
                if not self.left:
                    os.kill(os.getpid(), signal.SIGKILL)
                return self.env.open_db(*args, **options)

            def __getattr__(self, name):
                return getattr(self.env, name)

        real = lmdb.open
        lmdb.open = lambda *args, **options: Env(real(*args, **options))
        LmdbFiles(pathlib.Path(sys.argv[1]))
        """,
        path,
        nth,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    try:
        FrontierReader(path).close()
    except FormatError as error:
        pytest.fail(str(error))
    except CrawlDirError as error:
        assert "is just being created" in str(error)  # noqa: PT017 - it may be whole
    backend = opened(path)
    assert backend.counts().discovered == 0
    backend.close()


@pytest.mark.parametrize(("free", "says"), [(4096, "No space left"), (1 << 30, "Input/output")])
def test_a_write_that_a_full_disk_cut_short_is_named_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, says: str
) -> None:
    """LMDB calls it an input/output error; with room on the disk it is one."""

    def fails(batch: WriteBatch) -> None:
        raise lmdb.Error("mdb_txn_commit: Input/output error")

    files = LmdbFiles(tmp_path / "frontier")
    monkeypatch.setattr(files, "_write", fails)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    with pytest.raises(BackendError, match=says):
        files.write(WriteBatch())
    files.close()
