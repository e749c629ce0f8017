"""larmspider/fetch/sites/lookup.py: which rules are meant for a URL, by its origin alone."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import re
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path

import pycurl
import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.fetch.curl_options import check_method
from larmspider.fetch.sites.fields import SiteTable
from larmspider.fetch.sites.lookup import Sites, origin_of, read_sites_file
from larmspider.fetch.sites.model import Credentials, Proxy, Secret, SiteOptions, SiteRule
from larmspider.urls.host_pattern import HostPattern
from tests.support.servers.certificate import Authority

RENDER = "render = true\nrender_origins = "
NO_ORIGINS = (
    "api.example", "https://", "https://api.example/", "https://api.example/v1", "*",
    "https://*.example", "https://api.example:0", "https://api.example:65536",
    "https://api.example:x", "https://api.example:", "https://api.example?q", "https://api.example#a",
    "https://api.example:\N{ARABIC-INDIC DIGIT FOUR}",
    "ftp://api.example", "file:///etc", "null", "", "https://a b", "https://a%2fb", "https://a\\b",
)  # fmt: skip
WITH_KEY = SiteOptions(headers=(("Key", Secret("canary")),))


def rule(pattern: str, options: SiteOptions, *schemes: str) -> SiteRule:
    return SiteRule(pattern, (HostPattern.parse(pattern),), frozenset(schemes), options)


@pytest.mark.parametrize(
    "url, applies",
    [
        ("https://wiki.example/", True),
        ("https://wiki.example", True),
        ("https://wiki.example:443/a/b", True),
        ("HTTPS://Wiki.Example/a", True),
        ("https://wiki.example./a", True),
        ("https://wiki.example?q=/", True),
        ("https://wiki.example\\@evil.example/", True),  # a path, for WHATWG
        ("https://joe:word@wiki.example/", True),
        ("http://wiki.example/", False),
        ("http://wiki.example:443/", False),
        ("https://wiki.example:8443/", False),
        ("https://evil.example/", False),
        ("https://wiki.example@evil.example/", False),
        ("https://wiki.example:443@evil.example/", False),
        ("https://evil.example/https://wiki.example/", False),
        ("https://evil.example?https://wiki.example/", False),
        ("https://evil.example#@wiki.example/", False),
        ("https://evil.example\\@wiki.example/", False),
        ("https://wiki.example.evil.example/", False),
        ("https://wiki.example%2eevil.example/", False),
        ("ftp://wiki.example/", False),
        ("https://", False),
        ("", False),
        ("\ud800", False),
    ],
)
def test_a_rule_is_bound_to_its_origin(url: str, applies: bool) -> None:
    """Whatever else a URL holds."""
    sites = Sites([rule("wiki.example", WITH_KEY, "https")])
    assert (sites.for_url(url) is not None) is applies
    assert (sites.for_url(url) is not None) is applies, "and so it is out of the cache"


def test_all_urls_of_an_origin_have_one_site() -> None:
    """`is` then tells whether a handle may be used again."""
    sites = Sites([rule("*.example", WITH_KEY, "http", "https")])
    site = sites.for_url("https://a.example/1")
    assert sites.for_url("https://A.example:443/2") is site
    assert sites.for_url("https://b.example/1") is not site
    assert sites.for_url("http://a.example/1") is not site
    assert sites.for_url("https://a.example/" + "x" * 5000) is site


def test_an_endless_host_is_not_remembered() -> None:
    """URLs that are all authority cannot fill the memory."""
    sites = Sites([rule("*.example", WITH_KEY, "https")])
    for number in range(3):
        assert sites.for_url(f"https://{number}{'x' * 400}.example/") is None
        assert sites.for_url(f"https://a.example?{number}{'x' * 400}/") is not None
    assert sites._of_prefix.cache_info().currsize == 0


def test_the_first_rule_that_sets_an_option_holds() -> None:
    """As in LARM_HOST_RULES: one table for all, single ones before it."""
    sites = Sites(
        [
            rule("wiki.example", WITH_KEY, "https"),
            rule("*.example", SiteOptions(verify=False, tls_min="1.2"), "http", "https"),
            rule("*", SiteOptions(verify=True, ca_file=Path("/ca")), "http", "https"),
        ]
    )
    wiki = sites.for_url("https://wiki.example/")
    assert wiki is not None
    assert wiki.rules == ("wiki.example", "*.example", "*")
    assert wiki.options == SiteOptions(
        headers=WITH_KEY.headers, verify=False, tls_min="1.2", ca_file=Path("/ca")
    )
    other = sites.for_url("http://wiki.example/")
    assert other is not None
    assert other.options.headers is None
    assert other.rules == ("*.example", "*")


def test_shows_no_secret() -> None:
    """Neither as a Site nor as the rules it came from."""
    sites = Sites([rule("wiki.example", WITH_KEY, "https")])
    site = sites.for_url("https://wiki.example/")
    assert "canary" not in f"{site} {site!r} {vars(sites)}"
    assert str(site) == "wiki.example: header Key"


@pytest.mark.parametrize("url", ["http://h/", "https://h:8443/x", "http://[::1]:81/", "no url"])
def test_without_a_file_there_are_no_sites(url: str) -> None:
    assert Sites.from_settings(Settings()).for_url(url) is None


def test_origins_have_their_port() -> None:
    assert origin_of("http://H.example.:8080/x") == ("http", "h.example", 8080)
    assert origin_of("https://[0::1]/x") == ("https", "[::1]", 443)
    assert origin_of("mailto:joe@h") is None


def test_the_setting_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    path.write_text('[[site]]\nhosts = "wiki:*"\nproxy = ""\n')
    sites = Sites.from_settings(Settings({"LARM_SITES_FILE": str(path)}))
    assert str(sites.for_url("http://wiki:81/x")) == f"{path} [[site]] 1 (wiki:*): no proxy"
    with pytest.raises(ConfigError, match=r"gone\.toml: No such file"):
        Sites.from_settings(Settings({"LARM_SITES_FILE": str(tmp_path / "gone.toml")}))


# larmspider/fetch/sites/lookup.py: what stands in the sites file is checked when it is read.


CANARY = "canary-7d1f"
FIELDS = 'login_fields = { u = "joe", p = "canary-7d1f" }\n'
CHECKED = f'{FIELDS}login_check = "x"\n'
BASIC = 'auth = "basic"\nuser = "joe"\n'

Read = Callable[[str], Sites]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a text as ``tmp_path``/sites.toml, which only its owner may read."""

    def read_text(text: str) -> Sites:
        path = tmp_path / "sites.toml"
        path.write_text(textwrap.dedent(text))
        path.chmod(0o600)
        return read_sites_file(path)

    return read_text


