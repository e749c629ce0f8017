"""Sends requests to the API of a server: `larmspider ctl` (commands/ctl.py).

answer = await ask(access, "POST", "/crawls/wiki/start")        # ApiError
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from larmspider.errors import ConfigError, CrawlDirError
from larmspider.server.api.api import BASE
from larmspider.status.crawl_workers import own_access

SERVER_FILE = "server.json"
TOKEN = "LARMSPIDER_TOKEN"  # noqa: S105 - the name of a variable
_SECONDS = 120.0  # a preview takes 75
_MAX_BYTES = 10_000_000


class Address(NamedTuple):
    """``token`` is "" for a search that is open."""

    url: str
    token: str


def address_of(home: Path, url: str) -> Address:
    """The server of a home, whose own user needs no token; or the server at ``url``, with the token
    in the environment. Raises ConfigError, CrawlDirError."""
    token = os.environ.get(TOKEN, "")
    if url:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"--url {url}: expected an address such as http://127.0.0.1:6080/")
        if not token:
            raise ConfigError(f"--url needs a token: set the environment variable {TOKEN}")
        return Address(url.rstrip("/"), token)
    found = own_access(home, SERVER_FILE)
    if found is None:
        raise CrawlDirError(
            f"no server runs on {home}, or it is another user's: start larmspider server --home"
            f" {home}, or name it by --url"
        )
    return Address(found.url.rstrip("/"), found.key)


class WaitError(ConfigError):
    """The server takes nothing for a number of seconds."""

    def __init__(self, text: str, seconds: int) -> None:
        super().__init__(text)
        self.seconds = seconds


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body, of at most 10 MB."""
    body = bytearray()
    while len(body) < _MAX_BYTES and (piece := await response.content.read(1 << 16)):
        body += piece
    return bytes(body)


async def ask(
    address: Address,
    method: str,
    path: str,
    body: Any = None,
    *,
    data: bytes | None = None,
    kind: str = "",
    **query: str,
) -> dict[str, Any]:
    """Send a request, and return the answer. ``data``: a body of the type ``kind`` instead of JSON.
    Raises ConfigError if the server refuses the request, WaitError if it accepts no request now,
    CrawlDirError if it cannot be reached."""
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    headers = {"Content-Type": kind} if kind else {}
    if address.token:
        headers["Authorization"] = f"Bearer {address.token}"
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
            session.request(
                method,
                address.url + BASE + path,
                json=body,
                data=data,
                params=query or None,
                headers=headers,
                allow_redirects=False,
            ) as response,
        ):
            found = json.loads(await _read(response))
            if response.status == 429:
                secs = response.headers.get("Retry-After", "1")
                raise WaitError(str(found["error"]), int(secs) if secs.isdecimal() else 1)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise CrawlDirError(f"{address.url} cannot be reached: {error}") from None
    except (ValueError, RecursionError):
        raise CrawlDirError(f"{address.url} answers, but is not a larmspider server") from None
    if not isinstance(found, dict):
        raise CrawlDirError(f"{address.url} answers, but is not a larmspider server")
    if "error" in found and "status" not in found:
        problems = [one for one in found.get("problems", ()) if one["key"]]  # others: the file
        told = "; ".join(f"{one['key']}: {one['text']}" for one in problems)
        raise ConfigError(told or str(found["error"]))
    return found
