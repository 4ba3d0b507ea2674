"""Asks a language model once about a session that ends: without locks, with a time limit, its answer checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from signet_sync.digest.outcome import ModelDigest
from signet_sync.errors import ConfigError, ProviderError
from signet_sync.log import logger
from signet_sync.settings.model import Settings
from signet_sync.settings.model_choice import may_ask_model
from signet_sync.text.sanitizer import sanitize_line


class Propose(Protocol):
    """Asks a model about new words of a session; None without an answer that holds. Never raises."""

    def __call__(self, words: str, *, project: str | None, harness: str | None) -> ModelDigest | None: ...


TOKENS = 3_000  # of an answer; a reasoning model spends most of them on thinking


def proposer(settings: Settings, environ: Mapping[str, str]) -> Propose | None:
    """Returns the proposer by the settings; None without a provider, or with an unusable one (logged once)."""
    if not may_ask_model(settings):
        return None
    from signet_sync.digest.model import question, read  # nearly nobody uses a model
    from signet_sync.llm.provider_choice import provider_for
    from signet_sync.llm.token_budget import BudgetSpent

    try:
        provider = provider_for(settings, environ)
    except ConfigError as error:
        logger.warning("no language model is used: {} ({})", error.message, error.hint)
        return None
    if provider is None:
        return None

    def propose(words: str, *, project: str | None, harness: str | None) -> ModelDigest | None:
        asked = question(words, project=project, harness=harness)
        if asked is None:
            return None
        try:
            answer = provider.complete(asked.system, asked.prompt, max_tokens=TOKENS)
        except BudgetSpent:
            return None  # logged before, once a day
        except ProviderError as error:
            remedy = f" ({error.hint})" if error.hint else ""
            logger.warning("{} gave no digest: {}{}", provider.name, error.message, remedy)
            return None
        digest, refused = read(answer, asked)
        if digest is None:
            logger.warning("the answer of {} is refused: {}", provider.name, "; ".join(refused))
            return None
        for reason in refused:
            logger.info("of the answer of {} is refused: {}", provider.name, reason)
        return digest._replace(sentence=sanitize_line(digest.sentence) if digest.sentence else None)

    return propose
