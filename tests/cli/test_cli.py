"""The command line: help, errors in one line with a remedy, exit codes, JSON shapes, what is imported."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib

import artifacts_fixture as made
import pytest
from command_lines import COMMAND_LINES, EVERY, furnished, run
from session_inputs import end, refuse, written
from workbench import NOW, ROOT, Vault, call, cast, contents, numbered, spawn, tree

from signet_sync import __version__
from signet_sync.cli.commands import COMMANDS, EVERYDAY, GROUPS
from signet_sync.settings.model import ALL_SETTINGS, Settings, load

ID = numbered(1)["session_id"]


@pytest.fixture(scope="module")
def mould(tmp_path_factory):
    return cast(tmp_path_factory.mktemp("mould"), lambda vault: vault.indexed(1, 2, 3))


@pytest.fixture
def vault(mould, tmp_path):
    return mould(tmp_path)


# ── help ──


def test_every_command_has_help():
    for name in dict.fromkeys((*COMMANDS, *EVERY)):
        answer = call(*name.split(), "--help")
        assert answer.code == 0 and answer.err == "", name
        assert answer.out.startswith(f"Usage: signet-sync {name}"), name
        assert all(len(line) <= 100 for line in answer.out.splitlines()), name
    assert call(*name.split(), "-h") == answer


def listed(text):
    """The commands that an overview lists, with what it says of them."""
    return re.findall(rf"^  ({'|'.join(COMMANDS)}) +(\S.*)", text, re.MULTILINE)


def test_the_overview_lists_all_commands_by_group_and_the_exit_codes():
    shown = [(name, one.help) for name, one in COMMANDS.items() if one.group in GROUPS]
    assert 8 <= len([one for one in COMMANDS.values() if one.group == EVERYDAY]) <= 12
    for words in ((), ("--help",)):
        answer = call(*words)
        assert answer.code == 0 and listed(answer.out) == shown
        headings = re.findall(r"^(\w+):$", answer.out, re.MULTILINE)
        assert [one for one in headings if one.lower() in GROUPS] == [group.capitalize() for group in GROUPS]
        assert "0 success" in answer.out and "130 interrupted" in " ".join(answer.out.split())
    assert call("--version").out == f"signet-sync {__version__}\n"
    assert call("help").out == call("--help").out and "copy the workspace's folder" in call("export").err
    assert call("recal").err.startswith("signet-sync: no command 'recal' — did you mean recall?")


# ── errors ──


def one_line_error(answer, code):
    """The error of a person: one line on stderr with a remedy, nothing on stdout."""
    assert answer.code == code, answer
    assert answer.out == ""
    assert re.fullmatch(r"signet-sync: [^\n]+ — [^\n]+\n", answer.err), answer.err
    return answer.err


def json_error(answer, code):
    """The error of a program: one document on stdout, nothing on stderr."""
    assert answer.code == code, answer
    assert answer.err == ""
    (error,) = answer.json.values()
    assert list(answer.json) == ["error"] and list(error) == ["code", "message", "hint", "path"]
    assert error["code"] and error["message"] and error["hint"]
    return error


def test_a_workspace_that_is_missing_or_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    for words in (("ui", "--no-open"), ("run",), ("init",), ("demo", tmp_path / "file")):
        answer = call("--workspace", tmp_path / "file", *words)
        error = one_line_error(answer, 3)
        assert "a folder" in error.replace("another", "a") and "permissions" not in error and "init" not in error, words
    assert "does not exist" in one_line_error(call("--workspace", tmp_path / "none", "ui", "--no-open"), 3)
    error = json_error(call("--workspace", tmp_path / "file", "reindex", "--json"), 3)
    assert error["code"] == "workspace-unusable" and error["path"] == str(tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


# What is asked of a machine or of what is left of a workspace, and what makes one; `fleet` names its workspaces itself.
WITHOUT_WORKSPACE = (
    "setup", "init", "demo", "hook", "hooks status", "hooks uninstall", "doctor",
    "settings", "note",
)  # fmt: skip


def test_every_command_says_of_a_missing_workspace_that_it_cannot_be_used(tmp_path):
    """One exit code for all: 3."""
    (tmp_path / "mould").mkdir()
    vault = furnished(tmp_path / "mould")(tmp_path)
    for place in (vault.root, os.environ["SIGNET_STATE"]):
        shutil.rmtree(place)
    codes = {}
    for name, line in COMMAND_LINES.items():
        if not line.serves and name not in WITHOUT_WORKSPACE and not name.startswith("fleet "):
            answer = run(vault, name)
            if answer.code != 3 or "the workspace does not exist" not in answer.err:
                codes[name] = answer
    assert codes == {}
    assert not vault.root.exists()


def test_status_of_a_missing_workspace_tells_what_it_knows_and_exits_3(tmp_path):
    answer = call("--workspace", tmp_path / "none", "status", "--check", "--json")
    assert answer.code == 3 and "the workspace does not exist" in answer.json["trouble"] and answer.err == ""


READERS = [
    ("recall", "--words", "x"), ("recall", "x"), ("expand", "x"), ("open", "x"), ("violations", "list"),
    ("violations", "list", "x"), ("render",),
    ("remove", "x", "--dry-run"), ("check", "--with-index"),
]  # fmt: skip


def test_commands_that_only_read_say_that_there_is_no_index(tmp_path):
    (tmp_path / "vault").mkdir()
    for words in READERS:
        assert "reindex" in one_line_error(call("--workspace", tmp_path / "vault", *words), 3)
        if words != ("render",):
            json_error(call("--workspace", tmp_path / "vault", *words, "--json"), 3)
        assert not (tmp_path / "machine").exists() and not list((tmp_path / "vault").iterdir()), words


def test_names_that_mean_nothing_or_too_much(vault):
    assert "no session" in one_line_error(vault.call("open", "nobody"), 2)
    assert json_error(vault.call("open", "nobody", "--json"), 2)["code"] == "unknown-session"
    error = json_error(vault.call("open", "5e5510", "--json"), 2)
    assert error["code"] == "ambiguous-session"
    assert all(numbered(number)["session_id"] in error["message"] for number in (1, 2, 3))
    assert json_error(vault.call("open", numbered(1)["session_id"], "--agent", "other", "--json"), 2)
    assert "has no indexed artifact" in one_line_error(vault.call("render", "--agent", "other"), 2)
    for more in ((), ("--words",)):
        assert "agent 'other' has neither" in vault.call("recall", "x", *more, "--agent", "other").err
    answer = vault.call("open", numbered(1)["session_id"], "--path", "compaction")
    assert "no compaction" in one_line_error(answer, 2) and "summary" in answer.err


def test_a_time_that_is_none(vault):
    for words in ("reindex", "check", "render", "violations restore --all"):
        for now in ("yesterday", "", "2026-13-01T00:00:00Z", "12:00"):
            assert "--now" in one_line_error(vault.call(*words.split(), "--now", now), 2)
        json_error(vault.call(*words.split(), "--now", "soon", "--json"), 2)


def test_wrong_flags_and_commands(vault):
    assert one_line_error(call("hooks", "install"), 2)
    for words in (("nonsense",), ("reindex", "--nonsense"), ("recall",), ("expand",), ("violations", "restore")):
        answer = vault.call(*words)
        assert answer.code == 2 and "Traceback" not in answer.err and "--help" in answer.err
    assert json_error(vault.call("reindex", "--nonsense", "--json"), 2)["code"] == "usage"
    assert "1<=x<=1000" in json_error(vault.call("recall", "x", "--limit", "0", "--json"), 2)["message"]
    assert "signet-sync open --help" in one_line_error(vault.call("open", "--path"), 2)


ASKERS = [("remove", "ID", "--reason", "x"), ("violations", "restore", "--all")]


@pytest.mark.parametrize("words", ASKERS, ids=" ".join)
def test_where_nobody_can_answer_yes_must(vault, words, monkeypatch):
    path = vault / made.path_for("summary", session_id=ID, captured_at=numbered(1)["captured_at"])
    path.write_bytes(path.read_bytes() + b"edited\n")
    vault.reindex()
    before = contents(vault.memory)
    words = [ID if word == "ID" else word for word in words]
    with open(os.devnull) as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        answer = vault.call(*words)
    assert "--yes" in one_line_error(answer, 2)
    assert "--yes" in json_error(vault.call(*words, "--json"), 2)["message"]
    assert contents(vault.memory) == before
    assert vault.call(*words, "--yes", "--json").code == 0


def test_a_database_of_another_program(vault, tmp_path):
    other = tmp_path / "other.db"
    import apsw

    with apsw.Connection(str(other)) as connection:
        connection.execute("create table theirs(x)")
    raw = other.read_bytes()
    answer = call("--db", other, "--workspace", vault.root, "reindex", "--json")
    assert "another program" in json_error(answer, 3)["message"]
    assert other.read_bytes() == raw


def test_a_database_inside_memory_is_refused(vault):
    answer = call("--db", vault / "memory/x.db", "--workspace", vault.root, "reindex")
    assert "sync services" in one_line_error(answer, 3)
    assert not (vault / "memory/x.db").exists()


def test_an_argument_that_is_not_text(vault):
    answer = spawn(*map(os.fsdecode, ["--workspace", str(vault.root).encode(), "open", b"\xff \x01 \xed\xa0\x80"]))
    assert answer.code == 2 and "Traceback" not in answer.err and answer.err.count("\n") == 1, answer


def test_a_reader_that_goes_away_ends_it_quietly(vault):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "signet_sync", "--workspace", vault.root, "check"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=writing, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(writing)
    assert done.stderr == b"" and done.returncode == 0


def test_an_answer_of_no_changes_nothing_and_says_so(vault):
    terminal, ours = os.openpty()
    os.write(terminal, b"n\n")
    before = contents(vault.root)
    said = vault.spawn("remove", numbered(1)["session_id"], "--reason", "asked", stdin=ours)
    assert (said.code, contents(vault.root)) == (2, before) and "nothing was done" in said.err
    os.close(terminal)
    os.close(ours)


def test_interrupted_between_two_files_is_130_and_loses_nothing(vault, tmp_path):
    before = vault.dump()
    vault.session(4)
    code = """
