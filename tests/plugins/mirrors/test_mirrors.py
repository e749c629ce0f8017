from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.plugins.mirrors import mirrors as module
from larmspider.plugins.mirrors.mirrors import Mirror, mirrors
from larmspider.urls.host_resolver import HostResolver
from tests.support.crawling import Ran, scrapy
from tests.support.stored_crawl import StoredCrawl


def visits(host: str, pages: int, other: int = 0, **fields: object) -> Iterator[FetchRecord]:
    """``other`` pages have another text, all have other bytes."""
    for n in range(pages):
        text = b"other" if n < other else b"text"
        digest = f"{host:>10.10}{n:>10}".encode() + b"%-5s%03d" % (text, n)
        values = {"status": 200, "url": f"{host}/{n}", "digest": digest} | fields
        yield FetchRecord(UrlState.STORED, 1.0, **values)  # type: ignore[arg-type]


def found(*hosts: Iterator[FetchRecord], rules: str = "") -> list[Mirror]:
    every = [(b"", visit) for host in hosts for visit in host]
    known = HostResolver.from_properties(rules)
    return [mirror for mirror in mirrors(every) if not mirror.is_known(known)]


def test_hosts_with_the_same_pages_are_proposed() -> None:
    """The one with most pages stands for the others; further paths of either do not count."""
    a, b, c = (visits(f"http://{name}.example", n) for name, n in (("a", 60), ("b", 40), ("c", 20)))
    (first, second) = found(c, a, b)
    assert first == Mirror("b.example", "a.example", 40, 40)
    assert second.line == "synonym(c.example)=a.example"


@pytest.mark.parametrize(
    "host, rules",
    [
        (visits("http://b.example", 19), ""),
        (visits("http://b.example", 40, other=3), ""),
        (visits("http://b.example:8080", 40), ""),
        (visits("http://b.example", 40, status=404), ""),
        (visits("http://b.example", 40), "synonym(b.example)=a.example"),
    ],
    ids=["few", "differ", "port", "errors", "known"],
)
def test_others_are_not(host: Iterator[FetchRecord], rules: str) -> None:
    assert found(visits("http://a.example", 60), host, rules=rules) == []


def test_a_sample_of_each_host_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE", 30)
    a, b = visits("http://[::1]", 100), visits("http://b.example", 90)
    (mirror,) = found(a, b)
    assert 20 <= mirror.common == mirror.equal <= 30
    assert mirror.stands == "[::1]"


def test_an_operator_accepts_a_mirror_by_command(tmp_path: Path) -> None:
    """The line goes into the file of the operator, not into the copy that the crawl goes by; what
    cannot be accepted changes nothing."""
    hosts = visits("http://a.example", 30), visits("http://b.example", 25)
    crawl = StoredCrawl(tmp_path / "crawl", refresh=False)
    crawl.end()
    crawl.make_frontier([], [visit for host in hosts for visit in host])
    file = tmp_path / "hosts.properties"
    file.write_text("# ours")

    def run(*words: str) -> Ran:
        return scrapy("hosts", "--mirrors", *words, cwd=tmp_path)

    proposed = "synonym(b.example)=a.example    25 of 25 common pages equal, "
    for words, why in (
        (["--accept", "c.example"], "--accept c.example: expected a mirror (b.example)"),
        (["--accept", "b.example"], "b.example: LARM_HOST_RESOLVER_FILE is empty: expected"),
    ):
        refused = run(*words)
        assert (refused.status, refused.out) == (2, "")
        assert refused.err.startswith(f"scrapy hosts: {why}")
    crawl.ran_with(LARM_HOST_RESOLVER_FILE=file)
    done = run("--accept", "b.example")
    assert done.out.startswith(f"{proposed}added to {file}\n"), done.err
    assert file.read_text() == "# ours\nsynonym(b.example)=a.example\n"
    assert (crawl.path / "rules" / "hosts.properties").read_text() == "# ours"
    assert run("--json").json == {"mirrors": []}
