"""The download handler in Scrapy's own commands, in a crawl, and in projects that are not ours."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import crawl, records, scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer

Start = Callable[..., ScriptedServer]
PACKED = Reply(
    200, {"Content-Encoding": "gzip", "Content-Type": "text/html"}, gzip.compress(b"<title>It")
)


def test_scrapy_fetch_prints_what_came(scripted_server: Start, tmp_path: Path) -> None:
    """Unpacked; redirects are followed there, and LARM_DIR is left alone."""
    server = scripted_server({"/": Reply(302, {"Location": "/b"}), "/b": PACKED})
    ran = scrapy("fetch", "--nolog", server.url(), cwd=tmp_path)
    assert (ran.status, ran.out.strip()) == (0, "<title>It")
    assert [request.target for request in server.log] == ["/robots.txt", "/", "/b"]
    assert server.connections == 1
    ran = scrapy("fetch", "--nolog", "--headers", server.url("/b"), cwd=tmp_path)
    assert "< Content-Type: text/html" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_scrapy_shell_fetches(scripted_server: Start, tmp_path: Path) -> None:
    server = scripted_server({"/": PACKED})
    code = "print(response.status, response.css('title::text').get(), response.ip_address)"
    ran = scrapy("shell", "--nolog", "-c", code, server.url(), cwd=tmp_path)
    assert (ran.status, ran.out.splitlines()[0]) == (0, "200 It 127.0.0.1")


SPIDER = """
import scrapy

class ForeignSpider(scrapy.Spider):
    name = "foreign"
    custom_settings = {
        "COOKIES_ENABLED": True,
        "DOWNLOAD_HANDLERS": {
            "http": "larmspider.fetch.curl_handler.CurlHandler",
            "https": "larmspider.fetch.curl_handler.CurlHandler",
        },
    }

    async def start(self):
        yield scrapy.FormRequest(self.url + "login", formdata={"user": "joe"}, callback=self.logged)

    def logged(self, response):
        yield {"at": "login", "body": response.text}
        for name in ("big", "slow"):
            meta = {"download_maxsize": 10, "download_timeout": 0.5}
            yield response.follow(name, self.page, errback=self.failed, meta=meta)

    def page(self, response):
        yield {"at": response.url, "timing": sorted(response.meta["larm_timing"])}

    def failed(self, failure):
        yield {"at": failure.request.url, "failed": type(failure.value).__mro__[1].__name__}
"""


def test_a_foreign_spider_with_scrapys_settings(scripted_server: Start, tmp_path: Path) -> None:
    """Another project that uses nothing of ours but the handler: forms, cookies, redirects,
    compression and retries by Scrapy's middlewares; none of our settings are set."""

    def login(request: Request) -> Reply:
        assert request.body == b"user=joe"
        return Reply(302, {"Location": "/home", "Set-Cookie": "who=joe"})

    def home(request: Request) -> Reply:
        body = gzip.compress(f"cookie {request.headers.get('cookie')}".encode())
        return Reply(200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, body)

    server = scripted_server(
        {
            "/login": login,
            "/home": home,
            "/big": Reply(body=b"x" * 100),
            "/slow": Reply(body=b"x", delay=5),
        }
    )
    (tmp_path / "spider.py").write_text(SPIDER)
    (tmp_path / "other_settings.py").write_text('BOT_NAME = "other"\n')
    ran = scrapy(
        "runspider", "spider.py", "-a", f"url={server.url()}", "-o", "items.jsonl",
        "-s", "RETRY_TIMES=1", cwd=tmp_path, settings_module="other_settings",
    )  # fmt: skip
    items = (tmp_path / "items.jsonl").read_text().splitlines()
    assert '{"at": "login", "body": "cookie who=joe"}' in items, ran.err
    failed = {line for line in items if "failed" in line}
    assert failed == {
        f'{{"at": "{server.url("/big")}", "failed": "DownloadCancelledError"}}',
        f'{{"at": "{server.url("/slow")}", "failed": "DownloadTimeoutError"}}',
    }
    assert len(server.requests("/slow")) == 2, "Scrapy's RetryMiddleware knows the error"


def test_a_denied_address_ends_a_crawl_with_its_kind(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Refused and not tried again, robots.txt too, and the crawl does not wait for the host."""
    server = scripted_server({"*": "x"}, host="127.77.5.1")
    other = scripted_server({"/": f"<a href={server.url()}>x</a>"})
    ran = crawl(
        other.url(), tmp_path, LARM_DENY_ADDRESSES="127.77.5.0/24", LARM_RESTRICT="http://127.*"
    )
    assert ran.status == 0, ran.err
    lines = records(tmp_path / "crawl" / "fetch.log")
    assert [line["result"] for line in lines] == ["200", "address"]
    assert server.connections == 0
    assert "is in 127.77.5.0/24 (LARM_DENY_ADDRESSES)" in lines[1]["message"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("LARM_LOW_SPEED_SECS", "0"), ("LARM_DENY_ADDRESSES", "here"), ("DOWNLOAD_TIMEOUT", "0")],
)
def test_a_bad_setting_is_an_error_at_the_start(tmp_path: Path, name: str, value: str) -> None:
    ran = crawl("http://127.0.0.1:9/", tmp_path, **{name: value})
    assert ran.status != 0
    assert name in ran.err
    assert not (tmp_path / "crawl").exists()
