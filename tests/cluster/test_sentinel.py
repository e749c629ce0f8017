"""REDIS_URL may name sentinels; each connection goes to the master that they name."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from larmspider.cluster.redis_client import connect, link_to
from larmspider.errors import ConfigError, TemporaryError
from tests.support.servers.redis import sentinel


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://:s3cret@host:26379",
        "redis+sentinel://:s3cret@host:26379/",
        "redis+sentinel://:s3cret@host:26379/mymaster/x",
        "redis+sentinel://:s3cret@host:26379/mymaster/\N{ARABIC-INDIC DIGIT FOUR}",
        "redis+sentinel://:s3cret@host:0/mymaster/0",
        "redis+sentinel://:s3cret@host,other:99999/mymaster/0",
        "redis+sentinel://:s3cret@host:x/mymaster/0",
        "redis+sentinel://:s3cret@/mymaster/0",
        "redis+sentinel://:s3cret@a:1,,b:2/mymaster",
    ],
)
def test_another_form_is_refused(url):
    with pytest.raises(ConfigError, match="HOST:26379,HOST2:26379/NAME/0") as caught:
        connect(Settings({"REDIS_URL": url}))
    assert "s3cret" not in str(caught.value)


def test_the_master_that_sentinels_name_is_used(redis_server):
    """With a database and password; the first sentinel does not answer. Messages name neither."""
    server = redis_server(password="s3cret")
    with sentinel(server) as place:
        url = f"redis+sentinel://:s3cret@127.31.0.9:1,{place}/mymaster/3"
        link = link_to(Settings({"REDIS_URL": url}))
        assert link.name == f"mymaster (by Sentinel at 127.31.0.9:1,{place})/3"
        link.run([("SET", "k", "v")])
        assert list(server.client().info("keyspace")) == ["db3"]
        link.client.close()


def test_a_master_that_no_sentinel_knows_is_waited_for(redis_server, monkeypatch):
    monkeypatch.setattr("larmspider.cluster.redis_client.START_SECS", 0.1)
    server = redis_server()
    with sentinel(server) as place:
        url = f"redis+sentinel://127.31.0.9:1,{place}/other/0"
        with pytest.raises(TemporaryError, match=r"No master found for 'other'$"):
            link_to(Settings({"REDIS_URL": url}))


def test_a_sentinel_without_the_word_is_refused_with_the_way_that_works(redis_server):
    with sentinel(redis_server()) as place:
        for url in (f"redis://{place}/0", f"redis://{place}/mymaster/0"):
            with pytest.raises(ConfigError, match=r"is a Sentinel: expected REDIS_URL=redis\+sent"):
                link_to(Settings({"REDIS_URL": url}))
