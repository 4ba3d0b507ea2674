#!/bin/sh
# Uses every `fleet` command on three workspaces: a folder, a prefix of a bucket, a revision of a repository. For that it
# starts an object store (moto) and a database of its own, and ends them; Ray is started by the commands.
#
#   sh run.sh [FOLDER]    works in FOLDER, a new one, which is kept (default: one below /tmp, which is deleted)
#
# On PATH: signet-sync with the extras fleet, s3 and postgres, and its python3; moto_server; git. The server of
# PostgreSQL is found where Debian puts it, or on PATH. With FLEET_ADDRESS, that of a Ray cluster, the store and the
# database run already (AWS_ENDPOINT_URL, PGHOST).
set -eu

folder=${1:-}
made=
[ -n "$folder" ] || made=$(mktemp -d) && folder=${folder:-$made/fleet}
mkdir "$folder"
cd "$folder"
folder=$PWD
store='' database=

end() {
    [ -z "$store" ] || kill "$store" 2> /dev/null || true
    [ -z "$database" ] || of_database pg_ctl -D "$database/data" -m immediate stop > /dev/null || true
    rm -rf "$database" ${made:+"$made"}
}
trap end EXIT

# PostgreSQL refuses to run as root; Debian's package makes a user for it.
of_database() (
    cd "$database" && program=$programs/$1 && shift
    [ "$(id -u)" != 0 ] || exec setpriv --reuid=postgres --regid=postgres --clear-groups "$program" "$@"
    exec "$program" "$@"
)

step() {
    printf '\n$'
    for word; do
        case $word in *' '*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    echo
    "$@" || echo "(exit code $?)"
}

# ── an object store and a database; what grants access comes from the environment, never from a URL ──

export SIGNET_STATE="$folder/state" SIGNET_CONFIG="$folder/config.toml"
if [ -z "${FLEET_ADDRESS:-}" ]; then
    export AWS_ACCESS_KEY_ID=example AWS_SECRET_ACCESS_KEY=example AWS_DEFAULT_REGION=us-east-1
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    export AWS_ENDPOINT_URL="http://127.0.0.1:$port"
    moto_server -H 127.0.0.1 -p "$port" > store.log 2>&1 &
    store=$!

    programs=$(ls -d /usr/lib/postgresql/*/bin 2> /dev/null | tail -n 1)
    programs=${programs:-$(dirname "$(command -v initdb)")}
    database=$(mktemp -d)
    export PGHOST="$database" PGUSER=fleet
    [ "$(id -u)" != 0 ] || chown postgres: "$database"
    of_database initdb -D "$database/data" -U fleet -A trust > database.log
    of_database pg_ctl -D "$database/data" -w -l "$database/log" \
        -o "-c listen_addresses='' -c unix_socket_directories='$database'" start > /dev/null
    of_database createdb -h "$database" -U fleet fleet
fi
engine=${FLEET_ADDRESS:+--address $FLEET_ADDRESS}

# ── three workspaces ──

for name in ada ben cleo; do
    signet-sync demo "agents/$name" --yes > /dev/null
done
python3 - << 'PUT'
import time, fsspec
store = fsspec.filesystem("s3")
for _ in range(100):
    try:
        store.mkdir("agents")
        break
    except OSError:
        time.sleep(0.1)
store.put("agents/ben/memory", "agents/ben/memory", recursive=True)
PUT
git -C agents/cleo init -q -b main
git -C agents/cleo add -f memory
git -C agents/cleo -c user.name=Cleo -c user.email=cleo@example.org commit -q -m memory
cat > fleet.toml << FLEET
targets = ["agents/ada", "s3://agents/*", "git+file://$folder/agents/cleo@main"]
FLEET

# ── every command ──

step signet-sync fleet check fleet.toml $engine
step signet-sync fleet index fleet.toml $engine --tables tables
step signet-sync fleet index fleet.toml $engine --tables tables
step signet-sync fleet search 'backslashes cache keys' --tables tables --limit 2
step signet-sync fleet index fleet.toml $engine --to postgresql:///fleet
step signet-sync fleet search 'backslashes cache keys' --from postgresql:///fleet --limit 2
step signet-sync fleet report fleet.toml $engine --html report.html --sarif report.sarif
step signet-sync fleet remove fleet.toml --session 90d7e5b3-4ac1-4f86-b217-c3f8061e9da5 --reason 'asked by Priya' --plan plan.json $engine
step signet-sync fleet remove --approve plan.json --by 'Jo Reyes'
step signet-sync fleet remove --apply plan.json $engine
step signet-sync fleet index fleet.toml $engine --tables tables
step signet-sync fleet search 'backslashes cache keys' --tables tables --limit 2
