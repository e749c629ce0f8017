"""What came of asking a host for its robots.txt, in words: "None (404): everything is allowed."."""

from __future__ import annotations

from larmspider.frontier.hosts import HostRecord, HostState

_MARK_AND_SPACE = b"\xef\xbb\xbf \t\r\n"


def robots_outcome(record: HostRecord, body: bytes | None) -> str:
    """``body``: what was read last and goes by, None where nothing was.

    >>> robots_outcome(HostRecord("wiki:80", robots_answer="404"), b"")
    'None (404): everything is allowed.'
    """
    answer = record.robots_answer
    if record.state is HostState.LOADING and not answer:
        return "It is being asked for."
    if not answer:  # or asked by a version that did not keep it
        return "It has not been read." if body is None else _of_body(body, "It was read")
    if answer == "address":
        return "None: the address of this host is denied, and so is each of its pages."
    status = answer.removeprefix("http-")
    if answer.isdigit():
        if answer.startswith("2"):
            return _of_body(body or b"", f"Answered {status}")
        why = f"a redirect that leads nowhere, {status}" if answer.startswith("3") else status
        return f"None ({why}): everything is allowed."
    if record.robots_until:
        return f"Not reached the last time ({status}): the rules that were read before go on."
    return f"Not reached ({status}): nothing is allowed until it is."


def _of_body(body: bytes, begin: str) -> str:
    if not body.strip(_MARK_AND_SPACE):
        return f"{begin}, empty: everything is allowed."
    if body.lstrip(_MARK_AND_SPACE).startswith(b"<"):  # no line of a robots.txt does
        return f"{begin} with a page of HTML: what is no rule in it is passed over."
    return f"{begin}."
