"""Vaults that the original program wrote: every file judged alike, the same ledgers, its pages taken over with care."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from workbench import NOW, Vault, entry, sampled, tree

from signet_sync.formats.body import normalize
from signet_sync.formats.frontmatter import parse
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.sentences import MIN_WORDS, SentenceSubject, acceptable, is_template, page_cell, page_line, words

EXPECTED = {"signet-small": "fresh.json", "signet-small-jun": "fresh.json", "signet-mar29": "fresh.apr.json"}
ROW = re.compile(r"^- (\S+) \| session=(.+?) \| project=(.+?) \| (.+?) \[\[(\S+?)\|")


def copied(source, root):
    """A writable copy of a vault, without what is expected of it."""
    vault = Vault(root)
    shutil.copytree(source, vault.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected"))
    for path in [vault.root, *vault.root.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    return vault


@pytest.fixture(scope="module", params=sampled(sorted(EXPECTED), 2))
def case(request, shared, tmp_path_factory):
    """A copy of a vault after one `reindex` in a process of its own: vault, document, what the original made of it."""
    source = shared / "vaults" / request.param
    machine = tmp_path_factory.mktemp(request.param)
    vault = copied(source, machine / "vault")
    before = tree(vault.root)
    environ = {"SIGNET_STATE": str(machine / "state"), "SIGNET_CONFIG": str(machine / "config.toml")}
    answer = vault.spawn("reindex", "--json", "--now", NOW, environ=environ)
    assert answer.code == 0, answer.err
    expected = json.loads((source / "expected" / EXPECTED[request.param]).read_text())
    return vault, answer.json, expected, before, str(machine / "state")


@pytest.fixture
def taken_over(case, monkeypatch):
    """The case, with its state folder in place; a test that writes makes a vault of its own."""
    monkeypatch.setenv("SIGNET_STATE", case[4])
    return case[:4]


def test_every_file_gets_the_verdict_that_the_original_gave_it(taken_over):
    vault, document, expected, _ = taken_over
    problems = vault.problems(document)
    assert expected["files"]
    for file in expected["files"]:
        accepted = file["decision"] == "accepted"
        verdict = problems.pop(file["path"], ("indexed", ""))
        assert (verdict[0] == "indexed") == accepted, (file["path"], file["decision"], verdict)
    assert set(problems.values()) <= {("ignored", "foreign-name")}
    assert document["counts"]["indexed"] == sum(f["decision"] == "accepted" for f in expected["files"])
    assert not document["halted"] and not document["held"]


def ledger(vault, agent):
    """Instant, session, project, sentence and first link of every session in the window, newest first."""
    folder = vault.root if agent == "default" else vault / f"agents/{agent}"
    found = []
    for page in sorted(folder.glob("ledger/*/*/*.md"), reverse=True):
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := ROW.match(line):
                found.append((parse_instant(match[1]), *match.groups()[1:]))
    now = parse_instant(NOW)
    return [row for row in found if now - 30 * 86_400 * 1_000_000 <= row[0] <= now]


def test_all_ledgers_hold_the_same_sessions_in_the_same_order_with_the_same_sentences(taken_over):
    vault, document, expected, _ = taken_over
    compared = retold = 0
    for agent, theirs in expected["agents"].items():
        ours = ledger(vault, agent)
        assert document["agents"][agent]["sessions_in_window"] == len(ours)
        best = [s["summaryPath"] or s["compactionPath"] or s["transcriptPath"] for s in theirs["ledger"]]
        wanted = [(parse_instant(s["membershipTs"]), path) for s, path in zip(theirs["ledger"], best, strict=True)]
        # Equal instants may stand in either order, nothing else may.
        assert [row[0] for row in ours] == [row[0] for row in wanted]
        assert sorted((row[0], row[4]) for row in ours) == sorted(wanted)
        rows = {row[4]: row for row in ours}
        for session, path in zip(theirs["ledger"], best, strict=True):
            _, name, project, sentence, _ = rows[path]
            assert name == page_cell(session["sessionKey"] or session["sessionId"])
            assert project == (page_cell(session["project"]) if session["project"] else "none")
            document_ = parse((vault / path).read_bytes())
            context = SentenceSubject(normalize(document_.body), session["project"], "summary", "")
            if is_template(session["sentence"]) and not is_template(sentence):
                assert words(sentence) >= MIN_WORDS  # told anew from the transcript beside it
                retold += 1
            elif acceptable(session["sentence"], context) and "REDACTED" not in sentence:
                assert sentence == page_line(session["sentence"])
                compared += 1
            else:
                assert sentence != session["sentence"]
    assert compared + retold > 5 and retold


def test_its_own_pages_are_recognised_kept_once_and_replaced(taken_over):
    vault, _, _, before = taken_over
    signets = [p for p in before if p.endswith("MEMORY.md") and not p.startswith("memory/")]
    assert signets
    for path in signets:
        text = vault.page(path)
        assert text.startswith("<!-- signet:begin -->\n# Working Memory\n") and "<!-- generated " not in text
        kept = list((vault / path).parent.glob("MEMORY.signet-*.md"))
        assert [entry(copy)[3] for copy in kept] == [before[path][3]]


def test_no_file_of_memory_is_touched_but_manifests_and_only_their_references(taken_over):
    vault, document, _, before = taken_over
    after = tree(vault.root)
    changed = {path for path in before if after.get(path) != before[path] and before[path][0].startswith("0o10")}
    assert {path for path in changed if path.startswith("memory/")} == {
        path for path in changed if path.endswith("--manifest.md")
    }
    again = vault.reindex()
    assert vault.problems(again) == vault.problems(document)
    assert again["counts"]["read"] == 0
    files = {path: found for path, found in after.items() if found[0].startswith("0o10")}
    assert {path: found for path, found in tree(vault.root).items() if found[0].startswith("0o10")} == files


def test_planted_secrets_reach_neither_pages_nor_index(shared, taken_over):
    vault, document, _, before = taken_over
    if not any(note["code"] == "secret-suspected" for note in document["notes"]):
        pytest.skip("nothing was planted in this vault")
    secrets = {
        planted["secret"]
        for name in EXPECTED
        for planted in json.loads((shared / f"vaults/{name}/expected/writer_log.json").read_text()).get(
            "planted_secrets", ()
        )
        if len(planted["secret"]) >= 12
    }
    assert secrets
    written = [vault.db.read_bytes()]
    written += [
        (vault / path).read_bytes()
        for path, found in tree(vault.root).items()
        if path not in before and found[0].startswith("0o10") and ".signet-2" not in path
    ]
    written += [vault.page().encode()]
    leaked = [secret for secret in secrets if any(secret.encode() in raw for raw in written)]
    assert not leaked
