"""What the membership of a crawl costs Redis, by blocks and workers.

    python -m benchmarks.membership [--blocks 256 1024 4096 16384] [--workers 2 16]

Workers join a real redis-server until each has its share of the blocks. Printed is what Redis works
on each of these, in microseconds, during which it answers nobody else: a sign of life (each worker,
every third of LARM_LEASE_SECS), a look whether the crawl is at its end (each worker that has
nothing to do, twice a second), and the look into all inboxes that comes before the end. "MB" is all
that the membership keeps in Redis; "bytes" a worker sends with each sign of life.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

from benchmarks.redis_memory import memory
from larmspider.cluster.membership import Membership
from tests.support.servers.redis import RedisServer

_TIMES = 20
_ADDRESS = "127.39.255.3"


def crew(server: RedisServer, workers: int, blocks: int) -> list[Membership]:
    """Workers that have their shares."""
    members = [
        Membership(server.client(), "intranet", f"w{number}", lease_secs=600, blocks=blocks)
        for number in range(workers)
    ]
    for member in members:
        member.join("{}")
    moving = True
    while moving:
        moving = False
        for member in members:
            beat = member.beat()
            if beat.excess:
                member.release(sorted(member.held)[-beat.excess :])
            moving = moving or bool(beat.given) or bool(beat.excess)
    return members


def worked(client: Any, *commands: str) -> float:
    """Microseconds that Redis has worked on these commands."""
    found = client.info("commandstats")
    return sum(float(found.get(f"cmdstat_{name}", {}).get("usec", 0)) for name in commands)


def measure(server: RedisServer, workers: int, blocks: int) -> None:
    client = server.client()
    client.flushall()
    before = memory(client)
    members = crew(server, workers, blocks)
    size = memory(client) - before
    found: dict[str, list[float]] = {"beat": [], "look": [], "inboxes": []}
    for _ in range(_TIMES):
        for name, ask in (("beat", members[0].beat), ("look", members[0].idle)):
            before = worked(client, "evalsha")
            ask()
            found[name].append(worked(client, "evalsha") - before)
        before = worked(client, "llen")
        with client.pipeline(transaction=False) as pipe:
            for block in range(blocks):
                pipe.llen(f"intranet:inbox:{{{block}}}")
            pipe.execute()
        found["inboxes"].append(worked(client, "llen") - before)
    for member in members:  # all have nothing to do: each look goes through all blocks
        member.idle()
    before, looks = worked(client, "evalsha"), _TIMES
    for _ in range(looks):
        members[0].idle()
    all_idle = (worked(client, "evalsha") - before) / looks
    beat, look, inboxes = (statistics.median(times) for times in found.values())
    words = len(members[0]._named(members[0].held))
    print(
        f"| {blocks:,} | {workers} | {beat:,.0f} | {look:,.0f} | {all_idle:,.0f} | {inboxes:,.0f}"
        f" | {size / 1e6:.2f} | {words:,} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--blocks", type=int, nargs="+", default=[256, 1024, 4096, 16384])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 16])
    options = parser.parse_args()
    print("| blocks | workers | beat us | look us | all idle us | inboxes us | MB | bytes |")
    print("|---" * 8 + "|")
    with RedisServer(_ADDRESS, appendonly="no") as server:
        for blocks in options.blocks:
            for workers in options.workers:
                measure(server, workers, blocks)


if __name__ == "__main__":
    main()
