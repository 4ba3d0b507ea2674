"""Optional features: added with the program that made the environment, whichever it was."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from workbench import call

from signet_sync.errors import SignetSyncError
from signet_sync.host import extras

HTTPX = "httpx<1,>=0.27"
RECEIPT = """[tool]
requirements = [
    { name = "rich", specifier = ">=13" },
    { name = "signet-sync", extras = ["mcp"], directory = "/src/signet sync" },
]
python = "3.12"
"""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that is named like ours and is not the system's."""
    place = tmp_path / "signet-sync"
    place.mkdir()
    monkeypatch.setattr(sys, "prefix", str(place))
    return place


def test_every_extra_of_the_package_is_listed() -> None:
    assert {*extras.PURPOSES, "dev"} == set(metadata.metadata("signet-sync").get_all("Provides-Extra") or ())
    assert all(extras.requirements(extra) for extra in extras.PURPOSES)
    assert extras.requirements("llm") == [HTTPX]


def test_pip_of_this_environment(prefix: Path) -> None:
    assert extras.command_to_add(["llm", "embeddings"])[1:5] == ["-m", "pip", "install", HTTPX]
    assert extras.command_to_add(["llm", "embeddings"]).count(HTTPX) == 1


def test_pipx_with_its_own_name_of_the_environment(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suffixed = prefix.with_name("signet-sync@next")
    suffixed.mkdir()
    (suffixed / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "prefix", str(suffixed))
    assert extras.command_to_add(["llm"]) == ["pipx", "inject", "signet-sync@next", HTTPX]


def test_a_tool_of_uv_keeps_what_it_has(prefix: Path) -> None:
    (prefix / "uv-receipt.toml").write_text(RECEIPT)
    ours, *others = "signet-sync[mcp] @ file:///src/signet sync", "rich>=13", HTTPX
    more = [word for one in others for word in ("--with", one)]
    assert extras.command_to_add(["llm"]) == ["uv", "tool", "install", "--force", "--python", "3.12", ours, *more]


@pytest.mark.parametrize("text", ["", "[tool", "tool = 1", "[tool]\nrequirements = 3"])
def test_a_receipt_that_cannot_be_read_is_none(prefix: Path, text: str) -> None:
    (prefix / "uv-receipt.toml").write_text(text)
    assert extras.command_to_add(["llm"])[-1] == HTTPX


def test_a_python_of_the_system_is_left_alone(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(SignetSyncError) as raised:
        extras.command_to_add(["llm", "mcp"])
    assert raised.value.hint == "pipx install 'signet-sync[llm,mcp]'"


def test_an_unknown_extra_and_an_installer_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("extras", "add", "mpc", "--json").json["error"]["code"] == "unknown-extra"
    failing = subprocess.CompletedProcess[bytes]([], 1)
    monkeypatch.setattr(subprocess, "run", lambda *given, **named: failing)
    answer = call("extras", "add", "llm")
    assert answer.code == 2 and "failed with 1" in answer.err and "run it yourself:" in answer.err
