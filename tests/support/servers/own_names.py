"""A world of its own for a process: another resolv.conf, its own loopback, names from NameServer.

    own_names.run("tests.support.hostile.silent_names", "60", "30")   # python -m in that world

    own_names.begin()                          # that module's first line: names come from HOST now
    with NameServer({...}, own_names.HOST, 53): ...

Namespaces of user, mount and network (unshare(1)); what is bound and mounted in there is seen
nowhere else. The files of the system stay as they are, and /etc/hosts counts.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.crawling import PROJECT

HOST, PORT = "127.38.0.53", 53
_RESOLV_CONF = f"nameserver {HOST}\noptions timeout:10 attempts:2\n"
_NSSWITCH_CONF = "hosts: files dns\n"
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def run(module: str, *arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
    """``python -m module arguments``. Where no namespaces can be had, the status is not 0 and the
    first word on stderr is ``unshare:``."""
    return subprocess.run(
        ["unshare", "-Urmn", sys.executable, "-m", module, *arguments],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def begin() -> None:
    """Inside: bring up the loopback interface and let HOST be the one server of names."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
    for name, text in (("resolv.conf", _RESOLV_CONF), ("nsswitch.conf", _NSSWITCH_CONF)):
        with tempfile.NamedTemporaryFile("w", prefix=name) as file:
            file.write(text)
            file.flush()
            Path(file.name).chmod(0o644)
            if Path("/etc", name).exists():
                subprocess.run(["mount", "--bind", file.name, f"/etc/{name}"], check=True)
