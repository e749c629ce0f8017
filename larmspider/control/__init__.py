"""What an operator can do to a crawl that runs: pause, seeds, pace, hosts, scope, stop.

What a page or a command shows of it does not belong here (web/, commands/).
"""
