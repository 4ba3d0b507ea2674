"""Hostile and broken input end to end: each gets its verdict or its named state, the pass goes on, nothing is opened
outside the workspace."""

from __future__ import annotations

import os
from pathlib import Path

import artifacts_fixture as made
import pytest
from workbench import NOW, Vault, contents, numbered, path_of


@pytest.fixture
def vault(tmp_path):
    """Two good sessions, and room for what is bad."""
    found = Vault(tmp_path / "vault")
    found.session(1)
    found.session(2)
    return found


def placed(number, raw=b""):
    """The name under which one of many bad files stands, and its bytes: all of one session, a second apart."""
    stamp = f"2026-03-28T10:{number // 60:02d}:{number % 60:02d}.000Z"
    return made.path_for("summary", captured_at=stamp), raw.replace(made.CAPTURED.encode(), stamp.encode())


def judged(vault, document):
    """Verdict and code by path; the good files are indexed and searchable whatever stands beside them."""
    problems = vault.problems(document)
    assert not set(problems) & {made.path_for(k, **who(n)) for n in (1, 2) for k in ("summary", "transcript")}
    assert len(vault.hits("number1x")) == 2 and len(vault.hits("number2x")) == 2
    assert numbered(1)["session_id"] in vault.page()
    return problems


def who(number):
    return {k: v for k, v in numbered(number).items() if k in ("session_id", "captured_at")}


def summary(**given) -> bytes:
    return made.summary(**given)[1]


def extra(lines: bytes) -> bytes:
    """A valid summary with lines more in its frontmatter."""
    return summary().replace(b"---\n", b"---\n" + lines + b"\n", 1)


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"\n".join(
    b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]" % (c, c, *([c - 1] * 9)) for c in b"bcdefghi"
)
INVALID = ("invalid", "frontmatter-invalid")
MISSING = ("invalid", "frontmatter-missing")
ESCAPE = ("invalid", "path-escape")
FINE = ("indexed", "")

# What it is: the bytes of one summary, and its verdict; `tests/sync/test_planner.py` knows many more.
FILES = {
    "an alias bomb": (extra(BOMB), INVALID),
    "a recursive anchor": (extra(b"x: &a [*a]"), INVALID),
    "a python tag": (extra(b'x: !!python/object/apply:os.system ["touch /tmp/pwned"]'), INVALID),
    "100,000 brackets": (extra(b"x: " + b"[" * 100_000), INVALID),
    "200,000 lines": (extra(b"\n".join(b"k%d: 1" % n for n in range(200_000))), INVALID),
    "5,000 digits": (extra(b"x: " + b"9" * 5000), FINE),
    "a key twice": (summary().replace(b"harness:", b'harness: "codex"\nharness:'), INVALID),
    "words that YAML reads as something else": (extra(b"x: no\ny: 017\nz: 12:30:45\nv: .inf\nw: ~"), FINE),
    "a fence that nothing closes": (b"---\nkind: summary\n", None),
    "a rule and prose": (b"---\n\nProse between two rules.\n\n---\n", MISSING),
    "several documents": (extra(b"x: 1\n--- \ny: 2"), None),
    "bytes that are no text": (summary().replace(b"Retry", b"\xff\xfe"), ("invalid", "not-utf8")),
    "NUL in the head": (extra(b'x: "\0"'), None),
    "the escape of half a character": (extra(b'x: "\\ud800"'), FINE),
    "other line ends": (summary(body="one\u2028two\u2029three\x85four\x0bfive\x0csix of lantern\n"), FINE),
    "a forged hash": (summary(content_sha256="0" * 64), ("invalid", "hash-mismatch")),
    "another agent": (summary(agent_id="x").replace(b'"x"', b'"researcher"'), ("invalid", "token-mismatch")),
    "an agent that is a path": (summary(agent_id="../up"), ("invalid", "agent-invalid")),
    "the far future": (summary(ended_at="9999-12-31T23:59:59.999Z"), FINE),
    "another kind": (summary(kind="transcript"), ("invalid", "kind-mismatch")),
    "no sentence": (summary(memory_sentence=None), ("invalid", "field-missing")),
    "a blank sentence": (summary(memory_sentence="  "), ("invalid", "field-invalid")),
    "nothing": (b"", MISSING),
    "a link above the workspace": (summary(manifest_path="memory/../../x"), ESCAPE),
    "a link of Windows": (summary(manifest_path="memory\\..\\..\\x"), ESCAPE),
    "a link with escapes": (summary(manifest_path="memory/%2e%2e/%2e%2e/x"), ESCAPE),
    "a link to a home": (summary(manifest_path="~root/x"), ESCAPE),
    "CRLF": (summary().replace(b"\n", b"\r\n"), FINE),
    "a blank line behind the head": (summary().replace(b"\n---\n", b"\n---\n\n"), ("invalid", "hash-mismatch")),
    "the marks of a merge": (b"<<<<<<< mine\n" + summary() + b"=======\n>>>>>>> theirs\n", MISSING),
}


