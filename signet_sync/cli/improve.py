"""`improve`: lets a language model redo the sentences, facts and paragraphs that rules made."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from signet_sync.cli.main import Context, json_option, pass_context
from signet_sync.cli.parsing import Command, Moment
from signet_sync.graph import enrichment
from signet_sync.graph.enrichment import Improvement, Waiting
from signet_sync.storage.clock import now_us
from signet_sync.sync.read_only import require_index
from signet_sync.text.phrases import counted

_IMPROVE = """Let the language model of your settings redo what rules made: sentences, facts, paragraphs; newest first.

\b
Files stay as they are. It ends after half an hour, or when the tokens of the day
(llm.daily_tokens) do not suffice for the next call; call it again to go on from there.
--dry-run counts what it would ask for and the tokens of that.
"""
_WHY = {
    "budget": "the tokens of today do not suffice for the next call (llm.daily_tokens): go on tomorrow (UTC)",
    "time": "half an hour is over: call it again to go on",
    "silent": "the model does not answer: signet-sync doctor",
    "interrupted": "interrupted: call it again to go on",
}


@click.command(cls=Command, help=_IMPROVE, short_help="Let a language model redo what rules made.")
@click.option(
    "--since",
    metavar="TIME",
    type=Moment(),
    default=0,
    help="Only what is of this day or time, or later; or so long: 3w.",
)
@click.option("--dry-run", is_flag=True, help="Count files and tokens of the model; ask nothing, write nothing.")
@json_option
@pass_context
def improve(context: Context, since: int, dry_run: bool) -> int:
    context.require_database_file()
    require_index(context.place())
    context.log_to_person()
    with context.opened(touch_nothing=dry_run) as workspace:
        if dry_run:
            waiting = enrichment.measure(workspace, now_us=now_us, environ=os.environ, since_us=since)
            document = waiting._asdict() | {"suffices": waiting.tokens <= waiting.left, "dry_run": True}
            context.answer(document, lambda: _show_waiting(waiting))
            return 0

        def progress(done: int, whole: int) -> None:
            if context.verbose:
                context.say(f"{done + 1} of {whole}")

        done = enrichment.improve(workspace, now_us=now_us, environ=os.environ, since_us=since, progress=progress)
    context.answer(asdict(done) | {"dry_run": False}, lambda: _show(done))
    return {"interrupted": 130, "silent": 1}.get(done.stopped, 0)


def _in_words(counts: dict[enrichment.Kind, int]) -> str:
    facts = counted(counts["facts"], "file")
    return f"{counted(counts['sentence'], 'sentence')} · facts of {facts} · {counted(counts['paragraph'], 'paragraph')}"


def _show_waiting(waiting: Waiting) -> None:
    click.echo(f"to be asked for: {_in_words(waiting.counts)}")
    enough = "enough" if waiting.tokens <= waiting.left else "not enough: it goes on the next day where it ended"
    click.echo(f"at most {waiting.tokens:,} tokens; {waiting.left:,} of {waiting.daily:,} are left today: {enough}")


def _show(done: Improvement) -> None:
    click.echo(f"improved: {_in_words(done.counts)}")
    if done.unusable:
        click.echo(f"{counted(done.unusable, 'answer')} could not be used; asked for again in a day at the earliest")
    if done.stopped:
        click.echo(f"{counted(done.left, 'request')} left; {_WHY[done.stopped]}")
