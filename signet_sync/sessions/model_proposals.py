"""Requests a write flow's summary and sentence from a language model: without locks, with a time limit, validated."""

from __future__ import annotations

from collections.abc import Mapping

from signet_sync.errors import ConfigError
from signet_sync.sessions.states import FlowKind, Proposals, Propose
from signet_sync.settings.model import Settings
from signet_sync.settings.model_choice import may_ask_model


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

    def propose(
        words: str, *, kind: FlowKind, summary: str | None, project: str | None, harness: str | None
    ) -> Proposals:
        limited = synthesis.for_one_flow(provider)
        offered = None
        if kind == "end" and summary is None:
            offered = synthesis.propose_summary(limited, words, project=project, harness=harness)
        sentence = synthesis.propose_sentence(limited, summary or offered or words, project=project)
        return Proposals(offered, sentence)

    return propose
