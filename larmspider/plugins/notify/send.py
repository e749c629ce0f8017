"""Sends pending decisions to LARM_NOTIFY: a command, or the URL of a webhook."""

from __future__ import annotations

import asyncio
import json
import shlex
import urllib.request
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any

from larmspider.errors import ConfigError
from larmspider.extensions.notify import TIMEOUT_SECS
from larmspider.pipelines.outbox.replies import reply_within
from larmspider.redaction import keep_secrets_of

if TYPE_CHECKING:
    from larmspider.learned.deletes.notes import Notice


def check(target: str) -> None:
    """Raise ConfigError for a command that cannot be split into words."""
    try:
        shlex.split(target)
    except ValueError as error:
        raise ConfigError(  # a command or a URL may hold a secret
            f"LARM_NOTIFY={target.split()[0] if '://' not in target else 'http...'} ...: expected a"
            f" command, or a URL with http or https: {error}"
        ) from None
    keep_secrets_of("LARM_NOTIFY", target)


async def send(target: str, notice: Notice) -> None:
    """Raises OSError, ValueError, HTTPException or LarmspiderError."""
    if target.startswith(("http://", "https://")):
        await asyncio.to_thread(_post, target, notice)
    else:
        await _run(target, notice)


def _post(url: str, notice: Notice) -> None:
    body = json.dumps(notice._asdict()).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - http or https
    opener = urllib.request.build_opener(_NoRedirect, _Http, _Https)
    with opener.open(request, timeout=TIMEOUT_SECS):
        pass  # its answer is not read


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: it would be followed without the message, and with the secrets of the
    URL."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Limited(HTTPConnection):
    """Limits the time of an answer, even a slow one: the process waits for this thread."""

    def getresponse(self) -> HTTPResponse:
        with reply_within(self, TIMEOUT_SECS):
            return super().getresponse()


class _LimitedTls(_Limited, HTTPSConnection): ...


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_Limited, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_LimitedTls, req)


async def _run(command: str, notice: Notice) -> None:
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        with suppress(ConnectionError):  # it reads nothing
            process.stdin.write(notice.message.encode() + b"\n")
            await process.stdin.drain()
        process.stdin.close()
        said = b""
        while part := await process.stderr.read(65_536):
            said = said or part[:2_000]
        await process.wait()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        name = shlex.split(command)[0]  # its arguments may hold a secret
        raise OSError(f"{name}: status {process.returncode}: {said.decode(errors='replace')}")
