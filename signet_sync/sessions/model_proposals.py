"""Requests a write flow's summary and sentence from a language model: without locks, with a time limit, validated."""

from __future__ import annotations

import time
from collections.abc import Mapping

from signet_sync.errors import ConfigError
from signet_sync.sessions.states import FlowKind, Proposals, Propose
from signet_sync.settings.model import Settings
from signet_sync.settings.model_choice import may_ask_model

FAILURES = 2  # in a row; then no model is asked for so many seconds
REST = 900.0


def proposer(settings: Settings, root: str, environ: Mapping[str, str]) -> Propose | None:
    """Returns the proposer by the settings; None without a provider, or with an unusable one (logged once)."""
    if not may_ask_model(settings):
        return None
    from loguru import logger

    from signet_sync.llm import providers, synthesis  # nearly nobody uses a model

    try:
        provider = synthesis.provider_for(settings, root, environ)
    except ConfigError as error:
        logger.warning("no language model is used: {} ({})", error.message, error.hint)
        return None
    if isinstance(provider, providers.NullProvider):
        return None

    failures, rests_until = 0, 0.0

    def propose(
        words: str, *, kind: FlowKind, summary: str | None, project: str | None, harness: str | None
    ) -> Proposals:
        nonlocal failures, rests_until
        if time.monotonic() < rests_until:
            return Proposals()
        limited = synthesis.for_one_flow(provider)
        offered = None
        if kind == "end" and summary is None:
            offered = synthesis.propose_summary(limited, words, project=project, harness=harness)
        sentence = synthesis.propose_sentence(limited, summary or offered or words, project=project)
        failures = failures + 1 if limited.failed else 0
        if failures == FAILURES:
            failures, rests_until = 0, time.monotonic() + REST
        return Proposals(offered, sentence)

    return propose
