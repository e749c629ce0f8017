"""An operator's actions on a running crawl: pause, seeds, pace, hosts, scope, stop.

The pages and commands that show the crawl are in web/ and commands/.
"""
