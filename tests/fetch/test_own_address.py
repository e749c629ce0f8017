"""Which hosts have their names looked up here: those that no proxy is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.fetch.dns import OwnAddress

SITES = """
[[site]]
hosts = ["by-proxy"]
proxy = "http://proxy:3128"
[[site]]
hosts = ["by-socks"]
proxy = "socks5://proxy:1080"
[[site]]
hosts = ["by-none"]
proxy = ""
"""


@pytest.fixture
def sites(tmp_path: Path) -> Settings:
    (tmp_path / "sites.toml").write_text(SITES)
    return Settings({"LARM_SITES_FILE": str(tmp_path / "sites.toml")})


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    "name, own",
    [
        ("by-proxy", False), ("by-socks", True), ("by-none", True), ("wiki", True),
        ("10.0.0.7", False), ("localhost", False),
    ],
)  # fmt: skip
def test_by_the_sites_file(name: str, own: bool, sites: Settings) -> None:
    assert OwnAddress.from_settings(sites)(f"http://{name}/robots.txt") is own


@pytest.mark.parametrize(
    "url, own",
    [
        ("http://wiki/", False), ("https://wiki/", True), ("http://a.intra/", True),
        ("http://by-none/", True),
    ],
)  # fmt: skip
def test_by_the_environment(
    url: str, own: bool, sites: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "intra")
    assert OwnAddress.from_settings(sites)(url) is own
    sites.set("HTTPPROXY_ENABLED", False)
    assert OwnAddress.from_settings(sites)(url)
