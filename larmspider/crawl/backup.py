"""Backups: one tar file with a crawl, or with several crawls and the files of a server's home.

    with BackupFile(Path("wiki.tar.zst"), "crawl", say) as out:
        add_crawl(out, Path("wiki"))                  # also while the crawl runs
    restore(Path("wiki.tar.zst"), Path("wiki"), say)

A crawl may write meanwhile. The backup has its files as kill -9 would leave them between two
checkpoints. It opens all files and notes their sizes. If an LMDB environment or the search index
was committed meanwhile, it starts over. LMDB copies its environments from these transactions. Logs
and page files only grow, so their first bytes do not change. The next run of the restored crawl
goes back to the checkpoint, as after a kill.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sqlite3
import stat
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self, cast

import lmdb

from larmspider import __version__
from larmspider.checksums import SEAL, crc_of, packed_seal, read_seal
from larmspider.crawl.reader import read_manifest
from larmspider.crawl.state import RunState, State
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.files import in_words, is_locked, make_folder, raise_open_files, sync_folder
from larmspider.formatting import utc
from larmspider.workdir.directory import worker_dirs
from larmspider.workdir.left import Left, read_left
from larmspider.workdir.manifest import LOCK, is_shared
from larmspider.workdir.pushed import FILE as PUSHED

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENDINGS = (".tar", ".tar.zst")
FORMAT = 1
_HEAD, _END = "larmspider-backup.json", "larmspider-backup-end.json"
_PART = ".part"
_HEAD_BYTES = 1 << 20
"""Far more than the first and the last member have."""
_MOST_NAME = 4_096  # bytes of a member's name, as many as a path of Linux may have
_CHUNK_BYTES = 1 << 20
_LEVEL = 3  # zstd's default
_TRIES_SECS, _TRY_SECS = 60.0, 0.05
"""A checkpoint comes every 5 s by default, so one of the first tries succeeds."""
_LEFT_OUT = (
    "lock", "*.lock", "lock.mdb", "*.sock", "*.new", "*.part",
    "web.token*", "web.json*",  # the token of operators, and where a process serves pages
    SEAL,  # written for the copies
    "slots.json",  # OpenSearch has later slots: without the file no reader's filter names them
)  # fmt: skip
_FOLDERS_LEFT_OUT = ("logs.idx", "index.new", "index.old", "*.new")
"""Made again when they are needed."""
_COMPACTING = "compact.done"
_LMDB = "data.mdb"

Say = Callable[[str, int, int], None]
"""Called with a file, the bytes done and the bytes in all."""


def check_target(file: Path, source: Path) -> None:
    """Raises ConfigError for a name that no backup of ``source`` can have."""
    if not file.name.endswith(ENDINGS):
        raise ConfigError(f"{file}: expected a name that ends in {' or '.join(ENDINGS)}")
    if file.exists() or file.is_symlink():
        raise ConfigError(f"{file} exists: a backup overwrites nothing")
    if not file.parent.is_dir():
        raise ConfigError(f"{file.parent} is not a folder")
    if file.resolve().is_relative_to(source.resolve()):
        raise ConfigError(f"{file} would lie in {source}: expected a place outside of it")


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    found = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found += Path(place, name).lstat().st_size
    return found


class BackupFile:
    """The tar file. It gets its name once it is complete and on the disk; ``notes`` list what it
    lacks."""

    def __init__(self, path: Path, kind: str, say: Say, expected: int = 0) -> None:
        self.path, self.notes, self.files, self.bytes = path, list[str](), 0, 0
        self._say, self._expected = say, expected
        self._draft = path.with_name(path.name + _PART)
        self._sum = hashlib.sha256()
        self._head = {
            "format": FORMAT,
            "larmspider": __version__,
            "kind": kind,
            "made": utc(time.time()),
        }

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._file = stack.enter_context(_private(self._draft))
            stack.callback(self._draft.unlink, missing_ok=True)
            raw: IO[bytes] = self._file
            if self.path.name.endswith(".zst"):
                raw = cast("IO[bytes]", zstd.open(raw, "wb", level=_LEVEL))
                stack.callback(raw.close)
            self._raw = raw
            self._tar = stack.enter_context(
                tarfile.open(fileobj=raw, mode="w|", format=tarfile.PAX_FORMAT)
            )
            self.scratch = Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(prefix=f"{self.path.name}.", dir=self.path.parent)
                )
            )
            self._json(_HEAD, self._head)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._stack:
            if kind is not None:
                return
            ending = {"files": self.files, "bytes": self.bytes, "sha256": self._sum.hexdigest()}
            self._json(_END, ending)
            self._tar.close()
            if self._raw is not self._file:
                self._raw.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            if self.path.exists():
                raise ConfigError(f"{self.path} exists by now: a backup overwrites nothing")
            self._draft.rename(self.path)
            sync_folder(self.path.parent)

    def add(self, name: str, content: IO[bytes], length: int, mode: int, modified: float) -> None:
        """Add ``length`` bytes of a file. Raises OSError if it has fewer."""
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = length, mode & 0o777, int(modified)
        self._sum.update(f"{name}\0{length}\0".encode("utf-8", "surrogateescape"))
        self._tar.addfile(member, _Summed(content, self._sum))
        self.files += 1
        self.bytes += length
        self._say(name, self.bytes, max(self._expected, self.bytes))

    def add_file(self, name: str, path: Path) -> None:
        """A file that does not become shorter meanwhile."""
        with path.open("rb") as content:
            found = os.fstat(content.fileno())
            self.add(name, content, found.st_size, found.st_mode, found.st_mtime)

    def add_small(self, name: str, path: Path) -> None:
        """Add a file that fits into memory, even if it changes meanwhile."""
        with path.open("rb") as file:
            found, content = os.fstat(file.fileno()), file.read()
        self.add(name, io.BytesIO(content), len(content), found.st_mode, found.st_mtime)

    def _json(self, name: str, value: Any) -> None:
        content = json.dumps(value).encode()
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(content), 0o600
        self._tar.addfile(member, io.BytesIO(content))


def _private(path: Path) -> IO[bytes]:
    """A new file that its owner alone may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@dataclass(slots=True)
