"""Control over a running crawl: each act does what it says, and needs the token."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.status.totals import Totals
from tests.support.crawling import Ran, records, scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.web.browser import Browser
from tests.support.web.crawling import Crawling, endless
from tests.support.web.serving import request

Servers = Callable[..., ScriptedServer]


@pytest.fixture
def server(scripted_server: Servers) -> ScriptedServer:
    """Endless pages, three links each."""
    return scripted_server({"/robots.txt": (404, {}, b""), "*": endless()})


def stands_still(crawl: Crawling) -> bool:
    """No page came in a while in which many would."""
    time.sleep(1.0)
    crawl.until(lambda: crawl.gauges["in_flight"] == 0, "nothing in flight")
    before = crawl.gauges["pages"]
    time.sleep(1.0)
    return bool(crawl.gauges["pages"] == before)


def test_pause_resume_and_stop(server: ScriptedServer, tmp_path: Path) -> None:
    """A paused crawl fetches nothing and does not end; a stopped one has everything committed."""
    with Crawling(tmp_path, server.url("/")) as crawl:
        crawl.until(lambda: crawl.gauges["pages"] > 3, "pages")
        assert crawl.act("pause").json["done"].startswith("the crawl is paused")
        assert stands_still(crawl)
        assert crawl.gauges["paused"]
        assert Totals.read(crawl.directory).paused
        overview = crawl.get("/").text
        assert "Paused. Running since" in overview
        assert "Not while it is paused." in overview
        found = crawl.get("/stats.json").json
        assert found["state"] == "paused"
        assert found["sentence"].startswith("Paused. Running since")
        assert crawl.get("/healthz").json == {"status": "ok", "crawl": "paused"}
        before = crawl.gauges["pages"]
        crawl.act("resume")
        crawl.until(lambda: crawl.gauges["pages"] > before, "more pages")
        assert not Totals.read(crawl.directory).paused
        crawl.act("stop")
        assert crawl.process.wait(120) == 0
    acts = (crawl.directory / "control.log").read_text().splitlines()
    assert [line.split("\t")[2] for line in acts] == ["pause", "resume", "stop"]
    assert "ended       shutdown" in crawl.said
    assert "Control: pause" in crawl.said
    assert not (crawl.directory / "web.json").exists()


def test_seeds_pass_the_filters(
    server: ScriptedServer, scripted_server: Servers, tmp_path: Path
) -> None:
    """URLs in scope are fetched; those outside are named with the reason; other text is refused."""
    other = scripted_server({"/": "<p>other"}, host="127.0.0.2")
    with Crawling(tmp_path, server.url("/")) as crawl:
        crawl.act("pause")
        asked = f"{server.url('/2999')} {other.url('/')} {server.url('/')}"
        done = crawl.act("seeds", {"urls": asked}).json["done"]
        assert done.startswith("1 of 3 seeds added; refused: ")
        assert "scope: host 127.0.0.2" in done
        assert "visited" in done
        for bad in ("", "@/etc/passwd", "ftp://h/", "http://user:s3cret@h/"):
            got = crawl.act("seeds", {"urls": bad})
            assert got.status == 409, bad
            assert "s3cret" not in got.json["error"]
        crawl.act("resume")
        crawl.until(lambda: "/2999" in [hit.target for hit in server.log], "the new seed")
    assert not other.log


def test_hosts_are_paused_slowed_and_purged(
    server: ScriptedServer, scripted_server: Servers, tmp_path: Path
) -> None:
    """One host is left alone, another goes on; its delay is the one ordered; its queue goes."""
    other = scripted_server({"/robots.txt": (404, {}, b""), "*": endless()}, host="127.0.0.2")
    start = f"{server.url('/')} {other.url('/')}"
    name = f"127.0.0.1:{server.port}"
    with Crawling(tmp_path, start) as crawl:
        crawl.until(lambda: crawl.gauges["pages"] > 10, "pages")
        assert crawl.act("pause-host", {"host": name}).json["done"] == f"{name} is paused"
        time.sleep(0.5)
        before, others = len(server.log), len(other.log)
        crawl.until(lambda: len(other.log) > others + 5, "the other host")
        assert len(server.log) == before
        hosts = crawl.until(
            lambda: (h := crawl.get("/stats.json").json["hosts"]).get("paused") and h, "its state"
        )
        assert hosts == {"paused": 1, "ready": 1}
        crawl.act("delay", {"host": name, "seconds": "30"})
        crawl.act("resume-host", {"host": name})
        crawl.until(lambda: len(server.log) > before, "one more")
        time.sleep(1.0)
        assert len(server.log) <= before + 2
        done = crawl.act("purge-host", {"host": name}).json["done"]
        assert "purged" in done
        assert not done.startswith("0 ")
        assert crawl.act("retry-host", {"host": name}).status == 200
        assert crawl.act("pause-host", {"host": "nobody:80"}).status == 409


def in_force(crawl: Crawling) -> str:
    """That part of the control page, as text in one line."""
    page = crawl.get("/control", Authorization=f"Bearer {crawl.token}").text
    part = page[page.index('id="in-force"') :].partition("</dl>")[0]
    return " ".join(re.sub("<[^>]*>", " ", part).split())


def test_the_control_page_says_what_is_in_force(server: ScriptedServer, tmp_path: Path) -> None:
    """Scope, slow-down and orders of hosts; the page of a host says it as of a checkpoint."""
    name = f"127.0.0.1:{server.port}"
    with Crawling(tmp_path, server.url("/"), restrict="http://127[.]0[.]0[.]1:.*") as crawl:
        crawl.until(lambda: crawl.gauges["pages"] > 3, "pages")
        assert "Scope http://127[.]0[.]0[.]1:.* Slow-down none" in in_force(crawl)
        assert "Single hosts no changes" in in_force(crawl)
        crawl.act("slow", {"factor": "2.5"})
        crawl.act("pause-host", {"host": name})
        crawl.act("delay", {"host": name, "seconds": "90"})
        crawl.act("scope", {"restrict": "http://[^/]*/.*"})
        assert "Scope http://[^/]*/.* Slow-down all delays are multiplied by 2.5" in in_force(crawl)
        assert f"Single hosts {name} paused, delay 1 min 30 s" in in_force(crawl)
        said = "paused, delay 1 min 30 s, all delays 2.5 times as long"
        page = crawl.until(
            lambda: said in (text := crawl.get(f"/hosts/{name}").text) and text, "a checkpoint"
        )
        assert "paused by the operator" in page
        crawl.act("resume-host", {"host": name})
        crawl.act("delay", {"host": name, "seconds": ""})
        assert "Single hosts no changes" in in_force(crawl)


def test_without_a_scope_the_hosts_of_the_seeds_are_named(lasting: Crawling) -> None:
    assert "Scope the hosts of the seeds: http://127.0.0.1:" in in_force(lasting)


@pytest.mark.acceptance
def test_a_scope_is_previewed_then_changed(server: ScriptedServer, tmp_path: Path) -> None:
    """The queue loses URLs out of the scope, and has them again with a wider one; new links are
    judged by it, and the same command continues with it."""
    with Crawling(tmp_path, server.url("/")) as crawl:
        crawl.until(lambda: crawl.gauges["urls"]["queued"] > 30, "a queue")
        crawl.act("pause")
        assert stands_still(crawl)
        queued = crawl.gauges["urls"]["queued"]
        even = r"http://[^/]*/(\d*[02468])?"
        looked = rf"(\d+) of {queued:,} queued URLs would be dropped, such as http://\S+"
        found = crawl.until(
            lambda: re.fullmatch(
                looked, crawl.act("scope-preview", {"restrict": even}).json["done"]
            ),
            "all of the queue committed",
        )
        would = int(found[1])
        assert 5 < would < queued
        done = crawl.act("scope", {"restrict": even}).json["done"]
        assert f"; {would:,} queued URLs were dropped" in done
        assert crawl.gauges["urls"]["queued"] == queued - would
        done = crawl.act("scope", {"restrict": "http://[^/]*/.*"}).json["done"]
        assert f" and {would:,} URLs that were refused for scope are queued" in done
        assert crawl.gauges["urls"]["queued"] == queued
        done = crawl.act("scope", {"restrict": even}).json["done"]
        assert re.search(r"; \d+ of \d+ stored pages are outside now, and stay stored", done)
        crawl.act("resume")
        crawl.until(lambda: crawl.gauges["counters"].get("larm/scope/rejected"), "a refusal")
        assert crawl.act("scope", {"restrict": "(("}).status == 409
        assert crawl.act("scope", {"restrict": " "}).status == 409
    fetched = len(records(crawl.directory / "store.log"))
    with Crawling(tmp_path, server.url("/")) as again:
        assert f"The scope is {even}, set by the operator" in again.said
        log = again.directory / "store.log"
        again.until(lambda: log.read_bytes().count(b"\n") > fetched + 5, "it goes on")
    pages = records(log)[fetched:]
    assert all(int(page["url"].rpartition("/")[2]) % 2 == 0 for page in pages)


def test_what_is_yet_to_be_done_stays_in_its_form(lasting: Crawling, browser: Browser) -> None:
    """A change takes the scope that was previewed; refused text stays to be corrected, and text
    that was carried out is gone."""
    browser.look()
    browser.driver.delete_all_cookies()
    browser.open(f"{lasting.url}/control")
    browser.find("input[name=token]").send_keys(lasting.token)
    browser.find("main button").click()

    def done(field: str, text: str, button: str, said: str) -> str | None:
        """The field's content after ``button`` was pressed."""
        browser.until(lambda: browser.text("h1") == "Control", "the control page")
        browser.find(field).clear()
        browser.find(field).send_keys(text)
        browser.find(button).click()
        browser.until(lambda: said in browser.text("#said"), said)
        return browser.find(field).get_attribute("value")

    scope, seeds = "input[name=restrict]", "textarea[name=urls]"
    preview = "form[action='/control/scope-preview'] button"
    assert done(scope, '.*"&quot;', preview, "would be dropped") == '.*"&quot;'
    assert done(scope, "((", preview, "((") == "(("
    add = "form[action='/control/seeds'] button"
    assert done(seeds, "ftp://h/</textarea>", add, "ftp") == "ftp://h/</textarea>"
    assert done(seeds, "http://127.0.0.2:9/", add, "0 of 1 seed added") == ""


