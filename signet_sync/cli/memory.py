"""`remember`, `forget`, `statements`, `pin`, `dream`: a person's word on what is remembered, and what rises by itself.

The operations are loaded in the functions: the help does without.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, find_working_directory, show_redactions, show_remedy
from signet_sync.cli.parsing import Group, OfWorkspace, command, stdin_text
from signet_sync.formats.paths import display, dream_page, head_page
from signet_sync.formats.timestamps import local_day
from signet_sync.host.repository import project_at
from signet_sync.text.memory import LONGEST, TYPES
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import basename, flatten

if TYPE_CHECKING:
    from signet_sync.memories.score import Promotion
    from signet_sync.recall.pinning import Mark

_ENOUGH = LONGEST * 32  # bytes: more than a memory may have, in any encoding

_REMEMBER = f"""Remember a text: MEMORY.md shows it from now on, and recall finds it.

\b
TEXT is what to remember, or - to read it from stdin; at most {LONGEST:,} characters. Secrets are
redacted before anything is written. Equal texts of one type are kept once, with the tags of all.
In a git repository it is for that project: sessions of other projects are not told. With
--everywhere, and outside of repositories, it is for all of them.

\b
--type decides the section of MEMORY.md:
  decision, constraint, preference   Decisions & Constraints
  person                             People & Relationships
  blocker, note                      Open Blockers & Technical Notes

\b
Examples:
  signet-sync remember "Ada wants short answers" --type preference
  git log -1 --format=%B | signet-sync remember - --type decision --tag release
"""

_FORGET = """Forget a memory to the last byte: rows, backups, kept copies of the page.

ID is the handle of a memory (^m-…) as MEMORY.md shows it, with or without ^, or its beginning (six
characters). What a session states (^f-…): signet-sync statements withdraw.

Older pages in the workspace's git history are not changed; if there are any, the answer says so.
"""

_STATEMENTS = """Say of what sessions state that it is done, not true, or to be kept.

\b
HANDLE is that of a statement (^f-…) as MEMORY.md, recall and a session's start show it, or its
beginning. Your word counts on every machine that has memory/words/, after every rebuild, and for
the same said again by an agent. To remove the whole session: signet-sync remove.
"""
_WORDS: dict[str, tuple[Mark, str]] = {
    "done": ("done", "It is done: a step, a blocker, a question."),
    "withdraw": ("withdrawn", "It is not true, or not any more: no page shows it, nor does recall."),
    "keep": ("open", "It holds and stays at the top of MEMORY.md, until pin HANDLE --remove."),
}

_PIN = """Pin something to the top of MEMORY.md: neither decay nor budget removes it.

