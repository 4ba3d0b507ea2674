"""`expand`: follows a handle to its node, the surroundings, and its words in the transcript."""

from __future__ import annotations

import shlex
from typing import Any

import click

from signet_sync.cli.main import Context, agent_option, json_option, pass_context
from signet_sync.formats.paths import display
from signet_sync.recall.expand import LABELLED
from signet_sync.recall.expand import expand as expanded
from signet_sync.sync.read_only import count_ids, reading
from signet_sync.text.phrases import counted

_AROUND = (
    ("parents", "above"),
    ("children", "below"),
    ("siblings", "beside"),
    ("memories", "memories and facts"),
)
_BARE = 4  # handles without a line


@click.command()
@click.argument("handle")
@click.option(
    "--budget",
    type=click.IntRange(1, 1_000_000),
    default=2_000,
    show_default=True,
    metavar="TOKENS",
    help="Most text shown.",
)
@agent_option
@json_option
@pass_context
def expand(context: Context, handle: str, budget: int) -> int:
    """Follow a handle of MEMORY.md down to the transcript.

    HANDLE is an id or ^handle as on a page, its beginning (six characters or more: t-7c2q), a wikilink or path, or a
    session's key, id or token.
    """
    with reading(context.place()) as database:
        document = expanded(database, context.agent, handle, budget)
    if document["node"]["kind"] != "live":
        count_ids(context.place(), context.agent, [document["node"]["id"]])
    context.answer(document, lambda: _show(document))
    return 0


def _show(document: dict[str, Any]) -> None:
    node = document["node"]
    _title(node)
    _recalled(document)
    for source in document.get("sources", ()):
        if source.get("running"):
            click.echo(f"  said in a running session: expand {display(shlex.quote(source['running']))}")
        else:
            click.echo(f"  stated in {source['path']}, line {source['line']}")
    if node.get("ended_by"):
        click.echo(f"  reported as done in {node['ended_by']}")
    for running in document.get("live", ()):
        key = f"{running['session_key']}#0"
        click.echo(f"  still running, {counted(running['turns'], 'turn')} so far: expand {display(shlex.quote(key))}")
    _relatives("over time, newest first", [one["id"] for one in document.get("chain", ())], document["labels"])
    _relatives("contradicted at the same instant by", document.get("conflicts", []), document["labels"])
    for key, heading in _AROUND:
        _relatives(heading, document[key], document["labels"])
    if document.get("children_left_out"):
        click.echo(f"\n  {document['children_left_out']} more below are not listed")
    if document.get("wording"):
        click.echo()
        click.echo(document["wording"])
    if node["text"]:
        click.echo()
        click.echo(node["text"])
    transcript = document["transcript"]
    if transcript and node["kind"] != "chunk":
        click.echo()
        click.secho(f"transcript: {transcript['path']}", bold=True)
        if transcript["excerpt"]:
            click.echo()
            click.echo(transcript["excerpt"])


def _title(node: dict[str, Any]) -> None:
    kind = node.get("level") or node["kind"]
    mark = f"  ^{node['id']}" if node["kind"] != "live" else ""
    click.echo(click.style(f"{kind} · {display(node['label'])}", bold=True) + click.style(mark, fg="cyan"))
    about = [_days(node)] if node["kind"] != "memory" else [*map("#{}".format, node["tags"])]
    about += ["private"] if node.get("private") else []
    about += [node[key] for key in ("status", "path") if node.get(key)]
    about += [f"thread ^{node['thread']}"] if node.get("thread") else []
    if any(about):
        click.echo("  " + " · ".join(filter(None, about)))


def _recalled(document: dict[str, Any]) -> None:
    """Prints how often recall found a memory, and when it was promoted."""
    if found := document.get("recalled"):
        queries = counted(found["queries"], "query", "queries")
        hits, days = counted(found["hits"], "time"), counted(found["days"], "day")
        click.echo(f"  found {hits} by {queries} on {days}, last {found['last'][:10]}")
    if risen := document.get("risen"):
        click.echo(f"  promoted into MEMORY.md {risen['at'][:10]} (score {risen['score']:.2f}): see DREAMS.md")


def _days(node: dict[str, Any]) -> str:
    first, last = ((node.get(key) or "")[:10] for key in ("earliest", "latest"))
    return f"{first} to {last}" if first and first != last else last


def _relatives(heading: str, ids: list[str], labels: dict[str, str]) -> None:
    if not ids:
        return
    click.echo()
    click.secho(f"  {heading}", bold=True)
    for thing in ids[:LABELLED]:
        if thing in labels:
            click.echo("    " + click.style(f"^{thing}", fg="cyan") + f"  {labels[thing]}")
    # Ids for which the budget left no line are listed all the same, since they can be followed.
    bare = [thing for thing in ids if thing not in labels]
    named, more = bare[:_BARE], len(bare[_BARE:])
    if named:
        rest = f" and {more} more: --json lists them" if more else ""
        click.echo("    " + click.style(" ".join(f"^{thing}" for thing in named), fg="cyan") + rest)
