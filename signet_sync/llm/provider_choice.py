"""Makes the provider that the settings name, with its key and the budget of the user."""

import os
import stat
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

_KEY_LIMIT = 4 * 1024  # bytes


def provider_for(settings: Settings, environ: Mapping[str, str]) -> Provider | None:
    """Returns the provider of `[llm]`; None without one.

    Raises `ConfigError` if this machine or environment lacks what it needs (httpx, a key).
    """
    block = model_choice.resolve(settings)
    budget = TokenBudget(state_dir.base(), settings.llm_daily_tokens)  # of this user, in every workspace
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


def key_of(block: ModelChoice, environ: Mapping[str, str]) -> str:
    """Reads the key from where the block says; empty if it names no source. Raises `ConfigError`."""
    if block.api_key_file:
        key, open_to_others = read_key(block.api_key_file)
        if open_to_others:
            logger.warning("others can read the key file {}; run: chmod 600 {}", block.api_key_file, block.api_key_file)
        return key
    if not block.api_key_env:
        return ""
    # The name is not shown: it may be the key itself, entered by mistake.
    key = check_key(environ.get(block.api_key_env, ""))
    if not key:
        raise ConfigError(
            f"no key for {block.provider} in the environment",
            hint="export the variable that api_key_env names, or set api_key_file; services see no shell's exports",
        )
    return key


def read_key(path: str) -> tuple[str, bool]:
    """Reads the key from a file; also returns whether others than its owner may read the file.

    Raises `ConfigError` if there is no such file, or if it does not contain exactly one key.
    """
    try:
        # A pipe without a writer would block.
        with open(os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            mode, raw = os.fstat(file.fileno()).st_mode, file.read(_KEY_LIMIT + 1)
        key = check_key(raw.decode("ascii")) if len(raw) <= _KEY_LIMIT else ""
    except OSError as error:
        raise ConfigError(
            f"the key file cannot be read: {error.strerror}", path=path, hint="check the path and its permissions"
        ) from None
    except ValueError:
        key = ""
    if not key:
        raise ConfigError(
            "the key file does not contain exactly one key",
            path=path,
            hint="it must contain a single line with the key",
        )
    return key, bool(mode & (stat.S_IRGRP | stat.S_IROTH))


def check_key(text: str) -> str:
    """Returns a key that fits into a header, without surrounding blanks; empty if it does not."""
    key = text.strip()
    return key if key.isascii() and key.isprintable() and " " not in key else ""
