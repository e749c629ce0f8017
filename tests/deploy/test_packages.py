"""The Debian package and the container image, in a bare Debian: nothing is installed here."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

from tests.support.crawling import PROJECT
from tests.support.deploy.bare import (
    ARCHIVE,
    NEEDS_BARE_DEBIAN,
    WHEELS,
    BareDebian,
    Rooted,
    url_said,
)
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.browser import Browser
from tests.support.web.console import Running, first_token, until
from tests.support.web.crawling import endless
from tests.support.web.first_hit import Stopwatch, first_hit
from tests.support.web.serving import request

pytestmark = [pytest.mark.acceptance, NEEDS_BARE_DEBIAN]
Servers = Callable[..., ScriptedServer]
HOME = "var/lib/larmspider"
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS)}
USER = "larmspider:larmspider"
MOST_SECS = 180.0
ENDLESS = "seeds = ['{}']\n[limits]\ndelay = 0.1\n[settings]\nLARM_TRAPS = 'off'\n"
IMPORTS = """
try:
    import larmspider
except ModuleNotFoundError as error:
    print(error)
"""


def run(*command: object, cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", folder]
    run(sys.executable, "-m", "pip", "wheel", *options, checkout)
    return next(folder.glob("*.whl"))


# The Debian package


@pytest.fixture(scope="module")
def deb(wheel: Path) -> Path:
    """The package, by the command of `make deb`."""
    if shutil.which("dh") is None:
        pytest.skip("dh is not installed (Debian package debhelper)")
    run(sys.executable, PROJECT / "deploy" / "build_deb.py", wheel, wheel.parent, **OFFLINE)
    return next(wheel.parent.glob("*.deb"))


def with_version(deb: Path, version: str, folder: Path) -> Path:
    """The same package with another version."""
    later = folder / f"larmspider_{version}.deb"
    shutil.copy(deb, later)
    run("dpkg-deb", "--control", deb, folder / "control")
    control = folder / "control" / "control"
    text = re.sub(r"^Version: .*", f"Version: {version}", control.read_text(), flags=re.MULTILINE)
    control.write_text(text)
    member = next(name for name in run("ar", "t", deb).split() if name.startswith("control.tar"))
    run("tar", "-caf", folder / member, "-C", folder / "control", ".")
    run("ar", "r", later, folder / member)
    return later


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareDebian]:
    with BareDebian(tmp_path_factory.mktemp("debian") / "root") as running:
        yield running


def dpkg(debian: BareDebian, *arguments: str, package: Path | None = None) -> str:
    """dpkg without its waits for the disk."""
    names = [*arguments]
    if package is not None:
        shutil.copy(package, debian.root / "tmp")
        names.append(f"/tmp/{package.name}")
    return debian.run("dpkg", "--force-unsafe-io", *names)


class Unit:
    """The service of the package, started as systemd would."""

    def __init__(self, debian: BareDebian) -> None:
        parsed = ConfigParser(strict=False, interpolation=None)
        parsed.optionxform = str  # type: ignore[assignment, method-assign]
        parsed.read(debian.root / "lib/systemd/system/larmspider.service")
        service = parsed["Service"]
        assert service["KillMode"] == "process"
        file = service["EnvironmentFile"].removeprefix("-/")
        environment = dict(
            re.findall(r"^(\w+)=(.*)$", (debian.root / file).read_text(), re.MULTILINE)
        )
        assert environment["ARGS"] == "--host 127.0.0.1 --port 6080"
        words = shlex.split(service["ExecStart"])
        words[words.index("$ARGS") :] = ["--port", "0"]
        user = f"{service['User']}:{service['Group']}"
        self._process = debian.begin(*words, user=user, environment={"PYTHONUNBUFFERED": "1"})
        self.address = url_said(self._process)
        self.server = Running(self._process, "", self.address)

    def stop(self) -> None:
        """KillMode=process: its crawls run on."""
        self._process.terminate()
        assert self._process.wait(60) == 0


def test_the_package_is_installed_upgraded_removed_and_purged(
    deb: Path, debian: BareDebian, scripted_server: Servers, tmp_path: Path
) -> None:
    """The unit's command runs as its user. An upgrade ends a crawl with a checkpoint, and the next
    server continues it. Removal keeps the home, purge deletes it."""
    root = debian.root
    dpkg(debian, "--install", package=deb)
    assert "larmspider" in debian.run("larmspider", "--version")
    assert debian.run("stat", "--format=%U %a", f"/{HOME}").split() == ["larmspider", "700"]
    assert (root / "etc/systemd/system/multi-user.target.wants/larmspider.service").is_symlink()
    site = scripted_server({"*": endless(), "/robots.txt": (404, {}, b"")})
    unit = Unit(debian)
    token = unit.server.token = first_token(unit.server)
    (root / HOME / "crawls" / "wiki.toml").write_text(ENDLESS.format(site.url("/")))
    unit.server.api("/crawls/wiki/start", "POST")

    def stored() -> int:
        log = root / HOME / "data" / "wiki" / "store.log"
        return log.read_bytes().count(b"\n") if log.exists() else 0

    until(lambda: stored() > 5, "pages are stored")
    unit.stop()
    before = stored()
    until(lambda: stored() > before, "the crawl outlives its server")

    dpkg(debian, "--install", package=with_version(deb, "9.0", tmp_path))
    assert [pid for pid in debian.pids() if is_crawl(pid)] == []
    before = stored()
    unit = Unit(debian)
    unit.server.token = token
    assert unit.server.api("/crawls/wiki/runs")["runs"][0]["outcome"] == "shutdown"
    unit.server.api("/crawls/wiki/start", "POST")
    until(lambda: stored() > before, "the crawl continues")
    unit.server.api("/crawls/wiki/stop", "POST")
    until(lambda: not any(map(is_crawl, debian.pids())), "the crawl has ended")
    unit.stop()
    checked = ("larmspider", "verify", "--dir", f"/{HOME}/data/wiki")
    assert "all is whole" in debian.run(*checked, user=USER)

    dpkg(debian, "--remove", "larmspider")
    assert not (root / "usr/lib/larmspider").exists()
    assert (root / HOME / "data/wiki/store.log").exists()
    assert (root / "etc/larmspider/environment").exists()
    dpkg(debian, "--purge", "larmspider")
    assert not (root / HOME).exists()
    assert not (root / "etc/larmspider").exists()


def is_crawl(pid: int) -> bool:
    try:
        return b"crawl\0intranet" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_from_the_package_to_the_first_hit(
    deb: Path, scripted_server: Servers, tmp_path: Path
) -> None:
    """In a bare Debian, in under three minutes."""
    site = scripted_server({"/": "<title>Start</title>penguins <a href=/b>b</a>", "/b": "b"})
    with BareDebian(tmp_path / "root") as bare, Browser() as browser:
        watch = Stopwatch()
        dpkg(bare, "--install", package=deb)
        watch("install")
        unit = Unit(bare)
        watch("server")
        first_hit(browser, unit.address, site.url("/"), "penguins", watch)
        unit.stop()
    print(f"Debian package: {watch}")
    assert watch.after_install < MOST_SECS


# The container image


@pytest.fixture(scope="module")
def image(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any]]:
    """The mounted image, and its configuration."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed (Debian package podman)")
    context = tmp_path_factory.mktemp("context")
    shutil.copytree(PROJECT / "deploy", context / "deploy")
    shutil.copytree(WHEELS, context / "dist" / "wheels")
    shutil.copy(wheel, context / "dist")
    name = f"localhost/larmspider-test-{os.getpid()}"
    run("podman", "import", ARCHIVE, f"{name}-base")
    try:
        arguments = {
            "BASE": f"{name}-base", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/dist/wheels",
        }  # fmt: skip
        given = [f"--build-arg={key}={value}" for key, value in arguments.items()]
        run(
            "podman", "build", "--isolation", "chroot", "--format", "docker", "--layers=false",
            *given, "--file", "deploy/Dockerfile", "--tag", name, ".", cwd=context,
        )  # fmt: skip
        found = json.loads(run("podman", "image", "inspect", name))[0]
        config = found["Config"] | {"Healthcheck": found["Healthcheck"]}
        mounted = Path(run("podman", "image", "mount", name).strip())
        yield mounted, config
    finally:
        subprocess.run(["podman", "image", "unmount", "--force", name], check=False)
        subprocess.run(["podman", "image", "rm", "--force", name, f"{name}-base"], check=False)


