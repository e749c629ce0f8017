"""A bare Debian in a folder, whose programs run by chroot; .ci/run makes its archive.

with BareDebian(tmp_path / "root") as debian:
    debian.run("dpkg", "--install", "/tmp/x.deb")
    debian.begin("larmspider", "server", user="larmspider")
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Self

import pytest

from tests.support.crawling import PROJECT

PACKAGES = PROJECT / ".packages"
ARCHIVE, WHEELS = PACKAGES / "base.tar", PACKAGES / "wheels"
NEEDS_BARE_DEBIAN = pytest.mark.skipif(
    not (ARCHIVE.exists() and WHEELS.exists() and os.geteuid() == 0),
    reason="needs root, .packages/base.tar and .packages/wheels: .ci/run makes them",
)
CHROOT = shutil.which("chroot") or "chroot"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


class Rooted:
    """A root folder with /proc. At the end all that was started is killed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        self.mount("/proc", "proc")
        return self

    def __exit__(self, *_: object) -> None:
        self._kill_all()
        self._ends.close()

    def mount(self, source: Path | str, target: str) -> None:
        place = self.root / target
        subprocess.run(["mount", "--bind", str(source), str(place)], check=True)
        self._ends.callback(subprocess.run, ["umount", "--lazy", str(place)], check=False)

    def begin(
        self,
        *command: str,
        user: str = "0:0",
        stdout: int | IO[str] = subprocess.PIPE,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start a command as a user (NAME:GROUP); standard error goes with its output."""
        process = subprocess.Popen(
            [CHROOT, f"--userspec={user}", str(self.root), *command],
            env={**ENVIRONMENT, **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._ends.callback(_ended, process)
        return process

    def run(
        self, *command: str, user: str = "0:0", environment: Mapping[str, str] | None = None
    ) -> str:
        """The output of a command that succeeds."""
        process = self.begin(*command, user=user, environment=environment)
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, f"{command}: {said}"
        return said

    def pids(self) -> list[int]:
        """The processes whose root is this folder."""
        found = []
        for one in Path("/proc").iterdir():
            if one.name.isdigit():
                try:
                    if (one / "root").readlink() == self.root:
                        found.append(int(one.name))
                except OSError:
                    continue
        return found

    def _kill_all(self) -> None:
        for pid in self.pids():
            os.kill(pid, 9)


class BareDebian(Rooted):
    """Debian from the archive, in a folder that is removed at the end."""

    def __enter__(self) -> Self:
        self.root.mkdir(parents=True)
        subprocess.run(["tar", "-xf", str(ARCHIVE), "-C", str(self.root)], check=True)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        shutil.rmtree(self.root, ignore_errors=True)


def url_said(process: subprocess.Popen[str]) -> str:
    """The address that a server prints when it is ready."""
    assert process.stdout is not None
    said = []
    while not (line := process.stdout.readline()).startswith("http"):
        said.append(line)
        assert line, "".join(said)
    return line.strip()


def _ended(process: subprocess.Popen[str]) -> None:
    process.wait(60)
    if process.stdout is not None:
        process.stdout.close()
