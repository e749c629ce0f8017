"""Do the tests notice? Puts small faults into a copy of the package, one at a time, and runs tests.

    python -m benchmarks.faults                       # all faults, each with its nearest tests
    python -m benchmarks.faults --only cluster web    # areas, or parts of names
    python -m benchmarks.faults --list                # what there is; nothing runs
    python -m benchmarks.faults --log faults.log      # goes on where an earlier run was stopped
    python -m benchmarks.faults --whole               # survivors meet the whole suite, too

The table is faults.toml: each fault is named for what users would see, and replaces one to three
lines of one file. A fault is caught if a test fails that passes without the fault, or if the tests
do not end.

The copy is a temporary folder; the project itself stays as it is. A fault whose text is not in its
file exactly once is an error that names the fault: move it along with the code.

Exit status: 0 all faults are caught, 1 some survived, 2 the table or the command is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("faults.toml")
MOST_LINES = 3
"""Lines that a fault puts in; more is no slip any more."""
SECONDS = 600.0
"""A run of the nearest tests that takes longer counts as one that does not end."""
WHOLE_SECONDS = 3_600.0
"""The same for the whole suite."""
OPTIONS = ("-x", "-q", "-m", "not acceptance", "-p", "no:cacheprovider")
_LEFT_OUT = ("__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
_LEFT_OUT_AT_TOP = (".git", ".venv", "build", "dist", "crawl", "crawl-*")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
ENDLESS = "no end"
PASSED, FAILED, NO_TESTS = 0, 1, 5  # pytest's exit statuses


class BadTableError(Exception):
    """The table or the command is wrong; the text says what."""


@dataclass(frozen=True)
class Fault:
    """In ``file`` the text ``old`` becomes ``new``; ``tests`` are the nearest test files."""

    area: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Identifies the change of the code, whatever its name and tests are."""
        text = json.dumps([self.file, self.old, self.new])
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def problem(self, root: Path) -> str:
        """Why the fault cannot be tried in the project at ``root``, or ""."""
        file = root / self.file
        if not file.is_file():
            return f"there is no file {self.file}"
        found = file.read_text("utf-8").count(self.old)
        if found != 1:
            return f"its old text is {found} times in {self.file}, expected once"
        if self.old == self.new:
            return "its new text is the old one"
        if self.new.count("\n") >= MOST_LINES:
            return f"its new text has more than {MOST_LINES} lines"
        if missing := [test for test in self.tests if not (root / test).is_file()]:
            return f"there is no file {missing[0]}"
        return "" if self.tests else "it names no tests"

    def applied(self, text: str) -> str:
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Outcome:
    """``caught`` by the test ``by``, after ``seconds``; ``whole``: by the whole suite alone."""

    name: str
    area: str
    caught: bool
    seconds: float
    by: str = ""
    whole: bool = False
    digest: str = ""

    def __str__(self) -> str:
        word = "caught" if self.caught else "SURVIVED"
        by = f" ({self.by}{', of the whole suite' if self.whole else ''})" if self.by else ""
        return f"{word:<9}{self.seconds:>6.1f} s  {self.area:<10}{self.name}{by}"


def read_table(path: Path = TABLE) -> list[Fault]:
    """The faults of the table. Raises BadTableError."""
    try:
        rows = tomllib.loads(path.read_text("utf-8"))["fault"]
        faults = [Fault(**{**row, "tests": tuple(row["tests"])}) for row in rows]
    except (OSError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise BadTableError(f"{path}: cannot be read: {error}") from error
    for name, number in Counter(fault.name for fault in faults).items():
        if number > 1:
            raise BadTableError(f"{path}: {number} faults are called {name!r}")
    return faults


def check(faults: Sequence[Fault], root: Path = ROOT) -> None:
    """Raise BadTableError, with a line for each fault that cannot be tried."""
    problems = [(fault.name, fault.problem(root)) for fault in faults]
    bad = [f"{name!r}: {problem}" for name, problem in problems if problem]
    if bad:
        raise BadTableError("\n".join(bad))


def chosen(faults: Sequence[Fault], only: Sequence[str]) -> list[Fault]:
    """The faults of these areas, and those with such a text in their names; all for none. Raises
    BadTableError for a word that chooses none."""
    for word in only:
        if not any(word == fault.area or word in fault.name for fault in faults):
            areas = ", ".join(dict.fromkeys(fault.area for fault in faults))
            raise BadTableError(
                f"--only {word}: no fault has this in its name; expected a part of a name (--list),"
                f" or an area: {areas}"
            )
    return [
        fault
        for fault in faults
        if not only or any(word == fault.area or word in fault.name for word in only)
    ]


class Copy:
    """A copy of the project in a temporary folder, where faults are put in and taken out."""

    def __init__(self, root: Path = ROOT) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="faults-")
        self.root = Path(self._folder.name, "project")
        anywhere = shutil.ignore_patterns(*_LEFT_OUT)
        at_top = shutil.ignore_patterns(*_LEFT_OUT, *_LEFT_OUT_AT_TOP)

        def left_out(folder: str, names: list[str]) -> set[str]:
            return (at_top if Path(folder) == root else anywhere)(folder, names)

        shutil.copytree(root, self.root, ignore=left_out, symlinks=True)
        self._time = int(time.time())
        self.environment = os.environ | {"PYTHONPATH": str(self.root)}
        where = [sys.executable, "-c", "import larmspider; print(larmspider.__file__)"]
        found = subprocess.run(
            where, cwd=self.root, env=self.environment, capture_output=True, text=True, check=True
        )
        if not found.stdout.startswith(str(self.root)):
            raise BadTableError(f"the copy imports {found.stdout.strip()}, not its own package")

    def __enter__(self) -> Copy:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    @contextmanager
    def broken(self, fault: Fault) -> Iterator[None]:
        """The fault is in the copy meanwhile."""
        file = self.root / fault.file
        before = file.read_text("utf-8")
        self._write(file, fault.applied(before))
        try:
            yield
        finally:
            self._write(file, before)

    def _write(self, file: Path, text: str) -> None:
        """With a time of its own: compiled modules are known by time and size."""
        file.write_text(text, "utf-8")
        self._time += 10
        os.utime(file, (self._time, self._time))

    def run(
        self, tests: Sequence[str], seconds: float, more: Sequence[str] = ()
    ) -> tuple[int, str]:
        """pytest's exit status and the first test that failed, or why the run counts as failed."""
        command = [sys.executable, "-m", "pytest", *OPTIONS, *more, *tests]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                return FAILED, f"{ENDLESS} after {seconds:.0f} s"
            finally:
                with suppress(ProcessLookupError):  # its servers and workers, too
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.seek(0)
            text = output.read()
        if status not in (PASSED, FAILED, NO_TESTS):
            last = "\n".join(text.splitlines()[-20:])
            raise BadTableError(f"pytest ended with status {status}:\n{last}")
        failed = _FAILED.search(text)
        return status, failed[1] if failed else ""