@pytest.mark.acceptance
def test_concurrency_is_tuned_while_the_crawl_runs(
    scripted_server: Servers, tmp_path: Path
) -> None:
    """From the command line: threads, connections and delay of a host; over a restart, or not."""
    slow = scripted_server({"/robots.txt": (404, {}, b""), "*": hanging(endless(40), 0.3)})
    name = f"127.0.0.1:{slow.port}"

    def control(*arguments: str) -> Ran:
        return scrapy("control", *arguments, cwd=tmp_path)

    def in_flight(number: int) -> Callable[[], bool]:
        return lambda: crawl.gauges["in_flight"] == number

    with Crawling(tmp_path, slow.url("/"), DOWNLOAD_DELAY="0") as crawl:
        crawl.until(in_flight(1), "one fetch at a time")
        ran = control("connections", name, "8")
        assert ran.out == f"{name} gets at most 8 requests at a time\n", ran.err
        crawl.until(in_flight(8), "eight at a time")
        assert control("threads", "5").out == "5 fetches at a time\n"
        crawl.until(in_flight(5), "five at a time")
        ran = control("threads", "3", "--this-run")
        assert ran.out == "3 fetches at a time, until this run ends\n"
        crawl.until(in_flight(3), "three at a time")
        said = control("delay", name, "0", "--this-run").out
        assert "has no delay beyond its robots.txt and its answers, until" in said
        assert control("delay", name, "0.01", "--this-run").status == 0
        shown = control().out.splitlines()
        assert shown[1:] == [
            "threads   3 until this run ends, in place of 16",
            "scope     the hosts of the seeds",
            f"host      {name} 8 connections, delay 0.01 s until this run ends",
        ]
        ran = control("--json")
        assert ran.status == 0, ran.err
        assert ran.json["orders"]["threads"] == 3
        for bad, words in (
            (["threads", "0"], "threads '0': expected a whole number from 1 to 10,000"),
            (["connections", "none:80", "2"], "'none:80' is not a host of this crawl"),
        ):
            ran = control(*bad)
            assert (ran.status, words in ran.err) == (2, True), ran.err
        for act, form in (
            ("threads", {}),
            ("connections", {"host": name, "connections": "-1"}),
            ("delay", {"host": name}),
            ("delay", {"host": name, "seconds": "1_0"}),
        ):
            refused = crawl.act(act, form)
            assert (refused.status, "expected a" in refused.json["error"]) == (409, True)
        assert control().out.splitlines()[1:] == shown[1:], "nothing has changed"
        assert control("stop").status == 0
        assert crawl.process.wait(120) == 0
    with Crawling(tmp_path, slow.url("/"), DOWNLOAD_DELAY="0") as crawl:
        assert "Threads: 5, set by the operator" in crawl.said
        crawl.until(in_flight(5), "what was kept")
        assert f"host      {name} 8 connections\n" in control().out
        assert (
            control("threads", "default").out == "16 fetches at a time again, as the settings say\n"
        )
        crawl.until(in_flight(8), "all that the host may have")
    with Crawling(tmp_path, slow.url("/"), LARM_WEB_PORT="0", threads="2") as crawl:
        crawl.until(in_flight(2), "what the command says")