def test_every_bad_file_gets_its_verdict_and_the_pass_goes_on(vault):
    files = {what: placed(number, raw) for number, (what, (raw, _)) in enumerate(FILES.items())}
    for path, raw in files.values():
        (vault / path).write_bytes(raw)
    document = vault.reindex()
    problems = judged(vault, document)
    for what, (path, raw) in files.items():
        found, verdict = problems.get(path, FINE), FILES[what][1]
        assert found == verdict if verdict is not None else found[0] == "invalid", (what, found)
        assert (vault / path).read_bytes() == raw
    for problem in document["problems"]:
        assert problem["message"] and problem["hint"] and "\n" not in problem["message"]
    # The same from `check`, and the same after a second look.
    assert vault.problems(vault.call("check", "--json", "--now", NOW).json) == problems
    assert vault.problems(vault.reindex("--full")) == problems
    assert not set(vault.hits("five tries")) & set(problems)
    assert not Path("/tmp/pwned").exists()


def test_a_sealed_file_that_turns_bad_is_a_violation_and_its_row_stays(vault):
    bad = [raw for raw, verdict in FILES.values() if verdict not in (FINE, ESCAPE)]
    good = dict(placed(number, summary()) for number in range(len(bad)))
    for path, raw in good.items():
        (vault / path).write_bytes(raw)
    vault.reindex()
    for number, raw in enumerate(bad):
        path, changed = placed(number, raw)
        (vault / path).write_bytes(changed)
    assert judged(vault, vault.reindex()) == dict.fromkeys(good, ("violation", "mutated"))
    assert set(vault.hits("five tries")) == set(good)
    assert vault.call("violations", "restore", "--all", "--yes", "--now", NOW).code == 0
    assert {path: (vault / path).read_bytes() for path in good} == good


def test_names_that_are_not_ours_are_ignored_with_their_reason(vault, tmp_path):
    """`tests/formats/test_names.py` knows many more; what lies outside is never looked at."""
    (tmp_path / "outside.md").write_bytes(summary())
    names = {b"-rf.md": "foreign-name", b"\xff\xfe.md": "foreign-name", b"new\nline.md": "foreign-name"}
    names |= {b".4913.swp": "temporary", os.fsencode(path_of("summary", 1)[7:-3] + " 2.md"): "conflict-copy"}
    for name in names:
        Path(os.fsdecode(os.fsencode(vault.memory) + b"/" + name)).write_bytes(summary())
    (vault.memory / "link.md").symlink_to(tmp_path / "outside.md")
    before = contents(vault.memory)
    problems = judged(vault, vault.reindex())
    assert sorted(problems.values()) == sorted(("ignored", code) for code in [*names.values(), "foreign-name"])
    assert {"memory/\\xff\\xfe.md", "memory/new\\nline.md", "memory/link.md"} <= problems.keys()
    assert vault.problems(vault.call("check", "--json").json) == problems and vault.hits("five tries") == []
    changed = {path for path, _ in {*before.items()} ^ {*contents(vault.memory).items()}}
    assert all("manifest" in path for path in changed)


def test_a_hard_link_of_an_outside_file_is_never_written_through(vault, tmp_path):
    outside = tmp_path / "outside.md"
    name, raw = made.manifest(**who(3))
    outside.write_bytes(raw)
    os.link(outside, vault.memory / name)
    vault.put(dict([made.summary(**who(3)), made.transcript(**who(3))]))
    document = vault.reindex()
    assert document["agents"]["default"]["sessions_in_window"] == 3
    assert outside.read_bytes() == raw and (vault.memory / name).read_bytes() != raw
