"""Which URLs are one page: guesses are merged where the host proves them, and no page is lost."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from larmspider.frontier.storage.records import url_key
from larmspider.learned.spellings.aliases import SAMPLE
from tests.support.crawling import Ran, crawl, environment, records, scrapy
from tests.support.servers.nginx import Nginx
from tests.support.servers.scripted import Reply, Request, Route, ScriptedServer

Start = Callable[..., ScriptedServer]


def stored(folder: Path) -> list[str]:
    return sorted(
        "/" + record["url"].split("/", 3)[3] for record in records(folder / "crawl" / "store.log")
    )


def asked(server: ScriptedServer) -> list[str]:
    return [one.target for one in server.log if one.target != "/robots.txt"]


def text(about: str) -> str:
    """Some text, as pages have."""
    return f"<title>{about}</title><p>" + " ".join(f"{about} says number {n}." for n in range(30))


def links(*targets: str) -> str:
    return "".join(f"<a href='{target}'>{target}</a> " for target in targets)


def run(server: ScriptedServer, folder: Path, path: str = "/", **settings: str) -> Ran:
    ran = crawl(server.url(path), folder, **settings)
    assert ran.status == 0, ran.err
    counts = json.loads((folder / "crawl" / "crawl.json").read_text())
    assert counts["end"] == "finished"
    return ran


TWINS = {
    "/FAQ.html": "questions asked often",
    "/faq.html": "a question of Valgrind",
    "/auth/index.html": "the contents",
    "/auth/default.html": "using the system",
    "/a/": "a folder",
    "/a/index.pdf": "a document",
    "/a/index.txt": "another",
    "/b//c": "two slashes",
    "/b/c": "one slash",
    "/p?sid=1": "one session",
    "/p?sid=2": "a section that is called sid",
    "/o%25.html": "an operator",
    "/r%25.html": "its reverse",
}
REFUSED = ("/o%.html", "/r%.html")


def test_pages_that_look_alike_by_their_urls_are_all_stored(
    scripted_server: Start, tmp_path: Path
) -> None:
    """In Django's, Valgrind's, Boost's and other manuals these were lost."""
    pages: dict[str, Route] = {path: text(about) for path, about in TWINS.items()}
    pages |= dict.fromkeys(REFUSED, (400, {}, b"a percent sign that starts no escape"))
    server = scripted_server({"/": links(REFUSED[0], *TWINS, REFUSED[1]), **pages})
    run(server, tmp_path)
    assert set(stored(tmp_path)) - {*REFUSED} == {"/", *TWINS}
    for path, about in list(TWINS.items())[1:3]:
        found = scrapy("page", "--dir", "crawl", server.url(path), cwd=tmp_path)
        assert f"<title>{about}</title>" in found.out
    hits = scrapy("search", "--dir", "crawl", "--json", "Valgrind", cwd=tmp_path).json["hits"]
    assert [hit["url"] for hit in hits] == [server.url("/faq.html")]


def html(body: str) -> Reply:
    return Reply(headers={"Content-Type": "text/html"}, body=body.encode())


def insensitive(request: Request) -> Reply:
    """A server that does not tell case apart."""
    path = request.target.lower()
    if path == "/":
        names = [f"/Page{n}.html" for n in range(20)]
        return html(links(*names, *map(str.lower, names)))
    return html(text(f"page {path}"))


