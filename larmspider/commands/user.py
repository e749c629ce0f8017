"""larmspider user: the users of a server, on the machine where its home is."""

from __future__ import annotations

import argparse
from pathlib import Path

from larmspider.command import LarmCommand, print_json
from larmspider.errors import ConfigError
from larmspider.formatting import utc


class Command(LarmCommand):
    of_a_crawl = False

    def syntax(self) -> str:
        return "[options] add NAME | list | role NAME ROLE | reset NAME | delete NAME"

    def short_desc(self) -> str:
        return "Add and change the users of a server, and give them new passwords"

    def long_desc(self) -> str:
        return (
            "Add, list and change the users of a server (docs/server.md), while it runs or not."
            " `add` and `reset` print a password once. Roles are operator, editor and reader."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--home", metavar="DIR", default="larmspider-home", help="the home of the server"
        )
        parser.add_argument(
            "--role", default="reader", help="add: operator, editor or reader (default)"
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        # imported here: Scrapy imports the modules of all commands for each command
        from larmspider.server.audit import Audit
        from larmspider.server.home import Home
        from larmspider.server.people.tokens import TokenStore
        from larmspider.server.people.users import new_password

        home = Home.open(Path(opts.home), make=args[:1] == ["add"])
        tokens, password = TokenStore(home.path), ""
        users = tokens.users
        match args:
            case ["list"]:
                if opts.json:
                    rows = [{"name": one.name, "role": one.role} for one in users.all()]
                    print_json({"users": rows})
                for one in [] if opts.json else users.all():
                    print(f"{one.name}  {one.role}  {utc(one.made)[:10]}")
                return
            case ["add", name]:
                password = new_password()
                users.add(name, opts.role, password)
                done = f"{name} is {opts.role}; the password is"
            case ["role", name, role]:
                users.set_role(name, role)
                done = f"{name} is {role} now; the sessions have ended"
            case ["reset", name]:
                password = new_password()
                users.set_password(name, password)
                done = f"the sessions of {name} have ended; the password is"
            case ["delete", name]:
                users.remove(name, tokens.remove_of)
                done = f"{name} is deleted, with all tokens and sessions"
            case _:
                raise ConfigError(
                    f"{' '.join(args)!r}: expected add NAME, list, role NAME ROLE, reset NAME or"
                    " delete NAME"
                )
        Audit(home.path).note("operator", "", f"user {args[0]}", args[1], "done")
        print(done, password)
