"""Every page and command that shows a number of a crawl shows the same one, in whatever state the
crawl is. Numbers are compared between two checkpoints: one page may be made before a checkpoint and
the next one after it, and then all are asked again.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from larmspider.control.controller import RemoteController
from larmspider.crawl.worker_dirs import open_crawl
from tests.support.crawling import FAST, begin, crawl, crawl_with, scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.servers.signed_in import SignedInSite
from tests.support.web.crawling import Crawling, endless
from tests.support.web.serving import Got, Served

pytestmark = pytest.mark.acceptance
Start = Callable[..., ScriptedServer]
Get = Callable[[str], Got]
Answers = dict[str, dict[str, Any]]
NAMES = ("queued", "leased", "stored", "failed", "refused")
WAIT_SECS = 60.0
NO_ROBOTS = {"/robots.txt": (404, {}, b"")}
SLOW = {"LARM_CHECKPOINT_SECS": "1.5", "LARM_DELAY_RESPONSE_FACTOR": "0"}


def number(text: str) -> int:
    return int(text.replace(",", ""))


def of_pages(get: Get) -> Answers:
    """The answers of the overview, /stats.json, /metrics, the hosts page and the page of each host:
    sums by state, hosts by state, and for each host whether its next request may be sent."""
    found: Answers = {}
    page = get("/").text
    texts = dict(re.findall(r'data-text="([a-z-]+)">([^<]*)<', page))
    found["overview"] = {name: number(texts[name]) for name in ("queued", "stored", "failed")}
    found["overview"] |= {
        "refused": number(texts["refused"]),
        "leased": number(texts["in-flight"]),
        "delayed": number(texts["retry"]),
        "discovered": number(re.search(r"of ([\d,]+) known", texts["known"])[1]),  # type: ignore[index]
    }
    states = page[page.index("Hosts by state") :].partition("</section>")[0]
    rows = re.findall(r'<th scope="row">([^<]*)</th><td class="num">([\d,]+)', states)
    found["overview hosts"] = {name: number(value) for name, value in rows}
    stats = get("/stats.json").json
    found["stats.json"], found["stats.json hosts"] = stats["urls"], stats["hosts"]
    if stats["numbers"] is not None:
        live = stats["numbers"]
        found["stats.json numbers"] = live["urls"] | {"leased": live["in_flight"]}
    text = get("/metrics").text
    states = re.findall(r'larmspider_urls\{state="(\w+)"\} ([\d.]+)', text)
    found["metrics"] = {name: int(float(value)) for name, value in states}
    in_flight = re.search(r"larmspider_in_flight ([\d.]+)", text)
    assert in_flight is not None
    found["metrics"]["leased"] = int(float(in_flight[1]))
    states = re.findall(r'larmspider_hosts\{state="([\w ]+)"\} ([\d.]+)', text)
    found["metrics hosts"] = {name: int(float(value)) for name, value in states}
    return found | of_host_pages(get)


CELL = re.compile(r"<t[dh][^>]*>(.*?)</t[dh]>", re.DOTALL)


def plain(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", markup)).strip()


def of_host_pages(get: Get) -> Answers:
    text = get("/hosts").text
    body = text[text.index("<tbody>") : text.index("</tbody>")]
    rows = [CELL.findall(row) for row in body.split("<tr>")[1:]]
    found: Answers = {"hosts": {}, "hosts hosts": {}, "next": {}}
    columns = ("queued", "delayed", "stored", "failed", "refused", "leased")
    sums, states, pages = Counter[str](), Counter[str](), Counter[str]()
    for cells in rows:
        host = plain(cells[0])
        sums.update({n: number(plain(c)) for n, c in zip(columns, cells[2:8], strict=True)})
        states[plain(cells[1])] += 1
        said = re.search(r'<span title="([^"]*)">', cells[9])
        assert said is not None
        found["next"][host] = {"hosts": roughly(unescape(said[1]))}
        page = get(f"/hosts/{host}").text
        cards = r'<div class="name">([\w ]+)</div><div class="big">([\d,]+)</div>'
        pages.update({name: number(value) for name, value in re.findall(cards, page)})
        # the paragraph behind the sentence about the page
        state = "".join(page[page.index("<h1>") :].split("</p>")[:2])
        found["next"][host]["host"] = roughly(plain(state))
        assert plain(cells[1]) in plain(state)
    found["hosts"], found["hosts hosts"] = dict(sums), dict(states)
    found["host pages"] = {name: pages[name] for name in NAMES if name != "leased"}
    found["host pages"]["leased"] = pages["in flight"]
    found["host pages"]["discovered"] = pages["known"]
    found["host pages"]["held"] = pages["held"]
    return found


def roughly(sentence: str) -> str:
    """The sentence about the next request, without its number of seconds."""
    ends = (
        "queue is empty", "The crawl does not run", "The crawl is paused", "operator resumes it",
        "is signed in there", "queued URLs are held", "budget of pages is used up",
        "before robots.txt is read", "No more requests in this run", "may be sent now",
        "Next request in",
    )  # fmt: skip
    (found,) = [end for end in ends if end in sentence]
    return found


def of_commands(folder: Path) -> Answers:
    ran = scrapy("hosts", "--json", "--dir", "crawl", cwd=folder)
    assert ran.status == 0, ran.err
    rows = ran.json["hosts"]
    found: Answers = {
        "scrapy hosts": {name: sum(row[name] for row in rows) for name in NAMES if name != "leased"}
    }
    found["scrapy hosts"]["leased"] = sum(row["in_flight"] for row in rows)
    found["scrapy hosts hosts"] = dict(Counter(row["state"] for row in rows))
    found["next"] = {row["host"]: {"scrapy hosts": roughly(row["next"])} for row in rows}
    return found


def differences(answers: Answers) -> list[str]:
    """The numbers for which two answers differ."""
    found = []
    said: dict[str, dict[str, Any]] = {}
    for where, values in answers.items():
        if where == "next":
            continue
        kind = "hosts: " if where.endswith(" hosts") and where != "scrapy hosts" else ""
        for name, value in values.items():
            if value or not kind:  # a state without a host may be left out
                said.setdefault(kind + name, {})[where] = value
    for host, sentences in answers["next"].items():
        said[f"next request to {host}"] = sentences
    for name, values in said.items():
        if len({str(value) for value in values.values()}) > 1:
            found.append(f"{name}: {values}")
    return found


def together(*found: Answers) -> Answers:
    """Answers of several servers; the sentences about hosts side by side."""
    every: Answers = {"next": {}}
    for at, one in enumerate(found):
        for where, values in one.items():
            if where == "next":
                for host, sentences in values.items():
                    numbered = {f"{at} {name}": said for name, said in sentences.items()}
                    every["next"].setdefault(host, {}).update(numbered)
            else:
                every[f"{at} {where}"] = values
    return every


def agreed(folder: Path, *gets: Get) -> Answers:
    """The answers of all pages and commands, once they agree. AssertionError if they never do."""
    end, wrong = time.monotonic() + WAIT_SECS / 3, [""]
    while wrong and time.monotonic() < end:
        found = together(*(of_pages(get) for get in gets), of_commands(folder))
        wrong = differences(found)
    assert wrong == []
    return found


class Asked:
    def __init__(self, crawl: Crawling, beside: Served) -> None:
        self.crawl, self._beside = crawl, beside

    def until(self, true: Callable[[Mapping[str, int]], Any], what: str) -> None:
        """Until the counts are so."""
        self.crawl.until(lambda: true(self.crawl.get("/stats.json").json["urls"]), what)

    def agreed(self) -> Answers:
        return agreed(self.crawl.folder, self.crawl.get, self._beside.get)


@contextmanager
def watched(folder: Path, seeds: str, **settings: str) -> Iterator[Asked]:
    """A running crawl, with its own pages and the pages of `scrapy serve`."""
    with ExitStack() as stack:
        crawl = stack.enter_context(Crawling(folder, seeds, **(SLOW | settings)))
        there = RemoteController(lambda: [folder / "crawl"])
        beside = stack.enter_context(Served(folder / "crawl", controller=there))
        yield Asked(crawl, beside)


def next_of(answers: Answers) -> str:
    """The sentence about the next request to the only host."""
    (sentences,) = answers["next"].values()
    return str(next(iter(sentences.values())))


def test_before_a_crawl_has_begun(tmp_path: Path) -> None:
    """There is no number, and each page says so."""
    (tmp_path / "crawl").mkdir()
    with Served(tmp_path / "crawl") as site:
        for target in ("/", "/hosts", "/links", "/stats.json"):
            got = site.get(target)
            assert (got.status, "no crawl has written here yet" in got.text) == (404, True), target
        assert "larmspider_urls" not in site.get("/metrics").text
    assert "no crawl has written here yet" in scrapy("hosts", cwd=tmp_path).err


def test_while_robots_txt_is_waited_for_and_then_all_runs(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Then paused: the host, and the whole crawl; stopped; killed."""
    server = scripted_server(
        {"/robots.txt": Reply(404, delay=6.0), "*": lambda asked: endless()(asked)}
    )
    with watched(tmp_path, server.url()) as asked:
        asked.until(lambda urls: urls["discovered"], "a checkpoint")
        found = asked.agreed()
        assert next_of(found) == "before robots.txt is read"
        asked.until(lambda urls: urls["stored"] > 3, "some pages")
        assert next_of(asked.agreed()) in ("may be sent now", "Next request in")
        host = f"127.0.0.1:{server.port}"
        asked.crawl.act("pause-host", {"host": host})
        assert next_of(asked.agreed()) == "operator resumes it"
        asked.crawl.act("resume-host", {"host": host})
        asked.crawl.act("pause")
        assert next_of(asked.agreed()) == "The crawl is paused"
        asked.crawl.act("resume")
        asked.agreed()
        asked.crawl.process.kill()
        asked.crawl.process.wait()
    with Served(tmp_path / "crawl") as site:
        found = agreed(tmp_path, site.get)
        assert next_of(found) == "The crawl does not run"
        assert found["0 overview"]["leased"] == 0


