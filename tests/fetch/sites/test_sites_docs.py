"""docs/sites.md: its examples are accepted, and it names every key that is."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from larmspider.fetch.sites.fields import SiteTable
from larmspider.fetch.sites.lookup import read_sites_file
from tests.support.servers.certificate import Authority

DOCS = (Path(__file__).parents[3] / "docs" / "sites.md").read_text("utf-8")
EXAMPLES = [
    textwrap.dedent(re.sub(r"^ *\$ .*$", "", block, flags=re.MULTILINE))
    for block in re.findall(r"(?:^    .*\n|^\n)+", DOCS, re.MULTILINE)
    if "[[site]]" in block
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_accepted(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the files and variables that they name."""
    for name in re.findall(r'env = "(\w+)"', example):
        monkeypatch.setenv(name, "word")
    for name in re.findall(r'file = "(.+?)"', example):
        (tmp_path / name).write_text("word")
    authority = Authority(tmp_path)
    certificate, key = authority.issue("crawler", "word")
    authority.ca.rename(tmp_path / "example-ca.pem")
    certificate.rename(tmp_path / "crawler.pem")
    key.rename(tmp_path / "crawler.key")
    (tmp_path / "sites.toml").write_text(example)
    assert len(read_sites_file(tmp_path / "sites.toml").rules) == example.count("[[site]]")


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 6


def test_every_key_is_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first column of a table."""
    asked: set[str] = set()
    monkeypatch.setattr(SiteTable, "check_names", lambda table: asked.update(table._asked))
    path = tmp_path / "sites.toml"
    path.write_text('[[site]]\nhosts = "h"\ncookies = { a = "b" }\nproxy = ""\n')
    read_sites_file(path)
    path.write_text('[[site]]\nhosts = "h"\nauth = "basic"\nuser = "a"\npassword = "b"')
    read_sites_file(path)
    secrets = {"user", "password", "token", "client_key_password", "proxy_user", "proxy_password"}
    columns = " ".join(re.findall(r"^\| (.*?) \|", DOCS, re.MULTILINE)) + " `cookies` `headers`"
    assert len(asked) == 15
    for key in asked | secrets:
        assert f"`{key}`" in columns, key
