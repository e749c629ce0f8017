"""Runs the scrapy command as a user other than root, where the tests are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.crawling import Ran, environment

_CAPABILITY = "+dac_read_search"
"""To read an interpreter below /root, and to come to a folder of pytest's; not to write."""
_READS = ("--inh-caps", _CAPABILITY, "--ambient-caps", _CAPABILITY)


def scrapy_as_other(*arguments: str, cwd: Path, timeout: float = 600) -> Ran:
    """``scrapy ARGUMENTS`` in ``cwd``, whose owner that user becomes."""
    before: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(cwd, "nobody")
        before = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", *_READS]
    done = subprocess.run(
        [*before, sys.executable, "-m", "scrapy", *arguments],
        cwd=cwd,
        env=environment(cwd, "larmspider.settings") | {"HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
