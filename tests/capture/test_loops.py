"""What we leave behind ourselves, and what is told twice, makes no memory: counts stay however often all is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import harness_samples
import pytest
from harness_samples import Turn, has
from session_inputs import body, fields, segments, written
from test_quotes import leaks
from transcript_builder import TranscriptBuilder, fire, fired, import_, plugged_in, provider, store, worker
from workbench import Vault

from signet_sync.capture import capture
from signet_sync.capture.harnesses.reader import Conversation
from signet_sync.formats.ids import MODEL_FOLDER, MODEL_MARK, is_excluded
from signet_sync.privacy import redact

QUESTION = f"You sum up sessions.\n\n{MODEL_MARK}\nProject: lantern\n<session-1>\nWe chose zebrafish.\n</session-1>"
# A model that is a harness: it leaves the question, or what it makes of it, as a session of its own.
LEAVES_A_SESSION = """
import json, os, pathlib, re, uuid
session, cwd = str(uuid.uuid4()), os.getcwd()
folder = pathlib.Path.home() / ".claude/projects" / re.sub("[^A-Za-z0-9]", "-", cwd)
folder.mkdir(parents=True, exist_ok=True)
said = [("user", "Please sum up this loopword session"), ("assistant", "The loopword is fixed in src/queue.py.")]
records = [
    {"type": role, "uuid": str(n), "sessionId": session, "cwd": cwd, "timestamp": f"2026-03-20T11:00:0{n}.000Z",
     "message": {"role": role, "content": text}}
    for n, (role, text) in enumerate(said)
]
path = folder / f"{session}.jsonl"
path.write_text("".join(json.dumps(one) + chr(10) for one in records))
os.utime(path, (1.7e9, 1.7e9))
print(json.dumps({"sentence": "The queue of src/queue.py waits no more; all 31 tests pass.", "items": []}))
"""


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


# ── sessions of the model that we ask ───────────────────────────────────────────────────────────────────────────────


def test_five_imports_and_a_sweep_after_a_model_that_leaves_sessions_capture_none(vault, home, tmp_path):
    talk = TranscriptBuilder(store(home))
    talk.exchange(1)
    talk.idle()
    provider(tmp_path, LEAVES_A_SESSION)
    plugged_in(vault, "claude-code")
    for _ in range(5):
        import_(vault, "claude-code")
        assert len(segments(vault)) == 1
    left = list((home / ".claude/projects").rglob("*.jsonl"))
    assert len(left) == 2, "one question about the session"
    assert worker(vault, sweep=True).code == 0
    assert import_(vault, "claude-code", "--again")["segments"] == []
    assert len(segments(vault)) == 1 and not vault.hits("loopword")
    assert len(list((home / ".claude/projects").rglob("*.jsonl"))) == 2
    for path in left:
        path.touch()  # changed since it was read
        os.utime(path, (1.6e9, 1.6e9))
    assert "would import 1 transcript (" in vault.call("setup", "--dry-run").out


def parsed(harness: str, tmp_path: Path, cwd: str, asked: str) -> Conversation:
    """What is read of a session of one question and its answer."""
    turns = [Turn("user", asked), Turn("assistant", "because of zebrafish")]
    return harness_samples.read(harness, harness_samples.write(harness, tmp_path, turns, cwd=cwd))


def test_every_harness_s_session_of_our_question_is_recognised(tmp_path, harness):
    somewhere, ours = "/home/ada/lantern", f"/home/ada/.local/state/signet-sync/{MODEL_FOLDER}"
    assert parsed(harness, tmp_path, somewhere, "why does it never drain").turns == 2
    in_ours = ((ours, "why does it never drain"), (ours + "/", QUESTION)) if has(harness, "folder") else ()
    for cwd, asked in ((somewhere, QUESTION), *in_ours):
        found = parsed(harness, tmp_path, cwd, asked)
        assert (found.turns, capture._why_empty(found)) == (0, capture.OWN_CALL)
    quoted = parsed(harness, tmp_path, somewhere, f"what does {MODEL_MARK} mean?")
    assert quoted.turns == 2, "within a line it is a quotation"


def test_a_question_among_a_person_s_turns_takes_its_answer_with_it(vault, home):
    """A gateway may keep all that it is asked in one session."""
    talk = TranscriptBuilder(store(home))
    talk.exchange(1)
    talk.user(QUESTION, 20)
    talk.assistant("We chose zebrafish, it says.", 21)
    talk.exchange(3)
    talk.idle()
    import_(vault, "claude-code")
    (text,) = segments(vault)
    assert "question1word" in text and "answer3word" in text and "zebrafish" not in text


def test_a_hook_of_our_question_does_nothing_whatever_its_environment(vault, home):
    talk = TranscriptBuilder(store(home))
    talk.exchange(1)
    for given in ({"cwd": f"/srv/{MODEL_FOLDER}"}, {"event": "UserPromptSubmit", "prompt": QUESTION}):
        answer = fire(vault, talk, **given)
        assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert not list((vault.state / "spool").glob("*.json"))


# ── copied history ──────────────────────────────────────────────────────────────────────────────────────────────────


def forked(talk: TranscriptBuilder, session: str, *, exchanges: int | None = None) -> TranscriptBuilder:
    """A fork of a session: its records with the fork's id; all of them, or those of its first exchanges."""
    fork = TranscriptBuilder(talk.path.parent, session)
    lines = talk.path.read_bytes().splitlines(keepends=True)
    for line in lines if exchanges is None else lines[: 2 * exchanges]:
        fork.raw(line.replace(talk.session.encode(), session.encode()))
        fork.tip = json.loads(line)["uuid"]
    fork._number = len(lines)
    return fork