class _Summed:
    """A file that is read and summed."""

    file: IO[bytes]
    sum: Any

    def read(self, length: int = -1) -> bytes:
        content = self.file.read(length)
        self.sum.update(content)
        return content


def add_crawl(out: BackupFile, directory: Path, prefix: str = "") -> None:
    """Add the directory of a crawl. Raises ConfigError if there is none, CrawlDirError if it
    cannot be copied now."""
    state = RunState.of(directory)
    if state.state in (State.NONE, State.EMPTY):
        raise ConfigError(f"{directory}: {state.sentence}")
    manifest = read_manifest(directory)
    workers = worker_dirs(directory) if is_shared(manifest) else []
    if workers:
        _refuse_while_workers_run(directory, state)
        redis = (manifest.get("workers") or {}).get("redis")
        if not (directory / "redis").is_dir():
            out.notes.append(f"{directory}: its queues are in Redis ({redis}): back Redis up, too")
    for folder in (directory, *workers):
        below = "" if folder == directory else f"{folder.name}/"
        # before the frontier: a document whose order has ended is in the frontier, then
        pushed = _copied_pushed(out, folder)
        with _pinned(folder, without=workers) as pinned:
            _write(out, pinned, folder, f"{prefix}{below}", pushed)


def _refuse_while_workers_run(directory: Path, state: RunState) -> None:
    if state.state is State.RUNNING or is_locked(directory / "redis" / LOCK):
        raise ConfigError(
            f"{directory}: workers run, and their queues are in Redis: expected a crawl whose"
            " workers were stopped"
        )


