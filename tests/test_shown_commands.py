"""Every command that README.md and docs/ show is run: here, or by the test that the table names.

``larmspider`` has the commands of ``scrapy``; the tests compare them as ``scrapy``.
"""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import profile_page
from tests.support.crawling import FAST, PROJECT, Ran, scrapy
from tests.support.documents.corpus import zipped
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import ScriptedServer

PAGES = [
    *(PROJECT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *(PROJECT / "docs").rglob("*.md"),
    *(PROJECT / "benchmarks").glob("*.md"),
    PROJECT / "examples" / "intranet" / "README.md",
]


SITE: dict[str, Any] = {
    "/": "<title>Wiki</title><a href=/Start>Start</a> <a href=/gone>gone</a> <a href=/vpn>VPN</a>",
    "/Start": "<title>Start</title>vpn: your first login, and the rotor",
    "/vpn": "<title>VPN</title>how to log in <a href=/docs.zip>the guide</a>",
    "/docs.zip": (200, {"Content-Type": "application/zip"}, zipped({"guide/start.md": b"# Start"})),
}
PROFILED = "--site postgresql-doc-15 --pages 60"
ELSEWHERE = {
    r"make test|\.ci/run": "a run of the tests",
    r"scrapy search -s LARM_DIR=crawl-demo": "tests/examples/test_first_crawl.py",
    r"scrapy search --dir restored": "tests/recovery/test_backup.py",
    r"scrapy serve": "tests/web/test_serve.py",
    r"(scrapy|larmspider) (server|ctl|user|crawl intranet --file)": "tests/server/test_server.py",
    r"scrapy control": "tests/web/test_control.py",
    r"scrapy parse": "tests/whole_crawls/test_own_fields.py",
    r"scrapy workers": "tests/workers/test_command.py",
    r"scrapy crawl intranet -a start=http://127": "tests/examples/test_demo_site.py",
    r"scrapy crawl intranet -a start=file:": "tests/whole_crawls/test_files.py",
    r"python -m examples\.intranet": "tests/examples/test_demo_site.py",
    r"python -m examples\.applications": "tests/examples/test_applications.py",
    r"kinit ": "tests/fetch/sites/test_curl.py",
    r"curl -H.*/api/v1/search|curl -G": "tests/server/test_search_api.py",
    r"curl -H": "tests/web/test_control.py",
    r"scrapyd-deploy|curl -n|node=": "tests/deploy/test_scrapyd.py",
    r"docker compose": "tests/deploy/test_examples.py, against the schema; not run",
    r"# |apt |pip |\$ ": "root commands of a node, by hand; what they install: tests/deploy/",
    r"python -m tests\.support": "by hand, once a release: tests/recovery/test_kept_formats.py",
    r"scrapy import": "tests/plugins/warc/test_import.py",
    r"scrapy merge": "tests/commands/test_merge.py",
    r"scrapy compact": "tests/crawl/test_compact.py",
    r"docker run": "not run: tests/plugins/opensearch/test_receiver.py has a stand-in",
    r"scrapy outbox": "tests/recovery/test_killed_outbox.py",
    r"scrapy remove": "tests/control/test_remove.py",
    r"scrapy verify": "tests/recovery/test_verify.py",
    r"scrapy deletes": "tests/control/test_deletes.py",
    r"scrapy traps": "tests/reports/test_traps.py",
    r"unshare .*silent_names": "tests/hostile/test_cases.py",
    r"python -m pytest tests/hostile": "a run of the tests",
    r"python -m tests\.test_words": "tests/test_words.py",
    r"openssl rand|openssl pkcs12|chmod 600|curl -V": "other programs, as their manuals have it",
}
"""Beginnings of commands, and where they are run. A path of a test has to exist."""


PROGRAMS = "|".join(
    (
        r"scrapy [a-z]+ -?\S|scrapy (?:serve|hosts)$|make [a-z]+|\.ci/run|python3? |scrapyd-deploy",
        r"redis-cli |curl |docker |openssl |unshare |apt |pip |kinit |chmod |node=|# [a-z(]",
    )
)


def _as_scrapy(command: str) -> str:
    return re.sub(r"^larmspider (?!backup|restore|help|mcp)", "scrapy ", command)


def shown() -> Iterator[tuple[str, str]]:
    """Page and command: lines of code blocks, and what stands between backticks."""
    for page in PAGES:
        text = page.read_text("utf-8")
        text = re.sub(r"<!-- walk -->.*<!-- end of walk -->", "", text, flags=re.DOTALL)
        for block in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE):
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                command = line.strip().removeprefix("$ ").partition("   #")[0].strip()
                command = _as_scrapy(command)
                if re.match(PROGRAMS, command) and not command.startswith("scrapy crawl: "):
                    yield page.name, command
        text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        for quoted in re.findall(r"`([^`]+)`", text):
            command = _as_scrapy(" ".join(quoted.split()))
            if re.match(PROGRAMS, command) and not re.search(r"URL$|LARM_DIR$", command):
                yield page.name, command


