"""Classes that have become plugins can be named by the path that they had."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from scrapy.settings import Settings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from larmspider import settings as ours
from larmspider.moved import MOVED
from tests.support.crawling import crawl
from tests.support.servers.scripted import ScriptedServer

CLASSES = {
    "larmspider.middlewares.render": "RenderMiddleware",
    "larmspider.pipelines.outbox.dynamodb": "DynamoDbReceiver",
    "larmspider.pipelines.outbox.objects": "ObjectsReceiver",
    "larmspider.pipelines.outbox.opensearch": "OpenSearchReceiver",
    "larmspider.pipelines.outbox.streams": "StreamReceiver",
    "larmspider.pipelines.warc": "WarcPipeline",
}
WARC = "larmspider.pipelines.warc.WarcPipeline"


@pytest.fixture(autouse=True)
def not_imported_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a new process."""
    for name in MOVED:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in MOVED:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("module", MOVED)
def test_the_old_path_is_the_same_class(module: str, caplog: pytest.LogCaptureFixture) -> None:
    """The log names the new path once."""
    name = CLASSES[module]
    new = getattr(import_module(MOVED[module]), name)
    with caplog.at_level(logging.WARNING):
        assert [load_object(f"{module}.{name}") for _ in range(2)] == [new] * 2
    assert caplog.messages == [
        f"{module}.{name} has moved: name {MOVED[module]}.{name} in its place"
    ]


def test_none_by_the_old_path_turns_a_component_off() -> None:
    settings = Settings()
    settings.setmodule(ours, priority="project")
    lines = ours.DOWNLOADER_MIDDLEWARES | {"larmspider.middlewares.render.RenderMiddleware": None}
    settings.set("DOWNLOADER_MIDDLEWARES", lines, priority="cmdline")
    listed = settings.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")
    names = [load_object(one).__name__ for one in build_component_list(listed)]
    assert "AnswersMiddleware" in names
    assert "RenderMiddleware" not in names


def test_modules_of_others_are_left_alone() -> None:
    """A project may have a module pipelines.warc of its own."""
    with pytest.raises(ModuleNotFoundError):
        import_module("pipelines.warc")


def test_a_crawl_that_names_the_old_path(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    url = scripted_server({"/": "<title>one</title>"}).url("/")
    stores = json.dumps(ours.ITEM_PIPELINES | {WARC: 250})
    for _ in range(2):
        ran = crawl(url, tmp_path, ITEM_PIPELINES=stores)
        assert ran.status == 0, ran.err
        assert ran.err.count(f"{WARC} has moved: name larmspider.plugins.warc.pipeline.") == 1
    assert [*(tmp_path / "crawl/warc").glob("*.warc.gz")]
