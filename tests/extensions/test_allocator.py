"""larmspider/extensions/tuning.py: what large buffers took is the system's again."""

import subprocess
import sys

import pytest

from tests.support.crawling import PROJECT

PROGRAM = """
import sys
from larmspider.extensions.tuning import fix_mapping_threshold

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "fixed":
    assert fix_mapping_threshold()
bytearray(30 << 20)  # freed: glibc now takes anything smaller from the heap, if it may
kept = []
buffers = []
before = resident()
for _ in range(60):
    buffers.append(bytearray(1 << 20))
    kept.append(bytearray(2000))  # stays, so that the heap cannot shrink
del buffers
print(resident() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
def test_freed_bodies_leave_no_holes_in_the_heap() -> None:
    """60 MB of buffers between small ones that stay: nearly all come back, without it none does."""
    left = {}
    for way in ("fixed", "as it is"):
        command = [sys.executable, "-c", PROGRAM, way]
        ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
        left[way] = int(ran.stdout)
    assert left["fixed"] < 10 << 20 < left["as it is"]
