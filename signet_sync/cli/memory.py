"""`remember` and `forget`, `pin` and `unpin`: let a person decide what is at the top of MEMORY.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signet_sync.cli.main import (
    Context,
    agent_option,
    emit,
    json_option,
    now_option,
    pass_context,
    resolve_now,
    stdin_text,
)
from signet_sync.errors import UsageError
from signet_sync.text.memory import LONGEST, TYPES

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from signet_sync.sync.workspace import Workspace

_ENOUGH = LONGEST * 32  # bytes: more than a memory may have, in any encoding

_REMEMBER = f"""Remember a text: it stands in MEMORY.md from now on, and recall finds it.

\b
TEXT is what to remember, or - to read it from stdin; at most {LONGEST:,} characters. Secrets are
redacted before anything is written. The same text again is kept once, with the tags of both.

\b
--type decides the section of MEMORY.md that it stands in:
  decision, constraint, preference   Decisions & Constraints
  person                             People & Relationships
  blocker, note                      Open Blockers & Technical Notes

\b
Examples:
  signet-sync remember "Ada wants short answers" --type preference
  git log -1 --format=%B | signet-sync remember - --type decision --tag release
"""

_FORGET = """Forget a memory to the last byte: rows, backups, kept copies of the page.

\b
ID is the memory's handle as MEMORY.md shows it (^m-…), with or without ^, or its beginning (six
characters or more).
What comes from a session's files is no memory: signet-sync remove takes the session away.

--purge-history takes it out of every older page in the workspace's git history, too: hashes change, and what you pushed
or cloned is yours to clean. A memory that was forgotten earlier is purged all the same, by its id in full.
"""

_PIN = """Pin something to the head of MEMORY.md: neither decay nor budget takes it away.

\b
HANDLE is an id that MEMORY.md, recall or expand shows (^t-…, ^f-…, ^m-…, s-…), the path of an
artifact, or a session's key, id or token (its summary).
"""

_UNPIN = """Unpin something: decay and budget decide about it again.

\b
HANDLE is what pin took; of something that is gone meanwhile, its id in full.
"""


@click.command(help=_REMEMBER, short_help="Remember a text.")
@click.argument("text", nargs=-1, required=True)
@click.option("--type", "kind", type=click.Choice(TYPES), default="note", show_default=True, help="What it is.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="A word to find it by; may be given again.")
@click.option("--private", is_flag=True, help="For this agent alone: no shared context shows it.")
@click.option("--session", metavar="SESSION", help="The session it comes from (else: your own word).")
@agent_option
@now_option
@json_option
@pass_context
def remember(
    context: Context,
    text: tuple[str, ...],
    kind: str,
    tags: tuple[str, ...],
    private: bool,
    session: str | None,
    agent: str,
    now: str | None,
    as_json: bool,
) -> None:
    from signet_sync.memories import operations as memories_operations

    instant = resolve_now(now)
    said = stdin_text(_ENOUGH) if text == ("-",) else " ".join(text)
    with _opened(context) as workspace:
        done = memories_operations.remember(
            workspace, agent, said, kind=kind, tags=tags, private=private, session=session, now_us=instant
        )
        _say(context, workspace, done.waiting)
    memory = done.memory
    if as_json:
        emit(memories_operations.remembered_document(done))
        return
    more = [memory.type, *(f"#{tag}" for tag in memory.tags), *(["private"] if memory.private else [])]
    click.echo(f"{'remembered as' if done.new else 'remembered already as'} ^{memory.id} ({', '.join(more)})")
    if done.redactions:
        rules = ", ".join(f"{rule} {count}" for rule, count in sorted(done.redactions.items()))
        click.echo(f"Redacted: {rules}")


@click.command(help=_FORGET, short_help="Forget a memory, to the last byte.")
@click.argument("memory", metavar="ID")
@click.option("--purge-history", is_flag=True, help="Rewrite the workspace's git history, too.")
@agent_option
@now_option
@json_option
@pass_context
def forget(context: Context, memory: str, purge_history: bool, agent: str, now: str | None, as_json: bool) -> int:
    from signet_sync.cli.remove import is_waiting, purged_document, say_purged
    from signet_sync.privacy import forget as privacy_forget

    instant = resolve_now(now)
    with _opened(context) as workspace:
        done = privacy_forget.forget(workspace, agent, memory, instant, purge_history=purge_history)
        _say(context, workspace, done.waiting)
    if as_json:
        told = privacy_forget.forgotten_document(done)
        emit(told if done.purged is None else {**told, "purged": purged_document(done.purged)})
        return 1 if is_waiting(done.purged) else 0
    gone = done.memory
    what = f"{gone.type}, remembered {gone.created_at[:10]}" if gone is not None else "no row of it was left"
    click.echo(f"forgot ^{done.id} ({what})")
    if done.pending:
        click.secho("  some bytes of it could not be deleted yet, every pass tries again", fg="yellow")
    if done.purged is not None:
        say_purged(done.purged, f"forget {done.id}")
    elif done.git_history == "contains":
        click.secho("  the workspace's git history has older pages, which may still show it", fg="yellow")
        click.secho(f"  to rewrite it: signet-sync forget {done.id} --purge-history", fg="yellow")
    return 1 if is_waiting(done.purged) else 0


@click.command(help=_PIN, short_help="Pin something to the head of MEMORY.md.")
@click.argument("handle")
@agent_option
@now_option
@json_option
@pass_context
def pin(context: Context, handle: str, agent: str, now: str | None, as_json: bool) -> None:
    _pin(context, handle, agent, now, as_json, pinned=True)


@click.command(help=_UNPIN, short_help="Unpin something.")
@click.argument("handle")
@agent_option
@now_option
@json_option
@pass_context
def unpin(context: Context, handle: str, agent: str, now: str | None, as_json: bool) -> None:
    _pin(context, handle, agent, now, as_json, pinned=False)


def _opened(context: Context) -> AbstractContextManager[Workspace]:
    from signet_sync.app.workspace import opened

    if context.chosen_database == ":memory:":
        raise UsageError(
            "a database in memory is gone when the command ends, and this with it", hint="leave --db :memory: out"
        )
    return opened(context.root, context.settings(), database=context.chosen_database)


def _say(context: Context, workspace: Workspace, waiting: str) -> None:
    for line in (*workspace.events, waiting):
        if line:
            context.say(line)


def _pin(context: Context, handle: str, agent: str, now: str | None, as_json: bool, *, pinned: bool) -> None:
    from signet_sync.recall import pinning

    instant = resolve_now(now)
    with _opened(context) as workspace:
        done = (pinning.pin if pinned else pinning.unpin)(workspace, agent, handle, instant)
        _say(context, workspace, done.waiting)
    if as_json:
        emit({"id": done.id, "pinned": pinned, "changed": done.changed})
    elif pinned:
        click.echo(f"{'pinned' if done.changed else 'pinned already:'} ^{done.id}")
    else:
        click.echo(f"{'unpinned' if done.changed else 'was not pinned:'} ^{done.id}")
