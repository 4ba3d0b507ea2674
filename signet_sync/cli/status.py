"""`status`, `doctor`, `logs`: whether the agent is alive, what is indexed, what is wrong and how to mend it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import click

from signet_sync.admin.status import advice, healthy, status_document
from signet_sync.cli.main import Context
from signet_sync.cli.parsing import command
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.paths import display, head_page
from signet_sync.formats.timestamps import local_day
from signet_sync.storage.files import require_root
from signet_sync.text.phrases import count_noun, human

_WELL = ("watching", "polling", "reconciling")


@command("--json")
@click.option(
    "--check", is_flag=True, help="Exit 1 if no agent is running, it is halted, or its last full pass is too old."
)
def status(context: Context, check: bool) -> int:
    """Show the state of the agent, the last pass, counts, open violations and sizes."""
    document = status_document(context.place())
    lost = not (document["running"] or os.path.isdir(context.root))  # an agent that is alive waits for its workspace
    if lost and not context.as_json:  # of which the document contains the reason
        require_root(context.root)
    context.answer(document, lambda: click.echo("\n".join(_lines(document))))
    return WorkspaceError.exit_code if lost else 1 if check and not healthy(document) else 0


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields the whole status, in colours."""
    yield from _agent_lines(document)
    yield _line("workspace", display(document["workspace"]))
    if document["size"]:
        yield _line("database", f"{display(document['database'])} ({human(document['size'])})")
    # What looks for later changes if no agent does; without an index there is other advice.
    stopped = not document["running"] and document["readable"] and document["last_full_pass"]
    again = "; later changes are found by: signet-sync reindex" if stopped else ""
    yield _line("last pass", (document["last_full_pass"] or "never") + again)
    if document["watch"]:
        yield _line("watch", document["watch"])
    nouns = ("artifact", "session", "agent", "tombstone")
    yield _line("indexed", " · ".join(count_noun(document["counts"][f"{noun}s"], noun) for noun in nouns))
    if document["memory"]:
        pages = (
            f"{agent}: {display(os.path.join(document['workspace'], head_page(agent)))}" for agent in document["memory"]
        )
        yield _line("pages", " · ".join(pages))
    agents = document["memory"].values()
    memories, promoted = (sum(agent[name] for agent in agents) for name in ("memories", "promotions"))
    if memories:
        last = max((local_day(agent["last_dream"]) for agent in agents if agent["last_dream"]), default="never")
        yield _line("memory", f"{count_noun(memories, 'memory', 'memories')} · {promoted} promoted · last dream {last}")
    if document["meaning"]:
        yield _line("meaning", document["meaning"])
    yield from _problem_lines(document)
    yield from _intake_lines(document)
    yield from _use_lines(document)
    for name in document["set_aside"]:
        yield _line("damaged", f"{name} was moved aside → signet-sync doctor", fg="yellow")
    if document["trouble"]:
        yield _line("trouble", display(document["trouble"]), fg="yellow")


def _line(label: str, text: str, **style: Any) -> str:
    return label.ljust(11) + (click.style(text, **style) if style else text)


def _agent_lines(document: Mapping[str, Any]) -> Iterator[str]:
    state = document["state"]
    good = document["responding"] and state in _WELL
    pid = f" (pid {document['pid']})" if document["pid"] else ""
    yield _line("agent", f"{state}{pid}", fg="green" if good else "red" if "halted" in state else "yellow", bold=True)
    for one in advice(document):
        yield _line("", display(f"{one.message}; {one.remedy}"), **({"fg": "red"} if one.bad else {}))


# What is counted, in words, and the command that shows it.
_PROBLEMS = {
    "violations": ("changed or missing", "signet-sync violations list"),
    "invalid": ("invalid", "signet-sync check"),
    "tombstoned": ("of removed sessions", "signet-sync check"),
}


def _problem_lines(document: Mapping[str, Any]) -> Iterator[str]:
    counts, drifted = document["counts"], document["entity_drift"]
    wrong = {name: told for name, told in _PROBLEMS.items() if counts[name]}
    if wrong:
        found = " · ".join(f"{counts[name]} {words}" for name, (words, _) in wrong.items())
        shown = ", ".join(dict.fromkeys(command for _, command in wrong.values()))
        yield _line("problems", f"{sum(counts[name] for name in wrong)}: {found} → {shown}", fg="red")
    if drifted:
        told = f"{count_noun(drifted, 'entity file')} not as recorded → signet-sync entity check"
        yield _line("" if wrong else "problems", told, fg="red")
    if document["backlog"]:
        left = count_noun(document["backlog"], "file or session", "files or sessions")
        yield _line("backlog", f"{left} left to read")


