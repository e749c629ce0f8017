"""The egg holds the whole package, and the package runs from it, zipped as it is."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.support.crawling import PROJECT, Ran
from tests.support.servers.scripted import ScriptedServer

pytestmark = pytest.mark.acceptance

PACKAGE = PROJECT / "larmspider"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has no checkout installed, whatever this one has."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


def run(python: Path, egg: Path, cwd: Path, *command: str) -> Ran:
    """Python with the egg and the dependencies on its path."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(egg), sysconfig.get_path("purelib")]),
        "SCRAPY_SETTINGS_MODULE": "larmspider.settings",
        "PYTHONWARNINGS": "default",
    }
    done = subprocess.run(
        [str(python), *command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_the_egg_has_every_file_of_the_package_and_nothing_else(egg):
    """Modules and data; a template or a script that is added later too."""
    there = {
        str(path.relative_to(PROJECT))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(egg) as archive:
        packed = {name for name in archive.namelist() if "__pycache__" not in name}
    assert {name for name in packed if not name.startswith("EGG-INFO/")} == there


def test_the_egg_says_where_its_settings_are(egg):
    """scrapyd reads the entry point."""
    with zipfile.ZipFile(egg) as archive:
        entries = archive.read("EGG-INFO/entry_points.txt").decode()
    found = ConfigParser()
    found.read_string(entries)
    assert dict(found["scrapy"]) == {"settings": "larmspider.settings"}


def test_the_requirements_are_those_of_a_node(egg):
    """All dependencies and scrapyd, and nothing that only tests need."""
    lines = (egg.parent / "requirements.txt").read_text("utf-8").splitlines()
    names = {line.split("<")[0].split(">")[0].split("[")[0] for line in lines}
    assert {"scrapy", "lmdb", "scrapyd", "setuptools", "numpy"} <= names
    assert not {"pytest", "ruff", "mypy", "matplotlib", "larmspider"} & names


def test_building_leaves_nothing_in_the_checkout(egg):
    """Neither build/ nor dist/, which a later build would take for its own."""
    assert not (PROJECT / "build").exists()


def test_no_module_looks_for_its_own_file():
    """There is none in an egg; importlib.resources reads data from both."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            named = getattr(node, "id", getattr(node, "attr", None))
            assert named not in ("__file__", "getsourcefile", "getsource"), f"{path}:{node.lineno}"


def test_every_module_can_be_imported_from_the_egg(python, egg, tmp_path):
    with zipfile.ZipFile(egg) as archive:
        modules = [
            name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for name in archive.namelist()
            if name.endswith(".py")
        ]
    program = f"""
import importlib
for name in {modules!r}:
    module = importlib.import_module(name)
    assert {str(egg)!r} in module.__file__, module.__file__
print({len(modules)})
"""
    ran = run(python, egg, tmp_path, "-c", program)
    assert (ran.status, ran.out) == (0, f"{len(modules)}\n"), ran.err


def test_a_crawl_from_the_egg_reads_large_documents_and_checks_patterns(
    python, egg, tmp_path, scripted_server: Callable[..., ScriptedServer]
):
    """Both in processes of their own, which have to find the package."""
    large = "<title>large</title>" + "".join(f"<a href=/p/{n}>{n}</a>" for n in range(20_000))
    site = scripted_server({"/": large})
    ran = run(
        python, egg, tmp_path, "-m", "scrapy", "crawl", "intranet",
        "-a", f"start={site.url()}", "-a", rf"restrict={site.url()}(?!private).*",
        "-s", "LARM_MAX_PAGES=1", "-s", "DOWNLOAD_DELAY=0",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    links = (tmp_path / "crawl" / "links.log").read_text("utf-8").splitlines()
    assert len(links) == 20_000
    assert "Stored without links" not in ran.err
    explained = run(python, egg, tmp_path, "-m", "scrapy", "explain", site.url("/p/?C=N;O=D"))
    assert "known path" in explained.out, explained.err  # of known_paths.txt


def test_a_slow_pattern_is_refused_from_the_egg_too(python, egg, tmp_path):
    ran = run(
        python, egg, tmp_path, "-m", "scrapy", "crawl", "intranet",
        "-a", "start=http://h.invalid/", "-a", r"restrict=http://h\.invalid/(a+)+(?!b)x",
    )  # fmt: skip
    assert ran.status == 2
    assert "backtrack" in ran.err or "nested repetition" in ran.err


def test_documents_are_read_although_the_egg_was_deleted_or_replaced(python, egg, tmp_path):
    """delversion.json does so while a job runs; its second process is started when it is needed."""
    mine = tmp_path / "mine.egg"
    shutil.copyfile(egg, mine)
    program = """
import asyncio, sys
from pathlib import Path

import pytest
from larmspider.extraction.processes.process import ExtractionProcess
reader = ExtractionProcess(30, 1 << 30)
Path(sys.argv[1]).write_bytes(b"another egg")
for _ in range(2):
    page = asyncio.run(reader.read("text/html", b"<title>T</title>", "http://h/", "text/html"))
    reader.end()
    Path(sys.argv[1]).unlink(missing_ok=True)
    print(page.title)
reader.close()
"""
    ran = run(python, mine, tmp_path, "-c", program, str(mine))
    assert (ran.status, ran.out) == (0, "T\nT\n"), ran.err
