"""Commands that only read a crawl need no secret of its sites file; a crawl does, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from larmspider.reports.explain import explain
from tests.support.crawling import run_scrapy