@dataclass(slots=True)
class _Pinned:
    """Open files with their sizes, and the transactions of LMDB's environments by folder."""

    files: dict[str, tuple[IO[bytes], os.stat_result]] = field(default_factory=dict)
    lmdb: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    seals: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    left: Left | None = None
    odd: list[str] = field(default_factory=list)


@contextmanager
def _pinned(folder: Path, without: Iterable[Path]) -> Iterator[_Pinned]:
    """The files of a crawl as of one moment between two commits."""
    raise_open_files()
    deadline = time.monotonic() + _TRIES_SECS
    while True:
        with ExitStack() as stack:
            found = _pin(folder, [path.name for path in without], stack)
            if found is not None:
                yield found
                return
        if time.monotonic() > deadline:
            raise CrawlDirError(
                f"{folder}: the crawl commits too often: no moment between two commits was found"
                f" in {_TRIES_SECS:g} s; pause the crawl meanwhile"
            )
        time.sleep(_TRY_SECS)


def _pin(folder: Path, without: list[str], stack: ExitStack) -> _Pinned | None:
    """None if something was committed or replaced meanwhile."""
    if (folder / _COMPACTING).exists() and is_locked(folder / LOCK):
        raise CrawlDirError(f"{folder}: compact is at work; try again when it has ended")
    found = _Pinned()
    for data in (folder / "frontier", folder / "index" / "anchors"):
        if (data / _LMDB).exists():
            pinned = _reading(data, stack)
            if pinned is None:
                return None
            found.lmdb[data.relative_to(folder).as_posix()] = pinned
    for place in ("frontier", "index"):
        with suppress(ValueError):
            if (sealed := read_seal(folder / place)) is not None:
                found.seals[place] = dict(sealed)
    with suppress(ValueError):
        found.left = read_left(folder)
    index = _index_files(folder)
    for name in _names(folder, without, found.odd):
        if name.removesuffix(f"/{_LMDB}") in found.lmdb:
            continue
        try:
            file = stack.enter_context((folder / name).open("rb"))
        except FileNotFoundError:
            return None
        found.files[name] = file, os.fstat(file.fileno())
    settled = all(env.info()["last_txnid"] == txn.id() for env, txn in found.lmdb.values())
    return found if settled and index == _index_files(folder) else None


def _reading(data: Path, stack: ExitStack) -> tuple[Any, Any] | None:
    try:
        env = stack.enter_context(
            closing(lmdb.open(str(data), readonly=True, create=False, max_dbs=9))
        )
        txn = env.begin()
    except lmdb.MapResizedError:
        return None
    except lmdb.Error as error:
        raise CrawlDirError(f"{data} cannot be read: {in_words(error, data)}") from error
    stack.callback(txn.abort)
    return env, txn


def _index_files(folder: Path) -> set[tuple[str, int, int]]:
    """Names, inodes and times of the search index's files; files that grow keep everything except
    the time, and are given without it."""
    found = set()
    with suppress(FileNotFoundError):
        for entry in os.scandir(folder / "index"):
            with suppress(FileNotFoundError):
                one = entry.stat(follow_symlinks=False)
                replaced = entry.name in ("meta.json", "ahead")
                found.add((entry.name, one.st_ino, one.st_mtime_ns if replaced else 0))
    return found


