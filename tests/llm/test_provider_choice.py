"""Which provider the settings name, where its key comes from, and how little a workspace has to say."""

import os
from dataclasses import replace

import pytest
from loguru import logger

from signet_sync.errors import ConfigError
from signet_sync.llm import providers
from signet_sync.llm.provider_choice import provider_for
from signet_sync.settings.model import Settings


@pytest.fixture
def log():
    lines = []
    sink = logger.add(lambda message: lines.append(message.record["message"]), level="DEBUG")
    yield lines
    logger.remove(sink)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "vault").mkdir()
    return tmp_path / "vault"


def test_by_default_it_is_nobody(root):
    (root / "agent.yaml").mkdir()
    assert provider_for(Settings(), str(root), {}) is None


def test_a_program_gets_the_environment(root):
    settings = Settings(llm_provider="command", llm_command=("sh", "-c", "echo $MINE"))
    found = provider_for(settings, str(root), {"MINE": "iron and coal", "PATH": os.environ["PATH"]})
    assert replace(found, budget=None).complete("", "", max_tokens=9) == "iron and coal\n"


SERVER = {"llm_provider": "vllm", "llm_model": "m"}


def test_a_server_gets_the_key_of_the_environment(root):
    settings = Settings(**SERVER, llm_api_key_env="MY_KEY", llm_timeout=7.0)
    found = provider_for(settings, str(root), {"MY_KEY": " k1 \n"})
    assert found == providers.HttpProvider(
        endpoint="http://127.0.0.1:8000/v1", model="m", timeout=7.0, key="k1", name="vllm"
    )  # fmt: skip


@pytest.mark.parametrize("environ", [{}, {"gsk_secret": ""}, {"gsk_secret": "two words"}])
def test_a_key_that_is_not_there_is_a_clear_error(root, environ):
    with pytest.raises(ConfigError) as raised:
        provider_for(Settings(**SERVER, llm_api_key_env="gsk_secret"), str(root), environ)
    assert raised.value.hint and "gsk_secret" not in str(raised.value) + raised.value.hint


def test_a_server_gets_the_key_of_a_file_and_says_who_else_reads_it(root, tmp_path, log):
    file = tmp_path / "key"
    file.write_text("k2\n")
    file.chmod(0o600)
    settings = Settings(**SERVER, llm_api_key_file=str(file))
    assert provider_for(settings, str(root), {}).key == "k2" and log == []
    file.chmod(0o644)
    assert provider_for(settings, str(root), {}).key == "k2"
    assert len(log) == 1 and "chmod 600" in log[0] and "k2" not in log[0]


AGENT_YAML = """\
version: 1
harnesses: [codex, {name: x}]
memory:
  pipelineV2:
    enabled: true
    extraction:
      provider: command
      model: evil
      endpoint: http://evil/v1
      rateLimit: {burstSize: 1, deeper: {and: {deeper: [1]}}}
inference:
  accounts: {a: {b: {c: {d: e}}}}
"""
MINE = Settings(llm_command=("sh", "-c", "echo mine"))


def test_agent_yaml_is_read_for_the_name_alone(root):
    (root / "agent.yaml").write_text(AGENT_YAML)
    found = provider_for(MINE, str(root), dict(os.environ))
    assert isinstance(found, providers.CommandProvider) and found.command == ("sh", "-c", "echo mine")
    assert provider_for(Settings(), str(root), {}) is None


ODD = [
    AGENT_YAML.replace("enabled: true", "enabled: false"),
    AGENT_YAML.replace("provider: command", "provider: none"),
    AGENT_YAML.replace("version: 1", "version: &a 1"),
    AGENT_YAML.replace("version: 1", "version: !!python/object:os.system 1"),
    AGENT_YAML + "x: *a\n", AGENT_YAML + "---\nmemory: {}\n", AGENT_YAML + "memory: {}\n",
    AGENT_YAML + "x: [" + "{a: " * 5000, AGENT_YAML + "x: " + "[" * 30 + "]" * 30, AGENT_YAML + "# " + "x" * 70_000,
    AGENT_YAML.replace("pipelineV2:", "pipelineV2: 1 #"),
    "memory", "[memory]", "", "\x00", "\udcff",
]  # fmt: skip


def test_an_agent_yaml_that_is_off_odd_or_hostile_names_nobody(root):
    for text in ODD:
        (root / "agent.yaml").write_bytes(text.encode("utf-8", "surrogateescape"))
        assert provider_for(MINE, str(root), {}) is None, text[:300]


def test_an_agent_yaml_that_is_a_link_or_a_pipe_is_not_read(root, tmp_path, log):
    (tmp_path / "elsewhere").write_text(AGENT_YAML)
    (root / "agent.yaml").symlink_to(tmp_path / "elsewhere")
    assert provider_for(MINE, str(root), {}) is None
    (root / "agent.yaml").unlink()
    os.mkfifo(root / "agent.yaml")
    assert provider_for(MINE, str(root), {}) is None
    assert len(log) == 2 and all(line.startswith("agent.yaml is not read") for line in log)
