"""The wheel that `make dist` builds, in bare Pythons, outside of the clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from larmspider import __version__
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.browser import Browser
from tests.support.web.first_hit import Stopwatch, first_hit

pytestmark = pytest.mark.acceptance
MOST_BYTES = 300_000_000
"""Of all files without byte code, pip and the second reader of documents."""
MOST_SECS = 180.0
NOT_COUNTED = ("iscc_tika", "pip", "setuptools", "pkg_resources", "_distutils_hack")
DEVELOPERS = {"pytest", "ruff", "mypy", "hypothesis", "scrapyd", "selenium", "twine"}


@pytest.fixture(scope="module")
def dist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with wheel and sdist, by the commands of `make dist`."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, checkout, cwd=folder)
    files = sorted(folder.iterdir())
    assert [path.name for path in files] == [
        f"larmspider-{__version__}-py3-none-any.whl",
        f"larmspider-{__version__}.tar.gz",
    ]
    run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=folder)
    return folder


def run(*command: object, cwd: Path, timeout: float = 300.0) -> str:
    """The output of a command in a plain environment."""
    kept = {"PATH", "HOME", "LANG", "PIP_CERT", "SSL_CERT_FILE", "PIP_FIND_LINKS", "PYENV_ROOT"}
    environment = {name: value for name, value in os.environ.items() if name in kept}
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def python_of(version: str) -> Path | None:
    """A Python of this machine that runs."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *root.glob(f"versions/{version}.*/bin/python3")]
    for path in filter(None, found):
        asked = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and asked.stdout.startswith(f"Python {version}."):
            return Path(path)
    return None


def test_the_sdist_has_what_the_wheel_is_built_from(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"setup.py", "README.md", "LICENSE", "docs/server.md", "larmspider/settings.py"} <= names


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_wheel_in_a_bare_python(
    version: str, dist: Path, scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Version, help, a first crawl, a search; the first start of the server to the first hit in the
    browser in under three minutes."""
    python = python_of(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    watch = Stopwatch()
    run(python, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    own = tmp_path / "venv" / "bin"
    wheel = next(dist.glob("*.whl"))
    run(own / "python", "-m", "pip", "install", "--no-compile", "--quiet", wheel, cwd=tmp_path)
    watch("install")
    sizes = sizes_in(next((tmp_path / "venv" / "lib").glob("python*/site-packages")))
    counted = sum(size for name, size in sizes.items() if not name.startswith(NOT_COUNTED))
    print(f"Python {version}: {counted / 1e6:.0f} MB")
    assert counted <= MOST_BYTES
    assert not DEVELOPERS & set(sizes)

    ours = own / "larmspider"
    said = run(ours, "--version", cwd=tmp_path)
    assert said.startswith(f"larmspider {__version__} (Scrapy 2."), said
    assert "  server" in run(ours, "help", cwd=tmp_path)
    assert "# The server" in run(ours, "help", "server", cwd=tmp_path)
    site = scripted_server({"/": "<title>Start</title>penguins <a href=/b>b</a>", "/b": "b"})
    run(ours, "crawl", "intranet", "-a", f"start={site.url('/')}", "-s", "DOWNLOAD_DELAY=0",
        cwd=tmp_path)  # fmt: skip
    assert "Start" in run(ours, "search", "penguins", cwd=tmp_path)
    first_start(ours, tmp_path, site.url("/"), watch)
    print(f"Python {version}: {watch}")
    assert watch.after_install < MOST_SECS


def sizes_in(folder: Path) -> Mapping[str, int]:
    """Bytes by package, without byte code."""
    found: dict[str, int] = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            name = path.relative_to(folder).parts[0]
            found[name] = found.get(name, 0) + path.stat().st_size
    return found


def first_start(larmspider: Path, folder: Path, seed: str, watch: Stopwatch) -> None:
    """The server, and New crawl in the browser."""
    watch("not counted")
    del watch.steps["not counted"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [larmspider, "server", "--port", "0"],
            cwd=folder, env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, stderr=log,
            text=True,
        )  # fmt: skip
    assert server.stdout is not None
    try:
        while not (line := server.stdout.readline()).startswith("http"):
            assert line, (folder / "log").read_text()
        watch("server")
        with Browser() as browser:
            first_hit(browser, line.strip(), seed, "penguins", watch)
    finally:
        server.terminate()
        assert server.wait(60) == 0
        server.stdout.close()
