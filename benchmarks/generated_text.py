"""Text that weighs on an index as real text does, without meaning: Zipf's law and topics.

Word frequencies fall as 1/rank (Zipf), so few words are on every page and most on one or two; half
of a page's words come from its topic, so that words occur together; lengths are log-normal, 350
words in the median and 600 on average, as on documentation sites, unless ``words`` says another
average. The same seed gives the same pages::

    for page in GeneratedPages(seed=1).pages(1000): index.add(page)
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

from larmspider.items import Page

VOCABULARY = 200_000
TOPICS, TOPIC_WORDS = 400, 300
HOSTS = 60
TYPES = ("text/html",) * 17 + ("application/pdf", "application/pdf", "text/plain")
LANGUAGES = ("en",) * 7 + ("de", "de", "fr")
WORDS = 600
"""Of a page, on average."""
_NOW = 1_760_000_000.0
_YEARS_SECS = 5 * 365 * 86_400.0
_ONSETS = [*"bcdfghklmnprstvw", "st", "tr", "pl", "gr", "sh"]
_VOWELS = [*"aeiou", "ai", "ea", "ou"]
_CODAS = ["", "", "", "n", "r", "s", "t", "l", "nd", "ck"]


class GeneratedPages:
    """A collection; ``vocabulary`` has its words, the most frequent first."""

    def __init__(self, seed: int = 1, words: int = WORDS) -> None:
        self._random = random.Random(seed)
        self._length = 5.86 + math.log(words / WORDS)
        self.vocabulary = self._words()
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
        self._topics = [
            self._random.choices(self.vocabulary[200:50_000], k=TOPIC_WORDS) for _ in range(TOPICS)
        ]
        self._topic_weights = list(itertools.accumulate(1 / r for r in range(1, TOPIC_WORDS + 1)))
        self._hosts = list(itertools.accumulate(1 / rank for rank in range(1, HOSTS + 1)))

    def pages(self, count: int) -> Iterator[Page]:
        draw = self._random
        for n in range(count):
            (host,) = draw.choices(range(HOSTS), cum_weights=self._hosts)
            topic = self._topics[draw.randrange(TOPICS)]
            length = min(8_000, max(20, round(draw.lognormvariate(self._length, 1.0))))
            common = draw.choices(
                self.vocabulary, cum_weights=self._weights, k=length - length // 2
            )
            own = draw.choices(topic, cum_weights=self._topic_weights, k=length // 2)
            words = [word for pair in zip(common, own, strict=False) for word in pair]
            title = draw.choices(topic, cum_weights=self._topic_weights, k=4)
            url = f"http://host{host}.example/{topic[0]}/{'-'.join(title)}-{n}"
            yield Page(
                url,
                normalized=url,
                mime=draw.choice(TYPES),
                title=" ".join(title).capitalize(),
                text=" ".join(words),
                body=b"x" * 10,
                language=draw.choice(LANGUAGES),
                fetched=_NOW - draw.random() * _YEARS_SECS,
                digest=f"{n:040x}",
            )

    def _words(self) -> list[str]:
        """Distinct words of one to four syllables, short ones first, as frequent ones are."""
        draw, found = self._random, {}
        while len(found) < VOCABULARY:
            syllables = 1 if len(found) < 200 else draw.choice((2, 2, 3, 3, 4))
            word = "".join(
                draw.choice(_ONSETS) + draw.choice(_VOWELS) + draw.choice(_CODAS)
                for _ in range(syllables)
            )
            found[word] = None
        return list(found)