class Container(Rooted):
    """The image with one volume, /tmp and its secrets; the rest is read-only."""

    def __init__(self, image: tuple[Path, Any], folder: Path) -> None:
        super().__init__(image[0])
        self._config = image[1]
        self.environment = dict(one.split("=", 1) for one in self._config["Env"])
        self.environment |= {"SECRETS": "/data/secrets", "SCRAPYD_HTTP_PORT": "0"}
        self.data = folder
        for name in ("data", "tmp"):
            (folder / name).mkdir()
            os.chown(folder / name, 6800, 6800)

    def __enter__(self) -> Container:
        super().__enter__()
        for name in ("data", "tmp"):
            self.mount(self.data / name, name)
        self.mount("/dev", "dev")
        return self

    def start(self, *command: str) -> subprocess.Popen[str]:
        words = [*self._config["Entrypoint"], *command]
        return self.begin(*words, user=self._config["User"], environment=self.environment)

    def ran(self, *command: str) -> str:
        words = [*self._config["Entrypoint"], *command]
        return self.run(*words, user=self._config["User"], environment=self.environment)


@pytest.fixture
def container(image: tuple[Path, Any], tmp_path: Path) -> Iterator[Container]:
    (tmp_path / "volume").mkdir()
    with Container(image, tmp_path / "volume") as running:
        yield running


