"""Asks a language model for facts in artifacts, and for wordings of condensations.

Requests are sent without holding the workspace's lock, within a time limit and the day's budget; only one process asks
for a workspace. `llm.prompts` validates the answers: only what the artifact supports is stored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Literal

from loguru import logger

from signet_sync.errors import ConfigError, ProviderError, SignetSyncError
from signet_sync.formats.fact import Item
from signet_sync.formats.timestamps import DAY, SECOND, iso
from signet_sync.graph.store import wordings
from signet_sync.graph.store.wordings import Unread
from signet_sync.llm import prompts, synthesis
from signet_sync.llm.providers import HttpProvider, NullProvider, Provider
from signet_sync.llm.token_budget import BudgetSpent
from signet_sync.settings.model_choice import asks_for_facts
from signet_sync.storage import state_dir
from signet_sync.sync import deriving
from signet_sync.sync.publishing import publish_pages
from signet_sync.sync.stages import SESSION, Source
from signet_sync.sync.workspace import Workspace

MOST = 20  # requests of a kind in one run
LONGEST = 60.0  # seconds after which no further request of a kind is sent
FAILURES = 2  # in a row; then no requests are sent for `REST`
REST = 900 * SECOND
RETRIED_AFTER = DAY  # an artifact or condensation without a usable answer

Kind = Literal["facts", "paragraph"]
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
        self.over_budget = False
        self._provider = provider
        self._waiting = waiting
        self._failures = 0
        self._ends = time.monotonic() + longest

    def may_begin(self) -> bool:
        """Returns whether there is a provider, and it has not just failed."""
        now_us = self.now_us()
        rests = iso(now_us) < (wordings.rests_until(self.database, self.kind) or "") <= iso(now_us + REST)
        return not isinstance(self._provider, NullProvider) and not rests

    def may_go_on(self) -> bool:
        if self._failures >= FAILURES or self.over_budget:
            return False
        return time.monotonic() < self._ends and not self._waiting()

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
            return self._provider.complete(*prompts, max_tokens=max_tokens)
        except BudgetSpent:
            self.over_budget = True  # logged once a day
        except ProviderError as error:
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


def _facts(run: _Run) -> None:
    """Asks for the facts of artifacts that no model has read, newest first."""
    if not run.may_begin():
        return
    changed: set[Session] = set()
    for artifact in wordings.unread(run.database, MOST, run.failed_before):
        if not run.may_go_on():
            break
        content = wordings.content_of(run.database, artifact)
        if content is None:
            continue
        answer = run.ask(prompts.facts_prompt(content, artifact.project), prompts.FACTS_TOKENS)
        items = prompts.read_facts(answer, content) if answer is not None else None
        if items is not None:
            run.answered()
            if store_items(run.workspace, artifact, items, run.model, run.at):
                changed.add(artifact[:3])
        elif not run.over_budget:
            run.failed(answer)
            store_items(run.workspace, artifact, (), "", run.at)
    if changed:
        rederive(run.workspace, changed, run.now_us())


def _paragraphs(run: _Run) -> None:
    """Asks for the wordings of condensations that no model has reworded, newest first."""
    if not run.may_begin():
        return
    for node in wordings.unworded(run.database, MOST, run.failed_before):
        if not run.may_go_on():
            return
        answer = run.ask(prompts.paragraph_prompt(node.content), prompts.PARAGRAPH_TOKENS)
        text = prompts.read_paragraph(answer, node.content) if answer is not None else None
        if text is not None:
            run.answered()
            wordings.put_wording(run.database, node, text, run.model, run.at)
        elif not run.over_budget:
            run.failed(answer)
            wordings.put_wording(run.database, node, "", "", run.at)


def rederive(workspace: Workspace, sessions: Collection[Session], now_us: int) -> None:
    """Derives sessions again whose artifacts are unchanged, and renders the pages of their agents.

    Raises `WorkspaceError` (`busy`), `DatabaseError`.
    """
    with state_dir.workspace_lock(workspace.state):
        with workspace.database.transaction():
            deriving.follow(workspace.database, workspace.pipeline, {Source(SESSION, *one) for one in sessions})
        agents = {agent_id for agent_id, _, _ in sessions}
        publish_pages(workspace, agents=agents, now_us=now_us)
