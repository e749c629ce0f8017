"""Keys of one block lie on one node of a cluster, and blocks are even parts of all hosts."""

from __future__ import annotations

from collections import Counter

import pytest

from larmspider.cluster.joining import wipe
from larmspider.cluster.keys import Keys
from larmspider.errors import ConfigError
from larmspider.frontier.storage.records import host_of, url_key
from tests.support.frontier.conformance import entry
from tests.support.frontier.redis_store import RedisStore


@pytest.mark.parametrize("blocks", [1, 3, 256, 16_384])
def test_the_urls_of_a_block_are_a_range_of_keys(blocks):
    """So that a block can be read, and dropped, without looking through the others."""
    keys = Keys("intranet", blocks)
    for n in range(300):
        url = f"http://h{n}/p"
        block, key = keys.partition_of(host_of(url)), url_key(url)
        assert keys.partition_of_key(key) == block
        assert keys.first_key(block) <= key < keys.first_key(block + 1)
        assert 0 <= block < blocks
    for block in {0, blocks // 2, blocks - 1}:
        first = keys.first_key(block) + b"\0" * 12
        assert keys.partition_of_key(first) == block
        if block:
            before = int.from_bytes(first[:4], "big") - 1
            assert keys.partition_of_key(before.to_bytes(4, "big")) == block - 1


def test_blocks_are_even():
    """Of 64,000 hosts each of 64 blocks has about 1,000."""
    keys = Keys("intranet", 64)
    sizes = Counter(keys.partition_of(f"host-{n}.example:80") for n in range(64_000))
    assert min(sizes.values()) > 850
    assert max(sizes.values()) < 1150


@pytest.mark.parametrize("prefix", ["", "a{b", "a}b"])
def test_a_name_that_would_move_the_hash_tag_is_refused(prefix):
    """Keys of a block would not lie together."""
    with pytest.raises(ConfigError, match="cannot begin"):
        Keys(prefix, 8)


def test_wipe_deletes_one_crawl_and_leaves_seeds(shared_redis, tmp_path):
    """Whatever its number of blocks; others of a similar name stay."""
    client = shared_redis.client()
    store = RedisStore(client, tmp_path)
    prefix = store.keys.prefix
    kept = {
        f"{prefix}:start_urls": "list",
        f"{prefix}2:requests:{{1}}:h": "another crawl",
        f"{prefix}:x:{{crawl}}:workers": "another crawl, of a spider with a colon in its name",
        f"{prefix}:x:owner:{{1}}": "the same",
        f"other{prefix}:requests:{{1}}:h": "another",
    }
    for key, value in kept.items():
        client.set(key, value)
    backend = store.open()
    backend.recover()
    backend.add([entry(f"http://h{n}/") for n in range(50)])
    backend.checkpoint({})
    assert wipe(backend.link, Keys(prefix, 3)) > 50
    assert {key.decode() for key in client.keys(f"*{prefix}*")} >= set(kept)
    assert set(client.keys(f"{prefix}:*{{*")) == set(client.keys(f"{prefix}:x:*"))
    backend.close()
