"""What is said before an edit or a command and after a failure: how often, and what.

`python -m benchmarks.moments FOLDER` replays every call of labelled sessions in their order, each with what the earlier
sessions of its project stated, and prints how many of 1,000 calls something was said, and what, to read and judge.
Then thirty planted attempts, each in a session after the one that stated it: how many of them something was said.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.digest import read_sessions
from signet_sync.capture.injections import Moment
from signet_sync.digest.deeds import EDITORS, SHELLS
from signet_sync.digest.record import Record
from signet_sync.digest.statements import Item, list_worked, statements
from signet_sync.digest.summary import item_line
from signet_sync.digest.turns import ToolCall
from signet_sync.pages.hook_context import names
from signet_sync.pages.sections import StatementView
from signet_sync.pages.store.views import AT_MOMENTS
from signet_sync.text.sentences import unescape

HEAD = "## {} · 2026-03-01T10:00:00.000Z\n\n{}\n\n"
FAILED = "- `Bash` · 2026-03-01T10:00:01.000Z · `{}` · failed\n  ```\n  {}\n  ```\n\n"
RAN = "- `Bash` · 2026-03-01T10:00:02.000Z · `{}`\n\n"

# What failed, how, what worked in its place; and what is tried again.
TRIED = (
    (
        "rtk bun run test",
        "error: unrecognized subcommand 'bun'",
        "bun run test",
        "cd /w/app && rtk bun run test 2>&1 | tail -40",
    ),
    ("python scripts/seed.py", "zsh: command not found: python", "python3 scripts/seed.py", "python scripts/seed.py"),
    (
        "npm run typecheck",
        "npm error Missing script: typecheck",
        "npm run check-types",
        "npm run typecheck && npm run lint",
    ),
    ("ruff --fix src", "error: unexpected argument '--fix' found", "ruff check --fix src", "ruff --fix src"),
    (
        "docker-compose up -d db",
        "bash: docker-compose: command not found",
        "docker compose up -d db",
        "docker-compose up -d db",
    ),
    (
        "cargo test parser --lib",
        "error: no library targets found in package",
        "cargo test parser",
        "cargo test parser --lib",
    ),
    (
        "go run cmd/seed.go",
        "go: go.mod file not found in current directory",
        "go run ./cmd/seed.go",
        "go run cmd/seed.go",
    ),
    (
        "pnpm --filter web add zod@*",
        "zsh: no matches found: zod@*",
        "pnpm --filter web add zod",
        "pnpm --filter web add zod@*",
    ),
    ("git push origin main", "remote: error: GH006: Protected branch update failed", "", "git push origin main"),
    ("terraform apply -auto", "Error: flag provided but not defined: unknown flag -auto", "", "terraform apply -auto"),
    (
        "kubectl rollout undo web",
        "error: unknown command undo web",
        "kubectl rollout undo deployment/web",
        "kubectl rollout undo web",
    ),
    ("make migrate-up", "make: *** No rule to make target 'migrate-up'", "make -C db migrate-up", "make migrate-up"),
)
# What was handed over or decided, and the call that it is about: an edit of a file, a command, or a command's error.
STATED = (
    (
        "Decided: src/schema/orders.sql is generated, change tools/gen_schema.py instead",
        "/w/app/src/schema/orders.sql",
        "",
        "",
    ),
    ("Decided: never edit api/openapi.lock.json by hand", "/w/app/api/openapi.lock.json", "", ""),
    ("Decided: the retry limit of src/net/backoff.ts stays at five", "/w/app/src/net/backoff.ts", "", ""),
    (
        "Decided: payment_gateway.py keeps its synchronous client until the vendor fixes theirs",
        "/w/app/src/payment_gateway.py",
        "",
        "",
    ),
    (
        "Tried: a mutex in internal/cache/store.go deadlocks with the flusher, a channel works",
        "/w/app/internal/cache/store.go",
        "",
        "",
    ),
    (
        "Blocked: config/production.yaml waits for the rotated keys, do not touch it",
        "/w/app/config/production.yaml",
        "",
        "",
    ),
    ("Decided: useCheckoutFlow.ts may not import from the admin package", "/w/app/web/useCheckoutFlow.ts", "", ""),
    (
        "Decided: migrations/0042_orders.py is deployed and is never changed again",
        "/w/app/migrations/0042_orders.py",
        "",
        "",
    ),
    ("Tried: lazy loading in web/src/App.tsx breaks the tests of the router", "/w/app/web/src/App.tsx", "", ""),
    ("Decided: vendor/lexer.c is taken over as it is", "/w/app/vendor/lexer.c", "", ""),
    ("Decided: npm audit fix is never run here, it downgrades the bundler", "", "npm audit fix", ""),
    (
        "Decided: prisma db push is for the sandbox only, migrations elsewhere",
        "",
        "npx prisma db push --force-reset",
        "",
    ),
    ("Tried: git stash pop loses the generated files, a commit on a scratch branch works", "", "git stash pop", ""),
    (
        "Decided: helm upgrade --install goes through the release workflow, not by hand",
        "",
        "helm upgrade --install web ./chart",
        "",
    ),
    (
        "Blocked: ERR_PNPM_UNEXPECTED_STORE until the store of the image is moved",
        "",
        "pnpm install --offline",
        "ERR_PNPM_UNEXPECTED_STORE  Unexpected store location",
    ),
    (
        "Tried: TS2742 goes away with an explicit return type of createRouter",
        "",
        "pnpm build",
        "src/router.ts(3,14): error TS2742: The inferred type",
    ),
    (
        "Tried: EADDRINUSE_DEV means that the preview server still runs, npm run stop ends it",
        "",
        "npm run dev",
        "Error: EADDRINUSE_DEV :::4173",
    ),
    (
        'Tried: "database is locked by another" came from the watcher, it is stopped first',
        "",
        "make seed",
        "sqlite3.OperationalError: database is locked by another process",
    ),
)


def views(text: str, day: int = 0) -> Iterator[StatementView]:
    """What a transcript states that may be said at a moment."""
    for place, item in enumerate(statements(Record(text))):
        if item.kind in AT_MOMENTS and item.rule != "done":
            yield _view(item, f"f-{day:06}{place:06}", day)


def _view(item: Item, one: str, day: int) -> StatementView:
    return StatementView(one, item.kind, unescape(item_line(item)), "", day, "", "", item.who, item.line)


def moments_of(text: str) -> Iterator[Moment]:
    """Every call of a transcript that is asked about, and again where it failed."""
    for turn in Record(text).turns:
        for step in turn.steps:
            if isinstance(step, ToolCall) and step.detail:
                if step.tool in EDITORS:
                    yield Moment(step.detail, "", "")
                elif step.tool in SHELLS:
                    yield Moment("", step.detail, "")
                    if step.failed:
                        yield Moment("", step.detail, step.printed or "failed")


def still_open(known: Sequence[StatementView], text: str) -> list[StatementView]:
    """What is still said after a session: no dead end whose command worked there."""
    worked = tuple(f'"{command}" ' for command in list_worked(Record(text).turns))
    return [view for view in known if view.kind != "tried" or not view.text.startswith(worked)]


def replay(folder: Path) -> tuple[int, list[str]]:
    """How many calls sessions made, and what was said at which."""
    sessions = sorted(read_sessions(folder, folder), key=lambda one: str(one.labels.get("started_at")))
    known: dict[str, list[StatementView]] = defaultdict(list)
    calls, told = 0, list[str]()
    for day, session in enumerate(sessions, 1):
        project = str(session.labels.get("project"))
        given: set[str] = set()
        for moment in moments_of(session.text):
            calls += not moment.error
            for view in known[project]:
                if view.text not in given and names(view, moment):
                    given.add(view.text)
                    at = moment.path or moment.command
                    when = "after it failed" if moment.error else "before"
                    told.append(f"{session.name}: {at[:160]}\n    {when}: {view.kind} ({view.speaker}): {view.text}")
                    break
        known[project] = [*views(session.text, day), *still_open(known[project], session.text)]
    return calls, told


def planted() -> list[str]:
    """The planted attempts at which nothing was said."""
    missed = []
    begun = HEAD.format("User", "please go on with the work on the app")
    for failed, printed, worked, again in TRIED:
        text = (
            begun
            + FAILED.format(failed, printed)
            + (RAN.format(worked) if worked else "")
            + HEAD.format("Assistant", "Done.")
        )
        if not any(names(view, Moment("", again, "")) for view in views(text)):
            missed.append(again)
    for said, path, command, error in STATED:
        text = begun + HEAD.format("Assistant", f"The work is done and tested.\n\n{said}")
        if not any(names(view, Moment(path, command, error)) for view in views(text)):
            missed.append(path or f"{command} {error}")
    return missed


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints what was said, and how often."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moments", description=__doc__)
    parser.add_argument("folder", type=Path)
    calls, told = replay(parser.parse_args(arguments).folder)
    print("\n".join(told))
    often = 1000 * len(told) / max(calls, 1)
    print(f"{calls:,} calls, {len(told)} times something was said: {often:.1f} in 1,000 (goal ≤ 5)")
    missed = planted()
    count = len(TRIED) + len(STATED)
    print(f"planted: {count - len(missed)} of {count} (goal ≥ 15)", *(f"  silent: {one}" for one in missed), sep="\n")


if __name__ == "__main__":
    main()
