"""A home: what is one, which names crawls have, and secrets that go nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from larmspider.errors import ConfigError
from larmspider.fetch.sites.lookup import read_sites_file
from larmspider.server.config.crawl_file import parse_crawl
from larmspider.server.config.secrets import Secrets, sites_of, variable_of
from larmspider.server.config.server_settings import ServerSettings, cores
from larmspider.server.home import Home, check_name

SEEDS = "seeds = ['http://w/']\n"


def test_a_home_is_made_and_opened_again(tmp_path: Path) -> None:
    """For its own user alone, and by one server at a time."""
    home = Home.open(tmp_path / "a" / "home")
    assert (tmp_path / "a" / "home").stat().st_mode & 0o777 == 0o700
    again = Home.open(tmp_path / "a" / "home")
    with home.claim(), pytest.raises(ConfigError, match="another server runs on"):
        again.claim()
    again.claim().close()


def test_file_names_that_lead_elsewhere(tmp_path: Path) -> None:
    """A crawl file may have any name on disk: none has a name outside of its own folders, and none
    keeps the others, the API and the notices from being shown."""
    home = Home.open(tmp_path / "home")
    names = [b"...toml", b".toml", b"b\xff\xfe.toml", b"new\nline.toml", b"n" * 240 + b".toml"]
    for one in [*names, b"wiki.toml"]:
        Path(os.fsdecode(os.fsencode(home.path / "crawls") + b"/" + one)).write_text(SEEDS)
    found = home.crawls()
    assert len(found) == len(names) + 1
    assert [name for name, one in found.items() if one.crawl is not None] == ["wiki"]
    for name, entry in found.items():
        msgspec.json.encode([name, entry.problem])
        assert name.isprintable()
        assert len(name) <= 64
        for place in (home.runs_of(name), home.directory_of(name, None)):
            assert place.resolve().parent in (home.path / "runs", home.path / "data")
        assert entry.crawl or "expected 1 to 64 of the letters" in entry.problem


def test_two_crawls_of_one_directory(tmp_path: Path) -> None:
    """Its owner goes on; a file that was copied with its LARM_DIR is refused."""
    home = Home.open(tmp_path / "home")
    (home.path / "crawls" / "wiki.toml").write_text(SEEDS)
    for name in ("a", "z"):
        text = f"{SEEDS}[settings]\nLARM_DIR = 'data/../data/wiki'\n"
        (home.path / "crawls" / f"{name}.toml").write_text(text)
    home.runs_of("a").mkdir()
    found = home.crawls()
    assert found["wiki"].crawl is not None
    for name in ("a", "z"):
        assert found[name].problem.endswith(f"{name}.toml: LARM_DIR is also of wiki")


def test_what_is_no_home(tmp_path: Path) -> None:
    """Each in one line that says what to do; nothing is made there."""
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letters").mkdir()
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "crawl.json").write_text("{}")
    Home.open(tmp_path / "home")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for name, told in (
        ("file", "it is not a folder"),
        ("other", "it holds letters; expected an empty folder"),
        ("crawl", "larmspider serve .*crawl shows it"),
        ("link", "is a symbolic link: name .*home itself"),
    ):
        with pytest.raises(ConfigError, match=told):
            Home.open(tmp_path / name)
    with pytest.raises(ConfigError, match=r"b\\udcff cannot be used as a home"):
        Home.open(tmp_path / os.fsdecode(b"b\xff"))
    with pytest.raises(ConfigError, match="there is no such home"):
        Home.open(tmp_path / "absent", make=False)
    assert not (tmp_path / "absent").exists()
    assert [one.name for one in (tmp_path / "other").iterdir()] == ["letters"]


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "a\0b", "a" * 300, "wíki", "вики", "-a", ".a", "a b", "a\n", "ａ"]
)
def test_names_that_cannot_be(name: str) -> None:
    """They become files and addresses; in another script they are what collection is for."""
    with pytest.raises(ConfigError, match=r"^name .*: expected 1 to 64 of the letters"):
        check_name(name)


def test_a_bad_file_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    """Also two names that differ in case only, a link and a directory that is a link."""
    home = Home.open(tmp_path)
    for name in ("good", "GOOD", "linked"):
        home.file_of(name).write_text(SEEDS)
    home.file_of("bad").write_text("seeds = 7")
    home.file_of("with blank").write_text(SEEDS)
    home.file_of("link").symlink_to(home.file_of("good"))
    (tmp_path / "data" / "linked").symlink_to(tmp_path)
    found = home.crawls()
    assert [name for name, one in found.items() if one.crawl] == ["GOOD"]
    assert "the name differs from GOOD in case only" in found["good"].problem
    assert "bad.toml:1: seeds: 7: expected a list" in found["bad"].problem
    assert "expected 1 to 64 of the letters" in found["with blank.toml"].problem
    assert "is a symbolic link" in found["link"].problem
    assert "is a symbolic link" in found["linked"].problem


def test_a_new_name_in_another_case_does_not_stop_a_crawl_that_has_run(tmp_path: Path) -> None:
    home = Home.open(tmp_path)
    for name in ("wiki", "WIKI"):
        home.file_of(name).write_text(SEEDS)
    home.runs_of("wiki").mkdir()
    found = home.crawls()
    assert [name for name, one in found.items() if one.crawl] == ["wiki"]
    assert "WIKI.toml: the name differs from wiki in case only" in found["WIKI"].problem


def test_files_are_read_when_they_have_changed(tmp_path: Path) -> None:
    """And written only if they are right; a crawl that was deleted meanwhile stays deleted."""
    home = Home.open(tmp_path)
    home.write("a", SEEDS, new=True)
    first = home.crawls()["a"]
    assert home.crawls()["a"] is first
    home.write("a", SEEDS + "collection = 'B'\n", new=False)
    crawl = home.crawls()["a"].crawl
    assert crawl is not None
    assert crawl.collection == "B"
    with pytest.raises(ConfigError, match=r"a.toml:1: seeds"):
        home.write("a", "seeds = 1", new=False)
    with pytest.raises(ConfigError, match="there is a crawl 'a' already"):
        home.write("A", SEEDS, new=True)
    home.file_of("a").unlink()
    with pytest.raises(ConfigError, match="there is no crawl 'a'"):
        home.write("a", SEEDS, new=False)
    assert home.crawls() == {}


def test_settings_of_a_server(tmp_path: Path) -> None:
    """Defaults without a file; a mistake is named."""
    assert ServerSettings.read(tmp_path).at_once == cores()
    for text, told in (
        ("parallel = 'x'", "parallel = x: expected a whole number from 0 to 256"),
        ("paralel = 1", "did you mean parallel"),
        ("time_zone = 'Berlin'", "IANA"),
        ("[", "is not TOML"),
    ):
        (tmp_path / "server.toml").write_text(text)
        with pytest.raises(ConfigError, match=told):
            ServerSettings.read(tmp_path)
    (tmp_path / "server.toml").write_text("parallel = 3\n[secrets]\nA = ['h']")
    assert ServerSettings.read(tmp_path).at_once == 3


def secret(home: Path, name: str, text: str, mode: int = 0o600) -> None:
    (home / "secrets").mkdir(exist_ok=True)
    (home / "secrets" / name).write_text(text)
    (home / "secrets" / name).chmod(mode)


def crawl_with(host: str, name: str, more: str = "user = 'u'") -> str:
    return f"{SEEDS}[[hosts]]\nhost = '{host}'\nsecret = '{name}'\n{more}"


def test_a_crawl_gets_its_secrets_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sites file names variables; it holds no secret."""
    secret(tmp_path, "wiki", "hosts: wiki.example, *.docs.example\nse cret\n")
    monkeypatch.setenv("TOKEN", "t0ken")
    text = crawl_with("wiki.example", "wiki") + "\n[[hosts]]\nhost = 'api.example'\n"
    crawl = parse_crawl(text + "secret = 'TOKEN'\nauth = 'bearer'", "c")
    sites, environment = sites_of(crawl, Secrets(tmp_path, {"TOKEN": ["api.example"]}))
    assert "se cret" not in sites
    assert "t0ken" not in sites
    assert environment == {variable_of("wiki"): "se cret", variable_of("TOKEN"): "t0ken"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "sites.toml").write_text(sites)
    found = read_sites_file(tmp_path / "sites.toml")
    site = found.for_url("https://wiki.example/a")
    assert site is not None
    assert site.options.credentials is not None
    assert site.options.credentials.password is not None
    assert site.options.credentials.password.reveal() == "se cret"
    assert found.for_url("http://wiki.example/a") is None
    assert Secrets(tmp_path, {"TOKEN": []}).names() == ["TOKEN", "wiki"]