PARENT, FORK, SECOND = (f"7a1b0c00-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))


@pytest.fixture
def parent(home: Path) -> TranscriptBuilder:
    talk = TranscriptBuilder(store(home), PARENT)
    for number in (1, 2):
        talk.exchange(number)
    talk.idle(7200)
    return talk


def said_once(vault: Vault, *words: str) -> None:
    everything = "\n".join(segments(vault))
    for word in words:
        assert everything.count(word) == 1, word


def test_a_fork_is_told_and_found_without_what_it_repeats(vault, parent):
    fork = forked(parent, FORK)
    fork.user("Please fix dfork in src/dfork.py", 30)
    fork.assistant("Fixed dfork in src/dfork.py; all 44 tests pass.", 31)
    fork.idle()
    os.utime(parent.path)  # it still runs
    fired(vault, parent, "Stop")
    assert worker(vault).code == 0 and len(import_(vault, "claude-code", fork.path)["segments"]) == 1
    parent.idle(7200)
    for _ in range(2):
        import_(vault, "claude-code")
        said_once(vault, "question1word", "answer2word", "dfork.py; all 44")
    of_fork = next(path for path in written(vault, "summary") if fields(vault, path)["session_id"] == FORK)
    assert "dfork" in fields(vault, of_fork)["memory_sentence"] and "answer2word" not in body(vault, of_fork)
    assert "question1word" not in body(vault, of_fork)
    assert {fields(vault, path)["session_id"] for path in vault.hits("answer2word")} == {PARENT}
    # A fork of the fork, and one that adds nothing.
    second = forked(fork, SECOND)
    second.exchange(5, 50)
    second.idle(60 * 20)
    forked(fork, "7a1b0c00-0000-4000-8000-000000000004").idle(60 * 20)
    done = import_(vault, "claude-code")
    said_once(vault, "question1word", "answer2word", "dfork.py; all 44", "question5word")
    assert (done["sessions"], done["nothing"][0]["reason"]) == (1, capture.COPIED)


def test_an_answer_that_went_on_behind_a_copy_is_kept(vault, parent):
    """The file was copied while the assistant was working, and its answer goes on without a new prompt."""
    copy = forked(parent, FORK)
    copy.assistant("It also bounds the lategoing loop.", 25)
    import_(vault, "claude-code", parent.path)
    import_(vault, "claude-code", copy.path)
    said_once(vault, "answer2word", "lategoing")


@pytest.mark.parametrize("first_runs", [False, True])
def test_equal_prompts_that_are_no_copies_are_all_kept(vault, home, first_runs):
    """Workers that are started with the same words in the same millisecond; and the same words at another time."""
    for number, (session, second) in enumerate(((PARENT, 1), (FORK, 1), (SECOND, 2))):
        talk = TranscriptBuilder(store(home), session)
        talk.user("Check the queue of src/queue.py", second)
        talk.assistant(f"It drains, says worker{number}word.", second + 1.1 + number)
        if first_runs and not number:
            running = talk
            fired(vault, talk, "Stop")
            assert worker(vault).code == 0
        else:
            talk.idle()
    assert import_(vault, "claude-code")["sessions"] == 3 - first_runs
    if first_runs:
        running.idle()
        assert import_(vault, "claude-code")["sessions"] == 1
    said_once(vault, *(f"worker{number}word" for number in range(3)))
    assert "\n".join(segments(vault)).count("Check the queue of") == 3


def test_a_removed_session_does_not_come_back_through_a_fork(vault, parent):
    import_(vault, "claude-code")
    before = forked(parent, FORK)
    before.exchange(3, 30)
    before.idle()
    import_(vault, "claude-code")
    assert vault.call("remove", PARENT, "--reason", "r", "--yes").code == 0
    after, nothing = forked(parent, SECOND), forked(parent, "7a1b0c00-0000-4000-8000-000000000004")
    after.exchange(4, 40)
    for talk in (after, nothing):
        talk.idle()
    done = import_(vault, "claude-code", "--again")
    assert not done["failed"] and "its session was removed" in {one["reason"] for one in done["nothing"]}
    assert not leaks(vault, PARENT), "where its transcript is stays hidden"
    said_once(vault, "question3word", "question4word")
    assert not leaks(vault, "question1word", "answer2word")
    # The hooks of one that is still written see as little.
    running = forked(before, "7a1b0c00-0000-4000-8000-000000000005", exchanges=2)
    running.user("And the lastquestionword?", 60)
    fired(vault, running, "Stop")
    assert worker(vault).code == 0
    ((words,),) = vault.rows("select content from session_transcripts")
    assert "lastquestionword" in words
    assert vault.call("remove", PARENT, "--undo").code == 0
    import_(vault, "claude-code", nothing.path, "--again")
    assert vault.hits("question1word"), "a removal that was lifted keeps nothing away"


CHOSEN = {"kind": "note", "turn": 2, "quote": "answer2word bounds the retry loop"}


@pytest.mark.parametrize(
    "model", ["", pytest.param(f"print({json.dumps({'items': [CHOSEN]})!r})", marks=pytest.mark.slow)]
)
def test_a_removal_of_the_original_reaches_the_fork_that_was_read_first(vault, parent, tmp_path, model, monkeypatch):
    monkeypatch.setattr("signet_sync.text.digest_mark.SINCE_US", 0)
    if model:
        provider(tmp_path, model)
    parent.assistant("## Decisions\n\n- Use a seed of ownseedword.", 22)
    fork = forked(parent, FORK)
    fork.user("Please fix dfork in src/dfork.py", 30)
    fork.assistant("Fixed dfork in src/dfork.py; all 44 tests pass.\n\nNext: plant the forkseedword.", 31)
    parent.exchange(4, 40)
    import_(vault, "claude-code", fork.path)
    import_(vault, "claude-code", parent.path)
    refused = vault.call("remove", PARENT, "--reason", "r", "--yes", "--json")
    assert refused.code == 2 and len(refused.json["quoted_in"]) == 2, refused.json
    with monkeypatch.context() as patch:  # it ends behind the first file: the next call finds the others
        done = [redact.redact]
        patch.setattr(redact, "redact", lambda *args, **given: done.pop()(*args, **given))
        assert vault.call("remove", PARENT, "--reason", "r", "--yes", "--quoting", "redact").code != 0
    assert vault.call("remove", PARENT, "--reason", "r", "--yes", "--quoting", "redact").code == 0
    assert not leaks(vault, "question1word", "answer2word", "ownseedword", "question4word")
    assert vault.hits('"all 44 tests pass"') and vault.call("check").code == 0
    assert vault.rows("select kind from statements where text like '%forkseedword%'") == [("next",)]
    fork.exchange(6, 60)
    import_(vault, "claude-code", fork.path)
    said_once(vault, "question6word", "dfork.py; all 44")
    assert not leaks(vault, "answer2word")


def test_the_compaction_that_a_fork_continues_is_the_original_s(vault, parent):
    parent.compacted("Of the summaryword: a seed was agreed on, and the queue of src/queue.py drains.", 25)
    import_(vault, "claude-code", parent.path)
    fork = TranscriptBuilder(parent.path.parent, FORK)
    for line in parent.path.read_bytes().splitlines(keepends=True)[-2:]:
        fork.raw(line.replace(PARENT.encode(), FORK.encode()))
    fork.exchange(3, 30)
    import_(vault, "claude-code", fork.path)
    assert len(written(vault, "compaction")) == 1
    assert vault.call("remove", PARENT, "--reason", "r", "--yes").code == 0
    second = TranscriptBuilder(parent.path.parent, SECOND)
    second.raw(fork.path.read_bytes().replace(FORK.encode(), SECOND.encode()))
    import_(vault, "claude-code", second.path)
    assert not leaks(vault, "summaryword", "question1word") and vault.hits("question3word")


# ── of every harness ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("removed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_fork_of_every_harness_adds_only_what_it_says_itself(vault, tmp_path, harness, removed):
    """Codex gives what it copies the time of the fork, and names the original."""

    def write(session: str) -> Path:
        said = [(kind, f"{kind}{number}word") for number in (1, 2) for kind in ("user", "assistant")]
        said += [(kind, f"{kind}{session[-1]}3word") for kind in ("user", "assistant")]
        turns = [Turn(kind, f"Of the queue: {word}") for kind, word in said]
        return harness_samples.write(harness, tmp_path / session, turns, session=session, cwd="/x/y")

    import_(vault, harness, write(PARENT))
    if removed:
        assert vault.call("remove", PARENT, "--reason", "r", "--yes").code == 0
    fork = write(FORK)
    if harness == "codex":
        head, *lines = fork.read_text().splitlines()
        for number in range(6):
            moment = harness_samples.at(600 + bool(number) if number < 4 else 700 + number)
            head, *lines = [line.replace(harness_samples.at(number), moment) for line in (head, *lines)]
        fork.write_text("\n".join([head, head.replace(FORK, PARENT), *lines]))
    import_(vault, harness, fork)
    once = ["user23word", "assistant23word"]
    if removed:
        assert not leaks(vault, "user1word", "assistant2word", "user13word")
    else:
        once += ["user1word", "assistant2word", "user13word"]
    said_once(vault, *once)


# ── sessions in which no person spoke ───────────────────────────────────────────────────────────────────────────────


def headless(home: Path, count: int, *, entrypoint: str = "sdk-cli") -> list[TranscriptBuilder]:
    made = [
        TranscriptBuilder(store(home), f"0000000{number}-0000-4000-8000-000000000000", f"/home/ada/p{number % 2}")
        for number in range(count)
    ]
    for number, talk in enumerate(made):
        prompt = f"Terse quality-check agent number {number}. Check headlessword in file {number}. We decided on junk."
        talk.user(prompt, 60 * number, entrypoint=entrypoint)
        talk.assistant("PASS\n\n## Decisions\n\n- Use the junkword of the checker.", 60 * number + 5)
        talk.idle()
    return made


def pages_of(vault: Vault) -> str:
    return "\n".join(path.read_text() for path in vault.root.rglob("*.md") if path.parent.name != "memory")


def test_headless_sessions_are_found_and_have_one_line_a_day(vault, home, tmp_path):
    asked, page = tmp_path / "asked", vault.root / "MEMORY.md"
    provider(tmp_path, f"open({str(asked)!r}, 'a').write(prompt + open({str(page)!r}).read())\nraise SystemExit(1)")
    talks = headless(home, 4)
    person = TranscriptBuilder(store(home), PARENT)
    person.user("Why does question1word of src/queue.py wait?", 300, entrypoint="cli")
    person.assistant("The answer1word bounds the retry loop.", 301)
    person.idle()
    now = ("--now", "2026-03-21T00:00:00Z")
    for _ in range(3):
        import_(vault, "claude-code", "--again")
        assert vault.call("reindex", *now).code == 0
    told = asked.read_text()
    assert "question1word" in told and "headlessword" not in told, "a model is asked about a person's session only"
    assert "4 sessions" in told, "while it is asked, the page shows the others"
    assert len(segments(vault)) == 5 and len(vault.hits("headlessword")) >= 4
    line = "- 4 sessions without a person [[ledger/2026/03/20.md|day]]"
    page, day = (vault.root / "MEMORY.md").read_text(), (vault.root / "ledger/2026/03/20.md").read_text()
    assert page.count("without a person") == page.count(line) == 1
    assert "5 sessions" in day and day.count("|1]] ") == 1 and day.count("session=") == page.count("session=") == 1
    assert "junkword" not in pages_of(vault) and "older ledger rows clipped" not in page
    assert "junkword" not in vault.call("context", "--project", "/home/ada/p0").out
    # A removal takes it out of the number, a person who goes on gives it a row of its own.
    assert vault.call("remove", talks[3].session, "--reason", "r", "--yes", *now).code == 0
    talks[0].user("And what about goeson of src/queue.py?", 600, entrypoint="cli")
    talks[0].assistant("The goeson is bounded, too.", 601)
    talks[0].idle()
    import_(vault, "claude-code", talks[0].path)
    vault.call("reindex", *now)
    page = (vault.root / "MEMORY.md").read_text()
    assert "- 2 sessions without a person" in page and page.count("session=") == 2


# ── projects that are left out ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("glob", "left_out"),
    [
        ("/home/ada/lantern", True), ("/home/ada/*", True), ("/home/ada/lantern/", True), ("lantern", True),
        ("lan*", True), ("/home", True), ("/home/ada/lan", False), ("ada/lantern", False), ("tern", False),
    ],
)  # fmt: skip
def test_globs_leave_projects_out(glob, left_out):
    for project in ("/home/ada/lantern", "/home/ada/lantern/src"):
        assert is_excluded(project, ("/nowhere", glob), {"HOME": "/root"}) is left_out
    assert not is_excluded(None, (glob,), {})


def test_a_project_that_is_left_out_leaves_nothing_anywhere(vault, home):
    talk = TranscriptBuilder(store(home))
    talk.exchange(1)
    plugged_in(vault, "claude-code")
    assert vault.call("settings", "capture.exclude", "~/x, lan*", "--json").json["value"] == ["~/x", "lan*"]
    fired(vault, talk, "UserPromptSubmit", prompt="What about promptword?")
    fired(vault, talk, "Stop")
    fired(vault, talk)
    assert worker(vault, sweep=True).code == 0
    talk.idle()
    assert worker(vault, sweep=True).code == 0
    (entry,) = import_(vault, "claude-code", "--again")["nothing"]
    assert entry["reason"] == capture.EXCLUDED and not segments(vault)
    assert not leaks(vault, "question1word", "promptword")
    (vault.root / "signet-sync.toml").write_text('[capture]\nexclude = ["*"]\n')
    Path(os.environ["SIGNET_CONFIG"]).unlink()
    import_(vault, "claude-code", "--again")
    assert len(segments(vault)) == 1, "a workspace's own file ends no capture"
