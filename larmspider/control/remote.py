"""The crawl of another process, through the server that it runs itself.

A crawl notes where it serves and its token in LARM_DIR/web.json, for its own user alone to read;
``scrapy serve`` beside it passes on what it is asked. Without that file, or when nobody answers,
the pages show what is on disk.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp

from larmspider.control.operator import KEPT
from larmspider.errors import LarmspiderError
from larmspider.status.noted import noted_server
from larmspider.status.numbers import Numbers
from larmspider.web.request import Refused

SECONDS = 2.0
ACT_SECONDS = 15.0
ANSWER_BYTES = 1_000_000
ONCE = frozenset({"seeds"})
"""Acts that one worker does for all."""


class RemoteCrawl:
    """``live`` of ``scrapy serve``; looks for the notes each time, as a crawl may begin or end.

    Of many workers, whose directories ``directories`` names, the numbers are added, and each is
    told to act. A host is one worker's; the others keep what is ordered of it for when it comes.
    """

    def __init__(self, directories: Callable[[], Sequence[Path]]) -> None:
        self._directories = directories

    async def numbers(self) -> Numbers | None:
        answers = await self._ask_all("GET", "stats.json", {}, SECONDS)
        found = []
        for answer in answers:
            with suppress(KeyError, TypeError):
                found.append(Numbers.from_json(answer["numbers"]))
        return Numbers.together(found) if found else None

    async def act(self, name: str, form: Mapping[str, str], who: str) -> str:
        fields = {key: value for key, value in form.items() if key not in ("csrf", "next")}
        fields["everywhere"] = "yes"  # what is ordered is the crawl's, and not one worker's
        found = await asyncio.to_thread(self._noted)
        answers: list[dict[str, Any] | None] = []
        if name in ONCE:  # whoever gets them passes them on
            for url, token in found:
                answers = [await _ask(url, token, "POST", f"control/{name}", fields, ACT_SECONDS)]
                if answers[0] is not None:
                    break
        else:
            asked = [_ask(*one, "POST", f"control/{name}", fields, ACT_SECONDS) for one in found]
            answers = await asyncio.gather(*asked)
        return _said_by(answers, of_a_host=bool(fields.get("host")))

    async def _ask_all(
        self, method: str, path: str, form: Mapping[str, str], seconds: float
    ) -> list[dict[str, Any]]:
        """The answers of those that give one."""
        found = await asyncio.to_thread(self._noted)
        asked = [_ask(url, token, method, path, form, seconds) for url, token in found]
        return [answer for answer in await asyncio.gather(*asked) if answer is not None]

    def _noted(self) -> list[tuple[str, str]]:
        try:
            directories = self._directories()
        except LarmspiderError:
            return []
        return [noted for one in directories if (noted := noted_server(one)) is not None]


def _said_by(answers: Sequence[dict[str, Any] | None], *, of_a_host: bool) -> str:
    """What workers have done, in a sentence. Raises Refused where none did anything."""
    done = [str(answer["done"]) for answer in answers if answer and "done" in answer]
    refused = [str(answer["error"]) for answer in answers if answer and "error" in answer]
    if not done:
        raise Refused(refused[0] if refused else "The crawl's own server cannot be reached.", 409)
    here = [text for text in done if not text.endswith(KEPT)] or done
    said = "; ".join(dict.fromkeys(here))
    if len(answers) > len(done) and not of_a_host:
        why = f": {refused[0]}" if refused else ": the others do not answer"
        said += f" (by {len(done):,} of {len(answers):,} workers{why})"
    return said


async def _ask(
    url: str, token: str, method: str, path: str, form: Mapping[str, str], seconds: float
) -> dict[str, Any] | None:
    timeout = aiohttp.ClientTimeout(total=seconds)
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
            session.request(
                method, url + path, data=form or None, headers=headers, allow_redirects=False
            ) as response,
        ):
            found = json.loads(await response.content.read(ANSWER_BYTES))
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return None
    return found if isinstance(found, dict) else None
