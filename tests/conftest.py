"""What the tests of several rooms share: the reference folder beside the checkout, and its vectors."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import settings

# A loaded machine is no reason to fail: what must be fast is measured by the tests that say so.
settings.register_profile("patient", deadline=None, max_examples=30)
settings.register_profile("thorough", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "patient"))


def pytest_xdist_auto_num_workers(config):
    """Half as many again as there are cores: a third of the suite's time is spent waiting for agents and locks."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + cores // 2


def pytest_collection_modifyitems(config, items):
    """Slow tests run when a marker expression asks for them, or when a test is named."""
    if config.option.markexpr or any("::" in argument for argument in config.args):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: run with `pytest -m slow`"))


@pytest.fixture(scope="session")
def shared():
    """The folder with vectors, vaults and seeds; whoever has only the project skips what needs it."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("the reference folder is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def vectors(shared):
    """What the original program answers, by function: a list of cases each."""
    return json.loads((shared / "vectors" / "signet.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def a_machine_of_its_own(tmp_path, monkeypatch):
    """No test sees the settings, the state or the vault of the person who runs it, nor those of another test."""
    for name in [name for name in os.environ if name.startswith(("SIGNET_", "GIT_"))]:
        monkeypatch.delenv(name)
    places = {
        "HOME": "home",
        "XDG_STATE_HOME": "home/.local/state",
        "XDG_CONFIG_HOME": "home/.config",
        "SIGNET_STATE": "state",
        "SIGNET_CONFIG": "config.toml",
    }
    for name, place in places.items():
        monkeypatch.setenv(name, str(tmp_path / "machine" / place))
