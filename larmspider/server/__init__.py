"""The server: any number of crawls in one home, started, scheduled and served (docs/server.md).

    HOME/server.toml        settings of the server                    server_settings.py
    HOME/crawls/NAME.toml   a crawl        crawl_schema.py, crawl_file.py, crawl_edit.py
    HOME/secrets/NAME       a password and the hosts that get it      secrets.py
    HOME/data/NAME/         the crawl's LARM_DIR
    HOME/runs/NAME/         lock, logs and history of its runs        runs.py
    HOME/gaps/              hosts that several crawls reach           gaps.py
    HOME/tokens.json        hashes of the tokens                      tokens.py
    HOME/audit.log          who did what                              audit.py

    home.py       the folder itself: claim, names, crawls in it
    schedule.py   `every day at 02:00` -> the next time
    process.py    a crawl as a process: start, adopt, signal
    watch.py      what waits for a person, shown and told once
    nodes.py      a crawl as jobs of scrapyd nodes: start, adopt, cancel
    manager.py    which crawl runs now, which waits, what is due; told to tick by loop.py
    api.py        /api/v1/, described by openapi.py from one table of operations
    app.py        the web application over web/

Each crawl is a process of its own, `scrapy crawl intranet --file ...`. It outlives the server. The
next server finds it again by the lock that the process holds. A crawl imports nothing from here but
the reading of its file.
"""
