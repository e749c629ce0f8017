"""The files of deploy/ are taken by the programs that they are for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from tests.support.crawling import PROJECT, scrapy
from tests.support.servers.scrapyd import PASSWORD, Scrapyd

DEPLOY = PROJECT / "deploy"
CRAWLS = ["larmspider@.service", "larmspider-refresh@.service", "larmspider-watch@.service"]
UNITS = ["scrapyd.service", "larmspider.service", *CRAWLS]
PROGRAMS = ("/opt/scrapyd/bin/scrapyd", "/opt/larmspider/bin/scrapy", "/usr/bin/larmspider")
HARDENED = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateDevices": "yes",
    "CapabilityBoundingSet": "",
    "SystemCallArchitectures": "native",
}


def unit(name: str) -> ConfigParser:
    parsed = ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment, method-assign]
    parsed.read_string((DEPLOY / name).read_text("utf-8"))
    return parsed


def check(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """systemd-analyze on a unit whose programs are replaced by one that is installed here."""
    text = (DEPLOY / name).read_text("utf-8")
    for program in PROGRAMS:
        text = text.replace(f"ExecStart={program}", "ExecStart=/bin/true")
    installed = folder / name.replace("@.", "@wiki.")
    installed.write_text(text, "utf-8")
    return subprocess.run(
        ["systemd-analyze", *arguments, str(installed)],
        env=os.environ | {"SYSTEMD_LOG_LEVEL": "warning"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", [*UNITS, "larmspider-refresh@.timer"])
def test_systemd_takes_the_unit_without_a_word(name, tmp_path):
    if name.endswith(".timer"):  # its service lies beside it
        check(name.replace(".timer", ".service"), tmp_path, "verify", "--man=no")
    done = check(name, tmp_path, "verify", "--man=no")
    of_ours = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    assert (done.returncode, of_ours) == (0, []), done.stderr


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_is_exposed_to_little(name, tmp_path):
    """By systemd's own count: 0 is best, 10 worst; a unit without any of it has 9.6."""
    done = check(name, tmp_path, "security", "--offline=yes", "--threshold=20", "--no-pager")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", UNITS)
def test_the_unit_is_hardened_and_bounded(name):
    service = unit(name)["Service"]
    assert {key: service.get(key) for key in HARDENED} == HARDENED
    assert service["User"] != "root"
    assert {"MemoryMax", "TasksMax", "LimitNOFILE", "TimeoutStopSec"} <= set(service)


@pytest.mark.parametrize("name", CRAWLS)
def test_a_worker_whose_lease_ran_out_is_started_again_and_a_wrong_setting_is_not(name):
    """Exit statuses of scrapy crawl: 75 and 2."""
    service = unit(name)["Service"]
    assert service["Restart"] == "on-failure"
    assert service["RestartForceExitStatus"] == "75"
    assert service["RestartPreventExitStatus"] == "2"


@pytest.mark.acceptance
def test_the_timer_visits_a_finished_crawl_again(scripted_server, tmp_path):
    """The commands of both units as systemd runs them: ${NAME} is one word, $ARGS are several."""
    server = scripted_server({"/": "<title>Wiki</title>the rotor"})
    values = {
        "START": f"{server.url('/')} {server.url('/b')}",
        "RESTRICT": "http://.*",
        "LARM_DIR": str(tmp_path / "crawl"),
        "ARGS": "-s LARM_BACKOFF_SECS=0.1 -s LARM_WEB=no",
    }
    for name in ("larmspider@.service", "larmspider-refresh@.service"):
        command: list[str] = []
        for word in unit(name)["Service"]["ExecStart"].replace("\\\n", " ").split():
            whole = re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], word)
            command += values["ARGS"].split() if word == "$ARGS" else [whole]
        ran = scrapy(*command[1:], cwd=tmp_path)
        assert ran.status == 0, ran.err
    assert "refresh     nothing was due (next: " in ran.out


