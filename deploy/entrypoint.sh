#!/bin/bash
# The commands of the container: server, worker, node, or any command of larmspider.
#
#     entrypoint.sh server [OPTIONS]      the server; its home is /data/home
#     entrypoint.sh worker [OPTIONS]      a crawl, or a worker where there is a Redis; into /data/crawl
#     entrypoint.sh node                  a scrapyd node
#     entrypoint.sh token NAME            a token of the server; so add, backup and halt
#     entrypoint.sh healthy               whether the command above works (HEALTHCHECK)
set -eu

secrets=${SECRETS:-/run/secrets} data=${DATA:-/data} note=${TMPDIR:-/tmp}/command
command=${1:-server}
if [ $# -gt 0 ]; then shift; fi
if [ -r "$secrets/redis_url" ]; then
    REDIS_URL=$(cat "$secrets/redis_url")
    export REDIS_URL
fi

serve() {
    larmspider server --home "$data/home" --host 0.0.0.0 "$@" &
    server=$!
    trap 'kill -TERM "$server"' TERM INT
    status=0
    wait "$server" || status=$?
    # a trapped signal ends the first wait
    if kill -0 "$server" 2>/dev/null; then status=0; wait "$server" || status=$?; fi
    # the container's end would kill its crawls
    larmspider server --home "$data/home" halt || true
    exit "$status"
}

healthy() {
    case "$(cat "$note")" in
    server) exec larmspider ctl --home "$data/home" crawls >/dev/null ;;
    node) exec python3 -c "$(node_answers)" ;;
    *) exit 0 ;;  # a worker that has ended ends its container
    esac
}

node_answers() {
    cat <<'END'
import base64, os, urllib.request
secrets = os.environ.get("SECRETS", "/run/secrets")
word = f'{os.environ.get("SCRAPYD_USERNAME", "larm")}:{open(secrets + "/scrapyd_password").read().rstrip()}'
request = urllib.request.Request(
    f'http://127.0.0.1:{os.environ.get("SCRAPYD_HTTP_PORT", "6800")}/daemonstatus.json'
)
request.add_header("Authorization", "Basic " + base64.b64encode(word.encode()).decode())
urllib.request.urlopen(request, timeout=10)
END
}

case "$command" in
server | worker | node) echo "$command" >"$note" ;;
esac
case "$command" in
server) serve "$@" ;;
worker) exec larmspider crawl intranet -v -s LARM_DIR="$data/crawl" "$@" ;;
node)
    unset PYTHONPATH
    mkdir -p "$data/scrapyd"
    cd "$data/scrapyd"
    exec bash "$(dirname "$0")/node.sh" ;;
token | add | backup | halt) exec larmspider server --home "$data/home" "$command" "$@" ;;
healthy) healthy ;;
*) exec larmspider "$command" "$@" ;;
esac
