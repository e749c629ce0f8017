"""Import paths of an earlier version, in a user's settings and code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.settings import Settings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

import larmspider
from larmspider import settings as ours
from larmspider.workdir.manifest import files_of_others
from tests.support.crawling import FAST, scrapy
from tests.support.servers.scripted import Reply, ScriptedServer

SINGLE = {
    "SCHEDULER": "larmspider.frontier.scheduler.FrontierScheduler",
    "ITEM_PROCESSOR": "larmspider.pipelines.chain.StorageChain",
    "LOG_FORMATTER": "larmspider.log_formatter.LarmLogFormatter",
    "STATS_CLASS": "larmspider.stats_collector.LarmStats",
}
LISTED = {
    "larmspider.middlewares.seen.SeenFilter": "SPIDER_MIDDLEWARES",
    "larmspider.middlewares.answers.AnswersMiddleware": "DOWNLOADER_MIDDLEWARES",
    "larmspider.extensions.monitor.MonitorExtension": "EXTENSIONS",
    "larmspider.extensions.allocator.AllocatorExtension": "EXTENSIONS",
    "larmspider.extensions.garbage.GarbageExtension": "EXTENSIONS",
    "larmspider.extensions.totals.TotalsExtension": "EXTENSIONS",
    "larmspider.extensions.operator.OperatorExtension": "EXTENSIONS",
    "larmspider.extensions.web.WebExtension": "EXTENSIONS",
}
"""What settings.py named in another place."""


@pytest.fixture(autouse=True)
def not_imported_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a new process."""
    for name in larmspider.MOVED:
        monkeypatch.delitem(sys.modules, f"larmspider.{name}", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # not as errors: only what a test looks at
        yield


def ordered(settings: Settings, name: str) -> dict[str, float]:
    """The components that are on, by their path now."""
    listed = settings.get_component_priority_dict_with_base(name)
    return {
        global_object_name(load_object(path)): listed[path] for path in build_component_list(listed)
    }


def with_ours(**more: object) -> Settings:
    """As a settings.py that begins with ``from larmspider.settings import *``."""
    settings = Settings()
    settings.setmodule(ours, priority="project")
    settings.setdict(more, priority="cmdline")
    return settings


@pytest.mark.parametrize("name", SINGLE)
def test_one_component(name: str) -> None:
    """Acts as the new path, and warns once, naming both."""
    new = load_object(getattr(ours, name))
    with pytest.warns(ScrapyDeprecationWarning) as told:
        assert [load_object(SINGLE[name]) for _ in range(2)] == [new] * 2
    [warning] = [str(warning.message) for warning in told]
    assert warning.startswith(f"{SINGLE[name]} is deprecated, use larmspider.")
    assert load_object(warning.rpartition(" ")[2]) is new


@pytest.mark.parametrize("path", LISTED)
def test_a_listed_component(path: str) -> None:
    """Alone; turned off and moved beside the new path that the default brings."""
    name = LISTED[path]
    before = ordered(with_ours(), name)
    with pytest.warns(ScrapyDeprecationWarning, match=path) as told:
        new = global_object_name(load_object(path))
    assert ordered(Settings({name: {path: 7}}), name)[new] == 7
    off = ordered(with_ours(**{name: getattr(ours, name) | {path: None}}), name)
    moved = ordered(with_ours(**{name: getattr(ours, name) | {path: 7}}), name)
    assert len(told) == 1
    assert off == {key: order for key, order in before.items() if key != new}
    assert moved == before | {new: 7}


def test_files_of_components() -> None:
    """What starts over deletes the same files by either path."""
    old = with_ours(**SINGLE)
    for path, name in LISTED.items():
        order = next(v for k, v in getattr(ours, name).items() if k.endswith(path.split(".")[-1]))
        old.set(name, {k: v for k, v in old[name].items() if k not in LISTED} | {path: order})
    with pytest.warns(ScrapyDeprecationWarning):
        files = files_of_others(old)
    assert files == files_of_others(with_ours())


def test_every_moved_module_is_there() -> None:
    for new in larmspider.MOVED.values():
        import_module(f"larmspider.{new}")


def test_what_is_in_no_module_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError):
        load_object("larmspider.extensions.web.views.Home")
    with pytest.raises(NameError):
        load_object("larmspider.extensions.web.Home")


def test_code_may_import_them() -> None:
    from larmspider.crawl.worker_dirs import open_crawl

    with pytest.warns(ScrapyDeprecationWarning, match=r"crawl_shards\.open_crawl.*worker_dirs"):
        from larmspider.crawl_shards import open_crawl as old
    assert old is open_crawl


OF_A_USER = f"""
from larmspider.settings import *

SCHEDULER = {SINGLE["SCHEDULER"]!r}
ITEM_PROCESSOR = {SINGLE["ITEM_PROCESSOR"]!r}
LOG_FORMATTER = {SINGLE["LOG_FORMATTER"]!r}
STATS_CLASS = {SINGLE["STATS_CLASS"]!r}
EXTENSIONS["larmspider.extensions.web.WebExtension"] = None
EXTENSIONS["larmspider.extensions.monitor.MonitorExtension"] = None
SPIDER_MIDDLEWARES["larmspider.middlewares.seen.SeenFilter"] = None
del DOWNLOADER_MIDDLEWARES["larmspider.middlewares.fetch_outcome.AnswersMiddleware"]
DOWNLOADER_MIDDLEWARES["larmspider.middlewares.answers.AnswersMiddleware"] = 550
"""


@pytest.mark.parametrize(
    "command",
    [["crawl"], pytest.param(["workers", "-n", "1"], marks=pytest.mark.acceptance)],
    ids=lambda words: words[0],
)
def test_a_crawl_with_settings_of_an_earlier_version(
    command: list[str], scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """What is turned off is off, the rest works, and `scrapy explain` goes by the same filters."""
    server = scripted_server({"*": lambda _: Reply(body=b"text")})
    (tmp_path / "earlier.py").write_text(OF_A_USER)
    given = [f"-s{name}={value}" for name, value in FAST.items() if name != "LARM_WEB"]
    ran = scrapy(
        *command, "intranet", "-a", f"start={server.url('/')}", *given,
        cwd=tmp_path, settings_module="earlier",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    [log] = [*tmp_path.glob("crawl/*/worker.log")] or [None]
    said = log.read_text() if log else ran.err
    for path in ("larmspider.extensions.web.WebExtension", SINGLE["SCHEDULER"]):
        assert said.count(f"{path} is deprecated") == 1
    assert "Web pages" not in said
    assert not [*tmp_path.glob("crawl/**/Monitor.log")]
    told = scrapy("explain", server.url("/"), cwd=tmp_path, settings_module="earlier")
    assert "other filters" not in told.out + told.err
    assert told.status == 0, told.err