def _intake_lines(document: Mapping[str, Any]) -> Iterator[str]:
    intake = document["intake"]
    if intake["harnesses"] or intake["waiting"] or intake["at_work"]:
        harnesses = ", ".join(intake["harnesses"]) or "no harness"
        work = f" · {count_noun(intake['at_work'], 'session')} active recently" if intake["at_work"] else ""
        yield _line("intake", f"{harnesses} · {count_noun(intake['waiting'], 'job')} waiting{work}")
    if intake["given_up"] or intake["unfinished"]:
        text = (
            f"{count_noun(intake['unfinished'], 'ending')} unfinished"
            f" · {count_noun(intake['given_up'], 'job')} given up → signet-sync logs intake"
        )
        yield _line("", text, fg="yellow")


def _use_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields what models took, and what memory gave."""
    tokens, seen = document["tokens"], document["receipt"]
    if tokens["daily"] is not None:
        today = f"{tokens['today']:,} of {tokens['daily']:,} tokens today"
        yield _line("model", f"{today} · {tokens['last_30_days']:,} in 30 days")
    if tokens["trouble"]:
        yield _line("", display(tokens["trouble"]), fg="yellow")
    if seen is None or not (seen["sessions"] or seen["questions"] or seen["notes"] or seen["corrections"]):
        return
    stale = f", {count_noun(seen['stale'], 'line')} of it stale" if seen["stale"] else ""
    yield _line(
        f"{seen['days']} days",
        f"about {count_noun(seen['tokens'], 'token')} given to {count_noun(seen['sessions'], 'session')}{stale}"
        f" · {count_noun(seen['questions'], 'question')} answered from memories · {count_noun(seen['notes'], 'note')}"
        f" · {count_noun(seen['corrections'], 'correction')} · {human(seen['bytes_kept'])} kept"
        + ("" if tokens["last_30_days"] else " · no model asked"),
    )


# ── doctor ──

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}


@command("--json")
def doctor(context: Context) -> int:
    """Check the installation end to end; each problem with its remedy. Exit 1 if there are problems."""
    from signet_sync.admin.doctor import examine  # all that can be wrong: not for the status

    findings = examine(context.root, context.database_path())
    levels = {finding.level for finding in findings}

    def show() -> None:
        for finding in findings:
            if context.quiet and finding.level == "ok":
                continue
            mark, colour = _MARKS[finding.level]
            name = finding.name.replace("-", " ")
            click.echo(click.style(f"{mark} ", fg=colour) + display(f"{name}: {finding.message}"))
            for number, line in enumerate(finding.remedy.split("\n") if finding.remedy else ()):
                click.echo(f"    {' ' if number else '→'} {display(line)}")
        if "problem" in levels:
            click.secho("problems were found", fg="red", bold=True)
        elif "warning" in levels:
            click.secho("no problems, but warnings (marked !)", fg="yellow", bold=True)
        elif not context.quiet:
            click.secho("everything is in order", fg="green", bold=True)

    document = {"ok": "problem" not in levels, "findings": [asdict(finding) for finding in findings]}
    context.answer(document, show)
    return 0 if document["ok"] else 1


# ── logs ──

_LOGS = ("agent", "intake", "hook")


@command()
@click.argument("log", type=click.Choice(_LOGS), metavar="[agent|intake|hook]", default="agent")
@click.option("-n", "--lines", type=click.IntRange(0, 10_000), default=20, show_default=True, help="Lines shown.")
def logs(context: Context, log: str, lines: int) -> None:
    """Show where a log is, and its last lines: of the agent, of captured transcripts, of failed hooks."""
    path = os.path.join(context.state().logs, f"{'signet-sync' if log == 'agent' else log}.log")
    click.echo(path, err=True)
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            last = deque(handle, maxlen=lines)
    except FileNotFoundError:
        require_root(context.root)
        hint = "it is written as soon as there is something to tell"
        raise UsageError("nothing was logged yet", path=path, hint=hint, code="no-log") from None
    click.echo("".join(last), nl=False)
