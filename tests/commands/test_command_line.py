"""The console script ``larmspider``, and its pages of documentation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import scrapy as scrapys

from larmspider import __version__
from larmspider.command_line import HIDDEN, find, names, overview, run
from larmspider.commands.help import found, read_pages
from larmspider.errors import ConfigError
from tests.support.crawling import scrapy


def test_lists_each_command_under_its_own_name() -> None:
    lines = list(overview())
    assert lines[0].startswith(f"larmspider {__version__}")
    listed = {line.split()[0] for line in lines if line.startswith("  ")}
    assert listed == set(names()) - set(HIDDEN)
    assert {"crawl", "search", "help", "serve"} <= listed


def test_finds_ours_before_scrapys() -> None:
    modules = {name: type(find(name)).__module__ for name in ("crawl", "genspider")}
    assert modules == {
        "crawl": "larmspider.commands.crawl",
        "genspider": "scrapy.commands.genspider",
    }
    assert find("../crawl") is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serach"], "unknown command 'serach'; did you mean search"),
        (["--frobnicate"], "unknown option --frobnicate: expected a command first"),
    ],
)
def test_an_unknown_command_is_an_error_of_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert said in shown.err


def test_says_its_version_and_scrapys(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["--version"])
    assert capsys.readouterr().out == f"larmspider {__version__} (Scrapy {scrapys.__version__})\n"


def test_explains_a_subject_and_a_section() -> None:
    pages = read_pages()
    assert found(pages, "refresh") == found(pages, "docs/refresh.md") == pages["refresh"]
    section = found(pages, "redis", "rebu")
    assert section.startswith("## Rebuild\n")
    assert section.count("\n## ") == 0
    assert section == found(pages, "docs/redis.md#rebuild")
    assert found(pages, "LARM_DIR").startswith("| `LARM_DIR` |")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("refrsh",), "did you mean refresh"),
        (("refresh", "no such heading"), "no heading 'no such heading': expected one of"),
        (("LARM_NO_SUCH",), "no setting LARM_NO_SUCH"),
        (("../README",), "no page '../readme'"),
    ],
)
def test_an_unknown_subject_is_an_error(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        found(read_pages(), *words)


def test_help_is_a_command(tmp_path: Path) -> None:
    listed = scrapy("help", "--json", cwd=tmp_path)
    assert listed.status == 0, listed.err
    assert json.loads(listed.out)["refresh"] == "Keeping a crawl current"
