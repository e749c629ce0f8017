"""larmspider/cluster/outbox.py: what one worker finds of another one's hosts, on its way there."""

from __future__ import annotations

from larmspider.cluster.keys import Keys
from larmspider.cluster.outbox import Outbox
from larmspider.frontier.storage.records import pack_entry
from tests.support.frontier.conformance import entries


def test_a_url_that_was_forwarded_lately_is_not_forwarded_again():
    """Each page of a site may link to it."""
    outbox = Outbox(Keys("intranet", 8))
    one, two = entries("1", "2", host="b")
    assert outbox.forward([one, two, one]) == 2
    assert outbox.forward([two]) == 0
    assert len(outbox) == 2


def test_urls_sealed_behind_a_commit_whose_answer_was_lost_go_with_the_next_commit():
    outbox = Outbox(Keys("intranet", 8))
    first, second = entries("1", "2", host="b")
    outbox.forward([first])
    outbox.seal()
    outbox.steps(b"posted:w1", 1)
    outbox.forward([second])
    outbox.seal()
    outbox.committed()  # as it turns out now
    (step,) = outbox.steps(b"posted:w1", 2)
    assert step.commands[0][2:] == [pack_entry(second)]
