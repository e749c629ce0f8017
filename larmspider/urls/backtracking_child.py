"""The process in which a pattern may hang: run as a program by backtracking.py, never imported.

Reads a job as JSON from standard input, writes each string to standard output before it tries it,
and ``null`` at the end. Without that last line the pattern is slow on the string before it.
"""

from __future__ import annotations

import itertools
import json
import re
import signal
import sys
import time
from collections.abc import Callable


def main() -> int:
    """0 if no match took too long, 1 if one did; killed by SIGPROF if one does not end."""
    job = json.load(sys.stdin)
    limit = job["longest_match_secs"]
    match = getattr(re.compile(job["pattern"], job["flags"]), job["method"])
    shapes = [
        (prefix, unit, suffix)
        for (prefix, unit), suffix in itertools.product(job["strings"], job["suffixes"])
    ]
    # All short strings first: exponential patterns show there, and time is not used up yet.
    for length in job["lengths"]:
        slowest = 0.0, shapes[0]
        for prefix, unit, suffix in shapes:
            seconds = _seconds(match, prefix + unit * (length // len(unit)) + suffix, limit)
            if seconds > limit:
                return 1
            slowest = max(slowest, (seconds, (prefix, unit, suffix)))
            if time.process_time() > job["cpu_secs"]:
                shapes = [slowest[1]]
                break
    sys.stdout.write("null\n")
    return 0


def _seconds(match: Callable[[str], object], string: str, limit: float) -> float:
    """CPU seconds of one match."""
    sys.stdout.write(json.dumps(string) + "\n")
    sys.stdout.flush()
    before = time.process_time()
    if hasattr(signal, "setitimer"):  # elsewhere only the parent limits the time
        signal.setitimer(signal.ITIMER_PROF, 1.2 * limit)
    match(string)
    return time.process_time() - before


if __name__ == "__main__":
    sys.exit(main())
