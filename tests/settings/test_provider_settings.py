"""Who is asked: `[llm]`; and how little a workspace has to say."""

import pytest

from signet_sync.errors import ConfigError
from signet_sync.settings.model import Settings
from signet_sync.settings.model_choice import ModelChoice, resolve

LOCAL = "http://127.0.0.1:11434/v1"


def resolved(**values):
    return resolve(Settings(**values))


def refused(**values):
    with pytest.raises(ConfigError) as raised:
        resolve(Settings(**values))
    assert raised.value.hint
    return raised.value


# --- explicit settings ----------------------------------------------------------------------------------------------


def test_by_default_nobody_is_asked():
    assert resolved() == ModelChoice(kind="none", why="no provider is set")


def test_a_known_name_brings_its_endpoint_and_key():
    assert resolved(llm_provider="ollama", llm_model="m") == ModelChoice(
        kind="http", provider="ollama", model="m", endpoint=LOCAL, timeout=60.0
    )
    remote = resolved(llm_provider="openrouter", llm_model="a/b")
    assert (remote.endpoint, remote.api_key_env) == ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"provider": "ollama"}, "model is not set"),
        ({"provider": "openai-compatible", "model": "m"}, "endpoint is not set"),
        ({"provider": "command"}, "command is not set"),
        ({"provider": "command", "command": ("./tool",)}, "relative path"),
        ({"provider": "command", "command": ("bin/tool", "x")}, "relative path"),
        ({"provider": "command", "command": ("tool", "a\0b")}, "NUL"),
        ({"provider": "vllm", "model": "m", "api_key_env": "A", "api_key_file": "/b"}, "both set"),
        ({"provider": "vllm", "model": "m", "api_key_file": "keys/k"}, "relative path"),
    ],
)
def test_a_half_block_is_refused(values, message):
    error = refused(**{f"llm_{name}": value for name, value in values.items()})
    assert error.message.startswith("llm.") and message in error.message


@pytest.mark.parametrize(
    "endpoint",
    ["127.0.0.1:11434", "file:///etc/passwd", "http://", "http://h:port/v1", "http://[::1/v1", "http://a b/v1",
     "http://h/\nv1", "ftp://h/v1", "http://user:hunter2@h/v1", "https://h/v1?key=hunter2", "https://h/v1#hunter2"],
)  # fmt: skip
def test_an_endpoint_is_host_and_path_and_never_shown(endpoint):
    error = refused(llm_provider="openai-compatible", llm_model="m", llm_endpoint=endpoint)
    assert "hunter2" not in error.message + error.hint
