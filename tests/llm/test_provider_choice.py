"""Which provider the settings name, where its key comes from, and who else can read it."""

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


def test_by_default_it_is_nobody():
    assert provider_for(Settings(), {}) is None


def test_a_program_gets_the_environment():
    settings = Settings(llm_provider="command", llm_command=("sh", "-c", "echo $MINE"))
    found = provider_for(settings, {"MINE": "iron and coal", "PATH": os.environ["PATH"]})
    assert replace(found, budget=None).complete("", "", max_tokens=9) == "iron and coal\n"


SERVER = {"llm_provider": "vllm", "llm_model": "m"}


def test_a_server_gets_the_key_of_the_environment():
    settings = Settings(**SERVER, llm_api_key_env="MY_KEY", llm_timeout=7.0)
    found = provider_for(settings, {"MY_KEY": " k1 \n"})
    assert found == providers.HttpProvider(
        endpoint="http://127.0.0.1:8000/v1", model="m", timeout=7.0, key="k1", name="vllm"
    )  # fmt: skip


@pytest.mark.parametrize("environ", [{}, {"gsk_secret": ""}, {"gsk_secret": "two words"}])
def test_a_key_that_is_not_there_is_a_clear_error(environ):
    with pytest.raises(ConfigError) as raised:
        provider_for(Settings(**SERVER, llm_api_key_env="gsk_secret"), environ)
    assert raised.value.hint and "gsk_secret" not in str(raised.value) + raised.value.hint


def test_a_server_gets_the_key_of_a_file_and_says_who_else_reads_it(tmp_path, log):
    file = tmp_path / "key"
    file.write_text("k2\n")
    file.chmod(0o600)
    settings = Settings(**SERVER, llm_api_key_file=str(file))
    assert provider_for(settings, {}).key == "k2" and log == []
    file.chmod(0o644)
    assert provider_for(settings, {}).key == "k2"
    assert len(log) == 1 and "chmod 600" in log[0] and "k2" not in log[0]
