"""The core crawls and searches without any plugin, and without any package of an extra."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider.plugin import PACKAGE
from tests.support.crawling import FAST, PROJECT, Ran, environment
from tests.support.servers.scripted import ScriptedServer

PLUGINS = sorted(path.parent.name for path in (PROJECT / "larmspider/plugins").glob("*/*.py"))
PACKAGES = {
    "boto3", "botocore", "chardetng_py", "confluent_kafka", "isal", "joserfc", "ldap3",
    "imapclient", "matplotlib", "mcp", "nats", "obstore", "playwright", "psycopg", "pyarrow",
    "pyasn1", "scrapyd", "smbclient", "smbprotocol", "spnego", "warcio",
}  # fmt: skip
"""Top modules of the extras' packages."""
SETTINGS = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        if {condition}:
            {then}
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Without, sys.meta_path)
from larmspider.settings import *
"""
NO_PLUGIN = SETTINGS.format(
    condition=f"name.startswith('{PACKAGE}.')", then="raise RuntimeError('broken on purpose')"
)
NO_EXTRA = SETTINGS.format(condition=f"name.partition('.')[0] in {PACKAGES}", then="return None")
SITES = '[[site]]\nhosts = "127.0.0.1*"\nrender = true\n'
HTML = {"Content-Type": "text/html"}
PAGES = {
    "/": (200, HTML, b"<title>Harbour</title><a href=/tides>tides</a>"),
    "/tides": (200, HTML, b"<title>Tides</title>High water at noon."),
}


def scrapy(*arguments: str, cwd: Path) -> Ran:
    """In a process of its own: the forked ones have imported everything."""
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=cwd, env=environment(cwd, "without"), capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def crawl(url: str, cwd: Path, **settings: str) -> Ran:
    given = [f"-s{name}={value}" for name, value in (FAST | settings).items()]
    return scrapy("crawl", "intranet", "-a", f"start={url}", *given, cwd=cwd)


@pytest.mark.parametrize("settings", [NO_PLUGIN, NO_EXTRA], ids=["plugins", "extras"])
def test_a_crawl_and_a_search_without(
    settings: str, scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """With the web pages, which leave out what plugins offer; a crawl is verified, too."""
    (tmp_path / "without.py").write_text(settings)
    ran = crawl(scripted_server(PAGES).url("/"), tmp_path, LARM_WEB="yes", LARM_WEB_PORT="0")
    assert ran.status == 0, ran.err
    assert "Traceback" not in ran.err
    found = scrapy("search", "water", "--json", cwd=tmp_path)
    assert [hit["title"] for hit in found.json["hits"]] == ["Tides"], found.err
    for command in (["hosts"], ["explain", "http://h/"], ["verify"], ["list"], ["--help"]):
        done = scrapy(*command, cwd=tmp_path)
        assert done.status == 0, done.err


def test_a_broken_plugin_is_logged_once(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    (tmp_path / "without.py").write_text(NO_PLUGIN)
    ran = crawl(scripted_server(PAGES).url("/"), tmp_path, LARM_WEB="yes", LARM_WEB_PORT="0")
    line = "the plugin mirrors cannot be imported: RuntimeError: broken on purpose"
    assert ran.err.count(line) == 1


RECEIVERS = {name: f"{PACKAGE}.{name}.receiver" for name in ("dynamodb", "objects", "streams")}
STORES = {
    **RECEIVERS, "opensearch": f"{PACKAGE}.opensearch.receiver", "warc": f"{PACKAGE}.warc.pipeline"
}  # fmt: skip
CLASSES = {
    "dynamodb": "DynamoDbReceiver", "objects": "ObjectsReceiver", "streams": "StreamReceiver",
    "opensearch": "OpenSearchReceiver", "warc": "WarcPipeline",
}  # fmt: skip


def listed(name: str) -> str:
    return json.dumps({f"{STORES[name]}.{CLASSES[name]}": 600})


@pytest.mark.parametrize(
    ("plugin", "settings"),
    [
        *((name, {"ITEM_PIPELINES": listed(name)}) for name in STORES),
        ("notify", {"LARM_NOTIFY": "true"}),
        ("ocr", {"LARM_OCR": "eng"}),
        ("render", {"LARM_SITES_FILE": "sites.toml"}),
        ("warc", {"LARM_START": "file:///srv/a.warc.gz"}),
    ],
)
def test_a_broken_plugin_that_is_named_is_one_line(
    plugin: str, settings: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "without.py").write_text(NO_PLUGIN)
    (tmp_path / "sites.toml").write_text(SITES)
    (tmp_path / "sites.toml").chmod(0o600)
    start = settings.pop("LARM_START", "http://127.0.0.1:9/")
    ran = crawl(start, tmp_path, **settings)
    assert ran.status == 2, ran.err
    line = f"the plugin {plugin} cannot be imported: RuntimeError: broken on purpose"
    assert [line in one for one in ran.err.splitlines() if "scrapy crawl:" in one] == [True]
    assert "Traceback" not in ran.err
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize(
    ("extra", "settings"),
    [
        ("dynamodb", {"ITEM_PIPELINES": listed("dynamodb"), "LARM_DYNAMODB_TABLE": "pages"}),
        ("objects", {"ITEM_PIPELINES": listed("objects"), "LARM_OBJECTS_URL": "s3://b"}),
        ("nats", {"ITEM_PIPELINES": listed("streams"), "LARM_STREAM_URL": "nats://127.0.0.1:9"}),
        ("kafka", {"ITEM_PIPELINES": listed("streams"), "LARM_STREAM_URL": "kafka://127.0.0.1:9"}),
        ("render", {"LARM_SITES_FILE": "sites.toml"}),
    ],
)
def test_an_extra_that_is_not_installed_is_one_line(
    extra: str, settings: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "without.py").write_text(NO_EXTRA)
    (tmp_path / "sites.toml").write_text(SITES)
    (tmp_path / "sites.toml").chmod(0o600)
    ran = crawl("http://127.0.0.1:9/", tmp_path, **settings)
    assert ran.status == 2, ran.err
    [said] = [one for one in ran.err.splitlines() if "scrapy crawl:" in one]
    assert f"pip install 'larmspider[{extra}]'" in said
    assert "Traceback" not in ran.err


def test_commands_name_what_is_missing(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    (tmp_path / "without.py").write_text(NO_EXTRA)
    url = scripted_server(PAGES).url("/")
    assert crawl(url, tmp_path).status == 0
    (tmp_path / "a.warc").write_bytes(b"WARC/1.1\r\n\r\n")
    for command, extra in (
        (["export", "pages", "a.parquet"], "parquet"),
        (["import", "a.warc"], "warc"),
        (["mcp"], "mcp"),
    ):
        done = scrapy(*command, cwd=tmp_path)
        assert (done.status, f"pip install 'larmspider[{extra}]'" in done.err) == (2, True), done
    (tmp_path / "without.py").write_text(NO_PLUGIN)
    for command, plugin in (
        (["export", "pages", "a.csv"], "export"),
        (["import", "a.warc"], "warc"),
        (["page", url, "--versions"], "versions"),
        (["hosts", "--mirrors"], "mirrors"),
    ):
        done = scrapy(*command, cwd=tmp_path)
        assert (done.status, done.out) == (2, ""), done
        assert f"scrapy {command[0]}: the plugin {plugin} cannot be imported" in done.err


def test_every_package_of_an_extra_is_refused_here() -> None:
    """This file thereby notices new extras."""
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    needed = {
        need.partition(">")[0].partition("[")[0].replace("-", "_")
        for name, needs in extras.items()
        if name not in ("core-test", "deploy", "dev", "sevenzip", "tika", "test")
        for need in needs
    }
    named = {"nats_py": "nats"}
    assert {named.get(one, one) for one in needed} - {"larmspider"} <= PACKAGES


def test_every_plugin_has_a_row() -> None:
    """In docs/internals/plugins.md."""
    text = (PROJECT / "docs/internals/plugins.md").read_text("utf-8")
    rows = "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    assert [name for name in dict.fromkeys(PLUGINS) if f"`{name}`" not in rows] == []