def slow(seconds: float) -> Callable[[Request], Reply]:
    """Pages that come late, but for the first one: meanwhile no number changes."""
    pages = endless()

    def answer(asked: Request) -> Reply:
        reply = pages(asked)
        reply.delay = 0.0 if asked.target == "/" else seconds
        return reply

    return answer


def test_slow_answers_are_in_flight(scripted_server: Start, tmp_path: Path) -> None:
    """All pages show the same number in flight during the run, and 0 after its end."""
    server = scripted_server({**NO_ROBOTS, "*": slow(8.0)})
    more = {"CONCURRENT_REQUESTS_PER_DOMAIN": "4"}
    with watched(tmp_path, server.url(), **more) as asked:
        asked.until(lambda urls: urls["leased"] == 3, "three fetches")
        assert asked.agreed()["0 hosts"]["leased"] == 3
        asked.crawl.act("stop")
        asked.crawl.process.wait(WAIT_SECS)
        known = re.search(r"(?m)^known +(.*)", asked.crawl.said)
    assert known is not None
    adds_up(known[1])
    with Served(tmp_path / "crawl") as site:
        found = agreed(tmp_path, site.get)
    assert found["0 hosts"]["leased"] == 0
    assert f"{found['0 hosts']['queued']:,} queued" in known[1]


