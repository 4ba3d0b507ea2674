"""Chooses the model for digests and for vectors from the settings; opens nothing and asks nobody."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from signet_sync.errors import ConfigError
from signet_sync.storage.locations import base

if TYPE_CHECKING:
    from signet_sync.settings.model import Settings

ANTHROPIC = "anthropic"
# Known servers, each with its address and the usual name of its key. Source: the servers' own documentation;
# `openai-compatible` is any other one. All but Anthropic's speak OpenAI's API.
SERVERS: Mapping[str, tuple[str, str]] = {
    "openai-compatible": ("", ""),
    "ollama": ("http://127.0.0.1:11434/v1", ""),
    "lm-studio": ("http://127.0.0.1:1234/v1", ""),
    "llama-cpp": ("http://127.0.0.1:8080/v1", ""),
    "vllm": ("http://127.0.0.1:8000/v1", ""),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    ANTHROPIC: ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
}
PROVIDERS = ("", "none", *SERVERS, "command")
# Models of this machine for vectors, by the word that chooses them; any other in a folder.
LOCAL: Mapping[str, str] = {"local": "all-MiniLM-L6-v2", "multilingual": "multilingual-e5-small"}
FOLDER = "/folder"


class ModelChoice(NamedTuple):
    """The model of a block: none (`kind` is "none", see `why`), a server or a program.

    `timeout` is seconds; at most one of `api_key_env` and `api_key_file` is set.
    """

    kind: Literal["none", "http", "command"]
    provider: str = "none"
    model: str = ""
    endpoint: str = ""
    timeout: float = 0.0
    command: tuple[str, ...] = ()
    api_key_env: str = ""
    api_key_file: str = ""
    why: str = ""


class MeaningChoice(NamedTuple):
    """The model that makes vectors: files in a folder, else a server."""

    folder: str
    server: ModelChoice


def may_ask_model(settings: "Settings") -> bool:
    """Returns whether a language model may be asked at all."""
    return settings.llm_provider not in ("", "none")


def resolve(settings: "Settings") -> ModelChoice:
    """Chooses the model that digests sessions. Raises `ConfigError` for a block that lacks what its provider needs."""
    if not settings.llm_provider:
        return ModelChoice("none", why="no provider is set")
    keys = ("provider", "model", "endpoint", "timeout", "command", "api_key_env", "api_key_file")
    return _read_choice("llm", ModelChoice("none", **{key: getattr(settings, f"llm_{key}") for key in keys}))


def resolve_meaning(settings: "Settings") -> MeaningChoice | None:
    """Chooses the model that makes vectors; None without one. Only the user's own settings say anything about it.

    Raises `ConfigError` if it lacks what its provider needs.
    """
    chosen = settings.recall_meaning
    if chosen in ("off", "paused"):
        return None
    if chosen not in SERVERS:
        folder = os.path.join(base(), "models", LOCAL[chosen]) if chosen in LOCAL else chosen
        return MeaningChoice(folder, ModelChoice("none"))
    keys = ("model", "endpoint", "api_key_env", "api_key_file")
    written = ModelChoice("none", chosen, **{key: getattr(settings, f"meaning_{key}") for key in keys})
    return MeaningChoice("", _read_choice("meaning", written))


def _read_choice(name: str, written: ModelChoice) -> ModelChoice:
    """Returns the model of a block as it is `written`; raises if that lacks what its provider needs."""
    from urllib.parse import urlsplit

    provider = written.provider
    if provider == "none":
        return ModelChoice("none", why=f"{name}.provider is none")
    if provider == "command":
        if not written.command or not written.command[0]:
            raise ConfigError(
                f"{name}.provider is command, but {name}.command is not set",
                hint='give program and arguments: command = ["llm", "-m", "small"]',
            )
        program = os.path.expanduser(written.command[0])
        if "/" in program and not os.path.isabs(program):
            # It would be searched in the current folder, which may be a checkout.
            hint = "give its absolute path, or a name on PATH"
            raise ConfigError(f"{name}.command names a program by a relative path", hint=hint)
        if any("\0" in part for part in written.command):
            raise ConfigError(f"{name}.command contains a NUL character", hint="remove it")
        return ModelChoice(kind="command", provider=provider, command=written.command, timeout=written.timeout)
    endpoint, usual_key = SERVERS[provider]
    key_env, key_file = written.api_key_env, written.api_key_file
    if not written.endpoint and not key_env and not key_file:
        key_env = usual_key
    if key_env and key_file:
        raise ConfigError(f"{name}.api_key_env and {name}.api_key_file are both set", hint="keep one of them")
    if not written.model:
        hint = "name a model of the server"
        raise ConfigError(f"{name}.provider is {provider}, but {name}.model is not set", hint=hint)
    if key_file and not os.path.isabs(os.path.expanduser(key_file)):
        raise ConfigError(f"{name}.api_key_file is a relative path", hint="give its absolute path")
    # A URL with a host and nothing that may hide a secret; the value itself is never shown.
    endpoint = written.endpoint or endpoint
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    plain = endpoint.isascii() and endpoint.isprintable() and " " not in endpoint
    if not host or not plain or parts.scheme not in ("http", "https"):
        message = f"{name}.endpoint is not the URL of a server" if endpoint else f"{name}.endpoint is not set"
        raise ConfigError(message, hint="give the base URL, such as http://127.0.0.1:11434/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        hint = f"put keys into {name}.api_key_env or {name}.api_key_file"
        raise ConfigError(f"{name}.endpoint contains more than host and path", hint=hint)
    return ModelChoice("http", provider, written.model, endpoint.rstrip("/"), written.timeout, (), key_env, key_file)