def test_the_image_says_how_it_is_run(image: tuple[Path, Any]) -> None:
    config = image[1]
    assert config["User"] == "6800:6800"
    assert list(config["Volumes"]) == ["/data"]
    assert config["Cmd"] == ["server"]
    assert config["Healthcheck"]["Test"] == ["CMD", "bash", "/opt/entrypoint.sh", "healthy"]


def test_the_server_of_the_image(container: Container, scripted_server: Servers) -> None:
    """A token, a crawl, a search; the root is read-only; its end takes a crawl's checkpoint."""
    with pytest.raises(OSError):
        (container.root / "opt" / "x").write_text("")
    token = container.ran("token", "admin").strip()
    process = container.start("server", "--port", "0")
    server = Running(process, "", url_said(process).replace("0.0.0.0", "127.0.0.1"))
    server.token = token
    container.ran("healthy")
    site = scripted_server({"*": endless(), "/robots.txt": (404, {}, b"")})
    home = container.data / "data" / "home"
    (home / "crawls" / "wiki.toml").write_text(ENDLESS.format(site.url("/")))
    server.api("/crawls/wiki/start", "POST")
    log = home / "data" / "wiki" / "store.log"
    until(lambda: log.exists() and log.stat().st_size > 500, "pages are stored")
    process.terminate()
    assert process.wait(90) == 0
    manifest = json.loads((log.parent / "crawl.json").read_text())
    assert manifest["end"] == "shutdown"


def test_a_worker_of_the_image(container: Container, scripted_server: Servers) -> None:
    site = scripted_server({"/": "<title>Start</title>penguins"})
    container.ran("worker", "-a", f"start={site.url('/')}", "-s", "LARM_WEB=no")
    assert "Start" in container.ran("search", "--dir", "/data/crawl", "penguins")


def test_a_node_of_the_image(container: Container) -> None:
    """It has no larmspider of its own, and asks for the password."""
    secrets = container.data / "data" / "secrets"
    secrets.mkdir()
    (secrets / "scrapyd_password").write_text("secret\n")
    with ScriptedServer({}) as free:
        port = free.url("/").rstrip("/").rpartition(":")[2]
    container.environment["SCRAPYD_HTTP_PORT"] = port
    process = container.start("node")
    url = f"http://127.0.0.1:{port}/daemonstatus.json"

    def status() -> int:
        try:
            return request(url).status
        except OSError:
            time.sleep(0.2)
            return 0

    until(lambda: status() == 401, "the node asks for a password")
    container.ran("healthy")
    process.terminate()
    assert process.wait(60) == 0
    assert "No module named" in container.run(
        "/opt/larmspider/bin/python", "-c", IMPORTS, environment={}
    )
