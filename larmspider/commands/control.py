"""scrapy control: give orders to a running crawl, or show the orders in force."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from larmspider import program
from larmspider.command import LarmCommand, print_json
from larmspider.crawl.state import RunState, State
from larmspider.errors import ConfigError, CrawlDirError, HttpError
from larmspider.formatting import counted, printable
from larmspider.frontier.overrides import (
    MAX_DELAY,
    MAX_FACTOR,
    MAX_THREADS,
    MIN_FACTOR,
    HostOverride,
)
from larmspider.status.snapshot import Gauges, state_of, state_text

if TYPE_CHECKING:
    from larmspider.control.controller import RemoteController

DEFAULT = "default"
"""In place of a number: use the value of the settings."""
ACTS: Mapping[str, tuple[Sequence[str], str]] = {
    "threads": (("threads",), "fetches at a time"),
    "connections": (("host", "connections"), "fetches from one host at a time"),
    "delay": (("host", "seconds"), "seconds between two requests to one host"),
    "slow": (("factor",), "a factor for all delays; 1 is normal"),
    "pause": ((), "hand nothing out"),
    "resume": ((), "continue"),
    "stop": ((), "end this run; the same command continues the crawl"),
    "pause-host": (("host",), "send no requests to one host"),
    "resume-host": (("host",), "ask it again"),
    "retry-host": (("host",), "forget its failures"),
    "purge-host": (("host",), "refuse its queued URLs"),
    "seeds": (("urls",), "add URLs, in quotes"),
    "scope": (("restrict",), "another scope, a regular expression"),
}
"""Each act with its arguments, as control/operator.py names them."""
_RANGES: Mapping[str, tuple[float, float]] = {
    "threads": (1, MAX_THREADS),
    "connections": (1, MAX_THREADS),
    "delay": (0.0, MAX_DELAY),
    "slow": (MIN_FACTOR, MAX_FACTOR),
}
_KEPT = tuple(_RANGES)


class Command(LarmCommand):
    def syntax(self) -> str:
        return "[options] [ACT [ARGUMENTS]]"

    def short_desc(self) -> str:
        return "Tune a running crawl: threads, connections, delays, pause, stop"

    def long_desc(self) -> str:
        acts = "; ".join(
            f"{' '.join((name, *map(str.upper, wanted)))}: {what}"
            for name, (wanted, what) in ACTS.items()
        )
        return (
            f"Without ACT, show what is in force. The acts are {acts}. HOST is host:port, as in"
            f" scrapy hosts; '{DEFAULT}' in place of a number restores the value of the settings."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--this-run",
            action="store_true",
            help=f"{', '.join(_KEPT)}: until this run ends (default: over restarts too)",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        form = _form(args, this_run=opts.this_run) if args else {}
        # imported here, 0.2 s: Scrapy imports the modules of all commands for each command
        from larmspider.control.controller import NOT_REACHED, RemoteController

        crawl = self.open_crawl()
        run_state = RunState.of(crawl.path)
        if run_state.state is not State.RUNNING:
            raise CrawlDirError(f"{run_state.sentence} No crawl runs that could be controlled.")
        controller = RemoteController(lambda: [part.path for part in crawl.parts])
        if not args:
            self._show(asyncio.run(self._gauges(controller)), run_state, as_json=opts.json)
            return
        try:
            done = asyncio.run(controller.act(args[0], form, ""))
        except HttpError as refused:
            if str(refused) == NOT_REACHED:
                raise
            raise ConfigError(str(refused).removeprefix("Refused: ")) from None
        if opts.json:
            print_json({"done": done})
        else:
            print(printable(done))

    async def _gauges(self, controller: RemoteController) -> Gauges:
        gauges = await controller.gauges()
        if gauges is None:
            raise CrawlDirError(
                "The crawl runs, and its own server cannot be reached: it was started with"
                " LARM_WEB=no, or by another user"
            )
        return gauges

    def _show(self, gauges: Gauges, run_state: RunState, *, as_json: bool) -> None:
        if as_json:
            found = {"state": state_of(run_state, gauges), "threads": gauges.threads}
            print_json(found | {"scope": gauges.scope, "orders": gauges.orders.as_json()})
            return
        for label, text in _in_force(gauges, run_state):
            print(f"{label:<10}{printable(text)}")


def _form(args: list[str], *, this_run: bool) -> dict[str, str]:
    """The form that the action of the arguments sends. Raises ConfigError."""
    name, values = args[0], args[1:]
    if name not in ACTS:
        raise ConfigError(f"{name!r} is not an act: expected one of {', '.join(ACTS)}")
    wanted = ACTS[name][0]
    if name == "seeds":
        values = [" ".join(values)] if values else []
    if len(values) != len(wanted):
        usage = " ".join((f"{program.NAME} control", name, *map(str.upper, wanted)))
        raise ConfigError(f"{name} with {counted(len(values), 'argument')}: expected {usage}")
    if this_run and name not in _KEPT:
        raise ConfigError(f"--this-run: expected one of {', '.join(_KEPT)}, not {name}")
    form = dict(zip(wanted, values, strict=True))
    if name in _KEPT:
        for field in wanted:
            if field != "host":
                form[field] = _number(name, form[field])
        form["keep"] = "no" if this_run else "yes"
    return form


def _number(name: str, text: str) -> str:
    if text == DEFAULT:
        return "1" if name == "slow" else ""
    low, high = _RANGES[name]
    whole = isinstance(low, int)
    try:
        wanted = low <= (int(text) if whole else float(text)) <= high
    except ValueError:
        wanted = False
    if not wanted:
        kind = "a whole number" if whole else "a number"
        raise ConfigError(
            f"{name} {text!r}: expected {kind} from {low:g} to {high:,g}, or {DEFAULT}"
        )
    return text


def _in_force(gauges: Gauges, run_state: RunState) -> Iterator[tuple[str, str]]:
    orders = gauges.orders
    yield "state", state_text(run_state, gauges)
    if orders.threads is None:
        yield "threads", f"{gauges.threads:,}, as the settings say"
    else:
        until = _until("threads" in orders.for_run)
        yield "threads", f"{gauges.threads:,}{until}, in place of {orders.threads_instead_of:,}"
    yield "scope", gauges.scope or "the hosts of the seeds"
    if orders.factor != 1.0:
        until = _until("factor" in orders.for_run)
        yield "slow", f"all delays are multiplied by {orders.factor:g}{until}"
    for name, own in sorted(orders.hosts.items()):
        yield "host", f"{name} {_order(own)}"


def _order(own: HostOverride) -> str:
    parts = ["paused"] if own.paused else []
    if own.connections is not None:
        until = _until("connections" in own.for_run)
        parts.append(f"{counted(own.connections, 'connection')}{until}")
    if own.delay is not None:
        parts.append(f"delay {own.delay:g} s{_until('delay' in own.for_run)}")
    return ", ".join(parts) or "as the rules say until this run ends"


def _until(for_run: bool) -> str:
    return " until this run ends" if for_run else ""