def adds_up(known: str) -> None:
    """known = stored + failed + refused + duplicates + held + queued + not fetched (budget)."""
    total, *parts = [number(found) for found in re.findall(r"(?<![\d.])[\d,]*\d", known)]
    assert total == sum(parts), known


def test_a_host_that_is_parked_and_one_out_of_its_budget(
    scripted_server: Start, tmp_path: Path
) -> None:
    """And one whose queue waits for further attempts."""
    broken = scripted_server({**NO_ROBOTS, "*": Reply(503)}, host="127.0.0.2")
    good = scripted_server({**NO_ROBOTS, "*": endless()})
    lasting = scripted_server({**NO_ROBOTS, "*": endless()}, host="127.0.0.3")
    settings = {
        "LARM_HOST_MAX_FAILURES": "2",
        "LARM_HOST_PARK_SECS": "600",
        "LARM_HOST_RULES": json.dumps({"127.0.0.1": {"budget": 4}}),
    }
    seeds = f"{good.url()} {broken.url()} {lasting.url()}"
    with watched(tmp_path, seeds, DOWNLOAD_DELAY="1", **settings) as asked:
        asked.crawl.until(
            lambda: asked.crawl.get("/stats.json").json["hosts"].get("parked", 0) == 2, "parked"
        )
        said = asked.agreed()["next"]
        assert {next(iter(one.values())) for one in said.values()} >= {
            "Next request in",
            "budget of pages is used up",
        }
        page = asked.crawl.get(f"/hosts/127.0.0.1:{good.port}").text
        assert "4 pages, 0 left" in page


