"""Who is asked for summaries: the blocks `[extraction]` and `[synthesis]`, and how little a workspace has to say."""

import itertools

import pytest

from signet_sync.errors import ConfigError
from signet_sync.settings import model
from signet_sync.settings.model import SERVERS, ModelChoice, Settings, may_ask_signet, resolve

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
        extraction_provider="openrouter", extraction_model="big", extraction_api_key_env="KEY", extraction_timeout=9.0,
        synthesis_provider="ollama", synthesis_model="small",
    )  # fmt: skip
    assert block == ModelChoice(kind="http", provider="ollama", model="small", endpoint=LOCAL, timeout=9.0)
    assert (
        "synthesis.model"
        in refused(extraction_provider="ollama", extraction_model="big", synthesis_provider="ollama").message
    )


def test_an_omitted_synthesis_is_the_extraction():
    given = {"extraction_provider": "vllm", "extraction_model": "m", "extraction_endpoint": "https://lan/v1"}
    expected = ModelChoice(kind="http", provider="vllm", model="m", endpoint="https://lan/v1", timeout=60.0)
    assert resolved(**given) == expected
    assert resolved(**given, synthesis_model="n", synthesis_timeout=2.0) == ModelChoice(
        kind="http", provider="vllm", model="n", endpoint="https://lan/v1", timeout=2.0
    )


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"synthesis_enabled": False}, "synthesis.enabled is false"),
        ({"extraction_enabled": False}, "extraction.enabled is false"),
        ({"synthesis_provider": "none"}, "synthesis.provider is none"),
        ({"extraction_provider": "none"}, "extraction.provider is none"),
    ],
)
def test_each_switch_turns_off(values, why):
    given = {"extraction_provider": "ollama", "extraction_model": "m"} | values
    assert resolved({"extraction": {"provider": "ollama"}}, **given) == ModelChoice(kind="none", why=why)


def test_extraction_turned_off_leaves_a_synthesis_of_its_own():
    block = resolved(extraction_enabled=False, synthesis_provider="ollama", synthesis_model="m")
    assert block.kind == "http"


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
        ({"endpoint": LOCAL}, "provider is not"),
        ({"command": ("x",)}, "provider is not"),
        ({"api_key_env": "K"}, "provider is not"),
    ],
)
def test_a_half_block_is_refused(values, message):
    error = refused(**{f"synthesis_{name}": value for name, value in values.items()})
    assert error.message.startswith("synthesis.") and message in error.message


@pytest.mark.parametrize(
    "endpoint",
    ["127.0.0.1:11434", "file:///etc/passwd", "http://", "http://h:port/v1", "http://[::1/v1", "http://a b/v1",
     "http://h/\nv1", "ftp://h/v1", "http://user:hunter2@h/v1", "https://h/v1?key=hunter2", "https://h/v1#hunter2"],
)  # fmt: skip
def test_an_endpoint_is_host_and_path_and_never_shown(endpoint):
    error = refused(synthesis_provider="openai-compatible", synthesis_model="m", synthesis_endpoint=endpoint)
    assert "hunter2" not in error.message + error.hint


def test_every_provider_resolves_or_says_what_it_lacks():
    for name in filter(None, model.PROVIDERS):
        full = {"synthesis_model": "m", "synthesis_endpoint": LOCAL, "synthesis_command": ("x",)}
        block = resolved(synthesis_provider=name, **full)
        assert block.kind == {"none": "none", "command": "command"}.get(name, "http")


# --- where they may stand -------------------------------------------------------------------------------------------


def test_the_users_file_and_environment_say_who_is_asked(load):
    found, warnings = load("[synthesis]\nprovider = 'ollama'\nmodel = 'm'\ntimeout = 5\n", SIGNET_SYNTHESIS_MODEL="n")
    assert warnings == []
    assert resolve(found, None) == ModelChoice(kind="http", provider="ollama", model="n", endpoint=LOCAL, timeout=5.0)
    found, _ = load("[extraction]\nprovider = 'command'\ncommand = ['a', 'b c']\n")
    assert resolve(found, None).command == ("a", "b c")


def test_a_half_block_is_refused_when_it_is_read(load):
    with pytest.raises(ConfigError, match="model is not set"):
        load("synthesis.provider = 'ollama'\n")
    with pytest.raises(ConfigError, match="unknown") as raised:
        load("synthesis.provider = 'olama'\n")
    assert "ollama" in raised.value.hint and ": ," not in raised.value.hint


def test_a_workspace_says_nothing_of_it(load):
    lines, keys = [], []
    values = {"enabled": "false", "timeout": "1", "command": "['sh', '-c', 'curl evil']", "provider": "'command'"}
    for block, name in itertools.product(
        ("extraction", "synthesis"),
        ("enabled", "provider", "model", "endpoint", "timeout", "command", "api_key_env", "api_key_file"),
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
    own = {"extraction_endpoint": "http://mine/v1", "extraction_model": "m"}
    block = resolved(NAMES, **own)
    assert block == ModelChoice(kind="http", provider="ollama", model="m", endpoint="http://mine/v1", timeout=60.0)
    assert resolved({"synthesis": {"provider": "openrouter"}}, **own).api_key_env == ""
    assert may_ask_signet(Settings(**own))


def test_agent_yaml_may_name_the_users_command_only():
    named = {"extraction": {"provider": "command", "command": {"bin": "evil"}}}
    assert resolved(named, extraction_command=("mine",)).command == ("mine",)
    assert resolved(named, extraction_endpoint=LOCAL, extraction_model="m").kind == "none"
    assert resolved(NAMES, extraction_command=("mine",)).kind == "none"


def test_agent_yaml_says_nothing_where_the_user_named_a_provider():
    off = {"enabled": "false", "synthesis": {"enabled": "false", "provider": "none"}}
    assert resolved(off, synthesis_provider="ollama", synthesis_model="m").kind == "http"
    assert resolved(off, extraction_provider="ollama", extraction_model="m").kind == "http"
    assert not may_ask_signet(Settings(extraction_provider="none", extraction_endpoint=LOCAL))


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
    assert resolved(pipeline, extraction_endpoint=LOCAL, extraction_model="m").kind == "none"


@pytest.mark.parametrize(
    "pipeline",
    [
        {"enabled": "true", "extraction": {"provider": " Ollama "}},
        {"synthesis": {"enabled": "true"}, "extraction": {"provider": "ollama", "enabled": "false"}},
        {"extractionProvider": "ollama"},
    ],
)
def test_agent_yaml_inherits_as_signet_does(pipeline):
    assert resolved(pipeline, extraction_endpoint=LOCAL, extraction_model="m").kind == "http"


def test_a_hostile_name_is_shown_on_one_line():
    why = resolved({"synthesis": {"provider": "x\n\x1b[2J" + "y" * 999}}, extraction_endpoint=LOCAL).why
    assert "\n" not in why and "\x1b" not in why and len(why) < 200
