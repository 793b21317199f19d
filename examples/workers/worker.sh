#!/bin/sh
# A worker in the shell, one job at a time; needs curl and jq: DUETIME_URL=... DUETIME_KEY=dt_... sh worker.sh
# The protocol: docs/workers-in-any-language.md
set -u
url=${DUETIME_URL:-http://127.0.0.1:8080}/api/v1/workers
folder=$(mktemp -d)
worker='' runner='' beater=''

run() { # the task $1; its payload comes on stdin, its result goes to stdout, as JSON
    case $1 in
        text.upper) jq -c '.text | ascii_upcase' ;;
        wait.for) sleep "$(jq -r .seconds)" ;;
        *) echo "unknown task $1" >&2; return 1 ;;
    esac
}

call() { # path, body, method
    curl -sS --fail-with-body --max-time 90 -X "${3:-POST}" -H 'Content-Type: application/json' \
        ${DUETIME_KEY:+-H "Authorization: Bearer $DUETIME_KEY"} -d "$2" "$url$1"
}

join() {
    joined=$(call '' "{\"name\": \"sh-$$\", \"lease\": \"${DUETIME_LEASE:-30s}\",
        \"tasks\": [{\"name\": \"text.upper\"}, {\"name\": \"wait.for\"}]}") || return 1
    worker=$(echo "$joined" | jq .worker)
    interval=$(echo "$joined" | jq .heartbeat_seconds)
    echo "worker $worker waits for jobs"
}

beat() { # while process $1 runs job $2, extend the lease; end the process if the job must stop
    while sleep "$interval" && kill -0 $$; do # it must not outlive the worker
        stop=$(call "/$worker/heartbeat" "{\"jobs\": [$2]}") || continue
        [ "$(echo "$stop" | jq '.stop | length')" = 0 ] || kill "$1"
    done
}

perform() { # the job $1
    mine=$(echo "$1" | jq -c '{id, attempt}')
    echo "$1" | jq -c .payload > "$folder/payload"
    run "$(echo "$1" | jq -r .task)" < "$folder/payload" > "$folder/result" 2> "$folder/error" &
    runner=$!
    beat "$runner" "$mine" & beater=$!
    if wait "$runner"; then
        verb=complete
        report=$(jq -cs --argjson job "$mine" '$job + {result: .[0]}' "$folder/result")
    else
        verb=fail
        report=$(jq -cRs --argjson job "$mine" '$job + {error: {type: "Exit", message: .[:4000]}}' "$folder/error")
    fi
    until call "/$worker/$verb" "{\"jobs\": [$report]}" > "$folder/answer"; do
        grep -q worker_not_found "$folder/answer" && break
        sleep 1
    done
    kill "$beater" 2> /dev/null
    runner='' beater=''
}

leave() {
    [ -z "$runner$beater" ] || kill $runner $beater
    call "/$worker" '' DELETE # releases the job
    rm -r "$folder"
    exit 0
}

trap leave TERM INT
until join; do sleep 1; done
while true; do
    # Without jobs, too: it extends the lease, and gives back jobs whose claim was answered in vain.
    call "/$worker/heartbeat" "{\"jobs\": []}" > /dev/null || { sleep 1; join; continue; }
    claimed=$(call "/$worker/claim" "{\"wait\": \"${interval}s\"}") || continue
    job=$(echo "$claimed" | jq -c '.jobs[0] // empty')
    [ -z "$job" ] || perform "$job"
done