def test_a_crawl_that_is_out_of_its_budget(scripted_server: Start, tmp_path: Path) -> None:
    """The summary, the report and all pages."""
    server = scripted_server({**NO_ROBOTS, "*": endless()})
    ran = crawl(server.url(), tmp_path, LARM_MAX_PAGES="5")
    (known,) = re.findall(r"(?m)^known +(.*)", ran.out)
    adds_up(known)
    with Served(tmp_path / "crawl") as site:
        found = agreed(tmp_path, site.get)
    left = found["0 hosts"]["queued"]
    assert left > 0
    assert f"5 stored, 0 failed, {left} not fetched (budget)" in known
    counts = scrapy("report", "--json", cwd=tmp_path).json["counts"]
    assert {name: counts[name] for name in ("queued", "stored")} == {"queued": left, "stored": 5}


def test_a_host_that_waits_for_its_login(scripted_server: Start, tmp_path: Path) -> None:
    """It is parked everywhere, and nothing may be sent."""
    site = SignedInSite({"/": "<title>start</title>"})
    server = scripted_server({"*": site.answer})
    table = f'[[site]]\nhosts = "http://127.0.0.1:{server.port}"\n{site.toml}'
    crawl_with(
        table.replace(site.word, "wrong"), server.url(), tmp_path, LARM_SEED_PATIENCE_SECS="2"
    )
    with Served(tmp_path / "crawl") as served:
        found = agreed(tmp_path, served.get)
        assert found["0 hosts hosts"] == {"parked": 1}


def test_held_urls(scripted_server: Start, tmp_path: Path) -> None:
    """They are queued, and no page says that they may be asked for."""

    def calendar(asked: Request) -> Reply:
        day = int(re.sub(r"\D", "", asked.target) or 0)
        links = "".join(f"<a href=/day?n={day * 2 + n}>next</a>" for n in (1, 2))
        return Reply(200, {"Content-Type": "text/html"}, f"<p>Nothing planned {links}".encode())

    server = scripted_server({**NO_ROBOTS, "*": calendar})
    ran = crawl(server.url(), tmp_path, LARM_TRAPS="learn", LARM_CLASS_PAGES="30")
    (known,) = re.findall(r"(?m)^known +(.*)", ran.out)
    adds_up(known)
    with Served(tmp_path / "crawl") as site:
        found = agreed(tmp_path, site.get)
        held = found["0 stats.json"]["held"]
    assert held > 0
    assert f"{held:,} held" in known
    assert found["0 host pages"]["held"] == held


def test_two_workers(scripted_server: Start, tmp_path: Path) -> None:
    """All of them together, while they run and after their end."""
    servers = [
        scripted_server({**NO_ROBOTS, "*": slow(20.0)}, host=f"127.0.0.{n}") for n in range(2, 5)
    ]
    seeds = " ".join(server.url() for server in servers)
    arguments = [f"{name}={value}" for name, value in (FAST | SLOW).items()]
    options = [word for one in arguments for word in ("-s", one)]
    with (tmp_path / "said").open("w+") as said:
        process = begin(
            "workers", "-n", "2", "intranet", "-a", f"start={seeds}", *options,
            "-s", "LARM_MAX_PAGES=100000", "-s", "DOWNLOAD_DELAY=0.2", cwd=tmp_path, out=said,
        )  # fmt: skip
        try:
            end = time.monotonic() + WAIT_SECS
            while time.monotonic() < end and in_flight_of(tmp_path) < 3 * len(servers):
                assert process.poll() is None, (tmp_path / "said").read_text()[-2000:]
                time.sleep(0.2)
            with Served(tmp_path / "crawl") as site:
                assert agreed(tmp_path, site.get)["0 hosts"]["leased"] == 3 * len(servers)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_SECS)
    with Served(tmp_path / "crawl") as site:
        found = agreed(tmp_path, site.get)
        assert found["0 hosts"]["leased"] == 0


def in_flight_of(folder: Path) -> int:
    try:
        with open_crawl(folder / "crawl").frontier() as frontier:
            return 0 if frontier is None else frontier.counts().leased
    except Exception:  # noqa: BLE001 - it is just beginning
        return 0
