"""Settings: who wins, what a workspace may not say; every refusal names its key, its file and what is allowed."""

import os
import tomllib

import pytest

from signet_sync.errors import ConfigError
from signet_sync.settings import model
from signet_sync.settings.model import ALL_SETTINGS, Settings
from signet_sync.settings.model_choice import may_ask_model, resolve
from signet_sync.storage import durable, locations, state_dir

BY_NAME = {f.name: f for f in ALL_SETTINGS}
LIMITS = {f.name: f.limits for f in ALL_SETTINGS if f.limits}
WORKSPACE = "signet-sync.toml"


@pytest.fixture
def root(tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    return vault


@pytest.fixture
def user(tmp_path):
    return tmp_path / "config.toml"


@pytest.fixture
def load(root, user):
    """Loads the settings of the workspace with the user file, and nothing of this machine."""

    def loaded(**environ):
        places = {"SIGNET_CONFIG": str(user), "SIGNET_STATE": str(root.parent / "state")}
        found, remarks = model.load(str(root), environ=places | environ)
        return found, [str(remark) for remark in remarks]

    return loaded


def refused(load, *arguments, **environ):
    with pytest.raises(ConfigError) as raised:
        load(*arguments, **environ)
    assert raised.value.hint and raised.value.exit_code == 2 and raised.value.code == "config-invalid"
    return raised.value


# --- who wins -------------------------------------------------------------------------------------------------------


def test_environment_beats_user_beats_workspace_beats_default(load, root, user):
    seen = [load()[0].budget_tokens]
    (root / WORKSPACE).write_text("[projection]\nbudget_tokens = 1001\n")
    seen.append(load()[0].budget_tokens)
    user.write_text("projection.budget_tokens = 1002\n")
    seen.append(load()[0].budget_tokens)
    seen.append(load(SIGNET_PROJECTION_BUDGET_TOKENS="1003")[0].budget_tokens)
    assert seen == [5000, 1001, 1002, 1003]


# --- the workspace file ---------------------------------------------------------------------------------------------


def test_a_workspace_may_not_touch_log_and_retention(load, root):
    (root / WORKSPACE).write_text("[log]\nlevel = 'DEBUG'\n[recall]\nretention_days = 1\n[watch]\ndebounce = 0.5\n")
    found, warnings = load()
    assert found == Settings(debounce=0.5)
    assert warnings == [
        f"{WORKSPACE}: {key} ignored: a workspace may not set this" for key in ("log.level", "recall.retention_days")
    ]


def test_exactly_log_backup_history_providers_and_what_deletes_are_out_of_a_workspaces_reach():
    denied = {f.key for f in ALL_SETTINGS if not f.workspace}
    own = (
        "log_", "backup_", "history_", "llm_", "meaning_",
        "recall_", "max_file_bytes", "seals_", "capture_exclude", "fleet_",
    )  # fmt: skip
    assert denied == {f.key for f in ALL_SETTINGS if f.name.startswith(own)} != set()


def test_a_hostile_key_cannot_forge_a_line(load, root, user):
    (root / WORKSPACE).write_text('"a\\nERROR \\u001b[2J" = 1\n')
    assert load()[1] == [f"{WORKSPACE}: a\\nERROR \\x1b[2J ignored: unknown setting"]
    user.write_text('"a\\nb" = 1\n')
    assert refused(load).message == "unknown setting a\\nb"


@pytest.mark.parametrize("target", ["elsewhere.toml", "nowhere", "/dev/zero"])
def test_a_linked_workspace_file_is_not_followed(load, root, target):
    (root / "elsewhere.toml").write_text("watch.debounce = 1\n")
    (root / WORKSPACE).symlink_to(target)
    assert load() == (Settings(), [STOOD_IN.format("cannot be read: it is a symlink")])


def test_a_workspace_file_that_is_no_file_stops_nothing_and_does_not_block(load, root):
    os.mkfifo(root / WORKSPACE)
    assert load() == (Settings(), [STOOD_IN.format("cannot be read: it is not a regular file")])
    (root / WORKSPACE).unlink()
    (root / WORKSPACE).mkdir()
    assert load() == (Settings(), [STOOD_IN.format("cannot be read: Is a directory")])


# --- what stands in for broken settings -----------------------------------------------------------------------------

STOOD_IN = f"{WORKSPACE}: {{}}; the last good value or the default is used"


@pytest.fixture
def keep(root, user):
    """Keeps what is good now, as every command does that writes."""

    def kept():
        environ = {"SIGNET_CONFIG": str(user), "SIGNET_STATE": str(root.parent / "state")}
        place = locations.locate(str(root), environ)
        durable.private_folder(place.path)
        good = model.last_good_values(str(root), locations.read_json(place.settings) or {}, environ)
        state_dir.write_json(place.settings, good, durable=True)
        return good

    return kept


GOOD = """[noise]
projects = ["/home/u/private/"]
[agents]
projects = ["/home/u/work=worker"]
[watch]
debounce = 3
"""


@pytest.mark.parametrize("raw", [b"[noise]\nproj", b"\xff\xfe", b"#" * 70_000, None])
def test_a_broken_file_neither_shows_what_was_hidden_nor_gives_it_to_another_agent(load, keep, root, raw):
    (root / WORKSPACE).write_text(GOOD)
    good = load()[0]
    keep()
    (root / WORKSPACE).unlink()
    (root / WORKSPACE).mkdir() if raw is None else (root / WORKSPACE).write_bytes(raw)
    found, remarks = load()
    assert (
        found
        == good
        == Settings(noise_projects=("/home/u/private/",), agents_projects=("/home/u/work=worker",), debounce=3.0)
    )
    assert len(remarks) == 1 and remarks[0].startswith(f"{WORKSPACE}: ")
    keep()  # what is broken leaves the last good values as they are, for as long as it stays so
    assert load()[0] == good
    if raw is not None:
        (root / WORKSPACE).write_text("")
        keep()
        assert load() == (Settings(), []), "what a person took out is not brought back"


def test_kept_settings_hold_no_secret_and_nothing_that_a_workspace_may_not_set(load, keep, root, user):
    secret = "sk-ant-api03-" + "aB3dE5fG7h" * 9 + "AA"
    user.write_text(f"[noise]\nsessions = ['{secret}']\nprojects = ['/x']\n[log]\nlevel = 'DEBUG'\n")
    assert keep() == {"user": {"noise.projects": ("/x",)}}


PERSONS = [
    "[watch",
    "[llm]\nprovider = 'ollama'\nmodel = 'm'\ntimeuot = 5\n",
    "[llm]\nprovider = 'ollama'\nmodel = 'm'\ntimeout = 'perhaps'\n",
    "[llm]\nprovider = 'ollama'\n",
    "[history]\nenabled = true\n[recall]\nretention_days = -1\n",
]


@pytest.mark.parametrize("text", PERSONS)
def test_where_nobody_sits_broken_settings_of_the_person_stop_nothing_and_send_nothing(load, root, user, text):
    user.write_text(text)
    assert refused(load).path in (str(user), None)
    environ = {"SIGNET_CONFIG": str(user), "SIGNET_STATE": str(root.parent / "state")}
    found, remarks = model.load(str(root), environ=environ, anyway=True)
    assert not may_ask_model(found) or resolve(found).kind == "none"
    assert not found.history_enabled
    assert found.recall_retention_days == 0.0
    assert len(remarks) == 1 and remarks[0].broken and "no model is asked" in str(remarks[0])
    assert model.list_broken_values(str(root)) == []


# --- the user file --------------------------------------------------------------------------------------------------


def test_an_unknown_key_of_the_user_is_an_error(load, user):
    user.write_text("[watch]\ndebuonce = 1\n")
    error = refused(load)
    assert error.message == "unknown setting watch.debuonce, did you mean watch.debounce?"
    assert error.path == str(user)


BROKEN = {
    "[watch]\ndebounce = = 1\n": "line 2", "a = 1\na = 2\n": "line 2", "[watch\n": "line 1",
    "x = 2026-13-45\n": "line 1",
}  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("which", ["user", "workspace"])
def test_broken_toml_names_file_and_line(load, user, root, which, text):
    path = user if which == "user" else root / WORKSPACE
    path.write_text(text)
    if which == "workspace":
        found, (remark,) = load()
        assert found == Settings() and "is not valid TOML" in remark and BROKEN[text] in remark
        return
    error = refused(load)
    assert error.path == str(path) and "is not valid TOML" in error.message and BROKEN[text] in error.message


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"a = '\xff'\n", "is not valid TOML"), (b"a = " + b"[" * 60_000, "nested too deeply"),
        (b"a." * 30_000 + b"a = 1\n", "nested too deeply"), (b"[" + b"a." * 30_000 + b"a]\n", "nested too deeply"),
        (b"a = { " * 9_000, "nested too deeply"), (b"a = " + b"9" * 5000, "is not valid TOML"),
        (b"# comment\n" * 20_000, "larger than"),
    ],
)  # fmt: skip
def test_no_file_can_crash_us(load, root, raw, message):
    (root / WORKSPACE).write_bytes(raw)
    found, (remark,) = load()
    assert found == Settings() and message in remark and len(remark) < 400


