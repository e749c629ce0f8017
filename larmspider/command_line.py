"""The console script ``larmspider``: Scrapy's command line under our own name.

scrapy.cmdline imports the modules of all commands and calls itself ``scrapy`` in its usage. Here a
command's module alone is imported, and usage, errors and ``--version`` say ``larmspider``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isclass
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NoReturn

from larmspider import __version__, program

if TYPE_CHECKING:
    from scrapy.commands import ScrapyCommand

OWN = "larmspider.commands"
PACKAGES = (OWN, "scrapy.commands")
HIDDEN = ("bench", "check", "edit", "genspider", "runspider", "startproject", "version")
"""Scrapy's commands for authors of spiders: run, but not listed."""
_VERSION = ("--version", "-V")
_HELP = ("--help", "-h")
_WIDTH = 11
ENTRY_POINTS = "scrapy.commands"
_ASYNCIO = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


def run(arguments: Sequence[str]) -> NoReturn:
    """Run the command that ``arguments`` name. Raises SystemExit with its exit status."""
    if any(argument in _VERSION for argument in arguments[:1]):
        import scrapy

        print(f"larmspider {__version__} (Scrapy {scrapy.__version__})")
        sys.exit(0)
    rest = list(arguments)
    place = next((i for i, word in enumerate(rest) if not word.startswith("-")), None)
    if place is None:
        if unknown := [word for word in rest if word not in _HELP]:
            _refuse(f"unknown option {unknown[0]}: expected a command first")
        print("\n".join(overview()))
        sys.exit(0)
    name = rest.pop(place)
    command = find(name)
    if command is None:
        near = get_close_matches(name, names(), 1)
        meant = f"; did you mean {near[0]}" if near else ""
        _refuse(f"unknown command {name!r}{meant}")
    _execute(name, command, rest)


def names() -> list[str]:
    """The names of all commands, sorted."""
    found = {module.name for package in PACKAGES for module in iter_modules(_path(package))}
    return sorted(found | {point.name for point in entry_points(group=ENTRY_POINTS)})


def find(name: str) -> ScrapyCommand | None:
    """The command of that name: ours, one of Scrapy's, or one of another package's."""
    from scrapy.commands import ScrapyCommand

    for package in PACKAGES:
        if name.isidentifier() and any(one.name == name for one in iter_modules(_path(package))):
            module = import_module(f"{package}.{name}")
            for value in vars(module).values():
                if (
                    isclass(value)
                    and issubclass(value, ScrapyCommand)
                    and value.__module__ == module.__name__
                ):
                    return value()
    for point in entry_points(group=ENTRY_POINTS, name=name):
        loaded: type[ScrapyCommand] = point.load()
        return loaded()
    return None


def overview() -> Iterator[str]:
    """The usage, with a line for each command."""
    yield f"larmspider {__version__}: crawl an intranet, store every page, search it"
    yield ""
    yield "Usage: larmspider COMMAND [options] [arguments]"
    yield ""
    for name in names():
        if name not in HIDDEN and (command := find(name)) is not None:
            yield f"  {name:<{_WIDTH}} {command.short_desc()}"
    yield ""
    yield "larmspider COMMAND --help explains a command, larmspider help a subject."
    yield f"Scrapy's commands for spiders run too: {', '.join(HIDDEN)}."


def _path(package: str) -> Sequence[str]:
    return import_module(package).__path__


def _refuse(message: str) -> NoReturn:
    print(f"{program.NAME}: {message} (`{program.NAME}` lists the commands)", file=sys.stderr)
    sys.exit(2)


def _execute(name: str, command: ScrapyCommand, arguments: list[str]) -> NoReturn:
    """Run a known command, as the second half of scrapy.cmdline.execute() does."""
    from scrapy import cmdline
    from scrapy.commands import ScrapyHelpFormatter
    from scrapy.utils.project import get_project_settings

    settings = get_project_settings()
    settings.setdict(command.default_settings, priority="command")
    command.settings = settings
    parser = cmdline.ScrapyArgumentParser(
        formatter_class=ScrapyHelpFormatter,
        prog=f"{program.NAME} {name}",
        usage=f"{program.NAME} {name} {command.syntax()}",
        conflict_handler="resolve",
        description=command.long_desc(),
    )
    command.add_options(parser)
    options, rest = parser.parse_known_args(args=arguments)
    cmdline._run_print_help(parser, command.process_options, rest, options)
    if command.requires_crawler_process:
        from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess

        asynchronous = settings["TWISTED_REACTOR"] == _ASYNCIO
        is_scrapys = settings.getbool("FORCE_CRAWLER_PROCESS") or not asynchronous
        command.crawler_process = (CrawlerProcess if is_scrapys else AsyncCrawlerProcess)(settings)
    cmdline._run_print_help(parser, cmdline._run_command, command, rest, options)
    sys.exit(command.exitcode)
