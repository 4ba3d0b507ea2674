"""Several processes end sessions at once, beside a running agent: nothing lost, nothing doubled, nobody refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from session_inputs import (
    FIRST,
    SECOND,
    SENTENCE,
    SUMMARY,
    THIRD,
    WHO,
    body,
    fields,
    journal,
    moment,
    segments,
    sound,
    written,
)
from workbench import ROOT

from signet_sync.app.workspace import open_to_write
from signet_sync.digest.outcome import Item, ModelDigest
from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import normalize
from signet_sync.formats.timestamps import parse_instant
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import compaction_input, session_input
from signet_sync.settings import model

# A process for each list of documents: all wait until a pipe is closed, so that they begin together, and then each ends
# the sessions of its list, one after the other. They are forks of one process that has imported everything.
WRITERS = """
import json, os, sys, time
from signet_sync.sessions import operations as sessions
from signet_sync.app.workspace import open_to_write
from signet_sync.settings.model import Settings
from signet_sync.sessions.input import session_input

root, lists = sys.argv[1], json.load(sys.stdin)
gate, opener = os.pipe()
writers = []
for number, documents in enumerate(lists):
    if (writer := os.fork()) == 0:
        os.close(opener)
        os.read(gate, 1)
        answers = []
        with open_to_write(root, Settings()) as workspace:
            for document in documents:
                now_us = time.time_ns() // 1000
                answers.append(sessions.write(workspace, session_input(document, now_us=now_us), now_us=now_us))
        with open(f"answers-{number}.json", "w") as file:
            json.dump(answers, file)
        sys.exit()
    writers.append(writer)
os.close(opener)
sys.exit(any([os.waitpid(writer, 0)[1] for writer in writers]))
"""


def together(vault, lists):
    """What the writers answered, each a process that ends a list of sessions; all must succeed."""
    folder = vault.root.parent
    done = subprocess.run(
        [sys.executable, "-c", WRITERS, str(vault.root)],
        input=json.dumps(lists), cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"answers-{number}.json").read_text()) for number in range(len(lists))]


KEY, THEN = {"idempotency_key": "once"}, {"captured_at": moment(0)}


@pytest.mark.parametrize(("key", "when"), [(KEY, {}), ({}, THEN)])
def test_the_same_ending_by_many_is_written_once(vault, key, when):
    document = {**WHO, "transcript": FIRST, **key, **when}
    answers = [answer for (answer,) in together(vault, [[document]] * 4)]
    assert Counter(answer["idempotent_replay"] for answer in answers) == {False: 1, True: 3}
    assert len({json.dumps({**answer, "idempotent_replay": None}) for answer in answers}) == 1
    assert len(written(vault)) == 3
    sound(vault)


def test_a_growing_transcript_by_many_has_no_overlap_and_no_gap(vault):
    parts = [FIRST, SECOND, THIRD, *(f"\n## User\n\nTurn {number} of src/queue.py.\n" for number in range(5))]
    wholes = ["".join(parts[: count + 1]) for count in range(len(parts))]
    together(vault, [[{**WHO, "transcript": wholes[n]}, {**WHO, "transcript": wholes[-1]}] for n in (3, 0, 7, 5)])
    assert normalize("\n\n".join(segments(vault))) == normalize(wholes[-1])
    assert len(written(vault, "manifest")) == 1
    (manifest,) = written(vault, "manifest")
    assert fields(vault, manifest)["transcript_path"] == written(vault, "transcript")[-1]
    assert all(path in body(vault, manifest) for path in written(vault, "transcript"))
    assert journal(vault) == []
    sound(vault)


def asked(vault, document, propose):
    """An ending through the Python API, with a model that is asked."""
    now_us = parse_instant(moment(30)) or 0
    with open_to_write(str(vault.root), model.load(str(vault.root))[0]) as workspace:
        return sessions_operations.write(
            workspace, session_input(document, now_us=now_us), now_us=now_us, propose=propose
        )


def test_who_ends_what_another_asks_a_model_about_is_told_to_try_again(vault):
    document = {**WHO, "transcript": FIRST}

    def slow(words, **_):
        with pytest.raises(WorkspaceError, match="another process is writing this session end") as caught:
            asked(vault, document, None)
        assert caught.value.code == "busy" and len(journal(vault)) == 1 and written(vault) == []
        return ModelDigest(items=(Item("next", "Told by a model: src/queue.py.", "agent", 1, 1, "model"),))

    first = asked(vault, document, slow)
    assert asked(vault, document, None) == {**first, "idempotent_replay": True}
    assert "- Told by a model: src/queue.py." in body(vault, first["summary"])
    sound(vault)


def test_dead_ends_stand_beside_what_a_model_found(vault):
    at = "2026-03-01T10:00:00.000Z"
    failed = f"- `Bash` · {at} · `oil run wick` · failed\n  ```\n  error: unknown command wick\n  ```\n"
    found = ModelDigest(items=(Item("next", "Fill the lamp.", "agent", 1, 1, "model"),))
    ended = asked(vault, {**WHO, "transcript": f"## User · {at}\n\nLight the lamp\n\n{failed}"}, lambda *_, **__: found)
    summary = body(vault, ended["summary"])
    assert "- Fill the lamp." in summary and '- "oil run wick" is not a command here' in summary


def test_a_model_is_asked_once_about_each_end_and_for_nothing_that_is_given(vault):
    words = []

    def counted(new, **_):
        words.append(new)

    for more in ({}, {}, {"transcript": FIRST + SECOND}, {"transcript": THIRD, "summary": SUMMARY}):
        asked(vault, {**WHO, "transcript": FIRST, **more}, counted)
    given = {"session_id": "another", "transcript": THIRD, "summary": SUMMARY, "memory_sentence": SENTENCE}
    asked(vault, {**WHO, **given}, counted)
    assert [normalize(text).strip() for text in words] == [normalize(text).strip() for text in (FIRST, SECOND, THIRD)]
    now_us = parse_instant(moment(40)) or 0
    with open_to_write(str(vault.root), model.load(str(vault.root))[0]) as workspace:
        given = compaction_input({**WHO, "compaction": "The loop of src/queue.py."}, now_us=now_us)
        sessions_operations.write(workspace, given, now_us=now_us, propose=counted)
    assert len(words) == 3