@pytest.mark.parametrize("host", ["wiki.example", "WIKI.example:8443", "a.docs.example",
                                  "*.docs.example", "https://wiki.example"])  # fmt: skip
def test_hosts_that_get_a_secret(tmp_path: Path, host: str) -> None:
    """The secret's own line names them; any port counts."""
    secret(tmp_path, "wiki", "hosts: wiki.example *.docs.example\nx\n")
    assert sites_of(parse_crawl(crawl_with(host, "wiki"), "c"), Secrets(tmp_path))[0]


@pytest.mark.parametrize(
    ("host", "text", "mode", "told"),
    [
        ("evil.example", "hosts: wiki.example\nx", 0o600, "wiki does not go to evil.example: its"),
        ("*.example", "hosts: wiki.example\nx", 0o600, r"does not go to \*.example"),
        ("wiki.example.evil", "hosts: wiki.example\nx", 0o600, "does not go to"),
        ("wiki.example", "hosts: wiki.example\nx", 0o640, "chmod 600"),
        ("wiki.example", "hosts:\nx", 0o600, "expected 'hosts: wiki.example' in its first line"),
        ("wiki.example", "hosts: wiki.example\n", 0o600, "and the secret in the second"),
        ("wiki.example", "hosts: wiki.example\nx\ny", 0o600, "and the secret in the second"),
        ("wiki.example", None, 0o600, "there is none of that name: expected one of other"),
    ],
)  # fmt: skip
def test_a_secret_that_cannot_be_used(
    tmp_path: Path, host: str, text: str | None, mode: int, told: str
) -> None:
    """The error names it and shows nothing of it."""
    secret(tmp_path, "other", "hosts: x\ny")
    if text is not None:
        secret(tmp_path, "wiki", text, mode)
    with pytest.raises(ConfigError, match=rf"^hosts\[0\].secret: .*{told}"):
        sites_of(parse_crawl(crawl_with(host, "wiki"), "c"), Secrets(tmp_path))


@pytest.mark.parametrize("name", ["../tokens.json", "/etc/passwd", "..", "a/b"])
def test_a_secret_is_no_path(tmp_path: Path, name: str) -> None:
    """Whatever a form sends."""
    with pytest.raises(ConfigError, match="expected a name of letters"):
        Secrets(tmp_path).of(name)
