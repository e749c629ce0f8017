"""The commands in any directory, and crawls that a program begins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.command import LarmCommand
from larmspider.commands import main
from larmspider.commands.explain import Command as Explain
from larmspider.commands.search import Command as Search
from larmspider.commands.verify import Command as Verify
from larmspider.errors import ConfigError
from tests.support.crawling import PROJECT, scrapy
from tests.support.servers.scripted import ScriptedServer

LARMSPIDER = str(Path(sys.executable).with_name("larmspider"))
DOCS = (PROJECT / "docs" / "deploy.md").read_text("utf-8")
SECTION = DOCS[DOCS.index("## From a script") : DOCS.index("## Several crawls")]
SCRIPTS = re.findall(r"^ {4}import (?:.*\n(?=    |\n))+", SECTION, re.MULTILINE)


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"
    }
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=90, check=False
    )


@pytest.mark.parametrize(
    ("command", "args", "refused"),
    [
        (Search, ["vpn", "--hots=x"], "--hots=x"),
        (Search, ["-x", "vpn"], "-x"),
        (Search, ["vpn", "-draft"], ""),
        (Search, ["--", "--enable-shared", "-m"], ""),
        (Explain, ["http://h/", "-draft"], "-draft"),
        (Explain, ["http://h/"], ""),
    ],
)
def test_an_unknown_option_is_an_error(
    command: type[LarmCommand], args: list[str], refused: str
) -> None:
    """It is no word of a query; the text behind -- is."""
    if not refused:
        command()._refuse_unknown_options(args)
        return
    with pytest.raises(ConfigError, match=f"^unknown option {refused} "):
        command()._refuse_unknown_options(args)


def test_ctrl_c_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Verify, "answer", interrupted)
    command = Verify()
    command.settings = Settings()
    command.run([], Namespace(dir=None, shard=[]))
    assert command.exitcode == 1
    assert capsys.readouterr().err == "scrapy verify: stopped; the same command starts over\n"


@pytest.mark.acceptance
def test_larmspider_has_our_commands_anywhere(tmp_path: Path) -> None:
    """Also where another project lies."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = theirs.settings\n")
    listed = run(LARMSPIDER, cwd=tmp_path)
    for name in ("crawl", "search", "explain", "page", "hosts", "links", "report", "workers"):
        assert re.search(rf"^  {name} ", listed.stdout, re.MULTILINE), listed
    refused = run(LARMSPIDER, "search", "vpn", "--hots=x", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "larmspider search: unknown option --hots=x" in refused.stderr


def test_settings_that_are_not_there_are_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module of one's own is not found for lying in the folder that one is in."""
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "nowhere.mine")
    monkeypatch.setattr(sys, "argv", ["larmspider", "outbox"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "larmspider: SCRAPY_SETTINGS_MODULE=nowhere.mine: there is no such module; PYTHONPATH=DIR"
        " names the folder that it is in\n"
    )


@pytest.mark.acceptance
@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_a_program_crawls_as_shown(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path, number: int
) -> None:
    """Each script of docs/deploy.md."""
    server = scripted_server({"/": "<a href=/a>a</a>", "/a": "<title>A</title>needle"})
    script = textwrap.dedent(SCRIPTS[number]).replace("http://wiki.example/", server.url("/"))
    (tmp_path / "script.py").write_text(script)
    ran = run(sys.executable, "script.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    directory = next(path.parent for path in tmp_path.glob("*/crawl.json"))
    found = scrapy("search", "needle", "--json", "--dir", str(directory), cwd=tmp_path)
    assert found.json["total"] == 1
    assert "CrawlerProcess" not in script or ran.stdout.startswith("0\nended       finished")


def test_two_scripts_are_shown() -> None:
    assert len(SCRIPTS) == 2


@pytest.mark.acceptance
def test_bench_runs(tmp_path: Path) -> None:
    """Scrapy's own benchmark, on its own server; LARM_DIR is left alone."""
    ran = scrapy("bench", "-s", "CLOSESPIDER_TIMEOUT=1", cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert "'finish_reason': 'closespider_timeout'" in ran.err
    assert int(re.findall(r"'downloader/response_status_count/200': (\d+)", ran.err)[0]) > 10
    assert list(tmp_path.iterdir()) == []
