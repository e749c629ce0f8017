"""larmspider mcp: lets assistants search a server, by the Model Context Protocol."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from larmspider import plugin
from larmspider.command import LarmCommand
from larmspider.errors import ConfigError

MAX_TOKEN = 1_000
"""Characters of a token."""


class Command(LarmCommand):
    of_a_crawl = False

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Let assistants search a larmspider server (Model Context Protocol)"

    def long_desc(self) -> str:
        return (
            "Speaks the Model Context Protocol on standard input and output, or over HTTP, with the"
            " tools search and read. It asks a larmspider server with a token: LARMSPIDER_TOKEN or"
            " --token-file. Assistants see what the token's owner may see"
            " (docs/search-api.md)."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--url",
            default="http://127.0.0.1:6080/",
            help="the larmspider server (default: %(default)s)",
        )
        parser.add_argument("--token-file", metavar="FILE", help="a file that holds the token")
        parser.add_argument(
            "--http", metavar="ADDRESS:PORT", help="over HTTP: 127.0.0.1:6090; port 0: any"
        )
        parser.add_argument(
            "--name",
            metavar="HOST",
            action="append",
            default=[],
            help="with --http: a further name of this machine in Host headers; repeatable",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise ConfigError(f"{args[0][:60]}: expected options only")
        if not opts.url.startswith(("http://", "https://")):
            raise ConfigError(
                f"--url {opts.url[:60]}: expected an address such as http://127.0.0.1:6080/"
            )
        if opts.name and opts.http is None:
            raise ConfigError("--name: expected together with --http")
        token = _token(opts.token_file)
        mcp = plugin.load("mcp.server")
        place = None if opts.http is None else mcp.Place.of(opts.http)
        from larmspider.server.api.client import Address

        server = mcp.make(Address(opts.url.rstrip("/"), token))
        if place is None:
            asyncio.run(server.run_stdio_async())
        else:
            with suppress(KeyboardInterrupt):  # uvicorn raises it again, after its end
                asyncio.run(mcp.serve_http(server, place, _say, opts.name))


def _say(text: str) -> None:
    """Standard output is for the protocol."""
    print(f"larmspider mcp: {text}", file=sys.stderr, flush=True)


def _token(file: str | None) -> str:
    """The token; empty for an open search. Raises ConfigError, which does not show the token."""
    if file is None:
        token, where = os.environ.get("LARMSPIDER_TOKEN", ""), "LARMSPIDER_TOKEN"
    else:
        where = f"--token-file {file}"
        try:
            with Path(file).open("rb") as opened:
                token = opened.read(MAX_TOKEN + 2).decode().strip()
        except OSError as error:
            raise ConfigError(f"{where}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{where}: expected a token alone") from None
        if not token:
            raise ConfigError(f"{where}: it is empty")
    if token and not (len(token) <= MAX_TOKEN and token.isascii() and token.isprintable()):
        raise ConfigError(f"{where}: expected a token of printable ASCII characters alone")
    return token
