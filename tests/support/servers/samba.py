"""Debian's Samba with its own configuration, people and network: port 445 is free in its namespace.

with Samba(tmp_path) as server:
    server.run("smbclient", "-L", "127.0.0.1", "-U", "anna%pw")      # in the namespace
    with server.inside():                                            # this thread and new ones, too
        connector.read("smb://127.0.0.1/share/", asked)
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.support.crawling import FAST, Ran, environment
from tests.support.servers.processes import end, wait_for

PASSWORD = "pw"
PEOPLE = {"crawler": 3000, "anna": 3001, "ben": 3002, "clara": 3003, "dora": 3004, "emil": 3005,
          "frida": 3006, "gustav": 3007, "hanna": 3008, "admin": 3009}  # fmt: skip
GROUPS = {"staff": (4000, ("anna", "ben", "emil")), "hr": (4001, ("anna", "dora", "frida"))}
NEEDED = ("smbd", "smbclient", "smbcacls", "unshare", "nsenter")
needs_samba = pytest.mark.skipif(
    os.geteuid() != 0 or any(shutil.which(one) is None for one in NEEDED),
    reason="a network namespace of its own needs root, and Samba",
)
_CLONE_NEWNET = 0x40000000
_CONF = """
[global]
 workgroup = LAB
 netbios name = NAS
 server role = standalone server
 private dir = {folder}/private
 lock directory = {folder}/lock
 state directory = {folder}/state
 cache directory = {folder}/cache
 pid directory = {folder}/pid
 ncalrpc dir = {folder}/ncalrpc
 passdb backend = smbpasswd:{folder}/private/smbpasswd
 log file = {folder}/log/smbd.log
 log level = 1
 max log size = 0
 server signing = mandatory
 smb encrypt = {encrypt}
 server min protocol = SMB2
 disable netbios = yes
 load printers = no
 printing = bsd
 disable spoolss = yes
 host msdfs = yes
 map to guest = never
 vfs objects = acl_xattr full_audit
 acl_xattr:ignore system acls = yes
 full_audit:success = create_file
 full_audit:failure = none
 full_audit:prefix = %u
 full_audit:syslog = no
 admin users = admin crawler
 store dos attributes = yes
 map archive = no
 dos filetime resolution = no
