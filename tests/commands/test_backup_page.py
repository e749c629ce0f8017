"""Each command of docs/backup.md, in the order of the page."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from backports import zstd

from tests.support.crawling import PROJECT
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.console import first_token, serving, until
from tests.support.web.crawling import endless

pytestmark = pytest.mark.acceptance
PAGE = (PROJECT / "docs" / "backup.md").read_text("utf-8")
COMMANDS = re.findall(r"^    (\S.*)$", PAGE, re.MULTILINE)
ENDLESS = "[settings]\nLARM_TRAPS = 'off'\n"
SERVES = re.compile(r"larmspider server --home \S+$")


def shell(command: str, folder: Path) -> str:
    """The output of a command of the page; a server is stopped once it has said its address."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT)}
    environment.pop("SCRAPY_SETTINGS_MODULE", None)
    if SERVES.match(command):
        command = f"exec {command} --port 0"
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("http") and command.startswith("exec "):
                process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, f"{command}: {said}"
    return said


@contextmanager
def running_home(folder: Path, site: ScriptedServer) -> Iterator[None]:
    """A home whose server and crawl run, with a secret and a token."""
    with serving(folder, "--home", "larmspider-home") as server:
        server.token = first_token(server)
        secret = folder / "larmspider-home" / "secrets" / "wiki"
        secret.write_text("hosts: wiki.example\nswordfish\n")
        secret.chmod(0o600)
        crawl = f"seeds = ['{site.url('/')}']\n[limits]\ndelay = 0.1\n{ENDLESS}"
        (folder / "larmspider-home" / "crawls" / "wiki.toml").write_text(crawl)
        server.api("/crawls/wiki/start", "POST")
        log = folder / "larmspider-home" / "data" / "wiki" / "store.log"
        until(lambda: log.exists() and log.stat().st_size > 500, "pages are stored")
        (folder / "token").write_text(server.token)
        yield


def test_each_command_of_the_page(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """The backup of a home has neither secrets nor tokens; a new server on the restored home has
    the crawl, and continues it."""
    small = scripted_server({"/": "<title>Start</title>penguins"})
    site = scripted_server({"*": endless(), "/robots.txt": (404, {}, b"")})
    shell(f"larmspider crawl intranet -a start={small.url('/')} -s LARM_DIR=crawl", tmp_path)
    commands = [command.replace("http://wiki.example/", small.url("/")) for command in COMMANDS]
    assert len(commands) == 12
    home = commands.index("larmspider server --home larmspider-home backup home.tar.zst")
    halt = commands.index("larmspider server --home larmspider-home halt")
    for command in commands[:home]:
        shell(command, tmp_path)
    with running_home(tmp_path, site):
        said = shell(commands[home], tmp_path)
        assert "secrets is left out" in said
        assert "1 crawl," in said
    for command in commands[home + 1 : halt]:
        said = shell(command, tmp_path)
        if SERVES.match(command):
            assert "new-home: 1 crawls" in said
    kept = zstd.decompress((tmp_path / "home.tar.zst").read_bytes())
    assert b"swordfish" not in kept
    assert (tmp_path / "token").read_bytes() not in kept
    assert b"secrets/" not in kept
    assert (tmp_path / "new-home" / "secrets" / "wiki").read_text().endswith("swordfish\n")
    assert shell(commands[halt], tmp_path) == "1 crawl ended\n"
    assert "still running" not in shell(commands[halt + 1], tmp_path)
    shell("larmspider verify --dir larmspider-home/data/wiki", tmp_path)
