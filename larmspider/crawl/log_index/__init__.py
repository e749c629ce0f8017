"""A small index of the logs: where in links.log, store.log and fetch.log a URL's lines lie.

A log is searched at about a second a gigabyte, and a crawl of 100,000 pages has three gigabytes of
links. The index answers in microseconds, says which pages are linked most and which links are
broken, and is made beside the crawl, by another process, from where it ended the last time.

    logs.idx/data.mdb     one LMDB environment
    targets   url_key of a link's target    pages that carry it, where the first 50 of them do
    sources   url_key of a page as fetched  where its lines in links.log begin
    stored    url_key of a canonical URL    its last line in store.log
    fetched   the same                      its last line in fetch.log
    broken    the same                      its last line in fetch.log, where that is a failure
    hosts     host_prefix                   links to a host, those from other hosts, its name
    edges     host_prefix twice             links from one host to another
    results   host_prefix and a result      fetches, bytes, milliseconds
    failures  host_prefix, position         a failed fetch, in fetch.log
    meta                                    how far the logs were read, totals, what is linked most

It holds nothing that is not in the logs: deleted, it is made again.
"""
