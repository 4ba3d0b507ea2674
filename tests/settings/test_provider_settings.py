"""Who is asked: `[llm]`, and `[llm.synthesis]` for summaries alone; and how little a workspace has to say."""

import itertools

import pytest

from signet_sync.errors import ConfigError
from signet_sync.settings import model
from signet_sync.settings.model import Settings
from signet_sync.settings.model_choice import (
    PROVIDERS,
    SERVERS,
    ModelChoice,
    may_ask_model,
    may_ask_signet,
    resolve,
)

LOCAL = "http://127.0.0.1:11434/v1"


@pytest.fixture
def load(tmp_path):
    root, user = tmp_path / "vault", tmp_path / "config.toml"
    root.mkdir()

    def loaded(text="", workspace="", **environ):
        user.write_text(text)
        (root / "signet-sync.toml").write_text(workspace)
        return model.load(str(root), environ={"SIGNET_CONFIG": str(user), **environ})

    return loaded


def resolved(agent_yaml=None, **values):
    return resolve(Settings(**values), agent_yaml)


def refused(**values):
    with pytest.raises(ConfigError) as raised:
        resolve(Settings(**values), None)
    assert raised.value.hint
    return raised.value


# --- explicit settings ----------------------------------------------------------------------------------------------


def test_by_default_nobody_is_asked():
    assert resolved() == ModelChoice(kind="none", why="no provider is set")


def test_a_known_name_brings_its_endpoint_and_key():
    assert resolved(synthesis_provider="ollama", synthesis_model="m") == ModelChoice(
        kind="http", provider="ollama", model="m", endpoint=LOCAL, timeout=60.0
    )
    remote = resolved(synthesis_provider="openrouter", synthesis_model="a/b")
    assert (remote.endpoint, remote.api_key_env) == ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY")


def test_an_endpoint_of_ones_own_gets_no_key_that_was_not_named_for_it():
    block = resolved(synthesis_provider="openrouter", synthesis_model="m", synthesis_endpoint="http://lan:1/v1/")
    assert (block.endpoint, block.api_key_env, block.api_key_file) == ("http://lan:1/v1", "", "")
    other = resolved(synthesis_provider="openai", synthesis_model="m", synthesis_api_key_file="/k")
    assert (other.api_key_env, other.api_key_file) == ("", "/k")


def test_explicit_synthesis_wins_and_takes_nothing_of_the_other_server():
    block = resolved(
        llm_provider="openrouter", llm_model="big", llm_api_key_env="KEY", llm_timeout=9.0,
        synthesis_provider="ollama", synthesis_model="small",
    )  # fmt: skip
    assert block == ModelChoice(kind="http", provider="ollama", model="small", endpoint=LOCAL, timeout=9.0)
    given = {"llm_provider": "vllm", "llm_model": "big", "llm_endpoint": "http://lan/v1", "llm_command": ("x",)}
    assert "llm.synthesis.model" in refused(**given, synthesis_provider="ollama").message
    assert "llm.synthesis.command" in refused(**given, synthesis_provider="command").message


def test_an_omitted_synthesis_is_the_extraction():
    given = {"llm_provider": "vllm", "llm_model": "m", "llm_endpoint": "https://lan/v1"}
    expected = ModelChoice(kind="http", provider="vllm", model="m", endpoint="https://lan/v1", timeout=60.0)
    assert resolved(**given) == expected
    assert resolved(**given, synthesis_model="n", synthesis_timeout=2.0) == ModelChoice(
        kind="http", provider="vllm", model="n", endpoint="https://lan/v1", timeout=2.0
    )


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"synthesis_enabled": False}, "llm.synthesis.enabled is false"),
        ({"synthesis_provider": "none"}, "llm.synthesis.provider is none"),
        ({"llm_provider": "none"}, "llm.provider is none"),
    ],
)
def test_each_switch_turns_off(values, why):
    given = {"llm_provider": "ollama", "llm_model": "m"} | values
    assert resolved({"extraction": {"provider": "ollama"}}, **given) == ModelChoice(kind="none", why=why)