@pytest.mark.parametrize(
    "inside, message",
    [
        ('hosts = ["wiki"]', "hosts is the only key"),
        ('auth = "basic"', "hosts is missing"),
        ("hosts = 5\nverify = true", "hosts: expected a string or a list"),
        ('hosts = ["wiki:x"]\nverify = true', "'wiki:x' is not a pattern for hosts"),
        ('hosts = "h"\nverfy = true', "'verfy' is not known; did you mean verify?"),
        ('hosts = "h"\nverify = "no"', "verify = 'no': expected true or false"),
        ('hosts = "h"\nscheme = "ftp"\nproxy = ""', "scheme = ['ftp']: expected some of http"),
        ('hosts = "h"\nscheme = []\nproxy = ""', "scheme = []: expected"),
        ('hosts = "http://h"\nscheme = "https"\nproxy = ""', "'http://h' contradicts scheme"),
        ('hosts = "h"\nscheme = "http"\nverify = false', "scheme is http only"),
        ('hosts = "http://h"\ntls_min = "1.2"', "scheme is http only"),
        ('hosts = "h"\ntls_min = "1.4"', "tls_min = '1.4': expected one of 1.0, 1.1"),
        ('hosts = "h"\nauth = "kerberos"', "auth = 'kerberos': expected one of basic, dige"),
        ('hosts = "h"\nauth = "basic"', "auth = 'basic' goes with user and password"),
        ('hosts = "h"\nauth = "basic"\ntoken = "x"', "auth = 'basic' goes with user and password"),
        ('hosts = "h"\nauth = "bearer"\nuser = "x"', "auth = 'bearer' goes with token"),
        ('hosts = "h"\nauth = "negotiate"\nuser = "x"', "auth = 'negotiate' goes with none of"),
        ('hosts = "h"\npassword = "canary-7d1f"', "auth is missing: password goes with one of"),
        (f'hosts = "h"\n{BASIC}password = 5', "password: expected a string, {"),
        (f'hosts = "h"\n{BASIC}password = {{env = 5}}', "password: expected a string, {"),
        (f'hosts = "h"\n{BASIC}password_env = "canary-7d1f"', "password_env names an environment"),
        (f'hosts = "h"\n{BASIC}password_file = "canary-7d1f"', "password_file names a file that c"),
        (f'hosts = "h"\n{BASIC}password_file = "two-lines"', "a file that is not one line"),
        (f'hosts = "h"\n{BASIC}password_file = "empty"', "a file that is not one line"),
        (f'hosts = "h"\n{BASIC}password_file = "latin"', "a file that is not UTF-8"),
        (
            f'hosts = "h"\n{BASIC}password = "canary-7d1f"\npassword_env = "x"',
            "password and password_env are given",
        ),
        (f'hosts = "h"\n{BASIC}password = "canary-7d1f\\r\\nX: y"', "password: expected no"),
        ('hosts = "h"\nauth = "basic"\nuser = "a:b"\npassword = ""', "user: expected a user"),
        ('hosts = "h"\nauth = { password = "canary" }', ": auth: expected one of basic,"),
        ('hosts = "h"\nauth = "basic"\nuser = ""\npassword = ""', "user: expected a user"),
        ('hosts = "h"\nauth = "bearer"\ntoken = "canary-7d1f x"', "token: expected letters"),
        ('hosts = "h"\ncookies = "a=canary-7d1f"', "cookies: expected a table"),
        ('hosts = "h"\ncookies = {}', "cookies: expected a table"),
        ('hosts = "h"\ncookies = {a = "canary-7d1f; b"}', "cookies.a holds a character"),
        ('hosts = "h"\ncookies = {"a b" = "canary-7d1f"}', "cookies: expected names of letters"),
        ('hosts = "h"\nheaders = {X = "canary-7d1f\\nY: z"}', "headers.X holds a character"),
        ('hosts = "h"\nheaders = {Cookie = "canary-7d1f"}', "headers.Cookie cannot be set here"),
        ('hosts = "h"\nheaders = {host = "other"}', "headers.host cannot be set here"),
        (
            'hosts = "h"\nauth = "negotiate"\nheaders = {Authorization = "Token canary-7d1f"}',
            "headers.Authorization and auth are given",
        ),
        ('hosts = "wiki*"\nauth = "negotiate"', "'wiki*' cannot be used with auth"),
        ('hosts = "*"\ncookies = {a = "canary-7d1f"}', "'*' cannot be used with auth"),
        (f'hosts = "*"\n{RENDER}"https://a"', "'*' cannot be used with auth"),
        ('hosts = "h"\nrender_origins = "https://a"', "is for pages that are rendered: expected"),
        (
            'hosts = "h"\nrender = false\nrender_origins = "https://a"',
            "render_origins is for pages that are rendered",
        ),
        (f'hosts = "h"\n{RENDER}7', "render_origins: expected a string or a list of strings"),
        *(
            (f'hosts = "h"\n{RENDER}["https://fine", {json.dumps(text)}]', "render_origins" + said)
            for text, said in [
                *((text, f" = {text!r}: expected origins") for text in NO_ORIGINS),
                ("https://joe:canary-7d1f@api.example", ": expected origins"),
            ]
        ),
        ('hosts = "h"\nlogin = "/in"', "login_fields is missing or empty: login, login_fields, l"),
        (f'hosts = "h"\n{FIELDS}login_check = "x"', "login is missing or empty"),
        (f'hosts = "h"\n{FIELDS}login = "/in"\nlogin_check = ""', "login_check is missing"),
        (f'hosts = "h"\n{CHECKED}login = "in"', "login = 'in': expected a path"),
        (f'hosts = "h"\n{CHECKED}login = "//e/in"', "login = '//e/in': expected"),
        (f'hosts = "h"\n{CHECKED}login = "http://h/in"', "is on none of its hosts"),
        (f'hosts = "h"\n{CHECKED}login = "https://e/in"', "on none of its hosts"),
        (f'hosts = "h*"\n{CHECKED}login = "/in"', "'h*' cannot be used with auth"),
        (
            'hosts = "h"\nlogin = "/i"\nlogin_fields = {p = {env = "canary-7d1f"}}',
            "login_fields.p names an environment variable that is not set",
        ),
        ('hosts = "h"\nclient_key = "key.pem"', "client_key = '"),
        ('hosts = "h"\nclient_key = "empty"', "client_cert is missing: client_key needs it"),
        ('hosts = "h"\nclient_cert = "empty"', "client_cert = '"),
        ('hosts = "h"\nca_file = "empty"', "empty' cannot be used"),
        ('hosts = "h"\nca_file = "none.pem"', "none.pem' cannot be read: No such file"),
        ('hosts = "h"\nca_file = ""', "ca_file: expected the path of a file"),
        ('hosts = "h"\nproxy = "gate:3128"', "proxy = 'gate:3128': expected http://host:po"),
        ('hosts = "h"\nproxy = "http://gate"', "proxy = 'http://gate': expected"),
        ('hosts = "h"\nproxy = "http://g:\N{ARABIC-INDIC DIGIT FOUR}"', "expected http://host:po"),
        ('hosts = "h"\nproxy = "http://gate:0"', "proxy = 'http://gate:0': expected"),
        ('hosts = "h"\nproxy = "ftp://gate:21"', "proxy = 'ftp://gate:21': expected"),
        ('hosts = "h"\nproxy = "http://joe:canary-7d1f@gate:1"', "proxy holds a user name: use pr"),
        ('hosts = "h"\nproxy_user = "joe"', "proxy is missing or empty: other keys"),
        ('hosts = "h"\nproxy = ""\nproxy_password = "canary-7d1f"', "proxy is missing or empty"),
        ('hosts = "h"\nproxy = "http://g:1"\nproxy_user = "joe"', "proxy_user and proxy_password"),
        ('hosts = "h"\nproxy = "http://g:1"\nproxy_auth = "digest"', "proxy_auth = 'digest' goes"),
        ('hosts = "h"\nproxy_ca_file = "ca.pem"', "proxy_ca_file = '"),
        (
            'hosts = "h"\nproxy = "http://g:1"\nproxy_auth = "negotiate"\nproxy_user = "a"\n'
            'proxy_password = "canary-7d1f"',
            "proxy_auth = 'negotiate' goes with neither",
        ),
        (
            'hosts = "h"\nproxy = "socks5://g:1"\nproxy_auth = "basic"\nproxy_user = "a"\n'
            'proxy_password = "canary-7d1f"',
            "proxy_auth is for proxies that speak http",
        ),
    ],
)  # fmt: skip
def test_refuses(read: Read, tmp_path: Path, inside: str, message: str) -> None:
    """The message names file, table, key and the accepted values, and shows no secret."""
    (tmp_path / "empty").write_text("")
    (tmp_path / "two-lines").write_text(f"{CANARY}\n{CANARY}\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(ConfigError) as caught:
        read(f"[[site]]\n{inside}")
    assert str(caught.value).startswith(f"{tmp_path / 'sites.toml'} [[site]] 1")
    assert message in str(caught.value)
    assert CANARY not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    "text, message",
    [
        ('[site]\nhosts = "h"', "'site': expected tables that begin with [[site]]"),
        ('[[sites]]\nhosts = "h"', "'sites': expected"),
        ('[[site]]\npassword = "canary-7d1f\n', "(at line 2, column"),
        ("[[site]]\npassword = canary-7d1f", "(at line 2, column"),
        ('[[site]]\npassword = "canary-7d1f"\npassword = "canary-7d1f"\n', "(at line 3, column"),
    ],
)
def test_refuses_what_is_no_sites_file(read: Read, text: str, message: str) -> None:
    """With the line where TOML ends, and no part of it."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert message in str(caught.value)
    assert CANARY not in str(caught.value)


def test_says_which_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sites\.toml: No such file or directory; expected"):
        read_sites_file(tmp_path / "sites.toml")


def test_an_empty_file_has_no_rules(read: Read) -> None:
    assert read("# nothing yet").rules == ()


OUTSIDE = {
    "a variable that is not set": 'auth = "basic"\nuser = "joe"\npassword_env = "NOT_SET"',
    "a variable that is not a token": 'auth = "bearer"\ntoken_env = "NO_TOKEN"',
    "a file that is not there": 'auth = "basic"\nuser_file = "none"\npassword = "x"',
    "a file of two lines": 'cookies = { id = { file = "two" } }',
    "a header": 'headers = { Key = { env = "NOT_SET" } }',
    "a login": 'login = "/in"\nlogin_check = "x"\nlogin_fields = { p = { env = "NOT_SET" } }',
    "a certificate": 'client_cert = "none.pem"',
    "a key with a password": 'client_cert = "empty"\nclient_key_password_env = "NOT_SET"',
    "no certificate": 'client_cert = "empty"',
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_who_only_reads_needs_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The hosts are the same without; a fetch is refused in one line."""
    monkeypatch.setenv("NO_TOKEN", CANARY + " ")
    (tmp_path / "two").write_text(f"{CANARY}\n{CANARY}\n")
    (tmp_path / "empty").write_text("")
    path = tmp_path / "sites.toml"
    path.write_text(f'[[site]]\nhosts = "*.hr.example"\n{OUTSIDE[what]}\n')
    settings = Settings({"LARM_SITES_FILE": str(path)})
    sites = Sites.from_settings(settings)
    assert sites.protected == ["*.hr.example"]
    (problem,) = sites.problems_of("https://pay.hr.example/")
    assert sites.problems_of("https://wiki.example/") == ()
    assert str(path) in problem
    assert CANARY not in problem
    assert str(sites.for_url("https://pay.hr.example/"))
    with pytest.raises(ConfigError, match=re.escape(problem)):
        Sites.for_fetching(settings)


