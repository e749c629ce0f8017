"""Runs of a crawl: state, history and logs, each with a bound.

HOME/runs/NAME/state.json     the present run, the runs before, what waits
HOME/runs/NAME/7.log          what run 7 said
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from larmspider.crawl.state import FINISHED, RunState, State
from larmspider.errors import ConfigError
from larmspider.files import make_folder, replace_file
from larmspider.server.runs.process import STOP, UNKNOWN, log_of
from larmspider.workdir.directory import worker_dirs
from larmspider.workdir.manifest import MANIFEST

FILE = "state.json"
STOPPED = "shutdown"
"""The outcome of a run that a signal has stopped: of an operator, a window, or the system."""
NOT_BEGUN = "not begun"
"""The outcome of a run whose server was killed before the crawl had begun."""
_TAIL_BYTES = 16_384
SAYS = re.compile(r"^(?:scrapy|larmspider) (?:crawl|workers): (.*)$", re.MULTILINE)
"""The line in which a crawl says why it ends with an error."""


class Run(Struct, kw_only=True, omit_defaults=True):
    """A run. ``outcome`` is "" while it runs."""

    number: int
    began: float
    why: str = ""
    who: str = ""
    refresh: str = ""
    pid: int = 0
    born: int = 0
    ended: float = 0.0
    status: int | None = None
    outcome: str = ""
    said: str = ""


class CrawlRuns(Struct, kw_only=True, omit_defaults=True):
    """The state of a crawl. ``done_until``: the times of the schedule up to here are done.
    ``queued``: why the crawl waits for its turn, "" if it does not wait. ``held``: an operator has
    stopped it, so that neither `watch` nor a retry starts it. ``complete``: a run has fetched all
    URLs, so the next run revisits them."""

    schedule: str = ""
    done_until: float = 0.0
    queued: str = ""
    queued_at: float = 0.0
    queued_by: str = ""
    queued_refresh: str = ""
    held: bool = False
    complete: bool = False
    failures: int = 0
    retry_at: float = 0.0
    paused_for_disk: bool = False
    last: int = 0
    run: Run | None = None
    runs: list[Run] = []


def read_runs(folder: Path) -> CrawlRuns:
    """Read the state of a crawl. A damaged file counts as absent, because the lock shows whether a
    crawl runs."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=CrawlRuns)
    except (OSError, msgspec.DecodeError, RecursionError):
        return CrawlRuns(last=_last_log(folder))


def write_runs(folder: Path, runs: CrawlRuns) -> None:
    """Raises ConfigError if the disk does not take it."""
    try:
        make_folder(folder)
        content = msgspec.json.encode(runs)
        replace_file(folder / FILE, content, private=True, synced=False)
    except OSError as error:
        raise ConfigError(f"{folder / FILE}: {error.strerror or error}") from None


def _last_log(folder: Path) -> int:
    numbers = [int(path.stem) for path in folder.glob("*.log") if path.stem.isdecimal()]
    return max(numbers, default=0)


_JOB_ENDED = re.compile(r"\bended {2,}([a-z-]+)")
_JOB_SAYS = re.compile(r"CRITICAL: (.*)$", re.MULTILINE)


def judge_jobs(folder: Path, number: int, status: int) -> tuple[str, str]:
    """Judge a run on nodes, by the ends of its jobs' logs."""
    try:
        text = log_of(folder, number).read_text("utf-8", "replace")
    except OSError:
        return NOT_BEGUN, ""
    if status in _WORDS:
        return _WORDS[status], _last_words(folder, number)
    jobs = [part for part in re.split(r"^== larm-.*$", text, flags=re.MULTILINE) if part.strip()]
    ends = [found[-1] if (found := _JOB_ENDED.findall(job)) else "" for job in jobs]
    said = _JOB_SAYS.findall(text)
    if ends and all(end == FINISHED for end in ends):
        return FINISHED, ""
    if STOPPED in ends:
        return STOPPED, ""
    if said:
        return "refused", said[-1][:1_000]
    return next((end for end in ends if end not in ("", FINISHED)), "killed"), ""


_WORDS = {2: "refused", 75: "temporary failure", 1: "failed"}


def judge(folder: Path, directory: Path, run: Run, status: int) -> tuple[str, str]:
    """How a run ended, in a word, and the reason in its log. ``folder`` holds the log."""
    outcome = _outcome(directory, run, status)
    return outcome, "" if outcome == FINISHED else _last_words(folder, run.number)


def _outcome(directory: Path, run: Run, status: int) -> str:
    if status == UNKNOWN and not _has_begun(directory, run.began):
        return NOT_BEGUN
    state = RunState.of(directory)
    if status in _WORDS:
        return _WORDS[status]
    match status:
        case 0:
            return state.reason or FINISHED
        case _ if status == -STOP:  # it was still starting
            return STOPPED
    if status == UNKNOWN and state.state is State.ENDED:
        return state.reason
    return "killed" if state.state is State.KILLED or status < 0 else "unknown"


def _has_begun(directory: Path, began: float) -> bool:
    """Whether a run, or one of its workers, has written its crawl.json."""
    for folder in (directory, *worker_dirs(directory)):
        with suppress(OSError):
            if (folder / MANIFEST).stat().st_mtime >= began - 1.0:
                return True
    return False


def _last_words(folder: Path, number: int) -> str:
    """Why a run ended with an error, according to its log; "" if the log does not show it."""
    with suppress(OSError), log_of(folder, number).open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
        found: list[str] = SAYS.findall(log.read().decode("utf-8", "replace"))
        return found[-1][:1_000] if found else ""
    return ""


def tail_of(folder: Path, number: int, most: int) -> str:
    """The end of a run's log, whole lines of at most ``most`` bytes. Raises FileNotFoundError."""
    with log_of(folder, number).open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - most))
        text = log.read(most)
    if size > most:
        text = text.partition(b"\n")[2]
    return text.decode("utf-8", "replace")


def trim(folder: Path, runs: CrawlRuns, kept: int) -> None:
    """Forget runs beyond ``kept``, with their logs."""
    del runs.runs[:-kept]
    oldest = runs.runs[0].number if runs.runs else runs.last
    for path in folder.glob("*.log"):
        if path.stem.isdecimal() and int(path.stem) < oldest:
            path.unlink(missing_ok=True)


def cut_log(path: Path, most: int) -> None:
    """If a log is longer than ``most``, keep its last half. Lines that the crawl writes at this
    moment may be lost. The crawl has the file open for appending, so its next lines follow."""
    with suppress(FileNotFoundError):
        if path.stat().st_size <= most:
            return
        draft = path.with_suffix(".cut")
        with path.open("rb") as log, draft.open("wb") as out:
            log.seek(-(most // 2), os.SEEK_END)
            log.readline()
            shutil.copyfileobj(log, out)
        with draft.open("rb") as kept, path.open("r+b") as log:
            log.truncate(0)
            with path.open("ab") as end:
                shutil.copyfileobj(kept, end)
        draft.unlink()