# --- values ---------------------------------------------------------------------------------------------------------

WRONG = {
    "debounce": ["'fast'", "true", "[1]", "nan", "inf", "-0.1", "60.1"],
    "interval": ["0", "''", "1e9", "2026-03-28"],
    "max_file_bytes": ["1.5", "true", "2000.0", "'64MB'", "0", "1023", "1e3"],
    "budget_tokens": ["499", "1000001", "{ a = 1 }"], "takeover": ["1", "0", "'perhaps'", "[]"],
    "watch_mode": ["'always'", "''", "1", "true", "['auto']"], "log_level": ["'debug'", "'TRACE'", "10"],
    "noise_projects": ["'/x'", "[1]", "[['/x']]", "true"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_values_are_refused_with_key_file_and_what_is_allowed(load, user, name, value):
    key = BY_NAME[name].key
    user.write_text(f"{key} = {value}\n")
    error = refused(load)
    assert error.path == str(user) and key in error.message


# --- the environment ------------------------------------------------------------------------------------------------


def test_every_setting_can_be_written_as_it_is_documented(load, user):
    """A file with every key at its default is what having no file is."""
    lines = []
    for f in ALL_SETTINGS:
        key, default = f.key, f.default
        value = list(default) if isinstance(default, tuple) else default
        lines.append(f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}")
    user.write_text("\n".join(lines))
    assert tomllib.loads(user.read_text()) and load() == (Settings(), [])


# --- places ---------------------------------------------------------------------------------------------------------


def test_the_workspace_is_flag_then_variable_then_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert locations.locate_workspace("~/vault") == str(tmp_path / "vault")
    monkeypatch.setenv("SIGNET_WORKSPACE", "/env")
    assert [locations.locate_workspace(flag) for flag in ("flag", None)] == [str(tmp_path / "flag"), "/env"]
    monkeypatch.setenv("SIGNET_WORKSPACE", "")
    assert locations.locate_workspace(None) == str(tmp_path / ".agents")
