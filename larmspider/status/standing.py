"""How a crawl stands, in a word and in a sentence: as its directory says, and itself where it runs.

>>> state_of(condition, numbers)
'paused'
"""

from __future__ import annotations

from larmspider.crawl.state import Condition
from larmspider.status.numbers import Numbers

PAUSED = "paused"
"""In place of State.RUNNING's word."""


def state_of(condition: Condition, numbers: Numbers | None) -> str:
    """One of the words of condition.State, or PAUSED."""
    return PAUSED if numbers is not None and numbers.paused else condition.state.value


def sentence_of(condition: Condition, numbers: Numbers | None) -> str:
    """For people."""
    if numbers is not None and numbers.broken:
        return f"This crawl breaks off: {numbers.broken}."
    if numbers is not None and numbers.paused:
        sentence = condition.sentence
        more = sentence.removeprefix("This crawl runs")
        return f"This crawl is paused{more if more != sentence else '. ' + sentence}"
    if numbers is not None and numbers.waiting:
        return f"{condition.sentence} It is {numbers.waiting}."
    return condition.sentence