import sys
from signet_sync.cli import main as cli
from signet_sync.sync import planner
def judge(*given):
    raise KeyboardInterrupt  # as Python does between two lines, after Ctrl-C
planner.judge = judge
sys.exit(cli.run(sys.argv[1:]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "--workspace", vault.root, "reindex", "--now", NOW],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 130 and done.stderr.strip() == "signet-sync: interrupted"
    assert vault.dump() == before
    assert vault.reindex()["counts"]["indexed"] == 12


# ── setting up ──


def test_init_makes_a_workspace_whose_settings_are_the_defaults(tmp_path):
    root = tmp_path / "new"
    answer = call("init", root)
    assert answer.code == 0 and f"created {root}, memory, signet-sync.toml\n" in answer.out
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    template = (root / "signet-sync.toml").read_text()
    assert load(str(root)) == (Settings(), [])
    # Every line that holds a setting can be taken out of its comment as it is.
    live = re.sub(r"^# (?=[a-z_]+ = )", "", template, flags=re.MULTILINE)
    (root / "signet-sync.toml").write_text(live)
    assert load(str(root)) == (Settings(), [])
    allowed = {f.key for f in ALL_SETTINGS if f.workspace}
    told = {f"{table}.{name}" for table, entries in tomllib.loads(live).items() for name in entries}
    assert told == allowed
    before = contents(root)
    assert "already exists" in call("init", root).out and contents(root) == before
    (tmp_path / "file").write_text("")
    assert one_line_error(call("init", tmp_path / "file"), 3)


def test_a_workspace_deleted_and_made_anew_takes_sessions(tmp_path):
    """Who makes it anew has said that its files are gone; who finds memory/ missing in a workspace has not."""
    vault = Vault(tmp_path / "vault")
    call("init", vault.root)
    end(vault)
    vault.call("remember", "Staging is on port 8443.", "--now", NOW)
    (vault / "memory").rename(tmp_path / "memory")
    told = call("init", vault.root).out
    assert "created memory\n" in told and "none of the files that were indexed: restore memory/" in told
    refuse(vault, "halted", 5, session_id=ID)
    shutil.rmtree(vault.root)
    assert "a workspace was here before: its 3 files left the index" in call("init", vault.root).out
    end(vault)  # the same session, which was answered before
    end(vault, session_id=ID)
    assert len(written(vault)) == 6 and "Staging is on port 8443." in vault.page()
    assert vault.reindex()["counts"]["violation"] == 0
    assert "was here before" not in call("init", vault.root).out


def test_demo_shows_the_main_job_and_refuses_what_is_not_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = call("demo")
    assert answer.code == 0
    root = tmp_path / "signet-demo"
    assert len(answer.out.splitlines()) < 40 and "lantern (" in answer.out
    counts = call("--workspace", root, "status", "--json").json["counts"]
    wrong = counts["violations"] + counts["invalid"] + counts["tombstoned"]
    assert f"contains {counts['sessions']} made-up sessions of {counts['agents']} agents\n" in answer.out
    assert (
        f"# {wrong} problem, made" in answer.out and f"problems   {wrong}: " in call("--workspace", root, "status").out
    )
    tried = re.findall(r"^  ([^#\n]*--workspace signet-demo .*)$", answer.out, re.MULTILINE)
    for words in map(shlex.split, tried):
        said = words[words.index("--workspace") :]
        answer = call(*said)
        assert words[0] != "'python" and answer.out and answer.code == (1 if said[2] == "check" else 0)
    assert len(tried) == 5
    question = next(words for words in map(shlex.split, tried) if "recall" in words)
    first = call(*question[question.index("--workspace") :], "--json").json["hits"][0]
    assert first["tier"] == "statement" and first["known"], first
    assert "--yes" in call("demo").err
    assert call("--workspace", root, "entity", "check").code == 0, "its entities are what their events tell"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("x")
    before = tree(tmp_path / "mine")
    assert "not empty" in one_line_error(call("demo", "mine"), 2)
    assert tree(tmp_path / "mine") == before
    assert not (tmp_path / "machine/home/.agents").exists()


def test_a_database_of_ones_choice(vault, tmp_path, monkeypatch):
    answer = vault.call("--help")
    assert answer.code == 0
    place = tmp_path / "elsewhere/my.db"
    answer = call("--db", place, "--workspace", vault.root, "reindex", "--json", "--now", NOW)
    assert answer.code == 0 and answer.json["database"] == str(place)
    assert call("--db", place, "--workspace", vault.root, "recall", "--words", "number1x", "--json").json["files"]
    monkeypatch.setenv("SIGNET_DB", str(place))
    assert vault.call("status", "--json").json["database"] == str(place)
    answer = call("--db", ":memory:", "--workspace", vault.root, "reindex", "--json", "--now", NOW)
    assert answer.code == 0 and answer.json["counts"]["indexed"] == 9


def test_commands_take_the_agent_of_their_folder_unless_one_is_named(vault, tmp_path, monkeypatch):
    inside = tmp_path / "x" / "src"
    inside.mkdir(parents=True)
    monkeypatch.setenv("SIGNET_AGENTS_PROJECTS", f"{tmp_path}/x=nova")
    monkeypatch.chdir(inside)
    assert vault.call("remember", "The pier is of oak", "--json").json["agent_id"] == "nova"
    assert "oak" in vault.call("recall", "pier oak").out and "oak" in vault.call("context").out
    assert "oak" not in vault.call("recall", "pier oak", "--agent", "default").out
    monkeypatch.setenv("SIGNET_AGENT_ID", "default")
    assert "oak" not in vault.call("recall", "pier oak").out
    (pages,) = [line for line in vault.call("status").out.split("\n") if line.startswith("pages")]
    assert f"default: {vault.root}/MEMORY.md · nova: {vault.root}/agents/nova/MEMORY.md" in pages


def test_a_group_without_a_command_tells_its_commands() -> None:
    answer = call("entity")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("Usage: signet-sync entity ") and "\n  create " in answer.err