def test_a_missing_secret_is_never_sent() -> None:
    with pytest.raises(ConfigError, match="it is not set"):
        Secret("", "it is not set").reveal()
    assert Secret("") != Secret("", "it is not set")


@pytest.mark.parametrize("key", ["password", "password_env", "password_file"])
def test_a_secret_may_come_from_elsewhere(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """The environment, or a file relative to the sites file; its last line end does not count."""
    monkeypatch.setenv("WIKI_WORD", CANARY)
    (tmp_path / "word").write_text(f"{CANARY}\n")
    value = {"password": CANARY, "password_env": "WIKI_WORD", "password_file": "word"}[key]
    (rule,) = read(f'[[site]]\nhosts = "h"\n{BASIC}{key} = "{value}"').rules
    assert rule.options.credentials == Credentials("basic", Secret("joe"), Secret(CANARY))
    assert CANARY not in repr(rule)
    assert "joe" not in repr(rule)
    assert str(rule.options) == "basic"


def test_cookies_and_headers_may_come_from_elsewhere(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", CANARY)
    (tmp_path / "session").write_text(CANARY)
    (rule,) = read(
        """
        [[site]]
        hosts = "h"
        cookies = { sid = { file = "session" }, lang = "de" }
        headers = { PRIVATE-TOKEN = { env = "KEY" } }
        """
    ).rules
    assert rule.options.cookies == (("sid", Secret(CANARY)), ("lang", Secret("de")))
    assert rule.options.headers == (("PRIVATE-TOKEN", Secret(CANARY)),)
    assert str(rule.options) == "cookie sid, lang; header PRIVATE-TOKEN"


@pytest.mark.parametrize(
    "inside, reached",
    [
        ('hosts = "h"\nproxy = ""', {"http", "https"}),
        ('hosts = "h"\ncookies = {a = "b"}', {"https"}),
        ('hosts = "h"\nauth = "negotiate"', {"https"}),
        ('hosts = "h"\nheaders = {a = "b"}', {"https"}),
        ('hosts = "h"\nscheme = "http"\nheaders = {a = "b"}', {"http"}),
        ('hosts = "h"\nscheme = ["http", "https"]\nheaders = {a = "b"}', {"http", "https"}),
        ('hosts = ["http://h"]\nheaders = {a = "b"}', {"http"}),
        ('hosts = ["https://h"]\nproxy = ""', {"https"}),
    ],
)
def test_secrets_are_for_https_unless_told(read: Read, inside: str, reached: set[str]) -> None:
    """http is to be said: by scheme, or in the pattern."""
    (rule,) = read(f"[[site]]\n{inside}").rules
    ports = {"http": 80, "https": 443}
    assert {scheme for scheme in ports if rule.matches(scheme, "h", ports[scheme])} == reached


def test_reads_a_proxy(read: Read) -> None:
    """Its url holds no secret; an empty one means none at all."""
    inside = 'proxy_user = "joe"\nproxy_password = "canary-7d1f"'
    one, none = read(
        f'[[site]]\nhosts = "a"\nproxy = "SOCKS5H://Gate:1080/"\n{inside}\n'
        '[[site]]\nhosts = "b"\nproxy = ""'
    ).rules
    assert one.options.proxy == Proxy("socks5h://gate:1080", "basic", Secret("joe"), Secret(CANARY))
    assert str(one.options) == "proxy socks5h://gate:1080"
    assert none.options.proxy == Proxy("")
    assert str(none.options) == "no proxy"


@pytest.mark.parametrize("password", ["", CANARY])
def test_a_client_certificate_is_loaded(read: Read, tmp_path: Path, password: str) -> None:
    """Together with its key, which may be encrypted."""
    certificate, key = Authority(tmp_path).issue("crawler", password)
    word = f'client_key_password = "{password}"\n' if password else ""
    text = f'[[site]]\nhosts = "h"\nclient_cert = "{certificate.name}"\nclient_key = "{key.name}"\n'
    (rule,) = read(text + word).rules
    assert rule.options.client_certificate is not None
    assert rule.options.client_certificate.key == key
    assert CANARY not in repr(rule)
    if password:
        with pytest.raises(ConfigError, match=r"client_cert = .* cannot be used with key"):
            read(text + 'client_key_password = "wrong"')
        with pytest.raises(ConfigError, match=r"client_cert = .* cannot be used with key"):
            read(text)


def test_a_key_of_another_certificate_is_refused(read: Read, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.issue("one")
    authority.issue("two")
    with pytest.raises(ConfigError, match="KEY_VALUES_MISMATCH"):
        read('[[site]]\nhosts = "h"\nclient_cert = "one.crt"\nclient_key = "two.key"')


def test_warns_of_files_that_others_may_read(read: Read, tmp_path: Path) -> None:
    """The sites file where a secret stands in it, and each file that holds one; each once."""
    (tmp_path / "word").write_text(CANARY)
    (tmp_path / "word").chmod(0o640)
    outside = '[[site]]\nhosts = "h"\nauth = "basic"\nuser_file = "word"\npassword_file = "word"'
    warning = f"{tmp_path / 'word'} holds secrets and others may read it: chmod 600 "
    assert read(outside).warnings == (f"{warning}{tmp_path / 'word'}",)
    (tmp_path / "word").chmod(0o600)
    assert read(outside).warnings == ()

    path = tmp_path / "sites.toml"
    path.chmod(0o604)
    assert read_sites_file(path).warnings == ()
    path.write_text('[[site]]\nhosts = "h"\ncookies = { a = "b" }\n' * 2)
    (said,) = read_sites_file(path).warnings
    assert said.startswith(f"{path} holds secrets")


def test_warns_of_certificates_that_are_not_verified(read: Read) -> None:
    (said,) = read('[[site]]\nhosts = "h"\nverify = false').warnings
    assert "[[site]] 1 (h): verify = false: a machine in between" in said
    assert read('[[site]]\nhosts = "h"\nverify = true').warnings == ()


@pytest.mark.parametrize("method, bit", [("ntlm", pycurl.VERSION_NTLM),
                                         ("negotiate", pycurl.VERSION_SPNEGO)])  # fmt: skip
def test_what_libcurl_lacks_is_said_at_the_start(method: str, bit: int) -> None:
    """By its feature bits; the others need none."""
    check_method(method, "x", bit)
    check_method("digest", "x", 0)
    with pytest.raises(ConfigError, match=f"^x = '{method}' is not possible: the libcurl in use"):
        check_method(method, "x", ~bit)


@pytest.mark.parametrize("key", ["auth", "proxy_auth"])
def test_ntlm_depends_on_the_libcurl_in_use(read: Read, key: str) -> None:
    """The libcurl of pycurl's wheel has no NTLM."""
    text = (
        '[[site]]\nhosts = "h"\n'
        + {
            "auth": 'auth = "ntlm"\nuser = "a"\npassword = "b"',
            "proxy_auth": 'proxy = "http://gate:1"\nproxy_auth = "ntlm"\n'
            'proxy_user = "a"\nproxy_password = "b"',
        }[key]
    )
    if pycurl.version_info()[4] & pycurl.VERSION_NTLM:
        assert read(text).rules
    else:
        with pytest.raises(ConfigError, match=rf"\(h\): {key} = 'ntlm' is not possible"):
            read(text)


# docs/sites.md and docs/sign-in.md: their examples are accepted, and they name every key that is.


PAGES = ("sites.md", "sign-in.md")
DOCS = "\n".join((Path(__file__).parents[3] / "docs" / page).read_text("utf-8") for page in PAGES)
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
    assert len(EXAMPLES) == 9


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
    assert len(asked) == 20
    for key in asked | secrets:
        assert f"`{key}`" in columns, key


# larmspider/fetch/sites/model.py: a secret shows nowhere but where it is revealed.


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        lambda secret: f"{secret} {secret!r} {secret!s} {[secret]} { ({'x': secret}) }",
        lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
        lambda secret: json.dumps({"x": secret}, default=str),
        lambda secret: str(vars(type(secret)).keys()),
    ],
)
def test_does_not_show(show: Callable[[Secret], str]) -> None:
    assert CANARY not in show(Secret(CANARY))


@pytest.mark.parametrize("give_away", [pickle.dumps, copy.deepcopy, json.dumps, "".join, len])
def test_cannot_be_taken_for_a_text(give_away: Callable[[Secret], object]) -> None:
    """Code that expects a str or stores objects fails, without the secret in its message."""
    with pytest.raises(TypeError) as caught:
        give_away(Secret(CANARY))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_is_revealed_on_purpose_and_compared_by_value() -> None:
    assert Secret(CANARY).reveal() == CANARY
    assert Secret(CANARY) == Secret(CANARY)
    assert Secret(CANARY) != Secret("other")
    assert Secret(CANARY) != CANARY
    assert len({Secret(CANARY), Secret(CANARY)}) == 1


def test_a_log_record_does_not_hold_it(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("test").warning("with %s and %r", Secret(CANARY), Secret(CANARY))
    assert CANARY not in caplog.text


def test_a_login_belongs_to_one_origin(read: Read) -> None:
    """A path belongs to each host, a URL to its host alone."""
    keys = f'{FIELDS}login_check = "Sign out"\n'
    sites = read(
        f'[[site]]\nhosts = ["a", "b"]\nlogin = "/in"\n{keys}'
        f'[[site]]\nhosts = ["c", "d"]\nlogin = "https://c/in"\n{keys}verify = true\n'
    )
    found = {name: sites.for_url(f"https://{name}/") for name in "abcd"}
    logins = {name: site.options.login for name, site in found.items() if site is not None}
    assert [name for name, login in logins.items() if login is not None] == ["a", "b", "c"]
    assert sites.protected == ["a", "b", "c", "d"]
    assert "signs in at /in (fields u, p)" in str(found["a"])
    assert CANARY not in str(found["a"]) + repr(found["a"])
    assert sites.for_url("http://a/") is None, "for https alone"
    bare = sites.for_url("https://a/", secrets=False)
    assert bare is not None
    assert bare.options.login is None


# render_origins: what the pages of a site may ask with credentials.


def test_origins_are_read_as_urls_are(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    named = '["https://API.example", "http://b\u00fccher.example:80", "https://[::1]:8443", "https://api.example:443"]'
    path.write_text(f'[[site]]\nhosts = "app.example"\n{RENDER}{named}')
    site = read_sites_file(path).for_url("https://app.example/")
    assert site is not None
    urls = ("https://api.example/x", "http://b\u00fccher.example/", "https://[::1]:8443/")
    assert site.options.render_origins == tuple(map(origin_of, urls))
    assert "may ask https://api.example, http://xn--bcher-kva.example, https://[::1]:8443" in str(
        site
    )


def test_a_site_whose_pages_ask_others_with_credentials_is_protected(tmp_path: Path) -> None:
    """And for https alone, as a table with a password is."""
    path = tmp_path / "sites.toml"
    path.write_text(f'[[site]]\nhosts = ["app.example"]\n{RENDER}["https://api.example"]')
    sites = read_sites_file(path)
    assert sites.protected == ["app.example"]
    assert sites.for_url("http://app.example/") is None
    path.write_text('[[site]]\nhosts = ["app.example"]\nrender = true\nrender_origins = []')
    assert read_sites_file(path).protected == []
