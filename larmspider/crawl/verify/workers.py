"""Workers without a directory, according to Redis; two directories of one worker.

Redis knows which worker committed last in each partition, and that worker's frontier knows which
workers stored the partition's pages. If one of their directories is gone, so are its pages, and a
refresh does not fetch them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import options, program
from larmspider.checksums import SEAL
from larmspider.cluster.reader import RedisReader, waiting_of
from larmspider.cluster.redis_client import Lost
from larmspider.crawl.verify.findings import Findings
from larmspider.errors import CrawlDirError, LarmspiderError
from larmspider.files import is_locked, why_no_lock
from larmspider.formatting import counted
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.workdir.directory import REDIS_DIR, REDIS_SOCKET
from larmspider.workdir.manifest import LOCK
from larmspider.workdir.manifest_copy import read_or_copy
from larmspider.workdir.worker_name import same_worker

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_BAD_DAY = "docs/troubleshooting.md"
_SHOWN = 3  # partitions in a line
_SHOWN_LOST = 10  # lost parts of Redis, a line each
_REFILL = (
    "delete what Redis has left of the crawl, then"
    f" {program.NAME} workers --rebuild fills it ({_BAD_DAY})"
)


_COUNTED = "the next worker that starts alone counts them again"


def check_workers(
    found: Findings, parts: Sequence[Path], elsewhere: Collection[str], settings: BaseSettings
) -> None:
    """``elsewhere``: names of workers whose directories are known to lie elsewhere."""
    for one, other in same_worker(parts):
        found.add(other, f"is the directory of the worker of {one} once more", mend="move it away")
    known = {path.name for path in parts} | set(elsewhere)
    try:
        with _reader(found, settings) as (reader, why_not):
            if reader is None:
                found.notes.append(f"{found.path}: lost directories are not known: {why_not}")
                return
            if differs := _other_crawl(reader.crawl_id(), parts):
                found.add(
                    found.path,
                    differs,
                    mend=f"{program.NAME} workers --rebuild fills it ({_BAD_DAY})",
                )
                return
            lost = [*reader.wrong_types()] or reader.lost_parts()
            for said in lost[:_SHOWN_LOST]:
                found.add(found.path, f"Redis has lost a part of the crawl: {said}", mend=_REFILL)
            if unsaid := len(lost[_SHOWN_LOST:]):
                found.add(found.path, f"Redis has lost {unsaid:,} more parts", mend=_REFILL)
            if not lost and (said := reader.uncounted()):
                found.add(found.path, f"Redis: {said}", mend=_COUNTED)
            owners, partition_of = reader.owners(), reader.partition_of_key
    except Lost as error:
        found.add(found.path, str(error))
        return
    except LarmspiderError as error:
        found.notes.append(f"{found.path}: lost directories are not known: {error}")
        return
    pages = _pages_elsewhere(parts, owners, partition_of, known)
    for worker in sorted((owners.keys() | pages.keys()) - known):
        urls, numbers = sum(owners.get(worker, {}).values()), sorted(owners.get(worker, {}))
        more = f" and {len(numbers) - _SHOWN:,} more" if numbers[_SHOWN:] else ""
        does = [
            f"visited {counted(urls, 'URL')} of"
            f" {'partition' if len(numbers) == 1 else 'partitions'}"
            f" {', '.join(map(str, numbers[:_SHOWN]))}{more}"
        ] * bool(numbers)
        if pages[worker]:
            does.append(f"stored {counted(pages[worker], 'page')} of the others' partitions")
        found.add(
            found.path / worker,
            f"is gone: worker {worker} {' and '.join(does)}",
            mend=f"name it with --shard if it is on another machine; else see {_BAD_DAY}",
        )


def _pages_elsewhere(
    parts: Sequence[Path],
    owners: Mapping[str, Container[int]],
    partition_of: Callable[[bytes], int],
    known: Container[str],
) -> Counter[str]:
    """The pages of unknown workers, by worker. Only the worker that committed last in a partition
    counts, because the copies of other workers may be old."""
    pages: Counter[str] = Counter()
    for path in parts:
        own = owners.get(path.name, ())
        if not own or not (path / "frontier" / "data.mdb").exists():
            continue
        with suppress(LarmspiderError), FrontierReader(path / "frontier") as reader:
            for key, visit in reader.visits():
                if visit.shard and visit.shard not in known and partition_of(key) in own:
                    pages[visit.shard] += 1
    return pages


def _other_crawl(in_redis: str, parts: Sequence[Path]) -> str:
    """How the crawl in Redis differs from the workers' directories; "" if it does not differ."""
    for path in parts:
        if (path / "frontier" / "data.mdb").exists():
            with suppress(LarmspiderError), FrontierReader(path / "frontier") as reader:
                own = reader.shared_crawl()[0]
                if own and own != in_redis:
                    what = "a different crawl from" if in_redis else "lost the crawl of"
                    return f"Redis has {what} {path.name}"
    return ""


@contextmanager
def _reader(found: Findings, settings: BaseSettings) -> Iterator[tuple[RedisReader | None, str]]:
    """The Redis of REDIS_URL, or the private one, which is started if it does not run."""
    root, folder = found.path, found.path / REDIS_DIR
    manifest = read_or_copy(root).manifest or {}
    runs = (folder / REDIS_SOCKET).exists() or is_locked(folder / LOCK)
    if options.many_workers(settings) or runs or not folder.is_dir() or why_no_lock(folder):
        with waiting_of(root, manifest, settings, strict=True) as answer:
            yield answer
        return
    # imported here, 0.1 s
    from larmspider.cluster.redis_server import PrivateRedis, changed_data, is_seal_lost, rebuilt

    try:
        changed = [*changed_data(folder)]
    except ValueError as error:
        found.add(folder / SEAL, f"is {error}")
        found.gone.append(folder / SEAL)
        yield None, "the checksums of its Redis are damaged"
        return
    if is_seal_lost(folder):
        found.add(folder / SEAL, "is gone")  # the server makes it again when it ends
    if changed:
        for path, what in changed:
            found.add(path, what, mend=rebuilt(folder))
        yield None, "the data of its Redis is damaged"
        return
    try:
        private = PrivateRedis(folder).__enter__()
    except CrawlDirError as error:
        found.add(folder, str(error))
        yield None, "its Redis does not start"
        return
    try:
        wanted = settings.copy()
        wanted.set("REDIS_URL", private.url, priority="cmdline")
        with waiting_of(root, manifest, wanted, strict=True) as answer:
            yield answer
    finally:
        private.__exit__()