class Log:
    """The outcomes of an earlier run, a JSON object a line; a fault that has changed since is tried
    again."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text("utf-8").splitlines() if path and path.exists() else []
        try:
            found = [Outcome(**json.loads(line)) for line in lines]
        except (ValueError, TypeError) as error:
            raise BadTableError(f"--log {path}: no log of this command: {error}") from error
        self._known = {one.digest: one for one in found}

    def of(self, fault: Fault, *, whole: bool) -> Outcome | None:
        """``whole``: only one that the whole suite has confirmed, where the fault survived."""
        found = self._known.get(fault.digest)
        return None if found and whole and not (found.caught or found.whole) else found

    def add(self, outcome: Outcome) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")


def tried(copy: Copy, fault: Fault, *, whole: bool) -> Outcome:
    """Put the fault in, and run tests. Raises BadTableError where the copy cannot be imported."""
    began = time.monotonic()
    with copy.broken(fault):
        try:
            status, by = copy.run(fault.tests, SECONDS)
            by_whole = whole and status != FAILED
            if by_whole:
                status, by = copy.run(["tests"], WHOLE_SECONDS, ["-n", "2", "--dist", "loadfile"])
        except BadTableError as error:
            raise BadTableError(f"{fault.name!r}: {error}") from error
    if status == FAILED and not by.startswith(ENDLESS) and copy.run([by], SECONDS)[0] != PASSED:
        raise BadTableError(f"{fault.name!r}: {by} fails without the fault, too")
    seconds = round(time.monotonic() - began, 1)
    caught = status == FAILED
    return Outcome(fault.name, fault.area, caught, seconds, by, by_whole, fault.digest)


def run(faults: Sequence[Fault], log: Log, *, whole: bool) -> Iterator[Outcome]:
    """The outcome of each fault, as it is known. Raises BadTableError."""
    with Copy() as copy:
        for fault in faults:
            outcome = log.of(fault, whole=whole)
            if outcome is None:
                outcome = tried(copy, fault, whole=whole)
                log.add(outcome)
            yield outcome


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def print_counts(outcomes: Sequence[Outcome]) -> None:
    """By area, and in all."""
    print(f"\n{'area':<10}{'faults':>7}{'caught':>7}{'survived':>9}")
    for area in [*dict.fromkeys(one.area for one in outcomes), "all"]:
        here = [one for one in outcomes if area in (one.area, "all")]
        caught = sum(one.caught for one in here)
        print(f"{area:<10}{len(here):>7}{caught:>7}{len(here) - caught:>9}")


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="NAME", help="areas, or parts of names of faults"
    )
    parser.add_argument("--list", action="store_true", help="print the table, and run nothing")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument("--log", type=Path, help="keep outcomes in this file, and go on from it")
    parser.add_argument(
        "--whole", action="store_true", help="run the whole suite for faults that survive"
    )
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = parsed(words)
    try:
        faults = chosen(read_table(), options.only)
        check(faults)
        if options.list:
            if options.json:
                print(json.dumps([asdict(fault) for fault in faults], indent=1))
            else:
                for fault in faults:
                    print(f"{fault.area:<10}{fault.file:<45}{fault.name}")
            return 0
        outcomes = []
        for outcome in run(faults, Log(options.log), whole=options.whole):
            outcomes.append(outcome)
            tell(str(outcome))
    except BadTableError as error:
        tell(f"faults: {error}")
        return 2
    if options.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    else:
        print_counts(outcomes)
    return 0 if all(outcome.caught for outcome in outcomes) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that the tests under way end, too
    sys.exit(main())
