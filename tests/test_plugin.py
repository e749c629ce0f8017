"""larmspider/plugin.py, and the plugin that docs/internals/plugins.md shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import larmspider.plugins
from larmspider import plugin
from larmspider.errors import ConfigError
from tests.support.crawling import PROJECT, crawl
from tests.support.servers.scripted import ScriptedServer

EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$",
    (PROJECT / "docs/internals/plugins.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
"""The folder's docstring, the store, the settings."""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder beside larmspider/plugins/ whose folders are plugins, too."""
    paths = [*larmspider.plugins.__path__, str(tmp_path)]
    monkeypatch.setattr(larmspider.plugins, "__path__", paths)
    return tmp_path


def test_a_module_is_loaded_by_name() -> None:
    assert plugin.load("versions.versions").__name__ == "larmspider.plugins.versions.versions"


def test_a_package_that_is_missing_is_named_with_its_extra(folder: Path) -> None:
    (folder / "tides.py").write_text("import no_such_package.inner")
    with pytest.raises(ConfigError) as error:
        plugin.load("tides")
    told = "the plugin tides needs no_such_package: pip install 'larmspider[tides]'"
    assert str(error.value) == told


def test_a_plugin_that_is_not_there(folder: Path) -> None:
    with pytest.raises(ConfigError, match="the plugin harbours is not installed"):
        plugin.load("harbours")


def test_a_plugin_that_is_broken(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Named it is an error; otherwise it is left out, and the log says so once."""
    (folder / "moorings.py").write_text("1 / 0")
    told = "the plugin moorings cannot be imported: ZeroDivisionError: division by zero"
    with pytest.raises(ConfigError, match=told):
        plugin.load("moorings")
    assert [plugin.find("moorings") for _ in range(2)] == [None, None]
    assert caplog.messages == [f"{told}; the rest works without it"]
    with pytest.raises(ConfigError, match=told):
        plugin.check([object, "scrapy.no.Such", "larmspider.plugins.moorings.Store"])


def test_the_plugin_of_the_guide_works_in_a_crawl(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    (tmp_path / "languages").mkdir()
    for name, code in zip(("__init__", "store"), EXAMPLES, strict=False):
        (tmp_path / "languages" / f"{name}.py").write_text(code)
    beside = f"import larmspider.plugins\nlarmspider.plugins.__path__.append({str(tmp_path)!r})\n"
    (tmp_path / "guide_settings.py").write_text(beside + EXAMPLES[2])
    html = {"Content-Type": "text/html"}
    server = scripted_server({"/": (200, html, b"<html lang=de>a")})
    ran = crawl(server.url("/"), tmp_path, settings_module="guide_settings")
    assert ran.status == 0, ran.err
    assert (tmp_path / "crawl/languages.log").read_text() == f"{server.url('/')}\tde\n"
