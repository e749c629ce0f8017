"""How the crawl is doing: monitor, snapshot, totals, forecast, history, summary.

Findings of a crawl (documents, links, hosts) are in reports/, an operator's changes in control/.
"""