COMMANDS = sorted(set(shown()))


def commands(beginning: str) -> list[str]:
    """Those that begin so, each once."""
    return sorted({command for _, command in COMMANDS if re.match(beginning, command)})


HERE = (
    r"scrapy (crawl intranet|search(?! --dir)|explain|page|hosts|links|report|reindex|export)"
    r"|redis-cli|make|python -m bench"
)
CRAWLS = [
    one
    for one in commands("scrapy crawl intranet -a start=(?!http://127|file:|smb:|imaps:)")
    if "REDIS" not in one and "LARM_DIR=restored" not in one  # tests/commands/test_backup_page.py
]
READERS = commands("scrapy (search (?!-s|--dir)|explain|page|hosts|links|report|reindex|export)")


def test_a_shown_command_is_run() -> None:
    """By a test below, or elsewhere."""
    for page, command in COMMANDS:
        if re.match(HERE, command):
            continue
        places = [place for beginning, place in ELSEWHERE.items() if re.match(beginning, command)]
        assert places, f"{page} shows what no test runs: {command}"
        for path in re.findall(r"tests/\S+\.py", places[0]):
            assert (PROJECT / path).is_file(), path


def run(command: str, server: ScriptedServer, folder: Path, *more: str) -> Ran:
    """As it stands, but for the host, and what a shell would do with its output."""
    ours = server.url("/")
    command = command.replace("http://wiki.example/", ours)
    command = command.replace(r"[^/]*\.example/", re.escape(ours.partition("//")[2]))
    words = shlex.split(command.partition(" > ")[0])
    return scrapy(*words[1:], *more, cwd=folder)


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptedServer]:
    with ScriptedServer(SITE) as server:
        yield server