def test_crawls_outlive_the_server():
    """Neither the end of the service kills them, nor takes their files or memory."""
    service = unit("larmspider.service")["Service"]
    assert service["KillMode"] == "process"
    assert not {"PrivateTmp", "RemoveIPC"} & set(service)
    others = (unit(name)["Service"] for name in (*CRAWLS, "scrapyd.service"))
    assert all(one["PrivateTmp"] == "yes" for one in others)


def test_stopping_a_node_tells_its_jobs_and_waits_for_them():
    """control-group: SIGTERM goes to every process of the service."""
    service = unit("scrapyd.service")["Service"]
    assert service["KillMode"] == "control-group"
    assert int(service["TimeoutStopSec"]) >= 30


def test_scrapyd_runs_with_its_example(tmp_path):
    """On loopback, and with the password that it finds in its environment."""
    config = (DEPLOY / "scrapyd.conf").read_text("utf-8")
    secrets = {"SCRAPYD_USERNAME": "larm", "SCRAPYD_PASSWORD": PASSWORD}
    with Scrapyd(tmp_path, "127.34.0.1", config=config, environment=secrets) as node:
        assert node.read("daemonstatus")["running"] == 0
        assert node.get("/daemonstatus.json", password="")[0] == 401
        assert "max_proc=4" in node.own_log()
        assert (tmp_path / "dbs").is_dir()
    parsed = ConfigParser()
    parsed.read_string(config)
    assert parsed["scrapyd"]["bind_address"] == "127.0.0.1"
    assert "password" not in parsed["scrapyd"]


def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return document


def test_compose_reads_the_file():
    """By a second implementation of the Compose specification; a wrong key or value is refused."""
    document = compose()
    text = json.dumps(document)
    assert sorted(PyCompose.from_json(text).service_names()) == sorted(document["services"])
    for right, wrong in (('"read_only"', '"readonly"'), ('"cap_drop": ["ALL"]', '"cap_drop": 5')):
        assert right in text
        with pytest.raises(ValueError):
            PyCompose.from_json(text.replace(right, wrong))


def test_every_file_that_compose_names_is_there():
    """Except the secrets, which every operator has to make."""
    document = compose()
    for service in document["services"].values():
        if "build" in service:
            root = DEPLOY / service["build"]["context"]
            assert (root / service["build"]["dockerfile"]).is_file()
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source in document["volumes"] or (DEPLOY / source).is_file(), volume
        assert set(service.get("secrets", [])) <= set(document["secrets"])
        assert set(service["networks"]) <= set(document["networks"])
    named = {secret["file"].removeprefix("./") for secret in document["secrets"].values()}
    assert all(name.startswith("secrets/") for name in named)
    assert "deploy/secrets/" in (PROJECT / ".gitignore").read_text("utf-8").splitlines()


def test_compose_gives_no_rights_and_opens_nothing_to_the_network():
    """Ports are published on loopback; Redis on none, in a network that leads nowhere."""
    document = compose()
    for service in document["services"].values():
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "mem_limit" in service
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert "ports" not in document["services"]["redis"]
    assert document["services"]["redis"]["networks"] == ["frontier"]
    assert document["networks"]["frontier"]["internal"] is True


def test_compose_starts_the_server_alone_or_with_redis_and_two_workers():
    services = compose()["services"]
    alone = [name for name, one in services.items() if not one.get("profiles")]
    workers = [name for name, one in services.items() if "workers" in one.get("profiles", [])]
    assert (alone, workers) == (["server"], ["worker1", "worker2", "redis"])
    assert services["worker1"] == services["worker2"]


def test_no_example_holds_a_secret():
    """Hashes of nothing, and PASSWORD where one is to stand."""
    acl = (DEPLOY / "users.acl").read_text("utf-8")
    hashes = [word for word in acl.split() if word.startswith("#")]
    assert hashes
    assert set(hashes) == {"#" + "0" * 64}
    assert ":PASSWORD@" in (DEPLOY / "example.env").read_text("utf-8")


def test_redis_url_comes_from_the_environment(tmp_path):
    """It has a password, which a command line would show to all."""
    program = "from larmspider import settings; print(settings.REDIS_URL)"
    for url in ("rediss://larm:x@redis.example:6379/0", ""):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=PROJECT,
            env=os.environ | {"REDIS_URL": url},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{url}\n"
