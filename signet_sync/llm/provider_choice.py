"""Makes the provider that the settings name, with its key and the budget of the user."""

from collections.abc import Mapping
from typing import Any

from signet_sync.errors import ConfigError
from signet_sync.formats import frontmatter
from signet_sync.formats.snapshot import Found
from signet_sync.llm import providers
from signet_sync.llm.providers import Provider
from signet_sync.llm.token_budget import TokenBudget
from signet_sync.log import logger
from signet_sync.settings import model_choice
from signet_sync.settings.model import Settings
from signet_sync.settings.model_choice import ModelChoice
from signet_sync.storage import files, state_dir

AGENT_YAML = "agent.yaml"
_AGENT_YAML_LIMIT = 64 * 1024  # bytes
_DEPTH = 20  # levels


def provider_for(settings: Settings, root: str, environ: Mapping[str, str]) -> Provider | None:
    """Returns the provider of `[llm]`; None without one.

    Raises `ConfigError` if this machine or environment lacks what it needs (httpx, a key).
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
    return None


def budget_for(settings: Settings) -> TokenBudget:
    """Returns the budget that all calls of this user share, in every workspace."""
    return TokenBudget(state_dir.base(), settings.llm_daily_tokens)


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
    key = providers.check_key(environ.get(block.api_key_env, ""))
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
