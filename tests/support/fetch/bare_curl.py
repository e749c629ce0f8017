r"""A fetch by pycurl alone, with a sites file and without the download handler.

bare.configure('[[site]]\nhosts = "wiki.example"\nproxy = ""')
bare.get("https://wiki.example/")     # "200 <title>..."
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import pycurl
import pytest

from larmspider.fetch.sites.curl import apply_site
from larmspider.fetch.sites.lookup import Sites, read_sites_file
from tests.support.servers.scripted import Reply

CANARY = "canary-7d1f"
E_PROXY = 97
"""CURLE_PROXY, which pycurl does not name."""


@dataclass
class BareCurl:
    """A minimal fetch: one easy handle, one sites file; what is not set is libcurl's default."""

    folder: Path
    curl: pycurl.Curl = field(default_factory=pycurl.Curl)
    sites: Sites = field(default_factory=Sites)

    def configure(self, text: str) -> None:
        path = self.folder / "sites.toml"
        path.write_text(text)
        self.sites = read_sites_file(path)

    def get(self, url: str, headers: tuple[str, ...] = (), *, forget: bool = True) -> str:
        """Body of the page, after "status "; raises pycurl.error. ``forget``: a handle as new."""
        body = BytesIO()
        if forget:
            self.curl.reset()
        self.curl.setopt(pycurl.URL, url)
        self.curl.setopt(pycurl.TIMEOUT, 20)
        self.curl.setopt(pycurl.WRITEFUNCTION, body.write)
        self.curl.setopt(pycurl.HTTPHEADER, list(headers))
        site = self.sites.for_url(url)
        if site is not None:
            apply_site(self.curl, site, url, [line.encode() for line in headers])
        self.curl.perform()
        return f"{self.curl.getinfo(pycurl.RESPONSE_CODE)} {body.getvalue().decode()}".strip()


@contextmanager
def fails(*codes: int) -> Iterator[None]:
    """The fetch fails with one of libcurl's error codes, whose text holds no secret."""
    with pytest.raises(pycurl.error) as caught:
        yield
    assert caught.value.args[0] in codes, caught.value
    assert CANARY not in str(caught.value)


def echo(request: object) -> Reply:
    return Reply(body=b"ok")
