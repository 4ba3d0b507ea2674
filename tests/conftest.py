"""Prepares every test: its surroundings, its tier, the reference folder beside the checkout, and its vectors."""

import gc
import json
import os
import re
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest
from hypothesis import settings
from loguru import _better_exceptions

from signet_sync.app import unchanged
from signet_sync.storage.database import connection

PROGRAM = unchanged._program()

# Every sink asks for the folders of the standard library, of which there are dozens of spellings: asked for once.
_better_exceptions.ExceptionFormatter._get_lib_dirs = staticmethod(
    cache(_better_exceptions.ExceptionFormatter._get_lib_dirs)
)

# A loaded machine is no reason to fail: what must be fast is measured by the tests that say so.
# Every run of a commit tries the same examples, so that what fails can be seen again; `thorough` tries new ones.
settings.register_profile("patient", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "patient"))

# Hundreds of processes start in a run: the first one compiles the code for all, whatever the environment asks for.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

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
    """More than twice as many as there are cores: workers wait for agents and locks almost half of the time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 * cores + (cores + 1) // 2


# These take longest: begun first, so that no worker is left alone with one of them in the end. By turns one that mostly
# waits and one that mostly computes, so that the cores have work while agents are waited for.
LONGEST = """
test_intake test_crash_points test_cli test_web_browser test_daemon_watch test_recall test_daemon test_embeddings
test_live test_daemon_life test_mcp test_workers test_storms test_every_command test_watcher test_removal test_canary
test_migrate_signet test_sections test_canary_graph test_races test_derivers test_daemon_trouble test_unchanged
test_migrate_others test_entities test_service_faults test_digest test_dreams test_reindex test_database_faults
test_signet_removals test_two_machines test_escapes test_capture test_daemon_others test_session_input
test_seed000 test_bad_input test_doctor_findings test_agents_apart test_hook test_entity_command test_returned_lines
test_beside_signet test_entities_pass test_tables test_session_flow test_texts test_memories
test_statements test_file_systems test_check_ci test_hook_context test_canary_dreams test_live_facts
""".split()


# A whole vault, the command line, agents, git, processes: a test file that imports one of these holds no units.
_WHOLE = r"(?:Vault|call|spawn|Agent|Inside|agents|HistoryVault|git|subprocess|forked)\b"
NO_UNIT = re.compile(rf"^(?:from|import) .*\b{_WHOLE}|^    {_WHOLE}", re.MULTILINE)


@cache
def is_unit(path):
    """Whether what a test file imports starts no process and no agent."""
    imports = path.read_text(encoding="utf-8").partition("\ndef ")[0]
    return path.parent.name != "reliability" and not NO_UNIT.search(imports)


def pytest_ignore_collect(collection_path, config):
    """With `-m unit` only the files that hold units are imported."""
    is_other = collection_path.name.startswith("test_") and not is_unit(collection_path)
    return True if config.option.markexpr == "unit" and is_other else None


def pytest_sessionstart(session):
    """Each worker rewrites the asserts of its share of the files for all: most of the time of a start goes there."""
    given = getattr(session.config, "workerinput", None)
    if given is None or session.config.args != session.config.getini("testpaths"):
        return
    gc.disable()  # until all is collected
    first, units_only = int(given["workerid"].removeprefix("gw")), session.config.option.markexpr == "unit"
    paths = [path for folder in FOLDERS for path in sorted(folder.glob("test_*.py")) if not units_only or is_unit(path)]
    for path in paths[first :: given["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # reported when the file is collected
            import_module(path.stem)


def pytest_collection_modifyitems(config, items):
    """The longest files first; marks units; slow tests run when a marker expression or a test's name asks for them."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    skips_slow = not config.option.markexpr and not any("::" in argument for argument in config.args)
    for item in items:
        slow = item.get_closest_marker("slow")
        if is_unit(item.path) and not slow and not item.get_closest_marker("system"):
            item.add_marker("unit")
        if slow and skips_slow:
            item.add_marker(pytest.mark.skip(reason="slow: run with `pytest -m slow`"))


def pytest_collection_finish(session):
    """What collection left is never garbage: looking through it took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def no_process_of_a_unit(request):
    """A unit that starts a process is none: it is to be marked `system`."""
    before = getrusage(RUSAGE_CHILDREN).ru_minflt
    yield
    if request.node.get_closest_marker("unit"):
        assert getrusage(RUSAGE_CHILDREN).ru_minflt == before, "a unit has started a process"


@pytest.fixture
def home():
    """The empty home folder of the commands' user."""
    folder = Path(os.environ["HOME"])
    folder.mkdir(parents=True)
    return folder


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
        monkeypatch.setenv(name, f"{tmp_path}/machine/{place}")


@pytest.fixture(autouse=True)
def a_program_that_stays_as_it_is(monkeypatch):
    """Its hundreds of files are looked at once, not twice for every full pass over few files."""
    monkeypatch.setattr(unchanged, "_program", lambda: PROGRAM)


@pytest.fixture
def impatient(monkeypatch):
    """What meets a reader or a writer of the database waits for it a moment, not for seconds."""
    monkeypatch.setattr(connection, "BUSY_MS", 100)
