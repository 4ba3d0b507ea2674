"""Asks a language model for facts in artifacts, sentences about them, and wordings of condensations.

Requests are sent without holding the workspace's lock, within a time limit and the day's budget; only one process asks
for a workspace. `llm.prompts` validates the answers: only what the artifact supports is stored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from loguru import logger

from signet_sync.errors import ConfigError, ProviderError, SignetSyncError, UsageError
from signet_sync.formats.fact import Item
from signet_sync.formats.timestamps import DAY, SECOND, iso
from signet_sync.graph.store import wordings
from signet_sync.graph.store.wordings import Unread, Unworded
from signet_sync.llm import prompts, synthesis
from signet_sync.llm.providers import HttpProvider, NullProvider, Provider
from signet_sync.llm.token_budget import BudgetSpent, most_tokens
from signet_sync.settings.model_choice import asks_for_facts
from signet_sync.storage import state_dir
from signet_sync.sync import deriving
from signet_sync.sync.publishing import publish_pages
from signet_sync.sync.stages import SESSION, Source
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.text.sentences import SentenceSubject, passes_strict

MOST = 20  # requests of a kind in one run
LONGEST = 60.0  # seconds after which no further request of a kind is sent
FAILURES = 2  # in a row; then no requests are sent for `REST`
REST = 900 * SECOND
RETRIED_AFTER = DAY  # an artifact or condensation without a usable answer
IMPROVING = 1800.0  # seconds after which `improve` sends no further request

Kind = Literal["sentence", "facts", "paragraph"]
Session = tuple[str, str, str]


def enrich(
    workspace: Workspace,
    *,
    now_us: Callable[[], int],
    environ: Mapping[str, str] = os.environ,
    waiting: Callable[[], bool] = lambda: False,
) -> None:
    """Lets a model extract facts from new artifacts and reword new condensations; derives those sessions again.

    Facts if `[llm]` names a provider, paragraphs if that or `[llm.synthesis]` does. Ends early if `waiting` returns
    True.
    Failures are logged and retried later; raises no `SignetSyncError`.
    """

    try:
        with state_dir.model_lock(workspace.state):
            run = partial(_Run, workspace=workspace, now_us=now_us, longest=LONGEST, waiting=waiting)
            if asks_for_facts(workspace.settings):
                _facts(run("facts", provider=_provider(lambda: synthesis.facts_provider(workspace.settings, environ))))
            usual = _provider(lambda: synthesis.provider_for(workspace.settings, workspace.root, environ))
            _paragraphs(run("paragraph", provider=usual))
    except SignetSyncError as error:
        if error.code != "busy":
            logger.warning("work of the language model is postponed: {}", error.message)


def _provider(chosen: Callable[[], Provider]) -> Provider:
    try:
        return chosen()
    except ConfigError as error:
        logger.warning("no language model is used: {} ({})", error.message, error.hint)
    return NullProvider()


class _Run:
    """The requests of a kind to one provider: time and budget left, failures so far."""

    def __init__(
        self,
        kind: Kind,
        *,
        workspace: Workspace,
        provider: Provider,
        now_us: Callable[[], int],
        longest: float,
        waiting: Callable[[], bool] = lambda: False,
    ) -> None:
        self.kind = kind
        self.workspace = workspace
        self.database = workspace.database
        self.now_us = now_us
        self.model = provider.model if isinstance(provider, HttpProvider) else provider.name
        self.silent = 0  # requests in a row without any answer
        self.over_budget = False
        self._provider = provider
        self._waiting = waiting
        self._failures = 0
        self._ends = time.monotonic() + longest

    @property
    def has_provider(self) -> bool:
        return not isinstance(self._provider, NullProvider)

    def may_begin(self) -> bool:
        """Returns whether there is a provider, and it has not just failed."""
        now_us = self.now_us()
        rests = iso(now_us) < (wordings.rests_until(self.database, self.kind) or "") <= iso(now_us + REST)
        return self.has_provider and not rests

    def may_go_on(self) -> bool:
        return self._failures < FAILURES and not self.over_budget and not self.is_late() and not self._waiting()

    def is_late(self) -> bool:
        return time.monotonic() >= self._ends

    @property
    def at(self) -> str:
        """Returns the present time in the format of rows."""
        return iso(self.now_us())

    @property
    def failed_before(self) -> str:
        """Returns the instant before which failed requests may be repeated."""
        return iso(self.now_us() - RETRIED_AFTER)

    def ask(self, prompts: tuple[str, str], max_tokens: int) -> str | None:
        """Returns the raw answer; None, which is logged, if there is none."""
        try:
            answer = self._provider.complete(*prompts, max_tokens=max_tokens)
            self.silent = 0
            return answer
        except BudgetSpent:
            self.over_budget = True  # logged once a day
        except ProviderError as error:
            self.silent += 1
            remedy = f" ({error.hint})" if error.hint else ""
            logger.warning("{} gave no {}: {}{}", self._provider.name, self.kind, error.message, remedy)
        return None

    def answered(self) -> None:
        """Records a usable answer."""
        self._failures = 0

    def failed(self, answer: str | None) -> None:
        """Records a missing or unusable answer; after several in a row no requests are sent for a while."""
        if answer is not None:
            logger.warning("{} gave no {}: the answer is unusable", self._provider.name, self.kind)
        self._failures += 1
        if self._failures == FAILURES:
            with self.database.transaction():
                wordings.set_rests_until(self.database, self.kind, iso(self.now_us() + REST))


# ── one request ──

# What became of it: a usable answer, whether the session has to be derived again; None: the budget is spent.
_Result = tuple[bool, bool] | None


def _facts_of(run: _Run, artifact: Unread) -> _Result:
    content = wordings.content_of(run.database, artifact)
    if content is None:
        return False, False
    answer = run.ask(prompts.facts_prompt(content, artifact.project), prompts.FACTS_TOKENS)
    items = prompts.read_facts(answer, content) if answer is not None else None
    if items is not None:
        run.answered()
        return True, store_items(run.workspace, artifact, items, run.model, run.at)
    if run.over_budget:
        return None
    run.failed(answer)
    store_items(run.workspace, artifact, (), "", run.at)
    return False, False


def _sentence_of(run: _Run, artifact: Unread) -> _Result:
    content = wordings.content_of(run.database, artifact)
    if content is None:
        return False, False
    answer = run.ask(prompts.sentence_prompt(content, artifact.project), prompts.SENTENCE_TOKENS)
    said = sanitize_line(prompts.read_sentence(answer, content) or "") if answer is not None else ""
    subject = SentenceSubject(content, artifact.project, artifact.kind, None, iso(artifact.at_us)[:10], "")
    if said and passes_strict(said, subject):
        run.answered()
        with run.database.transaction():
            news = wordings.put_sentence(run.database, artifact, said, run.model, run.at)
            if news:
                deriving.queue(run.database, run.workspace.pipeline, {Source(SESSION, *artifact[:3])})
        return True, news
    if run.over_budget:
        return None
    run.failed(answer)
    with run.database.transaction():
        wordings.put_sentence(run.database, artifact, "", "", run.at)
    return False, False


def _paragraph_of(run: _Run, node: Unworded) -> _Result:
    answer = run.ask(prompts.paragraph_prompt(node.content), prompts.PARAGRAPH_TOKENS)
    text = prompts.read_paragraph(answer, node.content) if answer is not None else None
    if text is not None:
        run.answered()
        wordings.put_wording(run.database, node, text, run.model, run.at)
        return True, False
    if run.over_budget:
        return None
    run.failed(answer)
    wordings.put_wording(run.database, node, "", "", run.at)
    return False, False


def store_items(workspace: Workspace, artifact: Unread, items: Sequence[Item], model: str, at: str) -> bool:
    """Stores what a model extracted and queues its session, so that the next pass derives facts if this run is killed.

    Returns whether the session has to be derived again.
    """
    database = workspace.database
    with database.transaction():
        news = wordings.put_items(database, artifact, items, model, at) and bool(items)
        if news:
            deriving.queue(database, workspace.pipeline, {Source(SESSION, *artifact[:3])})
    return news


# ── a few, after each run of capture ──


def _facts(run: _Run) -> None:
    if not run.may_begin():
        return
    changed: set[Session] = set()
    for artifact in wordings.unread(run.database, MOST, run.failed_before):
        if not run.may_go_on():
            break
        result = _facts_of(run, artifact)
        if result is not None and result[1]:
            changed.add(artifact[:3])
    if changed:
        rederive(run.workspace, changed, run.now_us())


def _paragraphs(run: _Run) -> None:
    if not run.may_begin():
        return
    for node in wordings.unworded(run.database, MOST, run.failed_before):
        if not run.may_go_on():
            return
        _paragraph_of(run, node)


# ── all that rules made, when a person asks for it ──


class Waiting(NamedTuple):
    """What `improve` would ask for, by kind; the most tokens of that, and those left today (of `daily`)."""

    counts: dict[Kind, int]
    tokens: int
    left: int
    daily: int


@dataclass(slots=True)
class Improvement:
    """What `improve` did, by kind; answers that could not be used; what is left, and why it ended before that.

    `stopped`: empty, or `budget`, `time`, `silent` (the model does not answer), `interrupted`.
    """

    counts: dict[Kind, int]
    unusable: int = 0
    left: int = 0
    stopped: str = ""


class _Task(NamedTuple):
    """One request to be made; `at_us` is the time of what it is about."""

    at_us: int
    run: _Run
    about: Unread | Unworded


def measure(workspace: Workspace, *, now_us: Callable[[], int], environ: Mapping[str, str], since_us: int) -> Waiting:
    """Counts what a model has not done yet of what rules made since an instant. Asks nothing, writes nothing.

    Raises `ConfigError`, `UsageError` without a model.
    """
    tasks = _tasks(_runs(workspace, now_us, environ), since_us)
    budget = synthesis.budget_for(workspace.settings)
    return Waiting(_counts(tasks), sum(map(_cost_of, tasks)), budget.left(), budget.daily)


def improve(
    workspace: Workspace,
    *,
    now_us: Callable[[], int],
    environ: Mapping[str, str],
    since_us: int = 0,
    longest: float = IMPROVING,
    progress: Callable[[int, int], None] = lambda done, whole: None,
) -> Improvement:
    """Asks a model, newest first, for what only rules have made since an instant; derives those sessions again.

    Files stay as they are. What was answered is kept whatever happens then, so that the next call goes on from there.
    Ends early at the limits of time and budget, if the model does not answer, or at Ctrl-C. Raises `ConfigError`,
    `UsageError` without a model, `WorkspaceError` (`busy`).
    """
    with state_dir.model_lock(workspace.state):
        runs = _runs(workspace, now_us, environ, longest)
        tasks = _tasks(runs, since_us)
        done = Improvement(_counts(()), left=len(tasks))
        changed: set[Session] = set()
        try:
            for number, task in enumerate(tasks):
                if _why_stopped(runs):
                    break
                progress(number, len(tasks))
                result = _carry_out(task)
                if result is None:
                    break
                done.left -= 1
                done.counts[task.run.kind] += result[0]
                done.unusable += not result[0]
                if result[1] and isinstance(task.about, Unread):
                    changed.add(task.about[:3])
            done.stopped = _why_stopped(runs) if done.left else ""
        except KeyboardInterrupt:
            done.stopped = "interrupted"
        if changed:
            rederive(workspace, changed, now_us())
    return done


def _runs(
    workspace: Workspace, now_us: Callable[[], int], environ: Mapping[str, str], longest: float = 0.0
) -> list[_Run]:
    """Returns the runs of those kinds that a provider is set for. Raises `ConfigError`, `UsageError` for none."""
    settings = workspace.settings
    usual = synthesis.provider_for(settings, workspace.root, environ)
    providers: dict[Kind, Provider] = {"sentence": usual, "paragraph": usual}
    if asks_for_facts(settings):
        providers["facts"] = synthesis.facts_provider(settings, environ)
    run = partial(_Run, workspace=workspace, now_us=now_us, longest=longest)
    found = [one for kind, provider in providers.items() if (one := run(kind, provider=provider)).has_provider]
    if not found:
        raise UsageError("no language model is set up", hint="signet-sync doctor names those of this machine")
    return found


def _tasks(runs: Sequence[_Run], since_us: int) -> list[_Task]:
    """Returns what is to be asked for, newest first."""
    source: dict[Kind, Callable[..., Sequence[Unread | Unworded]]] = {
        "sentence": wordings.unsaid, "facts": wordings.unread, "paragraph": wordings.unworded,
    }  # fmt: skip
    found = [
        _Task(one.at_us, run, one)
        for run in runs
        for one in source[run.kind](run.database, wordings.ALL, run.failed_before, since_us)
    ]
    return sorted(found, key=lambda task: -task.at_us)


def _carry_out(task: _Task) -> _Result:
    if isinstance(task.about, Unworded):
        return _paragraph_of(task.run, task.about)
    return _sentence_of(task.run, task.about) if task.run.kind == "sentence" else _facts_of(task.run, task.about)


def _why_stopped(runs: Sequence[_Run]) -> str:
    if any(run.over_budget for run in runs):
        return "budget"
    if any(run.silent >= FAILURES for run in runs):
        return "silent"
    return "time" if any(run.is_late() for run in runs) else ""


def _counts(tasks: Sequence[_Task]) -> dict[Kind, int]:
    kinds: tuple[Kind, ...] = ("sentence", "facts", "paragraph")
    return {kind: sum(task.run.kind == kind for task in tasks) for kind in kinds}


def _cost_of(task: _Task) -> int:
    if isinstance(task.about, Unworded):
        return most_tokens(prompts.paragraph_prompt(task.about.content), prompts.PARAGRAPH_TOKENS)
    content = wordings.content_of(task.run.database, task.about) or ""
    if task.run.kind == "sentence":
        return most_tokens(prompts.sentence_prompt(content, task.about.project), prompts.SENTENCE_TOKENS)
    return most_tokens(prompts.facts_prompt(content, task.about.project), prompts.FACTS_TOKENS)


def rederive(workspace: Workspace, sessions: Collection[Session], now_us: int) -> None:
    """Derives sessions again whose artifacts are unchanged, and renders the pages of their agents.

    Raises `WorkspaceError` (`busy`), `DatabaseError`.
    """
    with state_dir.workspace_lock(workspace.state):
        with workspace.database.transaction():
            deriving.follow(workspace.database, workspace.pipeline, {Source(SESSION, *one) for one in sessions})
        agents = {agent_id for agent_id, _, _ in sessions}
        publish_pages(workspace, agents=agents, now_us=now_us)
