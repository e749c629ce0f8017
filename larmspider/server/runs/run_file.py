"""The settings of `larmspider crawl --file FILE`, which a person or the server starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from larmspider.errors import ConfigError
from larmspider.files import make_folder, replace_file
from larmspider.server.config.crawl_file import read_crawl, settings_of
from larmspider.server.config.secrets import Secrets, sites_of
from larmspider.server.config.server_settings import ServerSettings
from larmspider.server.home import CRAWLS, Home
from larmspider.server.runs.gaps import FOLDER as GAPS

SITES = "sites.toml"
"""In the folder of a crawl's runs; names the variables that hold the secrets."""


def settings_of_run(path: Path) -> dict[str, Any]:
    """The settings of a crawl file. In a home the crawl gets its directory there, and its secrets
    by the environment. Raises ConfigError."""
    path = path.expanduser().absolute()
    crawl = read_crawl(path)
    settings = settings_of(crawl)
    secret = any(host.secret for host in crawl.hosts)
    if path.parent.name != CRAWLS:
        if secret:
            raise ConfigError(
                f"{path}: a host has a secret, which is kept in a server's home: expected the file"
                f" in the folder {CRAWLS} of a home"
            )
        return settings
    home = Home.open(path.parent.parent, make=False)
    settings["LARM_DIR"] = str(home.directory_of(path.stem, crawl))
    settings["LARM_SHARED_GAPS"] = str(home.path / GAPS / path.stem)
    if secret:
        listed = ServerSettings.read(home.path).secrets
        try:
            sites, environment = sites_of(crawl, Secrets(home.path, listed))
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        file = home.runs_of(path.stem) / SITES
        try:
            make_folder(file.parent)
            replace_file(file, sites.encode(), private=True)
        except OSError as error:
            raise ConfigError(f"{file}: {error.strerror or error}") from None
        os.environ.update(environment)
        settings["LARM_SITES_FILE"] = str(file)
    return settings
