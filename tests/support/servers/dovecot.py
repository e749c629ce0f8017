"""Debian's Dovecot with people and their mailboxes, by TLS on a free port.

with Dovecot(tmp_path) as server:
    server.put("anna", "INBOX", b"Subject: tides\r\n\r\nHigh water at noon.\r\n")
    server.url("INBOX/")                                     # imaps://127.0.0.1:PORT/INBOX/
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import imapclient
import pytest

from tests.support.servers.certificate import Authority
from tests.support.servers.processes import end, free_port, listens, wait_for

PEOPLE = ("anna", "ben")
needs_dovecot = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("dovecot") is None, reason="needs root and Dovecot"
)
_CONF = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
ssl = required
ssl_cert = <{certificate}
ssl_key = <{key}
mail_location = maildir:{folder}/mail/%u
mail_plugins = acl
first_valid_uid = 1
auth_failure_delay = 0
passdb {{
  driver = passwd-file
  args = scheme=PLAIN {folder}/users
}}
userdb {{
  driver = static
  args = uid=8 gid=8 home={folder}/mail/%u
}}
namespace {{
  inbox = yes
  separator = /
}}
protocol imap {{
  mail_plugins = acl imap_acl
}}
plugin {{
  acl = vfile
}}
service imap-login {{
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {port}
  }}
}}
service anvil {{
  chroot =
}}
"""


class Dovecot:
    def __init__(self, folder: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="imap-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.authority = Authority(folder)
        self.port = free_port("127.0.0.1")
        self._daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        for name in ("run", "state", "mail"):
            (self.folder / name).mkdir()
        os.chown(self.folder / "mail", 8, 8)
        certificate, key = self.authority.issue("127.0.0.1")
        (self.folder / "users").write_text("".join(f"{name}:pw::::::\n" for name in PEOPLE))
        (self.folder / "conf").write_text(
            _CONF.format(folder=self.folder, port=self.port, certificate=certificate, key=key)
        )
        self.start()
        return self

    def start(self) -> None:
        out = self.folder / "out"
        with out.open("ab") as file:
            self._daemon = subprocess.Popen(
                ["dovecot", "-F", "-c", str(self.folder / "conf")],
                stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip
        wait_for(self._daemon, out, lambda: listens("127.0.0.1", self.port), 20)

    def stop(self) -> None:
        if self._daemon is not None:
            end(self._daemon)
            self._daemon = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def url(self, path: str = "") -> str:
        return f"imaps://127.0.0.1:{self.port}/{path}"

    def client(self, name: str) -> Any:
        context = ssl.create_default_context(cafile=str(self.authority.ca))
        client = imapclient.IMAPClient("127.0.0.1", self.port, ssl_context=context)
        client.login(name, "pw")
        return client

    def put(self, name: str, mailbox: str, *mails: bytes) -> None:
        with self.client(name) as client:
            if not client.folder_exists(mailbox):
                client.create_folder(mailbox)
            for mail in mails:
                client.append(mailbox, mail)

    def sites(self, folder: Path, user: str = "anna", password: str = "pw") -> Path:
        path = folder / "sites.toml"
        path.write_text(
            f'[[site]]\nhosts = "imaps://127.0.0.1:*"\nauth = "basic"\nuser = "{user}"\n'
            f'password = "{password}"\nca_file = "{self.authority.ca}"\n'
        )
        path.chmod(0o600)
        return path
