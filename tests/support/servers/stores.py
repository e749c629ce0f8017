"""Real servers that pages go to: SeaweedFS with its S3 interface, NATS with JetStream, and dynalite
with DynamoDB's API.

Each on free loopback ports, with its data in a folder of its own; it ends by its pid. A killed one
comes up again on the same port, with what it had.
"""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import botocore.session
from obstore.exceptions import BaseError
from obstore.store import S3Store

from tests.support.servers.processes import end, listens, wait_for

HOST = "127.0.0.1"
_PROGRAMS = Path(sys.executable).parent


class StoreServer(ABC):
    program: str

    def __init__(self, parent: Path | None = None) -> None:
        self.port = 0
        self._parent = parent
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def folder(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name)

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def answers(self) -> bool: ...

    def start(self) -> None:
        log = self.folder / "output"
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                [str(_PROGRAMS / self.program), *self.command()],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        wait_for(self._child, log, self.answers, 120)

    def kill(self) -> None:
        if self._child is not None:
            end(self._child, signal.SIGKILL)
            self._child = None

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix=f"{self.program}-", dir=self._parent)
        self.port = _pair_of_ports()
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        assert self._folder is not None
        self._folder.cleanup()


class SeaweedServer(StoreServer):
    """``environment`` is for the receiver."""

    program = "weed"
    key, secret = "larm", "s3cr3t-s3cr3t"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_ENDPOINT_URL": f"http://{HOST}:{self.port}",
            "AWS_REGION": "us-east-1",
        }

    def store(self, bucket: str) -> S3Store:
        return S3Store(
            bucket,
            endpoint=f"http://{HOST}:{self.port}",
            access_key_id=self.key,
            secret_access_key=self.secret,
            region="us-east-1",
            client_options={"allow_http": True, "timeout": "10s"},
        )

    def command(self) -> list[str]:
        config = self.folder / "s3.json"
        credentials = [{"accessKey": self.key, "secretKey": self.secret}]
        user = {"name": "larm", "credentials": credentials, "actions": ["Admin", "Read", "Write"]}
        config.write_text(json.dumps({"identities": [user]}))
        ports = getattr(self, "_ports", None) or [_pair_of_ports() for _ in range(3)]
        self._ports = ports
        master, volume, filer = ports
        return [
            *("server", f"-dir={self.folder}", f"-ip={HOST}", f"-ip.bind={HOST}"),
            *(f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"),
            *("-s3", f"-s3.port={self.port}", f"-s3.config={config}"),
            *("-master.volumeSizeLimitMB=64", "-volume.max=60", "-s3.port.iceberg=0"),
            "-s3.port.lance=0",
        ]

    def answers(self) -> bool:
        try:
            self.store("started").put("x", b"x", use_multipart=False)
        except BaseError:
            return False
        return True


def _pair_of_ports() -> int:
    """A port that is free, as is the one 10,000 above, where weed's gRPC listens; both below those
    that the system gives to clients."""
    while True:
        port = random.randrange(10_000, 22_000)
        with suppress(OSError), socket.create_server((HOST, port)):
            socket.create_server((HOST, port + 10_000)).close()
            return port


class DynaliteServer(StoreServer):
    """``npm install -g --prefix .venv dynalite@4.0.0`` puts it where it is looked for."""

    program = "dynalite"

    @classmethod
    def is_installed(cls) -> bool:
        return (_PROGRAMS / cls.program).exists()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": "larm",
            "AWS_SECRET_ACCESS_KEY": "s3cr3t",
            "AWS_ENDPOINT_URL_DYNAMODB": f"http://{HOST}:{self.port}",
            "AWS_DEFAULT_REGION": "eu-central-1",
        }

    def client(self) -> Any:
        session = botocore.session.get_session()
        return session.create_client(
            "dynamodb",
            "eu-central-1",
            endpoint_url=f"http://{HOST}:{self.port}",
            aws_access_key_id="larm",
            aws_secret_access_key="s3cr3t",
        )

    def command(self) -> list[str]:
        return [
            *("--host", HOST, "--port", str(self.port), "--path", str(self.folder / "data")),
            *("--createTableMs", "50"),
        ]

    def answers(self) -> bool:
        return listens(HOST, self.port)


class NatsServer(StoreServer):
    """``max_bytes``: of all its streams, from its next start on."""

    program = "nats-server"
    password = "s3cr3t"
    max_bytes = 10_000_000_000

    @property
    def url(self) -> str:
        return f"nats://larm:{self.password}@{HOST}:{self.port}"

    def command(self) -> list[str]:
        config = self.folder / "nats.conf"
        store = f'store_dir: "{self.folder}", max_file_store: {self.max_bytes}'
        config.write_text(f"jetstream {{ {store} }}\n")
        return [
            *("-c", str(config), "-a", HOST, "-p", str(self.port)),
            *("--user", "larm", "--pass", self.password),
        ]

    def answers(self) -> bool:
        return listens(HOST, self.port)