@pytest.fixture(scope="module")
def crawled(site: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the first crawl of the README ran."""
    folder = tmp_path_factory.mktemp("shown")
    fast = [option for name, value in FAST.items() for option in ("-s", f"{name}={value}")]
    for number, command in enumerate(CRAWLS):
        (folder / "seeds.txt").write_text(site.url("/"))
        (folder / "hosts.properties").write_text("startsWith(www.) =\n")
        others = "restrict=" not in command  # the last one makes the directory that is read
        directory = ["-s", f"LARM_DIR=crawl-{number}"] if others else []
        ran = run(command, site, folder, *fast, *directory)
        assert ran.status == 0, f"{command}: {ran.err}"
    (folder / "pages.jsonl").unlink()  # of the feed; `export` writes it, too
    return folder


def test_crawls_are_shown() -> None:
    assert len(CRAWLS) == 4


@pytest.mark.parametrize("command", READERS)
def test_a_crawl_is_read_as_shown(command: str, site: ScriptedServer, crawled: Path) -> None:
    """Each command says something, and ends with 0."""
    (crawled / "labels.txt").write_text(f"Forms => {site.url('/')}")
    ran = run(command, site, crawled, *(["-sLARM_LABELS_FILE=labels.txt"] * ("--label" in command)))
    assert ran.status == 0, ran.err
    assert ran.out or (crawled / "report.html").stat().st_size > 1000


def test_the_index_is_asked_from_python_as_shown(
    site: ScriptedServer, crawled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/search-api.md, "From Python": each of its lines."""
    text = (PROJECT / "docs" / "search-api.md").read_text("utf-8")
    code = textwrap.dedent(text[text.index("    from larmspider") : text.index("An open Searcher")])
    monkeypatch.chdir(crawled)
    exec(code.replace("http://wiki.example/vpn", site.url("/vpn")), {})


def test_a_crawl_is_read_from_python_as_shown(
    site: ScriptedServer,
    crawled: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """docs/export.md, "From Python"."""
    code = (PROJECT / "docs" / "export.md").read_text("utf-8").split("```")[1]
    code = code.removeprefix("python\n").replace('host="*.wiki.example", ', "")
    monkeypatch.chdir(crawled)
    exec(code.replace("http://wiki.example/Start", site.url("/Start")), names := dict[str, Any]())
    assert names["page"].title == "Start"
    assert "your first login" in capsys.readouterr().out


@pytest.mark.skipif(
    REDIS_SERVER is None or not shutil.which("redis-cli"),
    reason="redis-server or redis-cli is not installed (Debian packages redis-server, redis-tools)",
)
def test_redis_is_looked_at_as_shown(site: ScriptedServer, tmp_path: Path) -> None:
    """Seeds are pushed, a worker crawls, its keys are read, another one starts over."""
    fast = [option for name, value in FAST.items() for option in ("-s", f"{name}={value}")]
    (crawl,) = [one for one in commands("scrapy crawl intranet") if "REDIS_URL" in one]
    (fresh,) = commands("scrapy crawl intranet -a fresh")
    shell = commands("redis-cli")
    assert len(shell) == 9
    with RedisServer("127.39.255.9") as server:
        crawl = crawl.replace("redis://redis.example:6379/0", server.url)
        fresh = crawl + fresh.partition("intranet")[2].replace(" ...", "")
        (push,) = [command for command in shell if "rpush" in command]
        (delete,) = [command for command in shell if "UNLINK" in command]
        assert in_shell(push, server) == "2"
        assert run(crawl, site, tmp_path, *fast).status == 0
        for command in {*shell} - {push, delete}:
            in_shell(command, server)
        assert run(fresh, site, tmp_path, *fast).status == 0
        in_shell(delete, server)
        left = server.client().keys("*")
        assert [key for key in left if b"{" in key] == []


def in_shell(command: str, server: RedisServer) -> str:
    """The output of ``command``; its redis-cli asks this server."""
    command = re.sub("redis-cli", f"redis-cli -s {server.socket}", command)
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=120, check=True
    )
    assert not re.match(r"ERR|WRONGTYPE|NOPERM|\(error\)", done.stdout), f"{command}: {done.stdout}"
    return done.stdout.strip()


@pytest.mark.parametrize("command", [one for one in commands("make ") if one != "make test"])
def test_make_knows_what_is_shown(command: str) -> None:
    """Other tests run the recipes: examples/, deploy/, benchmarks/, docs/."""
    done = subprocess.run(
        [*shlex.split(command), "--dry-run"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for path in re.findall(r"bin/python (\S+\.py)", done.stdout):
        assert (PROJECT / path).is_file(), path
    for module in re.findall(r"-m (benchmarks\.\w+|docs\.\w+)", done.stdout):
        assert importlib.util.find_spec(module), module


@pytest.mark.parametrize("command", commands("python -m benchmarks"))
def test_a_benchmark_takes_the_options_shown(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It can be imported, and its --help names them."""
    module, *words = shlex.split(command)[2:]
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    with pytest.raises(SystemExit) as end:
        importlib.import_module(module).main()
    assert end.value.code in (0, None)
    told = capsys.readouterr().out
    for word in words:
        if word.startswith("--") or (word.islower() and not word.startswith("/")):
            assert word in told, word


def benchmarked(module: str, *words: str) -> str:
    """The output of a benchmark."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *words],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "command",
    [
        "redis_costs membership --blocks 16 --workers 2",
        "redis_costs memory --urls 200 --hosts 2",
        "large_crawl {folder}/large --pages 20 --hosts 2",
        pytest.param("house", marks=pytest.mark.acceptance),
    ],
)
def test_a_benchmark_runs_on_something_small(command: str, tmp_path: Path) -> None:
    """Those that call what no other test calls in the same way."""
    if "redis" in command and REDIS_SERVER is None:
        pytest.skip("redis-server is not installed")
    module, *words = command.format(folder=tmp_path).split()
    assert benchmarked(module, *words)


def test_the_profile_names_functions_that_exist() -> None:
    """benchmarks/profile_page.py wraps them by name."""
    for path, _ in (*profile_page._OURS, *profile_page._SCRAPYS, *profile_page._FETCH):
        module, _, names = path.partition(":")
        assert callable(attrgetter(names)(importlib.import_module(module))), path


@pytest.mark.acceptance
def test_the_profile_sees_each_page_in_each_step() -> None:
    """Steps that no page comes through any more would be measured as nothing."""
    said = benchmarked("profile_page", *PROFILED.split())
    steps = dict(re.findall(r"(?m)^(\S.*?) {2,}[\d.]+ +[\d.-]+%[ ]+([\d.]+)$", said))
    named = {step for _, step in (*profile_page._OURS, *profile_page._FETCH)}
    assert {step for step in named if isinstance(step, str)} <= {*steps} | {"frontier: checkpoint"}
    often = {step: float(calls) for step, calls in steps.items()}
    assert often["extraction"] == pytest.approx(1, abs=0.2), often
    assert often["filters"] > 0.1, often
    (pages,) = re.findall(r"(?m)^([\d,]+) pages, ", said)
    assert 50 <= int(pages) < 120
    (formed,) = re.findall(r"canonical form remembered: ([\d.]+)%", said)
    assert 10 < float(formed) < 100