def hanging(answer: Callable[[Request], Reply], seconds: float) -> Callable[[Request], Reply]:
    """The same, later."""

    def wait(asked: Request) -> Reply:
        time.sleep(seconds)
        return answer(asked)

    return wait


@pytest.mark.acceptance
def test_a_browser_tunes_concurrency(
    server: ScriptedServer, tmp_path: Path, browser: Browser
) -> None:
    """On a narrow screen: threads until the run ends, connections of a host for good."""
    with Crawling(tmp_path, server.url("/")) as crawl:
        browser.look(390)
        browser.driver.delete_all_cookies()
        browser.open(f"{crawl.url}/control")
        browser.find("input[name=token]").send_keys(crawl.token)
        browser.find("main button").click()
        browser.until(lambda: browser.text("h1") == "Control", "the control page")
        assert "Threads\n16, as the settings say" in browser.text("#in-force")
        form = "form[action='/control/threads']"
        browser.find(f"{form} input[name=threads]").clear()
        browser.find(f"{form} input[name=threads]").send_keys("7")
        browser.find(f"{form} option[value=no]").click()
        browser.find(f"{form} button").click()
        said = "7 fetches at a time, until this run ends"
        browser.until(lambda: browser.text("#said") == said, "what was done")
        assert "7 until this run ends, in place of 16" in browser.text("#in-force")
        assert crawl.gauges["threads"] == 7
        name = f"127.0.0.1:{server.port}"
        browser.find("input[name=host]").send_keys(name)
        browser.find("input[name=connections]").send_keys("3")
        browser.find("button[formaction='/control/connections']").click()
        said = f"{name} gets at most 3 requests at a time"
        browser.until(lambda: browser.text("#said") == said, "what was done")
        assert f"{name} 3 at a time" in browser.text("#in-force")
        assert browser.overflow() <= 0
        assert browser.errors() == []
        log = (crawl.directory / "control.log").read_text().splitlines()
        assert [line.split("\t")[3] for line in log] == ["7 for this run", f"{name} 3"]


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawling]:
    """A crawl for tests that leave it as it is."""
    pages = {"/robots.txt": (404, {}, b""), "*": endless()}
    with (
        ScriptedServer(pages) as server,
        Crawling(tmp_path_factory.mktemp("lasting"), server.url("/")) as running,
    ):
        yield running