def _names(folder: Path, without: list[str], odd: list[str]) -> Iterator[str]:
    """Files below a folder, relative to it; ``odd`` gets all entries that are not files."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for place, folders, names in os.walk(folder, onerror=refuse):
        at = Path(place).relative_to(folder)
        outer = at == Path()
        links = [name for name in folders if Path(place, name).is_symlink()]
        folders[:] = sorted(
            name
            for name in folders
            if name not in links
            and not (outer and name in without)
            and not _is_any(name, _FOLDERS_LEFT_OUT)
        )
        odd += [(at / name).as_posix() for name in links]
        for name in sorted(names):
            if _is_any(name, _LEFT_OUT):
                continue
            with suppress(FileNotFoundError):
                if stat.S_ISREG(Path(place, name).lstat().st_mode):
                    yield (at / name).as_posix()
                else:
                    odd.append((at / name).as_posix())


def _is_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _write(
    out: BackupFile, pinned: _Pinned, folder: Path, prefix: str, pushed: Path | None
) -> None:
    for name, (env, txn) in pinned.lmdb.items():
        copy = out.scratch / "lmdb"
        copy.mkdir()
        try:
            env.copy(str(copy), compact=True, txn=txn)
        except lmdb.Error as error:
            raise CrawlDirError(f"{folder / name}: {in_words(error, copy)}") from error
        length = (copy / _LMDB).stat().st_size
        place, _, inner = f"{name}/{_LMDB}".partition("/")
        if inner in pinned.seals.get(place, ()):
            pinned.seals[place][inner] = length, crc_of(copy / _LMDB, 0, length)
        out.add_file(f"{prefix}{name}/{_LMDB}", copy / _LMDB)
        shutil.rmtree(copy)
    for place, sealed in pinned.seals.items():
        _add_seal(out, f"{prefix}{place}/{SEAL}", content := packed_seal(sealed))
        if pinned.left is not None:
            pinned.left.files[f"{place}/{SEAL}"] = len(content), zlib.crc32(content), None
    if pinned.left is not None:
        _add_seal(out, f"{prefix}{SEAL}", pinned.left.packed())
    for name, (file, found) in pinned.files.items():
        if name.endswith((".sqlite-wal", ".sqlite-shm")):
            continue
        if name == PUSHED and pushed is not None:
            out.add_file(f"{prefix}{name}", pushed)
            pushed.unlink()
        elif name.endswith(".sqlite"):
            add_sqlite(out, f"{prefix}{name}", folder / name)
        else:
            out.add(f"{prefix}{name}", file, found.st_size, found.st_mode, found.st_mtime)
    out.notes += [f"{folder / name} is not a regular file: it is left out" for name in pinned.odd]


def _copied_pushed(out: BackupFile, folder: Path) -> Path | None:
    """A copy of push.sqlite; None for a crawl without it."""
    path, copy = folder / PUSHED, out.scratch / PUSHED
    if not path.is_file():
        return None
    _copy_sqlite(path, copy)
    return copy


def _add_seal(out: BackupFile, name: str, content: bytes) -> None:
    out.add(name, io.BytesIO(content), len(content), 0o644, time.time())


def add_sqlite(out: BackupFile, name: str, path: Path) -> None:
    """A database of SQLite, also while a process writes to it. Raises CrawlDirError."""
    copy = out.scratch / "sqlite"
    _copy_sqlite(path, copy)
    out.add_file(name, copy)
    copy.unlink()


def _copy_sqlite(path: Path, copy: Path) -> None:
    try:
        with (
            closing(sqlite3.connect(path, timeout=5.0)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except sqlite3.Error as error:
        raise CrawlDirError(f"{path} cannot be copied: {in_words(error, path)}") from None
    copy.chmod(path.stat().st_mode & 0o777)


@dataclass(frozen=True, slots=True)
class Restored:
    kind: str
    made: str
    version: str
    files: int
    bytes: int


def restore(file: Path, directory: Path, say: Say) -> Restored:
    """Unpack a backup into a folder that is new or empty. The folder gets its name once everything
    is there and equals its sum. Raises ConfigError if the file is not a backup, CrawlDirError if it
    is damaged; then nothing has changed."""
    if directory.is_symlink() or (
        directory.exists() and (not directory.is_dir() or any(directory.iterdir()))
    ):
        raise ConfigError(f"{directory} exists: expected a new or empty folder")
    draft = directory.with_name(directory.name + _PART)
    if draft.exists() or draft.is_symlink():
        raise ConfigError(f"{draft} is left of a restore that was killed: remove it first")
    with _opened(file) as (raw, total):
        make_folder(directory.parent)
        draft.mkdir(mode=0o700)
        try:
            with tarfile.open(fileobj=raw[0], mode="r|") as tar:
                found = _unpack(tar, file, draft, lambda name: say(name, raw[1].tell(), total))
            os.sync()
            if found.kind == "crawl":
                draft.chmod(0o777 & ~_umask())
            with suppress(FileNotFoundError):
                directory.rmdir()
            draft.rename(directory)
            sync_folder(directory.parent)
        except (tarfile.TarError, zstd.ZstdError, EOFError) as error:
            raise CrawlDirError(f"{file} is damaged: {error}; nothing was restored") from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return found


@contextmanager
def _opened(file: Path) -> Iterator[tuple[tuple[IO[bytes], IO[bytes]], int]]:
    if not file.name.endswith(ENDINGS):
        raise ConfigError(f"{file}: expected a name that ends in {' or '.join(ENDINGS)}")
    try:
        with ExitStack() as stack:
            inner = stack.enter_context(file.open("rb"))
            total = os.fstat(inner.fileno()).st_size
            raw: IO[bytes] = inner
            if file.name.endswith(".zst"):
                raw = cast("IO[bytes]", zstd.open(inner, "rb"))
                stack.callback(raw.close)
            yield (raw, inner), total
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        if error.filename != str(file):
            raise
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None


def _unpack(tar: tarfile.TarFile, file: Path, draft: Path, say: Callable[[str], None]) -> Restored:
    head, end, seen, length, total = None, None, 0, 0, hashlib.sha256()
    for member in tar:
        if end is not None:
            raise tarfile.TarError(f"{member.name[:80]!r} follows its end")
        if head is None:
            head = _head_of(tar, member, file)
        elif member.name == _END:
            end = _json_of(tar, member)
        else:
            _check_member(member)
            target = draft / member.name
            target.parent.mkdir(mode=0o777, parents=True, exist_ok=True)
            total.update(f"{member.name}\0{member.size}\0".encode("utf-8", "surrogateescape"))
            content = tar.extractfile(member)
            assert content is not None
            with _private(target) as out:
                while chunk := content.read(_CHUNK_BYTES):
                    total.update(chunk)
                    out.write(chunk)
            target.chmod(member.mode & 0o777)
            os.utime(target, (member.mtime, member.mtime))
            seen, length = seen + 1, length + member.size
            say(member.name)
    if end is None or head is None:
        raise tarfile.TarError("it is cut short")
    if end != {"files": seen, "bytes": length, "sha256": total.hexdigest()}:
        raise tarfile.TarError("its content differs from its SHA-256")
    return Restored(
        str(head.get("kind")), str(head.get("made")), str(head.get("larmspider")), seen, length
    )


def _head_of(tar: tarfile.TarFile, member: tarfile.TarInfo, file: Path) -> dict[str, Any]:
    if member.name != _HEAD:
        raise ConfigError(f"{file} is not a backup of larmspider: {_HEAD} is not its first member")
    head = _json_of(tar, member)
    if head.get("format") != FORMAT:
        raise ConfigError(
            f"{file} has format {str(head.get('format'))[:20]!r}, made by larmspider"
            f" {str(head.get('larmspider'))[:20]}: this version reads {FORMAT}"
        )
    return head


def _json_of(tar: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, Any]:
    content = tar.extractfile(member) if member.isreg() and member.size <= _HEAD_BYTES else None
    try:
        value = json.loads(content.read() if content is not None else b"")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise tarfile.TarError(f"{member.name} is not JSON")
    return value


def _check_member(member: tarfile.TarInfo) -> None:
    """Raises TarError for a member that a backup never has."""
    path = PurePosixPath(member.name)
    if (
        not member.isreg()
        or path.is_absolute()
        or ".." in path.parts
        or not path.parts
        or "\0" in member.name
        or len(os.fsencode(member.name)) > _MOST_NAME
    ):
        raise tarfile.TarError(f"{member.name[:80]!r} is not a file that a backup has")


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
