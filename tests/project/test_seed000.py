"""The validation list of the specification, end to end: each test is named after its item (12: `test_agents_apart`)."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections import deque

import artifacts_fixture as made
import pytest
from session_inputs import compact, end, fields, journal, moment, say, sound, written
from workbench import NOW, ROOT, Vault, tree

from benchmarks.corpus import write_corpus
from signet_sync.formats.body import body_sha256, normalize
from signet_sync.formats.paths import targets
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.sentences import SentenceSubject, acceptable, is_sound

ROW = re.compile(r"^- (\S+) \| session=(.+?) \| project=(.+?) \| (.+?) (\[\[.*\]\])$")


def ledger(page):
    """The ledger part of a page, as lines."""
    lines = page.split("## Session Ledger (Last 30 Days)\n", 1)[1].split("\n## ", 1)[0].split("\n")
    return [line for line in lines if line]


def rows(page):
    """Timestamp, session, project, sentence and links of every ledger row."""
    return [match.groups() for line in ledger(page) if (match := ROW.match(line))]


def reachable(vault, start):
    """Every path that wikilinks lead to from a page, through generated pages and manifests; broken ones apart."""
    seen, broken, ahead = {start}, [], deque([start])
    while ahead:
        path = ahead.popleft()
        for target in targets(vault.page(path)):
            if not (vault / target).is_file():
                broken.append((path, target))
            elif target not in seen:
                seen.add(target)
                if not target.startswith("memory/"):
                    ahead.append(target)
    return seen, broken


@pytest.mark.parametrize("sessions", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_01_window_of_1500_sessions_keeps_the_newest_rows_says_so_and_links_them_all(vault, sessions):
    written = write_corpus(vault.root, sessions, per_day=sessions / 30, agents=1)
    document = vault.reindex()
    page = document["agents"]["default"]
    assert document["counts"]["indexed"] == 3 * sessions
    assert page["sessions_in_window"] == sessions
    assert page["rows_rendered"] + page["rows_clipped"] == sessions
    assert 0 < page["rows_rendered"] < sessions
    assert page["tokens"] <= 5000

    text = vault.page()
    shown = rows(text)
    assert ledger(text)[0].startswith(
        f"- older ledger rows clipped: kept {len(shown)} of {sessions} in-window sessions within projection budget."
    )
    newest = sorted(written, key=lambda s: parse_instant(s["ended_at"] or s["captured_at"]), reverse=True)
    assert [row[0] for row in shown] == [s["ended_at"] or s["captured_at"] for s in newest[: len(shown)]]
    assert [row[3] for row in shown] == [s["sentence"] for s in newest[: len(shown)]]

    seen, broken = reachable(vault, "MEMORY.md")
    assert not broken
    assert {s["paths"]["summary"] for s in written} <= seen


def test_01_no_notice_where_every_row_fits(vault):
    vault.session(1)
    vault.session(2)
    document = vault.reindex()
    assert document["agents"]["default"]["rows_clipped"] == 0
    assert "older ledger rows clipped" not in vault.page()
    assert len(rows(vault.page())) == 2


LOW = {
    "a template": "Worked on task.",
    "too short": "Lantern got a fix in src/queue.py.",
    "too long": "In lantern " + "very " * 60 + "much was done to src/queue.py.",
    "no end": "In lantern the retry loop of src/queue.py was bounded so that a dead broker no longer blocks",
    "no anchor": "The retry loop was bounded today so that a dead broker no longer blocks any start at all.",
}


def test_02_sentence_floor_rejects_low_signal_rows(vault):
    paths = [vault.session(n, memory_sentence=low)["summary"] for n, low in enumerate(LOW.values(), 1)]
    low = {note["path"] for note in vault.reindex()["notes"] if note["code"] == "sentence-below-floor"}
    assert low >= set(paths)
    found = rows(vault.page())
    assert len(found) == len(LOW)
    for number, (path, (why, sentence), row) in enumerate(zip(paths, LOW.items(), found, strict=True), 1):
        _, _, project, shown, link = row
        assert shown != sentence and path in link, why
        text = normalize((vault / path).read_text().split("---\n", 2)[2])
        context = SentenceSubject(text, project, "summary", "claude-code", "2026-03-28", made.token_for(session_id="x"))
        assert is_sound(shown, context) and acceptable(shown, context), why
        assert f"Session {number}" in shown and "lantern" in shown, why


def test_03_wikilinks_are_relative_to_the_workspace_root_and_resolve(vault):
    for number in range(1, 5):
        vault.session(number)
    vault.session(5, agent_id="researcher")
    vault.put(made.compaction(**_who(2)))
    vault.reindex()
    pages = [p for p in tree(vault.root, but={".signet", "memory"}) if p.endswith(".md")]
    assert {"MEMORY.md", "agents/researcher/MEMORY.md", "ledger/2026-03.md", "ledger/2026/03/28.md"} <= set(pages)
    found = [(page, target) for page in pages for target in targets(vault.page(page))]
    assert len(found) > 20
    for page, target in found:
        assert target.startswith(("memory/", "ledger/", "agents/researcher/ledger/")), (page, target)
        assert (vault / target).is_file(), (page, target)
    assert "[[memory/2026-03-27T10-02-00.000Z--" in vault.page()


def test_03_a_link_that_is_not_relative_to_the_root_is_noted(vault):
    name = made.path_for("summary", session_id="other").removeprefix("memory/")
    paths = vault.session(1, body=f"# Links\n\nSee [[{name}]] and [[memory/{name}]] of lantern.\n")
    noted = [n["path"] for n in vault.reindex()["notes"] if n["code"] == "link-not-relative"]
    assert noted == [paths["summary"]]


def _who(number):
    from workbench import numbered

    return {k: v for k, v in numbered(number).items() if k in ("session_id", "captured_at", "memory_sentence")}


def test_04_an_immutable_artifact_that_changes_is_a_violation_and_its_sealed_text_stays(vault):
    paths = [vault.session(1)["summary"], vault.session(2)["transcript"]]
    for number in (3, 4, 5):
        vault.session(number)
    vault.reindex()
    wrong = dict.fromkeys(paths, ("violation", "mutated"))
    for path in paths:
        (vault / path).write_bytes((vault / path).read_bytes().replace(b"keeps its word", b"breaks its word"))
    assert vault.problems(vault.reindex()) == wrong
    assert {*paths} <= {*vault.hits("number1x", "keeps"), *vault.hits("number2x", "keeps")}
    assert vault.hits("breaks") == []
    # A new hash that fits the new text does not make it history either.
    for path in paths:
        raw = (vault / path).read_text()
        sha = body_sha256(normalize(raw.split("---\n", 2)[2]))
        (vault / path).write_text(re.sub(r'content_sha256: "\w+"', f'content_sha256: "{sha}"', raw))
    assert vault.problems(vault.reindex()) == wrong


def test_05_a_late_compaction_changes_the_manifest_alone(vault):
    ended = end(vault)
    before = tree(vault.memory)
    compacted = compact(vault)
    after = tree(vault.memory)
    manifest = ended["manifest"].removeprefix("memory/")
    assert compacted["manifest"] == ended["manifest"]
    assert {path for path in before if before[path] != after[path]} == {manifest}
    assert fields(vault, ended["manifest"])["compaction_path"] == compacted["compaction"]
    assert fields(vault, ended["manifest"])["summary_path"] == ended["summary"]


def test_06_checksum_scope_is_the_normalised_body_alone(vault):
    name, raw = made.summary(**_who(1), body="# Scope\n\nA line of lantern.\nAnother line.\n")
    head, fence, body = raw.rpartition(b"---\n")
    loose = body.replace(b".\n", b". \t \r\n") + b"\n \n\t\n"
    vault.put((name, head.replace(b'"ok"', b"ok") + fence + loose))
    document = vault.reindex()
    assert document["counts"]["indexed"] == 2 and not document["problems"]  # the manifest is rebuilt
    wrong = {}
    for number, changed in enumerate((b"\x0c", b"\xc2\xa0", b"\nmore", b"x"), 2):
        name, raw = made.summary(**_who(number), body="# Scope\n\nA line of lantern.\nAnother line.\n")
        (path,) = vault.put((name, raw.removesuffix(b"\n") + changed + b"\n"))
        wrong[path] = ("invalid", "hash-mismatch")
    assert vault.problems(vault.reindex()) == wrong


def test_07_the_sanitizer_gives_the_same_whoever_runs_it():
    text = "login = admin\\r\\npassword: hunter2hunter2XYZ\\x0b\\u2028 token=abcdefghijklmnop0123456789ABCDEF  \\n\\n"
    program = (
        "from signet_sync.text.sanitizer import sanitize_transcript_v2 as s;"
        f"t = '{text}'; once = s(t); assert s(once) == once; print(ascii(once))"
    )
    given = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "4711")
    }
    assert len(given) == 1 and b"hunter2" not in min(given) and b"REDACTED" in min(given)


# What fails, and how the name of that state begins; the model's failure needs no help: there is none.
FAILURES = {
    "--transcript.md": "sentence generated, artifact write failed",
    "--summary.md": "transcript written, summary failed",
    "--manifest.md": "summary/transcript written, manifest failed",
}


def test_08_a_partial_failure_is_finished_by_the_next_pass(tmp_path, monkeypatch):
    other = Vault(tmp_path / "uninterrupted")
    end(other, captured_at=moment(0))
    other.reindex()
    real = os.link

    for number, suffix in enumerate(FAILURES):
        vault = Vault(tmp_path / str(number) / "vault")

        def link(source, target, suffix=suffix, **given):
            if target.endswith(suffix):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(source, target, **given)

        with monkeypatch.context() as failing:
            failing.setattr(os, "link", link)
            answer = say(vault, captured_at=moment(0))
        assert answer.code == 3 and answer.json["error"]["hint"], suffix
        assert len(written(vault)) == number and len(journal(vault)) == 1, suffix
        vault.reindex()
        sound(vault)
        assert written(vault) == written(other), suffix
        assert end(vault, captured_at=moment(0))["idempotent_replay"], suffix


def test_09_reindex_from_scratch_gives_the_same_rows(vault):
    for number in range(1, 6):
        vault.session(number)
    vault.reindex()
    first = vault.dump()
    assert len([row for row in first if row[0] == "memory_artifacts"]) == 15
    before = {path: found for path, found in tree(vault.root).items() if found[0].startswith("0o10")}
    for suffix in ("", "-wal", "-shm"):
        vault.db.with_name(vault.db.name + suffix).unlink(missing_ok=True)
    vault.reindex()
    assert vault.dump() == first
    vault.reindex("--full")
    assert vault.dump() == first
    assert {path: found for path, found in tree(vault.root).items() if found[0].startswith("0o10")} == before


def test_10_telemetry_survives_every_kind_of_reindex(vault):
    paths = vault.session(1)
    vault.session(2)
    vault.reindex()
    for _ in range(3):
        assert vault.call("recall", "number1x").code == 0
    before = vault.rows("select * from node_telemetry order by 1, 2")
    assert before and {row[2] for row in before} == {3}
    vault.reindex("--full")
    assert vault.rows("select * from node_telemetry order by 1, 2") == before
    (vault / paths["transcript"]).write_bytes(b"broken")
    vault.reindex()
    vault.reindex("--full")
    assert vault.rows("select * from node_telemetry order by 1, 2") == before


def numbered_id(number):
    return _who(number)["session_id"]


def test_11_a_removal_survives_reindex_and_a_lost_database(vault):
    paths = vault.session(1)
    vault.session(2)
    kept = {path: (vault / path).read_bytes() for path in paths.values()}
    vault.reindex()
    assert vault.call("remove", numbered_id(1), "--reason", "asked for", "--yes", "--now", NOW).code == 0
    for arguments in ((), ("--full",), ("fresh",)):
        if arguments == ("fresh",):
            for file in vault.state.rglob("*"):
                if file.is_file() and file.name != "workspace.json":
                    file.unlink()
            arguments = ()
        for path, raw in kept.items():
            (vault / path).write_bytes(raw)
        document = vault.reindex(*arguments)
        assert document["counts"]["tombstoned"] == 3 and document["counts"]["tombstones"] == 1
        assert document["counts"]["indexed"] == 3
        assert not any((vault / path).exists() for path in kept)
        assert vault.hits("number1x") == []
        assert numbered_id(1) not in vault.page()


def test_13_rows_are_sourced_from_the_sentences_of_the_artifacts(vault):
    """Best artifact first: summary, then compaction, then transcript; no word of a body stands in a row."""
    told = {
        kind: f"In lantern the {kind} says of src/queue.py that its loop is bounded and its tests are green."
        for kind in ("summary", "compaction", "transcript")
    }
    body = "# Other words\n\nThe body speaks of zanzibar and of nothing else.\n"
    expected = []
    better = ("summary", "compaction", "transcript")
    for number, kinds in enumerate((better, better[1:], better[2:]), 1):
        for kind in kinds:
            vault.put(made.content(kind, **_who(number) | {"memory_sentence": told[kind], "body": body}))
        expected.append(told[kinds[0]])
    vault.reindex()
    assert [row[3] for row in rows(vault.page())] == expected
    assert "zanzibar" not in "\n".join(ledger(vault.page()))