def test_what_is_merged_costs_three_fetches_and_is_told_apart(
    scripted_server: Start, tmp_path: Path
) -> None:
    """The first three pairs prove the rule. By the summary, explain, page, and links --aliases."""
    server = scripted_server({"*": insensitive, "/robots.txt": (404, {}, b"")})
    ran = run(server, tmp_path)
    assert len(asked(server)) == 1 + 20 + 3
    assert len(stored(tmp_path)) == 1 + 20
    reasons = [r["message"] for r in records(tmp_path / "crawl" / "fetch.log") if r["message"]]
    assert len(reasons) == 3
    assert all("same page as http" in reason for reason in reasons)
    assert "duplicates  20 URLs (same page as another URL: path-case proven on 1 host)" in ran.out
    assert "links --aliases --dir " in ran.out
    merged = server.url("/page7.html")
    told = scrapy("explain", "--dir", "crawl", merged, cwd=tmp_path).out
    why = f"same page as {server.url('/Page7.html')}, by the path-case rule, proven 3 times here"
    assert f"merged       {why}" in " ".join(told.split(" ")).replace("\n", " ")
    assert "URL: merged" in told
    body = scrapy("page", "--dir", "crawl", merged, cwd=tmp_path).out
    assert "page /page7.html says" in body
    listed = scrapy("links", "--dir", "crawl", "--aliases", "--json", cwd=tmp_path).json
    assert len(listed["aliases"]) == 20
    assert {one["same_as"] for one in listed["aliases"]} == {
        server.url(f"/Page{n}.html") for n in range(20)
    }
    assert listed["hosts"] == {f"{server.host}:{server.port}": ["path-case proven 3 times"]}
    most = scrapy("links", "--dir", "crawl", "--json", "-n", "99", cwd=tmp_path).json["pages"]
    assert server.url("/Page7.html") in [one["url"] for one in most]
    assert merged not in [one["url"] for one in most]


def test_a_clock_on_each_page_costs_one_fetch_more(scripted_server: Start, tmp_path: Path) -> None:
    """One first page is fetched again, and every sum counts the merged URLs alone."""
    ticks = itertools.count(100)

    def answer(request: Request) -> Reply:
        return html(insensitive(request).body.decode() + f"<p>It is {next(ticks)} now.")

    server = scripted_server({"*": answer, "/robots.txt": (404, {}, b"")})
    ran = run(server, tmp_path)
    assert len(asked(server)) == 1 + 20 + 3 + 1
    assert len(stored(tmp_path)) == 1 + 20
    assert "duplicates  20 URLs (same page as another URL: path-case proven on 1 host)" in ran.out
    assert "known       41 URLs: 21 stored," in ran.out
    told = scrapy("links", "--dir", "crawl", "--aliases", cwd=tmp_path).out
    assert told.endswith("20 merged URLs\n")


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "value, fetched",
    [("always", 1 + 20), ("never", 1 + 40), ('{"127.*": {"path-case": "never"}}', 1 + 40)],
)
def test_rules_may_be_set(scripted_server: Start, tmp_path: Path, value: str, fetched: int) -> None:
    """For all hosts, or by pattern and rule."""
    server = scripted_server({"*": insensitive, "/robots.txt": (404, {}, b"")})
    run(server, tmp_path, LARM_CANONICAL_RULES=value)
    assert len(asked(server)) == fetched


