"""Makes the provider that the settings name, with its key and the budget of the user."""

from collections.abc import Mapping

from signet_sync.errors import ConfigError
from signet_sync.llm import providers
from signet_sync.llm.providers import Provider
from signet_sync.llm.token_budget import TokenBudget
from signet_sync.log import logger
from signet_sync.settings import model_choice
from signet_sync.settings.model import Settings
from signet_sync.settings.model_choice import ModelChoice
from signet_sync.storage import state_dir


def provider_for(settings: Settings, environ: Mapping[str, str]) -> Provider | None:
    """Returns the provider of `[llm]`; None without one.

    Raises `ConfigError` if this machine or environment lacks what it needs (httpx, a key).
    """
    block = model_choice.resolve(settings)
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