"""


class Samba:
    """``more``: further lines of shares by name. The share ``share`` lies in ``share``."""

    def __init__(
        self,
        folder: Path,
        shares: Mapping[str, str] = {},
        encrypt: str = "required",
    ) -> None:
        self.folder, self.share = folder / "samba", folder / "share"
        self.shares = dict(shares)
        self.encrypt = encrypt
        for name in ("private", "lock", "state", "cache", "pid", "ncalrpc", "log"):
            (self.folder / name).mkdir(parents=True)
        self.share.mkdir()
        for path in (self.folder, self.share, *self.share.parents):
            with suppress(OSError):
                path.chmod(path.stat().st_mode | 0o711)
        self.share.chmod(0o777)
        self.conf = self.folder / "smb.conf"
        self._daemon: subprocess.Popen[bytes] | None = None
        self._holder: subprocess.Popen[bytes] | None = None
        self.first = 0

    def write_conf(self) -> None:
        own = {"share": f" path = {self.share}\n read only = no\n"} | self.shares
        text = _CONF.format(folder=self.folder, encrypt=self.encrypt)
        self.conf.write_text(text + "".join(f"[{name}]\n{one}\n" for name, one in own.items()))

    def __enter__(self) -> Self:
        self.write_conf()
        numbers = {**PEOPLE, **{name: number for name, (number, _) in GROUPS.items()}}
        (self.folder / "passwd").write_text(
            "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
            + "".join(f"{name}:x:{uid}:{uid}::/:/bin/false\n" for name, uid in PEOPLE.items())
        )
        members = {name: ",".join(some) for name, (_, some) in GROUPS.items()}
        (self.folder / "group").write_text(
            "root:x:0:\nnogroup:x:65534:\n"
            + "".join(f"{name}:x:{gid}:{members.get(name, '')}\n" for name, gid in numbers.items())
        )
        script = (
            f"mount --bind {self.folder}/passwd /etc/passwd && mount --bind {self.folder}/group"
            " /etc/group && ip link set lo up && echo ready && exec sleep 100000"
        )
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n"
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        self.first = int(children.read_text())
        for name in PEOPLE:
            command = ("smbpasswd", "-c", str(self.conf), "-s", "-a", name)
            self.run(*command, text=f"{PASSWORD}\n{PASSWORD}\n")
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()
            assert self._holder.stdout is not None
            self._holder.stdout.close()

    def prefix(self) -> list[str]:
        return ["nsenter", "-t", str(self.first), "--net", "--mount"]

    def start(self) -> None:
        self.write_conf()
        with (self.folder / "out").open("ab") as out:
            self._daemon = subprocess.Popen(
                [*self.prefix(), "--pid", "smbd", "-F", "--no-process-group", "-s", str(self.conf)],
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        wait_for(self._daemon, self.folder / "out", self._listens, every=0.2)

    def _listens(self) -> bool:
        done = subprocess.run(
            [*self.prefix(), sys.executable, "-ISc",
             "import socket; socket.create_connection(('127.0.0.1', 445), 1).close()"],
            capture_output=True, check=False,
        )  # fmt: skip
        return done.returncode == 0

    def stop(self) -> None:
        """End smbd and all of its processes: some leave its group."""
        if self._daemon is not None:
            end(self._daemon)
            self._daemon = None
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _processes(self) -> list[int]:
        """Processes of the namespace, but the one that holds it."""
        own, found = Path(f"/proc/{self.first}/ns/pid").readlink(), list[int]()
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if path.name != str(self.first) and (path / "ns/pid").readlink() == own:
                    found.append(int(path.name))
        return found

    def reload(self) -> None:
        """Take a changed configuration, and end the sessions."""
        self.stop()
        self.start()

    def run(self, *command: str, text: str = "", check: bool = True) -> str:
        """The output of a command in the namespace."""
        done = subprocess.run(
            [*self.prefix(), *command], input=text, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0 or not check, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def smbclient(self, name: str, *commands: str, share: str = "share") -> str:
        return self.run(
            "smbclient", f"//127.0.0.1/{share}", "-U", f"{name}%{PASSWORD}", "-s", str(self.conf),
            "-c", "; ".join(commands), check=False,
        )  # fmt: skip

    def opens(self, name: str, paths: Sequence[str], share: str = "share") -> set[str]:
        """The files that smbclient can open as this person."""
        said = self.smbclient(name, *(f'get "{path}" /dev/null' for path in paths), share=share)
        found = re.findall(r"getting file \\(.+) of size", said)
        return {one.replace("\\", "/") for one in found}

    def acl(self, path: str, *entries: str, share: str = "share", by: str = "admin") -> None:
        """Give a file or folder these entries, as ``anna:ALLOWED/0x0/READ``; the crawler reads."""
        listed = ["crawler:ALLOWED/OI|CI/FULL", *entries]
        names = [f"ACL:{_full(one)}" for one in listed]
        self.run(
            "smbcacls", f"//127.0.0.1/{share}", path, "-U", f"{by}%{PASSWORD}",
            "-s", str(self.conf), "-S", ",".join(["REVISION:1", *names]),
        )  # fmt: skip

    def principals(self, name: str) -> frozenset[str]:
        """The SIDs of a person and of the person's groups."""
        said = self.run("pdbedit", "-s", str(self.conf), "-v", "-u", name)
        found = re.search(r"User SID:\s+(S-[\d-]+)", said)
        assert found is not None, said
        groups = [number for number, some in GROUPS.values() if name in some]
        sids = [found[1], f"S-1-22-1-{PEOPLE[name]}"]
        sids += [f"S-1-22-2-{number}" for number in (*groups, PEOPLE[name])]
        return frozenset({"everyone", "authenticated", *(f"sid:{sid}" for sid in sids)})

    def sites(self, folder: Path, user: str = "crawler", password: str = PASSWORD) -> Path:
        path = folder / "sites.toml"
        path.write_text(
            f'[[site]]\nhosts = "smb://127.0.0.1:*"\nauth = "ntlm"\n'
            f'user = "{user}"\npassword = "{password}"\n'
        )
        path.chmod(0o600)
        return path

    def crawl(self, start: str, cwd: Path, timeout: float = 300, **settings: str) -> Ran:
        command = self.command(start, cwd, **settings)
        done = subprocess.run(
            command, cwd=cwd, env=environment(cwd, "larmspider.settings"),
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def command(self, start: str, cwd: Path, **settings: str) -> list[str]:
        """A crawl in the namespace."""
        words = []
        own = {} if "LARM_SITES_FILE" in settings else {"LARM_SITES_FILE": str(self.sites(cwd))}
        for name, value in (FAST | own | settings).items():
            words += ["-s" if name.isupper() else "-a", f"{name}={value}"]
        scrapy = [sys.executable, "-m", "scrapy", "crawl", "intranet"]
        return [*self.prefix()[:-1], *scrapy, "-a", f"start={start}", *words]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread, and threads that begin now, are in the namespace."""
        libc = ctypes.CDLL(None, use_errno=True)
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        theirs = os.open(f"/proc/{self.first}/ns/net", os.O_RDONLY)
        try:
            assert libc.setns(theirs, _CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            yield
        finally:
            libc.setns(own, _CLONE_NEWNET)
            os.close(own)
            os.close(theirs)


def _full(entry: str) -> str:
    name, _, rest = entry.partition(":")
    if name in GROUPS:
        return f"S-1-22-2-{GROUPS[name][0]}:{rest}"
    return f"NAS\\{name}:{rest}" if name in PEOPLE else entry
