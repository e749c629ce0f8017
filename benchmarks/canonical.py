"""What the canonical form costs: ``python -m benchmarks.canonical``, microseconds a URL, best of 9.

The bar is 5 us for an ordinary URL without the cache. can_ada's parse alone stands beside it.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable

import can_ada

from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.normalizer import UrlMemo
from larmspider.urls.resolve import parse_base, resolve

URLS = (
    "http://docs.example/library/os.path.html",
    "http://docs.example/Library/OS.Path.html",
    "http://docs.example/library/?page=2&sort=asc",
    "http://docs.example/",
    "http://docs.example",
    "http://docs.example/library/index.html",
    "http://docs.example/library/os.html#os.path",
    "http://docs.example/a%20b/c.html",
    "http://docs.example/%C3%84rger",
    "http://bücher.example/cart;jsessionid=1F?sid=2&q=x",
)
HREFS = ("../x/y.html", "os.path.html#os.path.join", "http://other.example/a/b")


def microseconds(function: Callable[[str], object], url: str, number: int = 20_000) -> float:
    """Time of one call, the best of 9 runs of ``number`` calls."""
    return min(timeit.repeat(lambda: function(url), number=number, repeat=9)) / number * 1e6


def main() -> None:
    """Print one line a URL."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    canonical = Canonicalizer()
    ways = (canonical, canonical.complete, UrlMemo(canonical).__getitem__, can_ada.parse)
    print("canonical  complete  cached  parse alone   (us)")
    for url in URLS:
        times = [microseconds(way, url) for way in ways]
        print("{:9.2f} {:9.2f} {:7.2f} {:9.2f}     {}".format(*times, url))
    base = parse_base("http://docs.example/library/os.html")
    print("resolve   (us)")
    for href in HREFS:
        print(f"{microseconds(lambda link: resolve(base, link), href):9.2f} {href}")


if __name__ == "__main__":
    main()