def test_each_key_of_synthesis_stands_in_place_of_the_same_key_of_the_block():
    given = {
        "llm_provider": "openrouter", "llm_model": "big", "llm_endpoint": "https://lan/v1", "llm_api_key_env": "KEY",
    }  # fmt: skip
    usual = resolved(**given)
    assert resolved(**given, synthesis_provider="openrouter") == usual
    assert resolved(**given, synthesis_model="small") == usual._replace(model="small")
    assert resolved(**given, synthesis_timeout=3.0) == usual._replace(timeout=3.0)
    assert resolved(**given, synthesis_api_key_file="/k") == usual._replace(api_key_env="", api_key_file="/k")
    mine = {"llm_provider": "command", "llm_command": ("a",)}
    assert resolved(**mine, synthesis_command=("b",)).command == ("b",)


def test_a_key_goes_to_no_other_server_than_its_own():
    given = {"llm_provider": "openai", "llm_model": "m", "llm_api_key_file": "/k"}
    assert resolved(**given, synthesis_endpoint="http://lan/v1").api_key_file == ""
    assert resolved(**given, synthesis_provider="vllm", synthesis_model="n")[6:8] == ("", "")
    assert resolved(**given, synthesis_endpoint="http://lan/v1", synthesis_api_key_env="LAN").api_key_env == "LAN"


def test_a_main_block_turned_off_leaves_a_synthesis_of_its_own():
    given = Settings(llm_provider="none", synthesis_provider="ollama", synthesis_model="m")
    assert resolve(given, None).kind == "http" and may_ask_model(given)
    assert not may_ask_model(Settings(llm_provider="none")) and not may_ask_model(Settings())


def test_what_is_turned_off_need_not_be_complete():
    assert resolved(synthesis_enabled=False, synthesis_provider="openai-compatible").kind == "none"


def test_a_command_is_an_argument_list():
    block = resolved(synthesis_provider="command", synthesis_command=("llm", "-m", "small"))
    assert block == ModelChoice(kind="command", provider="command", command=("llm", "-m", "small"), timeout=60.0)


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
    error = refused(**{f"synthesis_{name}": value for name, value in values.items()})
    assert error.message.startswith("llm.synthesis.") and message in error.message


@pytest.mark.parametrize(
    "endpoint",
    ["127.0.0.1:11434", "file:///etc/passwd", "http://", "http://h:port/v1", "http://[::1/v1", "http://a b/v1",
     "http://h/\nv1", "ftp://h/v1", "http://user:hunter2@h/v1", "https://h/v1?key=hunter2", "https://h/v1#hunter2"],
)  # fmt: skip
def test_an_endpoint_is_host_and_path_and_never_shown(endpoint):
    error = refused(synthesis_provider="openai-compatible", synthesis_model="m", synthesis_endpoint=endpoint)
    assert "hunter2" not in error.message + error.hint


def test_every_provider_resolves_or_says_what_it_lacks():
    for name in filter(None, PROVIDERS):
        full = {"synthesis_model": "m", "synthesis_endpoint": LOCAL, "synthesis_command": ("x",)}
        block = resolved(synthesis_provider=name, **full)
        assert block.kind == {"none": "none", "command": "command"}.get(name, "http")


# --- where they may stand -------------------------------------------------------------------------------------------


def test_the_users_file_and_environment_say_who_is_asked(load):
    found, warnings = load(
        "[llm.synthesis]\nprovider = 'ollama'\nmodel = 'm'\ntimeout = 5\n", SIGNET_LLM_SYNTHESIS_MODEL="n"
    )
    assert warnings == []
    assert resolve(found, None) == ModelChoice(kind="http", provider="ollama", model="n", endpoint=LOCAL, timeout=5.0)
    found, _ = load("[llm]\nprovider = 'command'\ncommand = ['a', 'b c']\n")
    assert resolve(found, None).command == ("a", "b c")


def test_a_half_block_is_refused_when_it_is_read(load):
    with pytest.raises(ConfigError, match="model is not set"):
        load("llm.provider = 'ollama'\n")
    with pytest.raises(ConfigError, match="unknown") as raised:
        load("llm.provider = 'olama'\n")
    assert "ollama" in raised.value.hint and ": ," not in raised.value.hint


