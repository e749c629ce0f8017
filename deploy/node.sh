#!/bin/bash
# Starts scrapyd in a container, with what the secrets hold in its environment. At the end its jobs
# are told too, and waited for: a container's stop reaches its first process only.
set -eum  # m: scrapyd and its jobs are a process group of their own

secrets=${SECRETS:-/run/secrets}
SCRAPYD_USERNAME=${SCRAPYD_USERNAME:-larm}
SCRAPYD_PASSWORD=$(cat "$secrets/scrapyd_password")
: "${SCRAPYD_PASSWORD:?is empty, and scrapyd would let in everybody}"
export SCRAPYD_USERNAME SCRAPYD_PASSWORD
if [ -r "$secrets/redis_url" ]; then
    REDIS_URL=$(cat "$secrets/redis_url")
    export REDIS_URL
fi

scrapyd --pidfile= &
group=$!

stop() {
    trap '' TERM INT
    kill -TERM -- "-$group"
    while kill -0 -- "-$group" 2>/dev/null; do sleep 0.1; done
    exit 0
}
trap stop TERM INT
wait "$group"