def acts_on(crawl: Crawling) -> list[str]:
    """The lines of control.log."""
    log = crawl.directory / "control.log"
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize(
    "headers, csrf, status",
    [
        ({}, "right", 401),
        ({"Authorization": "Bearer wrong"}, "right", 401),
        ({"Cookie": "wrong"}, "right", 401),
        ({"Cookie": "right"}, "", 403),
        ({"Cookie": "right"}, "wrong", 403),
        ({"Cookie": "right", "Origin": "http://evil.example"}, "right", 403),
        ({"Cookie": "right", "Origin": "null"}, "right", 403),
        ({"Cookie": "right", "Origin": "http://["}, "right", 403),
        ({"Cookie": "right", "Sec-Fetch-Site": "cross-site"}, "right", 403),
        ({"Authorization": "Bearer right", "Origin": "http://evil.example"}, "", 403),
        ({"Cookie": "right", "Host": "evil.example"}, "right", 421),
        ({"Cookie": "right", "Content-Type": "application/json"}, "right", 415),
        ({"Cookie": "right"}, "right", 303),
    ],
)
def test_who_may_act(lasting: Crawling, headers: dict[str, str], csrf: str, status: int) -> None:
    """Only with the token, from a form of this server, or by a script that has the token."""
    crawl, before = lasting, len(acts_on(lasting))
    signed = request(f"{crawl.url}/login", "POST", {}, {"token": crawl.token})
    cookie = signed.headers["Set-Cookie"].partition(";")[0]
    page = request(f"{crawl.url}/control", headers={"Cookie": cookie}).text
    right = page.partition('name="csrf" value="')[2].partition('"')[0]
    assert len(right) == 64
    sent = {**headers}
    if sent.get("Cookie") == "right":
        sent["Cookie"] = cookie
    elif "Cookie" in sent:
        sent["Cookie"] = f"{cookie.partition('=')[0]}={'0' * 64}"
    if sent.get("Authorization") == "Bearer right":
        sent["Authorization"] = f"Bearer {crawl.token}"
    form = {"factor": "1", "csrf": right if csrf == "right" else csrf}
    got = request(f"{crawl.url}/control/slow", "POST", sent, form)
    assert got.status == status, got.text
    assert len(acts_on(crawl)) == before + (status == 303)


