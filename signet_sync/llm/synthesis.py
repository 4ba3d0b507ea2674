"""Asks a language model for a summary or a sentence; without an answer in time, write flows continue without it.

An answer is a proposal: it is cleaned and sanitized here, and the caller's gate decides whether it is used.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from loguru import logger

from signet_sync.errors import ConfigError, ProviderError
from signet_sync.formats import frontmatter
from signet_sync.formats.snapshot import Found
from signet_sync.llm import prompts, providers
from signet_sync.llm.providers import Provider
from signet_sync.llm.token_budget import BudgetSpent, TokenBudget
from signet_sync.settings import model_choice
from signet_sync.settings.model import Settings
from signet_sync.settings.model_choice import ModelChoice
from signet_sync.storage import files, state_dir
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2

AGENT_YAML = "agent.yaml"
_AGENT_YAML_LIMIT = 64 * 1024  # bytes
_DEPTH = 20  # levels


def provider_for(settings: Settings, root: str, environ: Mapping[str, str]) -> Provider:
    """Returns the provider for summaries and sentences.

    Raises `ConfigError` if this machine or environment lacks what it needs (httpx, a key); a write flow then continues
    with `llm.NullProvider()`.
    """
    agent_yaml = _pipeline(root) if model_choice.may_ask_signet(settings) else None
    block = model_choice.resolve(settings, agent_yaml)
    budget = budget_for(settings)
    if block.kind == "command":
        return providers.CommandProvider(
            command=block.command, timeout=block.timeout, environ=dict(environ), budget=budget
        )
    if block.kind == "http":
        return providers.HttpProvider(
            endpoint=block.endpoint,
            model=block.model,
            timeout=block.timeout,
            key=key_of(block, environ),
            name=block.provider,
            budget=budget,
        )
    return providers.NullProvider()


def budget_for(settings: Settings) -> TokenBudget:
    """Returns the budget that all calls of this user share, in every workspace."""
    return TokenBudget(state_dir.base(), settings.llm_daily_tokens)


def for_one_flow(provider: Provider) -> _OneFlow:
    """Wraps a provider for one write flow: all its calls share one timeout, and none is made after a failure.

    So a flow that needs a summary and a sentence waits for a dead server once, and never longer than the timeout.
    """
    return _OneFlow(provider)


def propose_summary(provider: Provider, transcript: str, *, project: str | None, harness: str | None) -> str | None:
    """Returns a sanitized Markdown summary of a sanitized transcript; None without provider, answer or time.

    Never raises.
    """
    if isinstance(provider, providers.NullProvider):
        return None
    answer = _answer(provider, "summary", prompts.summary_prompt(transcript, project, harness), prompts.SUMMARY_TOKENS)
    if answer is None:
        return None
    proposal = prompts.read_summary(answer, transcript)
    return _logged(provider, "summary", sanitize_transcript_v2(proposal) if proposal else None)


def propose_sentence(provider: Provider, summary: str, *, project: str | None) -> str | None:
    """Returns a sanitized sentence about a sanitized summary, not gated yet; None without provider, answer or time.

    Never raises.
    """
    if isinstance(provider, providers.NullProvider):
        return None
    answer = _answer(provider, "sentence", prompts.sentence_prompt(summary, project), prompts.SENTENCE_TOKENS)
    if answer is None:
        return None
    proposal = prompts.read_sentence(answer, summary)
    return _logged(provider, "sentence", sanitize_line(proposal) if proposal else None)


def _answer(provider: Provider, what: str, prompt: tuple[str, str], max_tokens: int) -> str | None:
    try:
        return provider.complete(*prompt, max_tokens=max_tokens)
    except (_GivenUp, BudgetSpent):
        return None  # logged before: once a flow, and once a day
    except ProviderError as error:
        remedy = f" ({error.hint})" if error.hint else ""
        logger.warning("{} gave no {}: {}{}", provider.name, what, error.message, remedy)
    return None


def _logged(provider: Provider, what: str, proposal: str | None) -> str | None:
    if not proposal:
        logger.warning("{} gave no {}: the answer contains none", provider.name, what)
    return proposal or None


class _GivenUp(ProviderError):
    """The provider failed earlier in this flow, which was logged, and is not asked again."""


class _OneFlow:
    """A provider whose calls share its timeout; see `for_one_flow`. `failed`: it gave no answer."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.failed = False
        self._refused = False
        self._spent = 0.0

    @property
    def name(self) -> str:
        return self._provider.name

    def complete(self, system: str, prompt: str, *, max_tokens: int) -> str:
        if self.failed or self._refused:
            raise _GivenUp("it failed before")
        started = time.monotonic()
        try:
            answer = self._in_time().complete(system, prompt, max_tokens=max_tokens)
        except BudgetSpent:
            self._refused = True
            raise
        except ProviderError:
            self.failed = True
            raise
        self._spent += time.monotonic() - started
        return answer

    def _in_time(self) -> Provider:
        provider = self._provider
        if not isinstance(provider, providers.CommandProvider | providers.HttpProvider):
            return provider
        left = provider.timeout - self._spent
        if left <= 0:
            raise ProviderError("the timeout for this session has been used up", hint="set a longer timeout")
        return provider.within(left)


# --- what it needs --------------------------------------------------------------------------------------------------


def key_of(block: ModelChoice, environ: Mapping[str, str]) -> str:
    """Reads the key from where the block says; empty if it names no source. Raises `ConfigError`."""
    if block.api_key_file:
        key, open_to_others = providers.read_key(block.api_key_file)
        if open_to_others:
            logger.warning("others can read the key file {}; run: chmod 600 {}", block.api_key_file, block.api_key_file)
        return key
    if not block.api_key_env:
        return ""
    # The name is not shown: it may be the key itself, entered by mistake.
    key = providers.checked_key(environ.get(block.api_key_env, ""))
    if not key:
        raise ConfigError(
            f"no key for {block.provider} in the environment",
            hint="export the variable that api_key_env names, or set api_key_file; services see no shell's exports",
        )
    return key


def _pipeline(root: str) -> Mapping[str, Any] | None:
    """Reads `memory.pipelineV2` from Signet's agent.yaml; None if it cannot be read."""
    found = files.read(root, AGENT_YAML, _AGENT_YAML_LIMIT)
    if not isinstance(found, Found):
        if found.code != "gone":
            logger.warning("{} is not read: {}", AGENT_YAML, found.message)
        return None
    try:
        tree = frontmatter.read_yaml(found.raw.decode("utf-8-sig"), max_depth=_DEPTH, first_line=1)
    except UnicodeDecodeError:
        logger.warning("{} is not read: it is not UTF-8", AGENT_YAML)
        return None
    except frontmatter.FrontmatterProblem as problem:
        logger.warning("{} is not read: {}", AGENT_YAML, problem)
        return None
    memory = tree.get("memory")
    pipeline = memory.get("pipelineV2") if isinstance(memory, dict) else None
    return pipeline if isinstance(pipeline, dict) else None
