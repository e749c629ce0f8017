"""Directories are served as for the tests of the web pages."""

from tests.web.conftest import demo_crawl as demo_crawl
from tests.web.conftest import served as served
