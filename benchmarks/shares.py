"""CPU a small file in a crawl of smb://, signed and encrypted, and of the same files by file://.

    python -m benchmarks.shares --files 1000

Needs root and Samba: the server has a network namespace of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.support.crawling import environment
from tests.support.servers.samba import Samba

FEW = 100
"""Files of a first crawl, whose CPU is taken for the start and the end of a crawl."""


def cpu_of(command: list[str], folder: Path) -> float:
    """Seconds of CPU, of the crawl and the processes that it starts."""
    folder.mkdir()
    with (folder / "out").open("w") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(folder, "larmspider.settings"),
            stdout=out, stderr=out,
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((folder / "out").read_text()[-2000:])
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    number = parser.parse_args().files
    folder = Path(tempfile.mkdtemp(prefix="shares-", dir="/tmp"))
    folder.chmod(0o755)
    shares = {}
    for count in (FEW, FEW + number):
        tree = folder / f"files{count}"
        for at in range(count):
            path = tree / f"{at // 100}" / f"{at}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"Harbour {at}. " + f"Word{at} and text of a small file. " * 25)
        shares[tree.name] = f" path = {tree}"
    try:
        with Samba(folder, shares) as server:
            for scheme in ("file", "smb"):
                used = []
                for name in shares:
                    start = (
                        f"smb://127.0.0.1/{name}/"
                        if scheme == "smb"
                        else f"file://{folder}/{name}/"
                    )
                    crawl = folder / f"{scheme}-{name}"
                    roots = {"LARM_FILE_ROOTS": str(folder / name)} if scheme == "file" else {}
                    crawl.mkdir()
                    command = server.command(start, crawl, **roots)
                    used.append(cpu_of(command, crawl / "run"))
                each = (used[1] - used[0]) / number
                print(f"{scheme}: {each * 1000:.2f} ms of CPU a file ({used[1]:.1f} s in all)")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
