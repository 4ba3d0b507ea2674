"""`setup`: leads through everything that a first start needs, with the operations of the single commands."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import click

from signet_sync.admin import hooks_install
from signet_sync.capture import transcripts
from signet_sync.capture.harnesses import registry
from signet_sync.capture.transcripts import TranscriptSource
from signet_sync.cli import import_, init, main, reindex
from signet_sync.cli import service as service_command
from signet_sync.cli.main import Context, one_line, show_by_hand
from signet_sync.cli.parsing import command
from signet_sync.errors import ConfigError, SignetSyncError
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import MEMORY, SETTINGS, SIGNET_DATABASES, display
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.host import service as services
from signet_sync.pages.operations import compose_at_start
from signet_sync.pages.others import daemon_pid
from signet_sync.pages.sections import clause
from signet_sync.storage.files import require_root
from signet_sync.text.digest_mark import ASKED
from signet_sync.text.index_words import STOP_WORDS, fold
from signet_sync.text.phrases import count_noun
from signet_sync.text.sentences import flatten

_FIRST, _NEWEST = 20_000_000, 30 * DAY  # bytes and age of the transcripts that are imported and indexed first
_TOLD = 16  # lines of what a session is told
# A statement or outcome among them: its words, before who said it, when, and its handles.
_STATEMENT = late(
    r"- (?:\*\*.*?\): |(?:\w{3} \d{1,2}|\w+): |[^?]{1,80}[?] — )?(.+?)(?: \([^()]*\))*(?: \^[fst]-[a-z2-7]+)+"
)
_HANDLE = late(r"\^[a-z]-[a-z2-7]+")
_LEAST, _CLAUSE, _WORD = 4, 90, late(r"[^\W_][\w./-]*\w")  # words and characters of a question made of one
PLANNED, DONE, PRESENT, ABSENT, SKIPPED, FAILED = "planned", "done", "present", "absent", "skipped", "failed"


@dataclass(slots=True)
class Step:
    """One part of the set-up: what is there or will be done (`text`), what carries it out, and what came of it.

    `state` is one of the constants above; a step with a `question` is carried out only after a yes. `left` is what
    stays for the person to do.
    """

    name: str
    state: str
    text: str
    act: Callable[[Step], None] | None = None
    question: str = ""
    left: tuple[str, ...] = ()
    error: SignetSyncError | None = None


@command("--dry-run")
@click.option("--yes", is_flag=True, help="Do not ask: take the recommended answers.")
@click.option("--no-hooks", is_flag=True, help="Leave the settings of coding agents alone.")
@click.option("--no-service", is_flag=True, help="Do not start the agent in the background.")
def setup(context: Context, yes: bool, dry_run: bool, **left_out: bool) -> int:
    """Set everything up: the workspace, hooks of the coding agents found here, past sessions, index and service.

    Asks at most three questions, Enter takes the recommended answer; what exists is kept, and a second run changes
    nothing that is in place.

    init, hooks install, import, reindex and service install do the same one by one.
    """
    if not (yes or dry_run or sys.stdin.isatty()):
        raise click.UsageError("setup asks questions: use --yes where none can be answered, or --dry-run to look")
    looks: dict[str, Callable[[Context], Step]] = {
        "workspace": _look_at_workspace,
        "hooks": _look_at_hooks,
        "import": _look_at_past,
        "index": _look_at_index,
        "service": _look_at_service,
    }
    for line in [] if context.quiet else [f"setting up {context.root}", *_tell_of_signet(context.root)]:
        click.echo(display(line))
    steps = [
        Step(name, SKIPPED, f"left out (--no-{name})")
        if left_out.get(f"no_{name}")
        else _attempt(context, Step(name, FAILED, ""), partial(look, context))
        for name, look in looks.items()
    ]
    for step in () if yes or dry_run or steps[0].state == FAILED else steps:
        if step.state == PLANNED and step.question and not click.confirm(step.question, default=True, err=True):
            step.state, step.text = SKIPPED, f"left out: {step.text}"
    for step in steps:
        if step.state == PLANNED and steps[0].state == FAILED:
            step.state, step.text = SKIPPED, "needs the workspace"
        if step.state == PLANNED and step.act is not None and not dry_run:
            step.state = DONE
            _attempt(context, step, partial(step.act, step))
        if not context.quiet:
            word = {PRESENT: "in place: ", PLANNED: "would ", FAILED: "failed: "}.get(step.state, "")
            text = step.text if step.error is None else one_line(step.error)
            click.secho(display(f"{step.name:<11}{word}{text}"), fg="red" if step.state == FAILED else None)
    if not context.quiet:
        show_by_hand([display(line) for step in steps for line in step.left])
        if dry_run:
            click.echo("nothing was done (--dry-run)")
        else:
            _show_rest(context, steps)
    return int(any(step.state == FAILED for step in steps))


# ── what is there ──


def _attempt(context: Context, step: Step, do: Callable[[], Step | None]) -> Step:
    """Returns the step after a look or an act; an error is its result, so that it keeps no other from being done."""
    try:
        return do() or step
    except (SignetSyncError, OSError) as error:
        step.error = error if isinstance(error, SignetSyncError) else main.system_error(error, context.root)
        step.state = FAILED
        return step


def _tell_of_signet(root: str) -> list[str]:
    """Returns what to say of a workspace that Signet uses; empty if it does not."""
    if daemon_pid(root) is None and not any(os.path.lexists(os.path.join(root, path)) for path in SIGNET_DATABASES):
        return []
    return [
        "Signet uses this workspace, too. Nothing of it is changed here:",
        "  signet-sync migrate signet brings over what its database remembers",
    ]


def _look_at_workspace(context: Context) -> Step:
    root = context.root
    lacking = [path for path in (MEMORY, SETTINGS) if not os.path.lexists(os.path.join(root, path))]

    def act(step: Step) -> None:
        step.text = root
        if earlier := init.follow(context, root, init.make(root)):
            step.left = (earlier,)

    if os.path.exists(root):
        require_root(root)
    if closed := main.unwritable(root):
        raise closed
    if not lacking:
        return Step("workspace", PRESENT, root)
    return Step("workspace", PLANNED, f"{'complete' if os.path.lexists(root) else 'create'} {root}", act)


def _look_at_hooks(context: Context) -> Step:
    root = context.root
    found = hooks_install.conditions(root, hooks_install.choose_harnesses(hooks_install.AUTO))
    if not found:
        text = f"no coding agent found ({', '.join(registry.list_hooked())}); later: signet-sync hooks install auto"
        return Step("hooks", ABSENT, text)
    left, connected, planned = [], [], []
    for one in found:
        if one.events and not hooks_install.is_fed(one, root) and hooks_install.feeds_a_folder(one):
            moving = context.command_line(f"hooks install {one.harness}")
            left.append(f"{one.harness} feeds another workspace, {one.workspace or '~/.agents'}; to move it: {moving}")
        elif one.is_installed and hooks_install.is_fed(one, root):
            connected.append(one.harness)
            left += [f"{one.harness}: {problem.message}: {problem.hint}" for problem in one.problems]
        else:
            planned.append(one)
    names = [one.harness for one in planned]
    connecting = f"connect {', '.join(names)}"

    def act(step: Step) -> None:
        outcomes = hooks_install.install(root, names, now=iso(context.now_us))
        good = [outcome for outcome in outcomes if outcome.error is None]
        step.text = _name_connected([*connected, *(outcome.harness for outcome in good)])
        step.left += tuple(f"{one.harness}: {line}" for one in good for line in one.plan.by_hand)
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error

    if not planned:
        return Step("hooks", PRESENT if connected else SKIPPED, _name_connected(connected), left=tuple(left))
    question = (
        f"{connecting.capitalize()}? Sessions are recorded when they end, begin with what is known of the project,"
        " and are told at an edit or a command what names exactly that (context.moments = false: never)."
        f"\n  changes {', '.join(one.path for one in planned)}\n "
    )
    return Step("hooks", PLANNED, connecting, act, question, tuple(left))


def _look_at_past(context: Context) -> Step:
    counts = {name: import_.find_unread(context, name) for name in transcripts.list_installed()}
    waiting = {name: len(some) for name, (some, _) in counts.items() if some}
    border = _find_border([one for some, _ in counts.values() for one in some], context.now_us)
    again, minutes = context.command_line("setup"), f"{context.settings().capture_idle / 60:.0f} minutes"
    left = tuple(
        f"{count_noun(recent, 'session')} changed in the last {minutes} {'is' if recent == 1 else 'are'} left out;"
        f" run {again} again later, or: {context.command_line(f'import {name} PATH')}"
        for name, (_, recent) in counts.items()
        if recent
    )
    if not waiting:
        return Step("import", SKIPPED if left else PRESENT, "; ".join(left) or "no past session is left to import")
    total = count_noun(sum(waiting.values()), "transcript")
    each = ", ".join(f"{name} {number}" for name, number in waiting.items())

    def act(step: Step) -> None:
        done = [(name, import_.bring(context, name, since_ns=border)) for name in waiting]
        taken = sum(one["sessions"] for _, one in done)
        if border:
            reindex.run_pass(context)
            context.say(
                f"{step.name:<11}the newest {count_noun(taken, 'session')} can be recalled now; older ones follow"
            )
            done += [(name, import_.bring(context, name, until_ns=border)) for name in waiting]
            taken = sum(one["sessions"] for _, one in done)
        held = sum(entry["reason"] in import_.HELD for _, one in done for entry in one["nothing"])
        left = [
            f"{len(some)} of {name} not taken, {kind}"
            for name, one in done
            for kind, some in import_.group_by_reason(one["nothing"]).items()
        ]
        step.text = ", ".join(
            [f"{count_noun(taken, 'session')} imported", *([f"{held} here already"] if held else []), *left]
        )
        if left:
            step.text += f" ({context.command_line('import HARNESS')} names them)"
        wrong = [(name, text) for name, one in done for text in one["failed"]]
        if wrong:
            name, text = wrong[0]
            message, hint = f"{len(wrong)} of {total} could not be read", context.command_line(f"import {name}")
            raise ConfigError(f"{message}, the first one: {text}", hint=f"{hint} tries again", code="import-failed")

    leaving = context.command_line("settings capture.exclude '~/private/*'")
    question = f"Import {total} ({each})?\n  to leave projects out: no; then {leaving}, and {again}\n "
    return Step("import", PLANNED, f"import {total} ({each})", act, question, left)


def _find_border(sources: list[TranscriptSource], now_us: int) -> int:
    """Returns the change (ns) of the oldest transcript of those that come first and are there in seconds; 0 for all."""
    size, border = 0, 0
    for one in sorted(sources, key=lambda one: -one.mtime_ns):
        size += one.size
        if border and (size > _FIRST or one.mtime_ns < (now_us - _NEWEST) * 1000):
            return border
        border = one.mtime_ns
    return 0


def _look_at_index(context: Context) -> Step:
    was_there = os.path.exists(context.database_path())

    def act(step: Step) -> None:
        document = reindex.run_pass(context)
        if document["halted"]:
            raise ConfigError(document["halted"]["message"], hint=document["halted"]["hint"], code="halted")
        counts, pages = document["counts"], document["agents"].values()
        step.text = f"{count_noun(counts['indexed'], 'file')} indexed"
        step.left += tuple(document["trouble"])
        if wrong := counts["invalid"] + counts["violation"]:
            step.left += (f"{count_noun(wrong, 'file')} with a problem: {context.command_line('doctor')}",)
        same = was_there and counts["unchanged"] == counts["scanned"] and not any(page["changed"] for page in pages)
        step.state = PRESENT if same else DONE

    return Step("index", PLANNED, "index the workspace and write MEMORY.md", act)


def _look_at_service(context: Context) -> Step:
    name = service_command.name_of(context)
    if any(unit.name == name and unit.active for unit in services.list_installed()):
        return Step("service", PRESENT, f"{name} runs")
    if not services.manager().answers(os.environ):
        running = context.command_line("run")
        return Step("service", ABSENT, f"neither systemd nor launchd answers here; {running} does its work")

    def act(step: Step) -> None:
        done = services.install(**service_command.unit_of(context))
        step.left += tuple(done.by_hand)
        step.text = f"{name} runs, and starts at login"
        if not done.running:
            hint = "signet-sync doctor says why; signet-sync run does its work meanwhile"
            message = "the service was written and does not run"
            raise ConfigError(message, path=done.path, hint=hint, code="service-failed")

    question = "Run signet-sync in the background, now and at login? It keeps index and MEMORY.md up to date."
    return Step("service", PLANNED, "start the service, now and at login", act, question)


# ── what is said ──


def _name_connected(names: list[str]) -> str:
    return f"{', '.join(names)} connected" if names else "no coding agent connected"


def _list_told(context: Context, steps: list[Step]) -> list[str]:
    """Returns the lines that a session started in this folder is told of its project; empty if nothing is known."""
    if any(step.state == FAILED for step in steps if step.name in ("workspace", "index")):
        return []
    try:
        told = compose_at_start(context.place(), context.agent, project=os.getcwd(), now=context.now_us)
    except (SignetSyncError, OSError):  # what counts here is the set-up
        return []
    lines = told["context"]["text"].partition("\n=== MEMORY.md")[0].splitlines()
    return lines if lines and lines[0].startswith("=== Project") else []


def _find_question(context: Context, told: list[str]) -> dict[str, str] | None:
    """Returns a question on what a session is told that recall answers for certain, with its answer; None for none.

    It is a whole clause of a statement, or of what came of a session; a prompt that was cut asks nothing. These are
    better answers, too, than words in passing.
    """
    best = None
    for line in told:
        stated = _STATEMENT.fullmatch(line)
        question = clause(ASKED.sub("", stated[1]), _CLAUSE).rstrip(" .") if stated else ""
        words = [word for word in _WORD.findall(question) if fold(word) not in STOP_WORDS]
        if len(words) < _LEAST or question.endswith("…") or question.casefold().startswith("asked: "):
            continue
        found = context.ask("recall", query=question, limit=1, now_us=context.now_us, counted=False)["hits"]
        if not found or not found[0]["known"]:
            continue
        answer = {"question": question, "answer": flatten(found[0]["text"], 160), "why": found[0]["why"]}
        if found[0]["tier"] != "session" or (found[0]["path"] or "").endswith("--summary.md"):
            return answer
        best = best or answer
    return best


def _list_next(context: Context, steps: list[Step], told: str) -> list[str]:
    """Returns what to do next, four lines at most."""
    states = {step.name: step.state for step in steps}
    if states["workspace"] == FAILED:
        return []
    first = [context.command_line("hooks install auto") + "   # connects coding agents"]
    if states["hooks"] in (DONE, PRESENT):
        first = ["start a session: it is recorded, and the next one begins with what is known of its project"]
    cited = _HANDLE.search(told)
    follow = f"expand {shlex.quote(cited[0])}" if cited else ""
    return [
        *(first if states["hooks"] != FAILED else ()),
        *([context.command_line(follow) + "   # leads from a line above to what was said"] if follow else ()),
        context.command_line("settings recall.meaning local") + "   # finds what was said in other words, too",
        context.command_line("status") + "   # shows what is indexed, and what is wrong",
    ]


def _show_rest(context: Context, steps: list[Step]) -> None:
    """Prints what failed, what a session here is told now, a question that is answered, and what to do next."""
    if failed := [step.name for step in steps if step.state == FAILED]:
        click.secho(f"not done: {', '.join(failed)}; afterwards run {context.command_line('setup')} again", fg="red")
    if told := _list_told(context, steps):
        click.secho(
            f"what a session in this folder is told ({context.command_line('context')} shows all of it):", bold=True
        )
        for line in told[:_TOLD]:
            click.echo(display(f"  {line}"))
    if asked := _find_question(context, told):
        click.secho("what past sessions say can be asked:", bold=True)
        click.echo(display(f"  {context.command_line(shlex.join(('recall', asked['question'])))}"))
        for line in (asked["answer"], asked["why"]):
            click.echo(display(f"    {line}"))
    for number, line in enumerate(_list_next(context, steps, "\n".join(told[:_TOLD]))):
        click.echo(f"  {line}" if number else f"{click.style('next:', bold=True)}\n  {line}")
