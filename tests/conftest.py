"""Prepares every test: its surroundings, the order of files, the reference folder beside the checkout, its vectors."""

import gc
import json
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from loguru import _better_exceptions

from signet_sync.storage.database import connection

# Every sink asks for the folders of the standard library, of which there are dozens of spellings: asked for once.
_better_exceptions.ExceptionFormatter._get_lib_dirs = staticmethod(
    cache(_better_exceptions.ExceptionFormatter._get_lib_dirs)
)

# A loaded machine is no reason to fail: what must be fast is measured by the tests that say so.
# Every run of a commit tries the same examples, so that what fails can be seen again; `thorough` tries new ones.
settings.register_profile("patient", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "patient"))
# It would parse the whole project in every worker for numbers to try, and with any change try others.
providers._get_local_constants = lambda: providers._local_constants

# Hundreds of processes start in a run: the first one compiles the code for all, whatever the environment asks for.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A hook asks no agent for lines where `CI` is set: what the tests see must not depend on where they run.
os.environ.pop("CI", None)

# What a shell began in the background ignores Ctrl-C, and so do its children; those of the tests are told to end by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MEMORY = "/dev/shm"

# Tests of one capability take from those of another what is about that one; `support` is on the path for all.
FOLDERS = [
    folder for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir() and folder.name != "reliability"
]
sys.path += map(str, FOLDERS)


def has_room(folder):
    """Whether vaults by the thousand may be made there, and programs be run from there."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    room = found.f_bavail * found.f_frsize > 2 << 30 and not found.f_flag & os.ST_NOEXEC
    return room and os.access(folder, os.W_OK)


# On a disk half of the time is spent in fsync, and no test cuts the power; a place that the environment names is kept.
if has_room(MEMORY):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


def pytest_xdist_auto_num_workers(config):
    """Twice as many as there are cores: workers wait for agents and locks, but each imports all that there is."""
    return 2 * (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@cache
def weight(path):
    """What a test file costs, as far as its text tells: whether it has whole vaults, and how much it holds."""
    text = path.read_text(encoding="utf-8")
    return "from workbench import" in text or "(vault" in text, len(text)


def pytest_sessionstart(session):
    """Each worker rewrites the asserts of its share of the files for all: most of the time of a start goes there."""
    given = getattr(session.config, "workerinput", None)
    if given is None or session.config.args != session.config.getini("testpaths"):
        return
    gc.disable()  # until all is collected
    paths = [path for folder in FOLDERS for path in sorted(folder.glob("test_*.py"))]
    for path in paths[int(given["workerid"].removeprefix("gw")) :: given["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # reported when the file is collected
            import_module(path.stem)


def pytest_collection_modifyitems(config, items):
    """The heaviest files first, so that no worker is left alone with one; slow tests run when they are asked for."""
    items.sort(key=lambda item: weight(item.path), reverse=True)
    if not config.option.markexpr and not any("::" in argument for argument in config.args):
        slow = {item for item in items if item.get_closest_marker("slow")}
        items[:] = [item for item in items if item not in slow]
        config.hook.pytest_deselected(items=slow)


def pytest_collection_finish(session):
    """What collection left is never garbage: looking through it took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def home(tmp_path):
    """The empty home folder of the commands' user."""
    folder = Path(os.environ["HOME"])
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def vault(tmp_path):
    """An empty vault."""
    from workbench import Vault

    return Vault(tmp_path / "vault")


@pytest.fixture(scope="session")
def shared():
    """The folder with vectors, vaults and seeds; without it, what needs it is skipped."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("the reference folder is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def vectors(shared):
    """What the original program answers, by function: a list of cases each."""
    return json.loads((shared / "vectors" / "signet.json").read_text(encoding="utf-8"))


PLACES = {
    "HOME": "home",
    "XDG_STATE_HOME": "home/.local/state",
    "XDG_CONFIG_HOME": "home/.config",
    "SIGNET_STATE": "state",
    "SIGNET_CONFIG": "config.toml",
}


@pytest.fixture(scope="session")
def nowhere(tmp_path_factory):
    """The machine of tests that ask for no folder: thousands look at values alone, and few leave a file."""
    return tmp_path_factory.mktemp("nowhere")


@pytest.fixture(autouse=True)
def a_machine_of_its_own(request, monkeypatch, nowhere):
    """No test sees the settings, the state or the vault of the person who runs it, nor those of another test."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else nowhere
    for name in [name for name in os.environ if name.startswith(("SIGNET_", "GIT_"))]:
        monkeypatch.delenv(name)
    for name, place in PLACES.items():
        monkeypatch.setenv(name, f"{folder}/machine/{place}")
    monkeypatch.chdir(folder)  # in no repository, as which the project's own would be remembered
    yield
    if folder is nowhere and os.listdir(nowhere):
        shutil.rmtree(nowhere)
        nowhere.mkdir()


@pytest.fixture
def impatient(monkeypatch):
    """What meets a reader or a writer of the database waits for it a moment, not for seconds."""
    monkeypatch.setattr(connection, "BUSY_MS", 100)


@pytest.fixture
def auckland(monkeypatch):
    """A machine on which it is tomorrow for half of the UTC day."""
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
