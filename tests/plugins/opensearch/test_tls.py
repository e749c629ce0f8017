"""OpenSearch behind nginx, which speaks TLS by a CA of our own and asks for a password."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.crawling import FAST, Ran, scrapy
from tests.support.servers.certificate import Authority
from tests.support.servers.nginx import Nginx
from tests.support.servers.opensearch.shared import SharedNode
from tests.support.servers.scripted import ScriptedServer

pytestmark = pytest.mark.acceptance

HOST, PASSWORD = "127.4.0.1", "s3cr3t"
OWN = """
from larmspider.settings import *
ITEM_PIPELINES |= {"larmspider.plugins.opensearch.receiver.OpenSearchReceiver": 900}
"""


def run(folder: Path, *command: str, **settings: str) -> Ran:
    words = [f"-s{name}={value}" for name, value in settings.items()]
    return scrapy(*command, *words, cwd=folder, settings_module="own")


def test_tls_password_and_a_ca_of_ones_own(
    nginx: Callable[..., Nginx], opensearch: SharedNode, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    authority = Authority(tmp_path)
    certificate, key = authority.issue(HOST)
    hashed = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()
    (tmp_path / "users").write_text(f"larm:{{SHA}}{hashed}\n")
    (tmp_path / "login").write_text(f"larm:{PASSWORD}\n")
    inside = (
        f"ssl_certificate {certificate}; ssl_certificate_key {key}; client_max_body_size 99m;"
        f' auth_basic "search"; auth_basic_user_file {tmp_path}/users;'
        f" location / {{ proxy_pass {opensearch.url('')}; }}"
    )
    with ScriptedServer({"/": "<a href=/a>a</a>", "/a": "<title>A</title>harbour"}) as site:
        front = nginx({HOST: inside}, tls=[HOST])
        right = {
            "LARM_OPENSEARCH_URL": front.url(path=f"/test-{uuid4().hex}"),
            "LARM_OPENSEARCH_LOGIN": str(tmp_path / "login"),
            "LARM_OPENSEARCH_CA": str(authority.ca),
        }
        crawl = ("crawl", "intranet", "-a", f"start={site.url('/')}")
        for changed, status, said in wrong(tmp_path, right):
            ran = run(tmp_path, *crawl, **FAST, **right | changed)
            assert (ran.status, said in ran.err) == (status, True), (changed, ran.err[-1000:])
            assert PASSWORD not in ran.err
        ran = run(tmp_path, *crawl, **FAST, **right)
        assert ran.status == 0, ran.err[-2000:]
    end = time.monotonic() + 60
    searched = {"LARM_SEARCH": "opensearch"} | right
    found = run(tmp_path, "search", "harbour", "--json", **searched)
    while not found.json["hits"] and time.monotonic() < end:  # OpenSearch shows it after seconds
        found = run(tmp_path, "search", "harbour", "--json", **searched)
    assert [hit["url"] for hit in found.json["hits"]] == [site.url("/a")], found.err
    for changed, status, said in wrong(tmp_path, right):
        ran = run(tmp_path, "search", "harbour", **searched | changed)
        assert (ran.status, said in ran.err) == (status, True), ran.err
    assert front.requests()


def wrong(folder: Path, right: Mapping[str, str]) -> list[tuple[dict[str, str], int, str]]:
    """Settings that do not fit, the status of a crawl, and a part of the message."""
    (folder / "other").mkdir(exist_ok=True)
    (folder / "bad-login").write_text("larm:wrong\n")
    url = right["LARM_OPENSEARCH_URL"]
    return [
        ({"LARM_OPENSEARCH_CA": str(Authority(folder / "other").ca)}, 75, "certificate"),
        ({"LARM_OPENSEARCH_CA": ""}, 75, "certificate"),
        ({"LARM_OPENSEARCH_CA": str(folder / "none.pem")}, 2, "expected a file of certificates"),
        ({"LARM_OPENSEARCH_LOGIN": str(folder / "bad-login")}, 2, "401"),
        ({"LARM_OPENSEARCH_LOGIN": str(folder / "none")}, 2, "cannot be read"),
        ({"LARM_OPENSEARCH_URL": url.replace("https", "http"), "LARM_OPENSEARCH_CA": ""}, 2, "400"),
    ]
