"""Two scrapyd nodes behind nginx with TLS, as in docs/deploy.md; scrapyd-deploy to both."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.support.crawling import PROJECT
from tests.support.recovery.killed_crawl import wait_until
from tests.support.servers.scrapyd import PASSWORD, Front, Scrapyd

pytestmark = pytest.mark.acceptance

NODES = ("127.34.0.1", "127.34.0.2")
LOGIN = {"Authorization": "Basic " + base64.b64encode(f"larm:{PASSWORD}".encode()).decode()}
FORM = {**LOGIN, "Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    config = (PROJECT / "deploy" / "scrapyd.conf").read_text("utf-8")
    secrets = {"SCRAPYD_USERNAME": "larm", "SCRAPYD_PASSWORD": PASSWORD}
    with ExitStack() as running:
        ports = {}
        for address in NODES:
            node = Scrapyd(
                tmp_path_factory.mktemp("node"), address, config=config, environment=secrets
            )
            ports[address] = running.enter_context(node).port
        yield running.enter_context(Front(ports, tmp_path_factory.mktemp("nginx")))


def tool(name: str, cwd: Path, home: Path, *arguments: str, **environment: str):
    """A program of scrapyd-client, as a user runs it."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(Path(sys.executable).with_name(name)), *arguments],
        cwd=cwd,
        env=kept | {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def home(front: Front, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the nodes and the password stand: ~/.config/scrapy.cfg and ~/.netrc."""
    home = tmp_path_factory.mktemp("home")
    targets = [
        f"[deploy:node{number}]\nurl = {front.url(address)}\nproject = larmspider\n"
        for number, address in enumerate(NODES, 1)
    ]
    (home / ".config").mkdir()
    (home / ".config" / "scrapy.cfg").write_text("".join(targets), "utf-8")
    netrc = home / ".netrc"
    netrc.touch(0o600)
    secret = PASSWORD.replace(" ", "\\ ")
    netrc.write_text("".join(f"machine {a} login larm password {secret}\n" for a in NODES), "utf-8")
    return home


def test_scrapyd_deploy_brings_the_project_to_each_node(front, checkout, home):
    """From a checkout that has no setup.py of its own making, with the password from ~/.netrc."""
    before = {str(path.relative_to(checkout)) for path in checkout.rglob("*")}
    for number, address in enumerate(NODES, 1):
        ran = tool(
            "scrapyd-deploy", checkout, home, f"node{number}", "--version", "7",
            REQUESTS_CA_BUNDLE=str(front.authority.ca),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert '"spiders": 1' in ran.stdout
        versions = front.ask(address, "/listversions.json?project=larmspider", LOGIN)[2]
        assert json.loads(versions)["versions"] == ["7"]
    after = {str(path.relative_to(checkout)) for path in checkout.rglob("*")} - before
    ours = {path for path in after if path.split("/")[0] not in ("build", "larmspider.egg-info")}
    assert not ours, "what git does not ignore"
    assert (checkout / "setup.py").read_bytes() == (PROJECT / "setup.py").read_bytes()


def test_scrapyd_deploy_packs_what_make_egg_packs(checkout, home, egg, tmp_path):
    """The same files, no tests among them."""
    ran = tool("scrapyd-deploy", checkout, home, "--build-egg", str(tmp_path / "its.egg"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    names = []
    for path in (tmp_path / "its.egg", egg):
        listed = subprocess.run(
            [sys.executable, "-m", "zipfile", "-l", str(path)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        names.append({line.split()[0] for line in listed.stdout.splitlines()[1:]})
    assert names[0] == names[1]


def test_scrapy_cfg_names_this_machine_and_no_password():
    text = (PROJECT / "scrapy.cfg").read_text("utf-8")
    assert "url = http://127.0.0.1:6800/" in text
    assert "password" not in text
    assert "username" not in text


def test_one_command_schedules_on_both_nodes(front, checkout, home):
    """Each node takes the common orders; a job without a seed ends at once, and says why."""
    tool(
        "scrapyd-deploy", checkout, home, "--deploy-all-targets", "--version", "8",
        REQUESTS_CA_BUNDLE=str(front.authority.ca),
    )  # fmt: skip
    for address in NODES:
        body = urlencode({"project": "larmspider", "spider": "intranet", "jobid": "both"})
        status, _, text = front.ask(address, "/schedule.json", FORM, body)
        assert (status, json.loads(text)["status"]) == (200, "ok"), text

        def ended(address: str = address) -> bool:
            time.sleep(0.1)  # nginx lets 20 requests a second through
            answer = front.ask(address, "/status.json?job=both", LOGIN)[2]
            return bool(json.loads(answer)["currstate"] == "finished")

        wait_until(ended, "the job has ended")
        log = front.ask(address, "/logs/larmspider/intranet/both.log", LOGIN)[2]
        assert "No seed: give -a start=URL" in log


def test_the_front_asks_for_the_password(front):
    assert front.ask(NODES[0], "/daemonstatus.json")[0] == 401
    assert front.ask(NODES[0], "/daemonstatus.json", LOGIN)[0] == 200


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", "http://{own}"])
def test_a_foreign_page_cannot_schedule(front, origin):
    """A browser that knows the password sends it with any page's form; Origin tells."""
    own = front.url(NODES[0]).removeprefix("https://").rstrip("/")
    headers = FORM | {"Origin": origin.format(own=own)}
    status, answer, _ = front.ask(NODES[0], "/schedule.json", headers, "project=larmspider")
    assert status == 403
    assert "access-control-allow-origin" not in answer


def test_the_nodes_own_page_may(front):
    """Its Cancel button sends an Origin too."""
    headers = FORM | {"Origin": front.url(NODES[0]).rstrip("/")}
    status, answer, text = front.ask(NODES[0], "/cancel.json", headers, "project=none&job=x")
    assert (status, json.loads(text)["status"]) == (200, "error")
    assert "access-control-allow-origin" not in answer
