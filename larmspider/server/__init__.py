"""The server: any number of crawls in one home, started, scheduled and served (docs/server.md).

    HOME/server.toml        settings of the server              config/server_settings.py
    HOME/crawls/NAME.toml   a crawl                             config/crawl_file.py, _schema.py
    HOME/secrets/NAME       a password, and who gets it         config/secrets.py
    HOME/data/NAME/         the crawl's LARM_DIR
    HOME/runs/NAME/         lock, logs and history of its runs  runs/runs.py
    HOME/gaps/              hosts that several crawls reach     runs/gaps.py
    HOME/tokens.json        hashes of the tokens                people/tokens.py
    HOME/audit.log          who did what                        audit.py

    home.py    the folder itself: claim, names, crawls in it
    config/    what an operator writes; schedule.py: `every day at 02:00` -> the next time
    people/    users, roles, tokens, groups
    runs/      manager.py: which crawl runs now, which waits, what is due; loop.py tells it to tick
               process.py, nodes.py: a crawl as a process, or as jobs of scrapyd nodes
               watch.py: conditions that need a person, and their notices
    api/       /api/v1/, described by openapi.py from one table of operations; push; the client
    app.py     the web application over web/; pages.py, actions.py, form.py: its own pages

Each crawl is a separate process, `scrapy crawl intranet --file ...`. It outlives the server. The
next server finds it again by the lock that the process holds. A crawl imports only the reading of
its file from here.
"""