\b
HANDLE is the id of a memory, statement or project, as MEMORY.md, recall and expand show it
(^m-…, ^f-…, ^t-…). Without it, what is pinned is listed.
"""


@command("--agent", "--now", "--json", help=_REMEMBER, short_help="Remember a text.")
@click.argument("text", nargs=-1, required=True)
@click.option("--type", "kind", type=click.Choice(TYPES), default="note", show_default=True, help="Its kind.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="A word to find it by; can be repeated.")
@click.option("--everywhere", is_flag=True, help="For every project, not only for that of this folder's repository.")
@click.option("--private", is_flag=True, help="Only for this agent: no shared context shows it.")
@click.option("--session", type=OfWorkspace(), metavar="SESSION", help="The session it comes from (default: none).")
def remember(context: Context, text: tuple[str, ...], everywhere: bool, **given: Any) -> None:
    context.require_database_file()
    content = stdin_text(_ENOUGH) if text == ("-",) else " ".join(text)
    project = "" if everywhere else project_at(find_working_directory() or "")
    done = context.ask("remember", text=content, project=project, **given, now_us=context.now_us)
    for event in done["events"]:
        context.say(event)
    context.say(done["waiting"])
    memory = done["memory"]

    def show() -> None:
        about = [memory["type"], *(f"#{tag}" for tag in memory["tags"]), *(["private"] if memory["private"] else [])]
        about += [f"of {basename(memory['project'])}"] if memory["project"] else []
        known = "remembered as" if memory["new"] else "already remembered as"
        click.echo(f"{known} ^{memory['id']} ({', '.join(about)})")
        show_redactions(memory["redactions"])

    context.answer(memory, show)


@command("--dry-run", "--yes", "--agent", "--now", "--json", help=_FORGET, short_help="Forget a memory.")
@click.argument("memory", metavar="ID")
def forget(context: Context, memory: str, dry_run: bool, yes: bool) -> None:
    from signet_sync.privacy import remove as forget_operations

    with context.open_workspace(lasting=True, touch_nothing=dry_run) as workspace:
        found = forget_operations.require_memory(workspace.database, context.agent, memory)
        text = display(found.content)
        if dry_run:
            document = {"id": found.id, "dry_run": True, "text": found.content}
            context.answer(document, f"{text}\nnothing was forgotten (--dry-run)")
            return
        if sys.stdin.isatty() and not context.as_json:  # a program that calls this has asked
            context.confirm("forget it for good?", yes=yes, listing=lambda: click.echo(text))
        done = forget_operations.forget(workspace, context.agent, memory, context.now_us)
    context.say(done.waiting)

    def show() -> None:
        gone = done.memory
        click.echo(f"forgot ^{gone.id} ({gone.type}, remembered {local_day(gone.created_at)})")
        if done.pending:
            click.secho("  some bytes of it cannot be deleted yet, every pass tries again", fg="yellow")
        pages = head_page(context.agent), dream_page(context.agent)
        show_remedy(context, done.git_history, "has older pages, which may still show it", pages)

    context.answer(forget_operations.forget_document(done), show)


# ── statements ──

statements = Group("statements", help=_STATEMENTS)


@command("--agent", "--now", "--json", of=statements, name="list")
def list_(context: Context) -> None:
    """List what was said to be done or not true, by whom and when; the newest first."""
    from signet_sync.recall import pinning
    from signet_sync.sync.read_only import open_index

    with open_index(context.place()) as database:
        found = pinning.list_marked(database, context.root, context.agent)

    def show() -> None:
        for one in found:
            said = f"{local_day(one['at'])}  {pinning.IN_WORDS[one['status']]}, says the {one['by']}: "
            click.echo(said + display(one["text"] or "(no longer exists)") + click.style(f" ^{one['id']}", fg="cyan"))
        context.say("" if found else "no statement was said to be done or not true")

    context.answer({"statements": found}, show)


def _add(name: str, said: Mark, help_text: str) -> None:
    @command("--agent", "--now", "--json", of=statements, name=name, help=help_text)
    @click.argument("handle")
    def say(context: Context, handle: str, undo: bool = False) -> None:
        from signet_sync.recall import pinning

        status: Mark = "open" if undo else said
        keep = name == "keep"
        with context.open_workspace(lasting=True) as workspace:
            done = pinning.mark(workspace, context.agent, handle, status, context.now_us, keep=keep)
        context.say(done.waiting)
        shown = "kept" if keep else pinning.IN_WORDS[done.status]
        back = "" if status == "open" else f"\n  to undo: {context.command_line(f'statements {name} {done.id} --undo')}"
        document = {"id": done.id, "text": done.text, "status": done.status}
        context.answer(document, f"{shown}: {display(done.text)} ^{done.id}{back}")

    if said != "open":
        say.params.append(click.Option(["--undo"], is_flag=True, help="It holds after all, whatever was said since."))


for _name, _given in _WORDS.items():
    _add(_name, *_given)


@command("--agent", "--now", "--json", help=_PIN, short_help="Pin something to the top of MEMORY.md, or list the pins.")
@click.argument("handle", type=OfWorkspace(), required=False)
@click.option("--remove", is_flag=True, help="Remove its pin.")
def pin(context: Context, handle: str | None, remove: bool) -> None:
    from signet_sync.recall import pinning
    from signet_sync.sync.read_only import open_index

    if handle is None:
        if remove:
            raise click.UsageError("--remove needs a HANDLE")
        with open_index(context.place()) as database:
            found = pinning.list_pins(database, context.agent)

        def show() -> None:
            for one in found:
                click.echo(
                    click.style(f"^{one['id']}", fg="cyan") + f"  {display(one['text'] or '(no longer exists)')}"
                )
            if not found:
                context.say(f"nothing is pinned; to pin something: {context.command_line('pin HANDLE')}")

        context.answer({"pins": found}, show)
        return
    with context.open_workspace(lasting=True) as workspace:
        done = pinning.pin(workspace, context.agent, handle, context.now_us, remove=remove)
    context.say(done.waiting)
    changed, unchanged = ("unpinned", "was not pinned:") if remove else ("pinned", "already pinned:")
    document = {"id": done.id, "pinned": not remove, "changed": done.changed}
    context.answer(document, f"{changed if done.changed else unchanged} ^{done.id}")


# ── dream ──


@command("--dry-run", "--agent", "--now", "--json")
def dream(context: Context, dry_run: bool) -> None:
    """Sweep an agent's memories: those that recall found often, by several queries, are promoted into MEMORY.md.

    \b
    A memory is promoted after 3 hits by 2 queries, with a score of dream.min_score. DREAMS.md
    records what was promoted, when and why. The background agent sweeps once a day; where none
    runs, use this command. No language model is asked.
    """
    from signet_sync.history import operations as history_operations
    from signet_sync.memories import operations as memories_operations
    from signet_sync.memories.store import memories
    from signet_sync.sync.read_only import require_index

    context.require_database_file()
    if dry_run:
        require_index(context.place())
    with context.open_workspace() as workspace:
        swept = memories_operations.dream(workspace, context.agent, context.now_us, dry_run=dry_run)
        if swept.promoted and not dry_run:
            history_operations.close_dreams(workspace, context.now_us)
        shown = () if context.as_json else swept.promoted
        held = (memories.get(workspace.database, context.agent, one.memory_id) for one in shown)
        texts = {memory.id: flatten(memory.content, 100) for memory in held if memory is not None}
    context.say(swept.waiting)

    def show_one(one: Promotion) -> None:
        queries, days = count_noun(one.queries, "query", "queries"), count_noun(one.unique_days, "day")
        why = f"score {one.score:.2f}: {count_noun(one.recall_count, 'hit')} by {queries} on {days}"
        click.echo(f"  {texts.get(one.memory_id, '')} " + click.style(f"^{one.memory_id}", fg="cyan"))
        click.echo(click.style(f"    {why}", dim=True))

    def show() -> None:
        verb = "would be promoted" if swept.dry_run else "promoted"
        already = f", {swept.skipped} of them promoted before" if swept.skipped else ""
        found = count_noun(swept.candidates, "memory", "memories")
        click.echo(f"{found} found by recall{already}; {len(swept.promoted)} {verb} into MEMORY.md")
        for one in swept.promoted:
            show_one(one)

    document = {
        "sweep_id": swept.sweep_id,
        "candidates": swept.candidates,
        "skipped_already_promoted": swept.skipped,
        "promoted": [
            {
                "memory_id": one.memory_id,
                "score": round(one.score, 6),
                "hits": one.recall_count,
                "days": one.unique_days,
                "queries": one.queries,
            }
            for one in swept.promoted
        ],
        "dry_run": swept.dry_run,
    }
    context.answer(document, show)
