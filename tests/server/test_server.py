"""The server as a process, with real crawls: first start to first hit, kills, taking over."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.crawling import PROJECT, Ran, crawl, scrapy
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.console import first_token, serving, until
from tests.support.web.crawling import endless
from tests.support.web.serving import request

Servers = Callable[..., ScriptedServer]
pytestmark = pytest.mark.acceptance
QUICK = (
    "[limits]\ndelay = 0\n[settings]\nLARM_DELAY_RESPONSE_FACTOR = 0\nLARM_CHECKPOINT_SECS = 0.3\n"
)


def ctl(folder: Path, *arguments: str) -> Ran:
    return scrapy("ctl", "--home", "home", *arguments, cwd=folder)


def test_first_start_to_first_hit(scripted_server: Servers, tmp_path: Path) -> None:
    """One-time key, token, crawl, search over all crawls, pages of the crawl; all by HTTP. The
    crawl opens no port."""
    site = scripted_server(
        {"/": "<title>Start</title><p>penguins live here <a href=/b>b</a>", "/b": "<p>b"}
    )
    with serving(tmp_path) as server:
        assert server.key
        assert request(f"{server.url}/", headers={"Accept": "application/json"}).status == 401
        server.token = first_token(server)
        got = request(f"{server.url}/first", "POST", form={"key": server.key, "name": "eve"})
        assert got.status == 410
        own = f"{server.url}/api/v1/crawls"
        other = own.replace("127.0.0.1", name := socket.gethostname())  # another name of loopback
        links = f"<a href=/b>b</a> <a href={own}>o</a> <a href={other}>n</a> <a href=/c/x>c</a>"
        site.routes["/"] = f"<title>Start</title><p>penguins live here {links}"
        looked = {
            "seeds": [site.url("/")],
            "restrict": f"http://(127|{name}).*",
            "exclude": [".*/x"],
        }
        found = server.api("/preview", "POST", {"crawl": looked})
        assert [page["title"] for page in found["pages"]] == ["Start", ""]
        refused = {link["url"]: link["reason"] for link in found["refused"]}
        assert refused[site.url("/c/x")] == "matches exclude .*/x"
        assert refused[own].startswith("matches exclude [a-z]+://")
        taken = [site.url("/"), site.url("/b"), other]
        assert [link["url"] for link in found["taken"]] == taken
        assert "/api" not in str(found["pages"])
        assert all(one.target != "/api/v1/crawls" for one in site.log)
        assert list((tmp_path / "home" / "looks").iterdir()) == []
        cookie = request(f"{server.url}/login", "POST", form={"token": server.token})
        headers = {"Cookie": cookie.headers["Set-Cookie"].partition(";")[0]}
        csrf = re.search(
            r'name="csrf" value="(\w+)', request(f"{server.url}/new", headers=headers).text
        )
        assert csrf
        form = {"csrf": csrf[1], "name": "wiki", "seeds": site.url("/")}
        page = request(f"{server.url}/preview", "POST", headers, form).text
        assert "2 pages fetched" not in page  # b and c/x are in the scope of the seed
        assert "3 pages fetched. The scope takes 3 URLs and refuses 2 URLs" in page
        assert 'value="wiki"' in page
        site.routes["/"] = "<title>Start</title><p>penguins live here <a href=/b>b</a>"
        made = server.api("/crawls", "POST", {"name": "wiki", "crawl": {"seeds": [site.url("/")]}})
        assert made["summary"]["state"] == "new"
        server.api("/crawls/wiki/start", "POST")
        until(lambda: server.api("/crawls/wiki")["summary"]["state"] == "ended", "it has ended")
        run = server.api("/crawls/wiki/runs")["runs"][0]
        assert (run["outcome"], run["who"]) == ("finished", "ada")
        log = server.api("/crawls/wiki/runs/1/log")["text"]
        assert "Web pages of this crawl: web.sock" in log
        assert "Listening" not in log
        found = request(f"{server.url}/search?q=penguins&format=json").json
        assert found["total"] == 1
        headers = {"Authorization": f"Bearer {server.token}"}
        page = request(f"{server.url}/crawls/wiki/", headers=headers)
        assert page.status == 200
        assert 'href="/crawls/wiki/hosts"' in page.text
        assert '<a href="/">All crawls</a>' in page.text
        assert 'href="/static/larm.css"' in page.text
        assert request(f"{server.url}/crawls/wiki/", headers={"Accept": "a/b"}).status == 401
        assert "wiki" in ctl(tmp_path, "crawls").out
        assert json.loads(ctl(tmp_path, "crawl", "wiki", "--json").out)["summary"]["pages"] == 2
        assert "finished" in ctl(tmp_path, "runs", "wiki").out
        (tmp_path / "bad.toml").write_text("# a crawl\nseeds = [")
        assert " ctl: crawl:2: is not TOML" in ctl(tmp_path, "create", "bad", "bad.toml").err
        refused = ctl(tmp_path, "start", "nix")
        assert (refused.status, "There is no crawl 'nix'" in refused.err) == (2, True)
        assert "ada" in (tmp_path / "home" / "audit.log").read_text()
    assert ctl(tmp_path, "crawls").status == 1


def test_the_server_moves_to_its_address_after_the_first_token(tmp_path: Path) -> None:
    """At 127.0.0.1 until then; ctl finds it at the new address."""
    with serving(tmp_path, "--host", "127.0.0.2") as server:
        assert "listening at 127.0.0.1, after the first at 127.0.0.2" in server.said
        there = server.url.replace("127.0.0.1", "127.0.0.2")
        with pytest.raises(OSError, match="refused"):
            request(f"{there}/healthz")
        got = request(f"{server.url}/first", "POST", form={"key": server.key, "name": "ada"})
        assert f'id="opened" href="{there}/"' in got.text
        assert request(f"{there}/login").status == 200
        with pytest.raises(OSError, match="refused"):
            request(f"{server.url}/login")
        assert ctl(tmp_path, "crawls").status == 0


def test_a_crawl_outlives_its_server(scripted_server: Servers, tmp_path: Path) -> None:
    """kill -9 of the server: the crawl goes on, the next server has it, pauses and stops it. kill
    -9 of the crawl: it is continued. Another server on the home is refused."""
    site = scripted_server({"/robots.txt": (404, {}, b""), "*": endless()})
    (tmp_path / "home" / "crawls").mkdir(parents=True)
    file = tmp_path / "home" / "crawls" / "wiki.toml"
    file.write_text(f"seeds = ['{site.url('/')}']\n[limits]\ndelay = 0.05\n")
    with serving(tmp_path) as server:
        server.token = first_token(server)
        server.api("/crawls/wiki/start", "POST")
        socket = tmp_path / "home" / "data" / "wiki" / "web.sock"
        until(socket.exists, "its socket")
        second = scrapy("server", "--home", "home", cwd=tmp_path)
        assert (second.status, "another server runs on" in second.err) == (2, True)
        pid = json.loads((tmp_path / "home/runs/wiki/state.json").read_text())["run"]["pid"]
        server.process.kill()
        server.process.wait()
    before = len(site.log)
    until(lambda: len(site.log) > before + 5, "the crawl goes on")
    with serving(tmp_path) as server:
        assert "still running: wiki" in server.said
        server.token = scrapy("server", "--home", "home", "token", "bob", cwd=tmp_path).out.strip()
        assert server.api("/crawls/wiki")["summary"]["state"] == "running"
        assert "paused" in server.api("/crawls/wiki/pause", "POST")["done"]
        server.api("/crawls/wiki/resume", "POST")
        os.kill(pid, signal.SIGKILL)
        until(
            lambda: server.api("/crawls/wiki/runs")["runs"][0]["outcome"] == "killed", "it is seen"
        )
        server.api("/crawls/wiki/start", "POST")
        until(lambda: server.api("/crawls/wiki")["summary"]["state"] == "running", "again")
        until(socket.exists, "its socket")
        server.api("/crawls/wiki/stop", "POST")
        until(lambda: server.api("/crawls/wiki")["summary"]["state"] == "ended", "it has stopped")
        runs = server.api("/crawls/wiki/runs")["runs"]
        assert [run["outcome"] for run in runs] == ["shutdown", "killed"]


def test_a_directory_of_the_command_line_is_taken_over(
    scripted_server: Servers, tmp_path: Path
) -> None:
    """Without a fetch; its pages are searched at once."""
    site = scripted_server({"/": "<title>Start</title><p>walrus"})
    assert crawl(site.url("/"), tmp_path, exclude=".*zip").status == 0
    added = scrapy("server", "--home", "home", "add", "crawl", "old", cwd=tmp_path)
    assert added.status == 0, added.err
    again = scrapy("server", "--home", "home", "add", "crawl", cwd=tmp_path)
    assert "is the crawl old already" in again.err
    (tmp_path / "other").mkdir()
    again = scrapy("server", "--home", "home", "add", "other/../crawl", "new", cwd=tmp_path)
    assert "is the crawl old already" in again.err
    assert "\tadd\tcrawl\told: " in (tmp_path / "home" / "audit.log").read_text()
    before = len(site.log)
    with serving(tmp_path) as server:
        assert request(f"{server.url}/search?q=walrus&format=json").json["total"] == 1
        server.token = first_token(server)
        found = server.api("/crawls/old")
        assert found["crawl"]["exclude"] == [".*zip"]
        assert found["summary"]["pages"] == 1
    assert len(site.log) == before
    for arguments, told in (
        (("add", "nowhere"), "is not a directory"),
        (("add",), "expected nothing, add DIR"),
        (("token", "a b"), "token name 'a b'"),
        (("token", "a", "--scope", "all"), "expected one of read, push, search, edit, operate"),
    ):
        refused = scrapy("server", "--home", "home", *arguments, cwd=tmp_path)
        assert (refused.status, told in refused.err) == (2, True), refused.err


def test_the_commands_of_the_docs(scripted_server: Servers, tmp_path: Path) -> None:
    """The commands of docs/server.md and docs/push.md work; server and serve name each other."""
    site = scripted_server({"/": "<title>Start</title><p>a", "/robots.txt": (404, {}, b"")})
    (tmp_path / "home" / "crawls").mkdir(parents=True)
    (tmp_path / "wiki.toml").write_text(f"seeds = ['{site.url('/')}']\n")
    (tmp_path / "hr.toml").write_text('kind = "push"\n')
    (tmp_path / "documents.jsonl").write_text('{"url": "http://hr.example/a", "text": "a"}\n')
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.4")
    pages = "".join((PROJECT / "docs" / name).read_text() for name in ("server.md", "push.md"))
    shown = re.findall(r"^    larmspider (.*)$", pages, re.MULTILINE)
    ran = []

    def run(line: str, status: int = 0) -> str:
        for name, value in (("larmspider-home", "home"), ("http://wiki.example/", site.url("/"))):
            line = line.replace(name, value)
        words = line.split()
        words[1:1] = ["--home", "home"] if words[0] == "ctl" else []
        found = scrapy(*words, cwd=tmp_path)
        assert found.status == status, (line, found.err)
        return found.out

    with serving(tmp_path) as server:
        server.token = first_token(server)
        for line in shown:
            if line.startswith("ctl ") or " token " in line:
                out = run(line)
                assert out.strip(), line
                ran.append(line)
            if " start " in line:
                until(lambda: server.api("/crawls/wiki")["summary"]["state"] == "ended", "ended")
                if " stop " in line:
                    assert "stops" in out or "does not wait any more" in out
        curls = re.findall(r"^    (curl (?:.*\\\n)*.*)$", pages, re.MULTILINE)
        for command in curls:
            command = command.replace("http://127.0.0.1:6080", server.url)
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, check=True, capture_output=True,
                env={**os.environ, "TOKEN": server.token},
            )  # fmt: skip
            assert "problems" not in json.loads(done.stdout), command
        assert len(curls) == 3
        summary = partial(server.api, "/crawls/hr")
        until(lambda: summary()["summary"]["state"] == "running", "the collection is stored")
        server.api("/crawls/hr/stop", "POST")
        until(lambda: summary()["summary"]["state"] == "ended", "the collection has stopped")
    run("crawl intranet --file larmspider-home/crawls/wiki.toml")
    ran.append("crawl intranet --file larmspider-home/crawls/wiki.toml")
    crawl(site.url("/"), tmp_path)
    (tmp_path / "crawl").rename(tmp_path / "old")
    run("server --home larmspider-home add old")
    rest = {line for line in shown if line not in ran}
    assert rest == {"server --home larmspider-home", "server --home larmspider-home add crawl old"}
    for command, other in (("server", "larmspider serve DIR"), ("serve", "larmspider server")):
        assert other in " ".join(scrapy(command, "--help", cwd=tmp_path).out.split())


def test_users_before_the_first_start(tmp_path: Path) -> None:
    """The first start listens on loopback until an operator can sign in. larmspider user makes one
    on the machine, also while the server runs; a mistake in server.toml is one line."""

    def user(*arguments: str) -> Ran:
        return scrapy("user", "--home", "home", *arguments, cwd=tmp_path)

    with serving(tmp_path, "--host", "0.0.0.0") as server:
        assert "no operator can sign in yet: listening at 127.0.0.1" in server.said
    added = user("add", "ada", "--role", "operator")
    password = added.out.rpartition(" ")[2].strip()
    assert user("list").out.startswith("ada  operator  ")
    for wrong in (
        ("add", "ada"), ("role", "ada", "king"), ("delete", "ada"), ("reset", "bob"), ("add",)
    ):  # fmt: skip
        done = user(*wrong)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1), done
    with serving(tmp_path, "--host", "0.0.0.0") as server:
        assert server.url.startswith("http://0.0.0.0:")
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        form = {"name": "ada", "password": password, "next": "/"}
        got = request(f"{url}/login", "POST", form=form)
        cookie = {"Cookie": got.headers["Set-Cookie"].partition(";")[0]}
        assert request(f"{url}/users", headers=cookie).status == 200
        assert request(f"{url}/search?q=x").status == 401
        again = user("reset", "ada").out.rpartition(" ")[2].strip()
        assert request(f"{url}/users", headers=cookie).status == 401
        assert request(f"{url}/login", "POST", form=form).status == 403
        form["password"] = again
        assert request(f"{url}/login", "POST", form=form).status == 303
        assert "anna" in ctl(tmp_path, "add-user", "anna", "reader").out
        assert "user:anna" in ctl(tmp_path, "see-as", "anna", "").out
    log = (tmp_path / "home" / "audit.log").read_text()
    assert password not in log
    assert again not in log
    settings = tmp_path / "home" / "server.toml"
    for text, why in (
        ('[oidc]\nclient_id = "a"', "oidc.issuer is missing"),
        ('[oidc]\nissuer = "https://a"\nclient_id = "a"\nclient_secret = "b"', "secret b: there"),
        ('[ldap]\nurl = "ldaps://a"\nbase = "b"\nnestd = "walk"', "did you mean nested"),
        ('[roles]\noperator = ["admins"]', "expected a principal such as group:it"),
        ("[sessions]\nhours = 1000", "sessions.hours = 1000: expected"),
        ("ldap = 7", "expected a table [ldap]"),
    ):
        settings.write_text(text)
        done = scrapy("server", "--home", "home", cwd=tmp_path)
        assert (done.status, done.out) == (2, ""), done
        assert why in done.err, done.err
        assert done.err.count("\n") == 1