@pytest.fixture
def crawl(server: ScriptedServer, tmp_path: Path):  # type: ignore[no-untyped-def]
    with Crawling(tmp_path, server.url("/")) as running:
        yield running


def test_signing_in(lasting: Crawling) -> None:
    """The cookie is no script's and no other site's; a wrong token gets none; files are private."""
    got = request(
        f"{lasting.url}/login", "POST", {}, {"token": lasting.token, "next": "//evil.example"}
    )
    assert got.status == 303
    assert got.headers["Location"] == "/control"
    cookie = got.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert lasting.token not in cookie
    wrong = request(f"{lasting.url}/login", "POST", {}, {"token": "x" * 32})
    assert wrong.status == 403
    assert "Set-Cookie" not in wrong.headers
    for name in ("web.token", "web.json"):
        assert (lasting.directory / name).stat().st_mode & 0o777 == 0o600
    assert lasting.token not in lasting.said
    assert request(f"{lasting.url}/control/pause", "GET").status == 405
    assert "Sign in" in lasting.get("/control").text
    body = b"token=" + b"x" * 200_000
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert request(f"{lasting.url}/login", "POST", headers, body).status == 413


def test_a_token_of_the_settings_shows_nowhere(server: ScriptedServer, tmp_path: Path) -> None:
    """Not in the log, nor in a file that others can read; and it is the one that counts."""
    token = "s3cret-token-of-the-settings"
    with Crawling(tmp_path, server.url("/"), LARM_WEB_TOKEN=token, LOG_LEVEL="DEBUG") as crawl:
        headers = {"Authorization": f"Bearer {token}"}
        got = request(f"{crawl.url}/control/slow", "POST", headers, {"factor": "2"})
        assert got.status == 200, got.text
        assert token not in crawl.get("/stats.json").text + crawl.get("/metrics").text
        assert json.loads((crawl.directory / "web.json").read_text())["token"] == token
        assert (crawl.directory / "web.json").stat().st_mode & 0o777 == 0o600
    assert token not in crawl.said
    for path in crawl.directory.rglob("*"):
        assert not path.is_file() or token.encode() not in path.read_bytes(), path


def test_a_browser_pauses_and_resumes(crawl: Crawling, browser: Browser) -> None:
    """As an operator does it; the console has nothing to say."""
    browser.look(390)
    browser.open(f"{crawl.url}/control")
    browser.find("input[name=token]").send_keys(crawl.token)
    browser.find("main button").click()
    browser.until(lambda: browser.text("h1") == "Control", "the control page")
    browser.find("form[action='/control/pause'] button").click()
    browser.until(lambda: browser.all("#said"), "what was done")
    assert browser.text("#said").startswith("the crawl is paused")
    assert stands_still(crawl)
    before = crawl.gauges["pages"]
    assert browser.overflow() <= 0
    browser.find("form[action='/control/resume'] button").click()
    browser.until(lambda: browser.text("#said") == "the crawl continues", "what was done")
    crawl.until(lambda: crawl.gauges["pages"] > before, "more pages")
    last = crawl.until(lambda: crawl.get("/stats.json").json["forecast"]["last"], "a forecast")
    host = f"127.0.0.1:{last[0][0].rpartition(':')[2]}"
    browser.find("input[name=host]").send_keys(host)
    browser.find("button[formaction='/control/pause-host']").click()
    browser.until(lambda: browser.text("#said") == f"{host} is paused", "what was done")
    assert browser.errors() == []


