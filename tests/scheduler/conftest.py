"""robots.txt is fetched by the download handler, as in the tests of the fetch."""

from tests.fetch.conftest import fetcher as fetcher