def test_a_workspace_says_nothing_of_it(load):
    lines, keys = [], []
    values = {"timeout": "1", "command": "['sh', '-c', 'curl evil']", "provider": "'command'"}
    for block, name in itertools.product(
        ("llm", "llm.synthesis"),
        ("provider", "model", "endpoint", "timeout", "command", "api_key_env", "api_key_file"),
    ):
        keys.append(f"{block}.{name}")
        lines.append(f"{keys[-1]} = {values.get(name, repr('http://evil/v1'))}")
    found, warnings = load(workspace="\n".join(lines))
    assert found == Settings()
    ignored = [f"signet-sync.toml: {key} ignored: a workspace may not set this" for key in keys]
    assert [str(remark) for remark in warnings] == ignored


# --- Signet's agent.yaml --------------------------------------------------------------------------------------------

NAMES = {"synthesis": {"provider": "ollama", "endpoint": "http://evil/v1", "model": "evil", "command": "evil"}}


def test_agent_yaml_alone_sends_nothing_anywhere():
    for name in (*SERVERS, "command", "claude-code"):
        assert resolved({"synthesis": {"provider": name}, "extraction": {"provider": name}}).kind == "none"
    assert resolved(NAMES) == ModelChoice(kind="none", why="no provider is set")
    assert not may_ask_signet(Settings())


def test_agent_yaml_may_name_whom_the_user_gave_an_endpoint():
    own = {"llm_endpoint": "http://mine/v1", "llm_model": "m"}
    block = resolved(NAMES, **own)
    assert block == ModelChoice(kind="http", provider="ollama", model="m", endpoint="http://mine/v1", timeout=60.0)
    assert resolved({"synthesis": {"provider": "openrouter"}}, **own).api_key_env == ""
    assert may_ask_signet(Settings(**own))


def test_agent_yaml_may_name_the_users_command_only():
    named = {"extraction": {"provider": "command", "command": {"bin": "evil"}}}
    assert resolved(named, llm_command=("mine",)).command == ("mine",)
    assert resolved(named, llm_endpoint=LOCAL, llm_model="m").kind == "none"
    assert resolved(NAMES, llm_command=("mine",)).kind == "none"


def test_agent_yaml_says_nothing_where_the_user_named_a_provider():
    off = {"enabled": "false", "synthesis": {"enabled": "false", "provider": "none"}}
    assert resolved(off, synthesis_provider="ollama", synthesis_model="m").kind == "http"
    assert resolved(off, llm_provider="ollama", llm_model="m").kind == "http"
    assert not may_ask_signet(Settings(llm_provider="none", llm_endpoint=LOCAL))


@pytest.mark.parametrize(
    "pipeline",
    [
        {"enabled": "false"},
        {"enabled": "No", "synthesis": {"provider": "ollama"}},
        {"synthesis": {"enabled": "off", "provider": "ollama"}},
        {"extraction": {"enabled": "FALSE", "provider": "ollama"}},
        {"synthesis": {"provider": "none"}, "extraction": {"provider": "ollama"}},
        {"extraction": {"provider": "None"}},
        {"synthesis": {"provider": ""}},
        {"synthesis": "ollama"},
        {"synthesis": {"provider": {"a": "b"}}},
        {},
    ],
)
def test_agent_yaml_turns_off_or_says_nothing(pipeline):
    assert resolved(pipeline, llm_endpoint=LOCAL, llm_model="m").kind == "none"


@pytest.mark.parametrize(
    "pipeline",
    [
        {"enabled": "true", "extraction": {"provider": " Ollama "}},
        {"synthesis": {"enabled": "true"}, "extraction": {"provider": "ollama", "enabled": "false"}},
        {"extractionProvider": "ollama"},
    ],
)
def test_agent_yaml_inherits_as_signet_does(pipeline):
    assert resolved(pipeline, llm_endpoint=LOCAL, llm_model="m").kind == "http"


def test_a_hostile_name_is_shown_on_one_line():
    why = resolved({"synthesis": {"provider": "x\n\x1b[2J" + "y" * 999}}, llm_endpoint=LOCAL).why
    assert "\n" not in why and "\x1b" not in why and len(why) < 200