SEND = """
const form = document.createElement("form");
form.method = "post";
form.action = arguments[0];
for (const [name, value] of Object.entries(arguments[1]))
  form.append(Object.assign(document.createElement("input"), {type: "hidden", name, value}));
document.body.append(form);
form.submit();
"""
"""A form that is none of ours."""


@pytest.mark.acceptance
def test_a_browser_that_may_not_changes_nothing(
    crawl: Crawling, scripted_server: Servers, browser: Browser
) -> None:
    """Not signed in; signed in, with a form that lacks the word of ours or has a wrong one; and
    signed in, with the right one, from another origin."""
    foreign = scripted_server({"/": (200, {"Content-Type": "text/html"}, b"<h1>Elsewhere</h1>")})

    def refused(status: int, **form: str) -> None:
        browser.driver.execute_script(SEND, f"{crawl.url}/control/pause", form)
        browser.until(lambda: browser.text("h1") == f"Error {status}", "the refusal")
        assert "Refused: " in browser.text("main")
        assert not crawl.gauges["paused"]

    browser.driver.delete_all_cookies()
    browser.look()
    for form in ({}, {"csrf": ""}, {"csrf": "x" * 43}, {"token": crawl.token}):
        browser.open(f"{crawl.url}/control")
        refused(401, **form)
    browser.open(f"{crawl.url}/control")
    browser.find("input[name=token]").send_keys(crawl.token)
    browser.find("main button").click()
    browser.until(lambda: browser.text("h1") == "Control", "the control page")
    csrf = browser.find("input[name=csrf]").get_attribute("value") or ""
    for form in ({}, {"csrf": ""}, {"csrf": csrf[:-1]}, {"csrf": "x" * len(csrf)}):
        browser.open(f"{crawl.url}/control")
        refused(403, **form)
    browser.open(foreign.url("/"))
    refused(403, csrf=csrf)
    assert not (crawl.directory / "control.log").exists()
    before = crawl.gauges["pages"]
    crawl.until(lambda: crawl.gauges["pages"] > before, "more pages")
    browser.open(f"{crawl.url}/control")
    browser.driver.execute_script(SEND, f"{crawl.url}/control/pause", {"csrf": csrf})
    browser.until(lambda: browser.all("#said"), "what was done")
    assert crawl.gauges["paused"]


@pytest.mark.acceptance
def test_a_window_that_is_left_open_says_that_the_crawl_is_gone(
    crawl: Crawling, browser: Browser
) -> None:
    """And as of when it is what it shows; not that the crawl runs."""
    browser.look()
    browser.open(f"{crawl.url}/")
    browser.until(lambda: browser.find("#live").is_displayed(), "the mark that it is live")
    assert browser.text("#condition").startswith("Running since")
    crawl.act("stop")
    assert crawl.process.wait(120) == 0
    told = r"No more updates: .* as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\."
    browser.until(lambda: re.fullmatch(told, browser.text("#condition")), "that it is gone")
    assert not browser.find("#live").is_displayed()


@pytest.mark.acceptance
def test_the_overview_goes_on_by_itself(lasting: Crawling, browser: Browser) -> None:
    """Numbers and curves change without a load; the first view is whole without scripts."""
    browser.look()
    browser.open(f"{lasting.url}/")

    def stored() -> int:
        return int(browser.text("[data-text=stored]").replace(",", ""))

    before, line = stored(), browser.find("[data-path=pages-line]").get_attribute("d")
    browser.until(lambda: stored() > before, "more stored pages")
    browser.until(
        lambda: browser.find("[data-path=pages-line]").get_attribute("d") != line, "a longer curve"
    )
    browser.until(lambda: browser.find("#live").is_displayed(), "the mark that it is live")
    assert browser.errors() == []
    browser.scripts(on=False)
    try:
        browser.open(f"{lasting.url}/")
        assert stored() > before
        assert browser.find("[data-path=pages-line]").get_attribute("d")
        assert "When it ends" in browser.text("main")
    finally:
        browser.scripts(on=True)
