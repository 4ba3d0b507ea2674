"""Asks a language model for a summary or a sentence; without an answer in time, write flows continue without it.

An answer is a proposal: it is cleaned and sanitized here, and the caller's gate decides whether it is used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from loguru import logger

from signet_sync.errors import ConfigError, ProviderError
from signet_sync.formats.snapshot import Found
from signet_sync.llm import prompts, providers
from signet_sync.llm.providers import Provider
from signet_sync.settings import model
from signet_sync.settings.model import ModelChoice, Settings
from signet_sync.storage import files
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2

AGENT_YAML = "agent.yaml"
_AGENT_YAML_LIMIT = 64 * 1024  # bytes
_DEPTH = 20  # levels


def block_for(settings: Settings, root: str) -> ModelChoice:
    """Returns the provider's settings, completed from agent.yaml if they ask for it. Raises `ConfigError`."""
    return model.resolve(settings, _pipeline(root) if model.may_ask_signet(settings) else None)


def provider_for(settings: Settings, root: str, environ: Mapping[str, str]) -> Provider:
    """Returns the provider of the synthesis block.

    Raises `ConfigError` if this machine or environment lacks what it needs (httpx, a key); a write flow then continues
    with `llm.NullProvider()`.
    """
    block = block_for(settings, root)
    if block.kind == "command":
        return providers.CommandProvider(command=block.command, timeout=block.timeout, environ=dict(environ))
    if block.kind == "http":
        return providers.HttpProvider(
            endpoint=block.endpoint,
            model=block.model,
            timeout=block.timeout,
            key=_key(block, environ),
            name=block.provider,
        )
    return providers.NullProvider()


def for_one_flow(provider: Provider) -> Provider:
    """Wraps a provider for one write flow: all its calls share one timeout, and none is made after a failure.

    So a flow that needs a summary and a sentence waits for a dead server once, and never longer than the timeout.
    """
    return provider if isinstance(provider, providers.NullProvider | _OneFlow) else _OneFlow(provider)


def propose_summary(provider: Provider, transcript: str, *, project: str | None, harness: str | None) -> str | None:
    """Returns a sanitized Markdown summary of a sanitized transcript; None without provider, answer or time.

    Never raises.
    """
    if isinstance(provider, providers.NullProvider):
        return None
    system, prompt = prompts.summary_prompt(transcript, project, harness)
    answer = _asked(provider, "summary", system, prompt, prompts.SUMMARY_TOKENS)
    proposal = prompts.read_summary(answer, transcript) if answer is not None else None
    return _said(provider, "summary", sanitize_transcript_v2(proposal) if proposal else None, answer)


def propose_sentence(provider: Provider, summary: str, *, project: str | None) -> str | None:
    """Returns a sanitized sentence about a sanitized summary, not gated yet; None without provider, answer or time.

    Never raises.
    """
    if isinstance(provider, providers.NullProvider):
        return None
    system, prompt = prompts.sentence_prompt(summary, project)
    answer = _asked(provider, "sentence", system, prompt, prompts.SENTENCE_TOKENS)
    proposal = prompts.read_sentence(answer, summary) if answer is not None else None
    return _said(provider, "sentence", sanitize_line(proposal) if proposal else None, answer)


def _asked(provider: Provider, what: str, system: str, prompt: str, max_tokens: int) -> str | None:
    try:
        return provider.complete(system, prompt, max_tokens=max_tokens)
    except _GivenUp:
        return None
    except ProviderError as error:
        remedy = f" ({error.hint})" if error.hint else ""
        logger.warning("{} gave no {}: {}{}", provider.name, what, error.message, remedy)
    return None


def _said(provider: Provider, what: str, proposal: str | None, answer: str | None) -> str | None:
    if answer is not None and not proposal:
        logger.warning("{} gave no {}: the answer holds none", provider.name, what)
    return proposal or None


class _GivenUp(ProviderError):
    """The provider failed earlier in this flow, which was logged, and is not asked again."""


class _OneFlow:
    """A provider whose calls share its timeout; see `for_one_flow`."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._failed = False
        self._spent = 0.0

    @property
    def name(self) -> str:
        return self._provider.name

    def complete(self, system: str, prompt: str, *, max_tokens: int) -> str:
        if self._failed:
            raise _GivenUp("it failed before")
        started = time.monotonic()
        self._failed = True
        answer = self._in_time().complete(system, prompt, max_tokens=max_tokens)
        self._failed = False
        self._spent += time.monotonic() - started
        return answer

    def _in_time(self) -> Provider:
        provider = self._provider
        if not isinstance(provider, providers.CommandProvider | providers.HttpProvider):
            return provider
        left = provider.timeout - self._spent
        if left <= 0:
            raise ProviderError("the time of this flow is used up", hint="give it a longer timeout")
        return provider.within(left)


# --- what it needs --------------------------------------------------------------------------------------------------


def _key(block: ModelChoice, environ: Mapping[str, str]) -> str:
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
            f"the environment holds no key for {block.provider}",
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
        tree = _plain_tree(found.raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        logger.warning("{} is not read: it is not UTF-8", AGENT_YAML)
        return None
    except ValueError as error:
        logger.warning("{} is not read: {}", AGENT_YAML, error)
        return None
    memory = tree.get("memory")
    pipeline = memory.get("pipelineV2") if isinstance(memory, dict) else None
    return pipeline if isinstance(pipeline, dict) else None


def _plain_tree(text: str) -> dict[str, Any]:
    """Reads the mappings of a YAML file, scalars as text; lists are skipped.

    The frontmatter reader cannot be used: it rejects files as deep as Signet's. As there, no objects are constructed,
    and aliases, anchors and tags are rejected. Raises `ValueError`.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events = (e for e in yaml.parse(text, Loader=loader) if not type(e).__name__.startswith(("Stream", "Document")))
        tree = _plain_value(events, 0)
        more = next(events, None)
    except yaml.YAMLError:
        raise ValueError("it is no YAML") from None
    return tree if isinstance(tree, dict) and more is None else {}


_END = object()


def _plain_value(events: Iterator[Any], depth: int) -> Any:
    event = next(events, None)
    kind = type(event).__name__
    if event is None or kind in ("MappingEndEvent", "SequenceEndEvent"):
        return _END
    if kind == "AliasEvent" or event.anchor is not None or event.tag is not None or depth > _DEPTH:
        raise ValueError("it holds aliases, anchors or tags, or is nested too deeply")
    if kind == "ScalarEvent":
        return event.value
    if kind == "SequenceStartEvent":
        while _plain_value(events, depth + 1) is not _END:
            pass
        return None
    tree: dict[str, Any] = {}
    while (key := _plain_value(events, depth + 1)) is not _END:
        value = _plain_value(events, depth + 1)
        if isinstance(key, str):
            if key in tree:
                raise ValueError("a key stands there twice")
            tree[key] = value
    return tree