@pytest.mark.acceptance
def test_a_kill_in_the_middle_of_a_trial_loses_nothing(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Killed after each second; the verdict is the same, and no page is stored twice or missing."""
    calls = itertools.count()

    def slow(request: Request) -> Reply:
        next(calls)
        reply = insensitive(request)
        reply.delay = 0.15
        return reply

    server = scripted_server({"*": slow, "/robots.txt": (404, {}, b"")})
    arguments = [
        "crawl", "intranet", "-a", f"start={server.url('/')}", "-s", "DOWNLOAD_DELAY=0", "-s",
        "CONCURRENT_REQUESTS_PER_DOMAIN=2", "-s", "LARM_DELAY_RESPONSE_FACTOR=0", "-s",
        "LARM_CHECKPOINT_SECS=0.2", "-s", "LARM_WEB=no",
    ]  # fmt: skip
    for seconds in (1.5, 2.0, 2.5):
        kill_after(seconds, arguments, tmp_path)
    run(server, tmp_path)
    assert sorted(path.lower() for path in stored(tmp_path)) == sorted(
        ["/", *(f"/page{n}.html" for n in range(20))]
    )
    told = scrapy("links", "--dir", "crawl", "--aliases", "--json", cwd=tmp_path).json
    assert list(told["hosts"].values()) == [["path-case proven 3 times"]]


def kill_after(seconds: float, arguments: list[str], folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=folder,
        env=environment(folder, "larmspider.settings"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    process.wait()


@pytest.mark.acceptance
def test_sessions_on_each_link_do_not_make_a_site_infinite(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Each answer has links with a session of its own, and a clock."""
    sessions = itertools.count(1)

    def answer(request: Request) -> Reply:
        number = next(sessions)
        targets = [f"/p{n}.html;jsessionid={number:08X}" for n in range(12)]
        clock = f"<p>It is {number}."
        return html(text(f"page {request.path.partition(';')[0]}") + clock + links(*targets))

    server = scripted_server({"*": answer, "/robots.txt": (404, {}, b"")})
    run(server, tmp_path)
    assert len({path.partition(";")[0] for path in stored(tmp_path)}) == 13
    assert len(asked(server)) <= 13 + 12 + 7 + 3


PAIRS = [
    pair.replace("N", str(number)).split()
    for number in range(6)
    for pair in (
        "/case/PageN.html /case/pageN.html",
        "/path/pageN.html;jsessionid=1 /path/pageN.html;jsessionid=2",
        "/query/pageN.html?PHPSESSID=1 /query/pageN.html?PHPSESSID=2",
        "/slash/pageN.html /slash//pageN.html",
    )
]
ONE_PAGE = r"""
    root "{root}"; ssi on;
    location ~* ^/case/page(\d).html$ {{ try_files /case/page$1.html =404; }}
    location ~ ";jsessionid=" {{ rewrite "^([^;]*);jsessionid=" $1 last; }}
"""
TWO_PAGES = r"""
    root "{root}"; merge_slashes off; default_type text/html;
    location /query/ {{ try_files $uri-$arg_phpsessid =404; }}
    location ~ ^/slash//(.*)$ {{ try_files /double/$1 =404; }}
"""


def write_pages(root: Path, names: dict[str, str], about: str = "") -> Path:
    """Files, with what they are about, and a start page with all links."""
    for name, said in names.items():
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text(said) + about)
    (root / "index.html").write_text(links(*itertools.chain(*PAIRS)))
    return root


@pytest.mark.acceptance
def test_a_real_server_has_each_document_once_and_none_is_lost(
    nginx: Callable[..., Nginx], tmp_path: Path
) -> None:
    """Case by rewrite, sessions in query and path, double slashes: on the first two hosts they mean
    one page, and the second one has the time on each; on the third they mean another one."""
    one = {re.sub("[;?].*", "", second).replace("//", "/"): second for _, second in PAIRS}
    time = "<p>It is <!--# echo var='msec' --> now."
    two = {
        url.replace("?PHPSESSID=", "-").replace("/slash//", "/double/"): url
        for url in itertools.chain(*PAIRS)
    }
    server = nginx(
        {
            "127.0.1.1": ONE_PAGE.format(root=write_pages(tmp_path / "one", one)),
            "127.0.1.2": ONE_PAGE.format(root=write_pages(tmp_path / "timed", one, time)),
            "127.0.1.3": TWO_PAGES.format(root=write_pages(tmp_path / "two", two)),
        }
    )
    ran = crawl(" ".join(map(server.url, server.roots)), tmp_path)
    assert ran.status == 0, ran.err
    found = {host: [] for host in server.roots}
    for record in records(tmp_path / "crawl" / "store.log"):
        host, _, path = record["url"].partition("//")[2].partition("/")
        found[host.partition(":")[0]].append("/" + path)
    asked = [request for request in server.requests() if request.target != "/robots.txt"]
    assert {request.status for request in asked} == {200}
    for host, rules, question in (("127.0.1.1", 3, 0), ("127.0.1.2", 3, 1)):
        documents = [re.sub("[;?].*", "", path).replace("//", "/").lower() for path in found[host]]
        assert sorted(documents) == sorted(["/", *one])
        urls = [server.url(host, path) for path in itertools.chain(*PAIRS)]
        sampled = sum(int.from_bytes(url_key(url)[-4:], "big") % SAMPLE == 0 for url in urls)
        besides = sum(request.address == host for request in asked) - len(documents)
        assert 3 * rules + question <= besides <= 3 * rules + question + sampled
    assert sorted(found["127.0.1.3"]) == sorted(["/", *itertools.chain(*PAIRS)])
