"""How the crawl is doing: monitor, snapshot, totals, forecast, history, summary.

What a crawl has found (documents, links, hosts) is reports/, what an operator changes control/.
"""
