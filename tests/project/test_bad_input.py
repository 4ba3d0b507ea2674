"""Hostile and broken input end to end: each gets its verdict or its named state, the pass goes on, nothing is opened
outside the workspace."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import artifacts_fixture as made
import pytest
from workbench import NOW, Vault, contents, numbered

NAME = made.path_for("summary").removeprefix("memory/")


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
DOUBLED = summary().replace(b'harness: "claude-code"', b'harness: "claude-code"\nharness: "codex"')
INVALID = ("invalid", "frontmatter-invalid")
MISSING = ("invalid", "frontmatter-missing")
FIELD = ("invalid", "field-invalid")
ESCAPE = ("invalid", "path-escape")
FINE = ("indexed", "")

# What it is: the bytes of one summary, and its verdict.
FILES = {
    # §2F: YAML
    "F1 alias bomb": (extra(BOMB), INVALID),
    "F2 recursive anchor": (extra(b"x: &a [*a]"), INVALID),
    "F2 merge key": (extra(b"base: &b {a: 1}\n<<: *b"), INVALID),
    "F3 python tag": (extra(b'x: !!python/object/apply:os.system ["touch /tmp/pwned"]'), INVALID),
    "F3 own tag": (extra(b"x: !mine y"), INVALID),
    "F3 binary tag": (extra(b"x: !!binary aGk="), INVALID),
    "F4 5,000 brackets": (extra(b"x: " + b"[" * 5000 + b"]" * 5000), INVALID),
    "F4 100,000 brackets": (extra(b"x: " + b"[" * 100_000), INVALID),
    "F4 100,000 braces": (extra(b"x: " + b"{a: " * 30_000), INVALID),
    "F5 impossible date": (extra(b"x: 2026-13-45"), FINE),
    "F5 odd number": (extra(b"x: 0x_"), FINE),
    "F5 5,000 digits": (extra(b"x: " + b"9" * 5000), FINE),
    "F6 duplicate key": (DOUBLED, INVALID),
    "F7 words that YAML reads as something else": (extra(b"x: no\ny: 017\nz: 12:30:45\nv: .inf\nw: ~"), FINE),
    "F8 no closing fence": (summary().replace(b"\n---\n", b"\n", 1).removeprefix(b"---\n"), MISSING),
    "F8 nothing closes": (b"---\nkind: summary\n", None),
    "F8 rule and prose": (b"---\n\nProse between two rules.\n\n---\n", MISSING),
    "F8 second block": (summary(body="---\nkind: other\n---\nmore\n"), FINE),
    "F8 several documents": (extra(b"x: 1\n--- \ny: 2"), None),
    "F9 invalid UTF-8": (summary().replace(b"Retry", b"\xff\xfe"), ("invalid", "not-utf8")),
    "F9 NUL in the head": (extra(b'x: "\0"'), None),
    "F9 lone surrogate escape": (extra(b'x: "\\ud800"'), FINE),
    "F9 bidi override": (summary(body="# \u202eReversed\u202c lantern\n\nwords\n"), FINE),
    "F10 other line ends": (summary(body="one\u2028two\u2029three\x85four\x0bfive\x0csix of lantern\n"), FINE),
    "F11 bare wikilink": (extra(b"x: [[a|b]]"), FINE),
    "F11 star": (extra(b"x: *star"), INVALID),
    "F11 hash in a list": (extra(b"tags: [#a]"), INVALID),
    "F11 backslash": (extra(b"x: `C:\\x`"), INVALID),
    "F11 tab": (extra(b"x:\n\t- y"), INVALID),
    "F24 a million lines": (extra(b"\n".join(b"k%d: 1" % n for n in range(200_000))), INVALID),
    # §2F: fields
    "F17 forged hash": (summary(content_sha256="0" * 64), ("invalid", "hash-mismatch")),
    "F17 no hash": (summary(content_sha256="none"), FIELD),
    "F17 another agent": (summary(agent_id="x") .replace(b'"x"', b'"researcher"'), ("invalid", "token-mismatch")),
    "F17 far future": (summary(ended_at="9999-12-31T23:59:59.999Z"), FINE),
    "F17 before time": (summary(started_at="0001-01-01T00:00:00.000Z"), FINE),
    "agent id that is a path": (summary(agent_id="../up"), ("invalid", "agent-invalid")),
    "agent id with capitals": (summary(agent_id="Ada"), ("invalid", "agent-invalid")),
    "another kind": (summary(kind="transcript"), ("invalid", "kind-mismatch")),
    "no kind": (summary(kind=made.ABSENT), ("invalid", "field-missing")),
    "kind is a list": (summary(kind=["summary"]), FIELD),
    "another captured_at": (summary(captured_at="2026-03-28T10:00:00.000Z", ended_at=None), FINE),
    "captured_at no date": (summary().replace(b'captured_at: "2026-03-28', b'captured_at: "2026-13-28'), FIELD),
    "sentence missing": (summary(memory_sentence=made.ABSENT), ("invalid", "field-missing")),
    "sentence null": (summary(memory_sentence=None), ("invalid", "field-missing")),
    "sentence blank": (summary(memory_sentence="  "), FIELD),
    "quality unknown": (summary(memory_sentence_quality="great"), FIELD),
    "scope unknown": (summary(hash_scope="body-raw"), FIELD),
    "0 bytes": (b"", MISSING),
    "only a note": (b"# my note\n", MISSING),
    # §2F: F12, links that leave the workspace
    **{
        f"F12 {link}": (summary(manifest_path=link), ESCAPE)
        for link in (
            "../../etc/passwd", "memory/../../x", "/etc/passwd", "~/x", "~root/x", "file:///etc/passwd",
            "\\\\host\\share", "C:\\x", "memory/%2e%2e/%2e%2e/x", "memory/..", "..", "memory/\0x", "https://example.org/x",
            "memory\\..\\..\\x",
        )
    },
    "F12 a long name": (summary(manifest_path="x" * 10_000), FINE),
    # §2H: what editors and sync services write
    "H4 merged text": (summary().replace(b"gives up", b"gives in and gives up"), ("invalid", "hash-mismatch")),
    "H13 CRLF": (summary().replace(b"\n", b"\r\n"), FINE),
    "H13 lone CR": (summary().replace(b"\n", b"\r"), FINE),
    "H15 blank line behind the head": (summary().replace(b"\n---\n", b"\n---\n\n"), ("invalid", "hash-mismatch")),
    "H15 modified key": (extra(b"modified: 2026-03-29T10:00"), FINE),
    "H18 merge markers": (b"<<<<<<< mine\n" + summary() + b"=======\n>>>>>>> theirs\n", MISSING),
}  # fmt: skip


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


# ── things under an artifact's name that are no files (B18, B21) ──


def listener(path, outside):
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's name may only be short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


ODD = {
    "B21 named pipe": lambda path, outside: os.mkfifo(path),
    "B21 folder": lambda path, outside: path.mkdir(),
    "B21 socket": listener,
    "B18 link outside": lambda path, outside: path.symlink_to(outside),
    "B18 link to another artifact": lambda path, outside: path.symlink_to(made.path_for("summary", **who(1))[7:]),
    "B18 dangling link": lambda path, outside: path.symlink_to("nowhere.md"),
    "B18 loop": lambda path, outside: path.symlink_to(path.name),
    "B18 link to a device": lambda path, outside: path.symlink_to("/dev/zero"),
}


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("sealed", [False, True], ids=["new", "sealed"])
def test_what_is_no_file_is_said_to_be_none_and_never_waited_for(vault, tmp_path, sealed):
    """In the place of a sealed file it is a violation, and the row stays."""
    outside = tmp_path / "outside.md"
    outside.write_bytes(summary())
    paths = [placed(number)[0] for number in range(len(ODD))]
    if sealed:
        for number, path in enumerate(paths):
            (vault / path).write_bytes(placed(number, summary())[1])
        vault.reindex()
        for path in paths:
            (vault / path).unlink()
    for path, make in zip(paths, ODD.values(), strict=True):
        make(vault / path, outside)
    expected = dict.fromkeys(paths, ("violation", "mutated") if sealed else ("invalid", "not-a-file"))
    assert judged(vault, vault.reindex()) == expected
    assert sorted(vault.hits("five tries")) == (paths if sealed else [])
    assert sealed or judged(vault, vault.call("check", "--json").json) == expected


# ── names (B24, B25, B27, H5–H7) ──

# `tests/formats/test_names.py` knows many more.
IGNORED = {
    "conflict-copy": ["{stem}.sync-conflict-20260101-120000-ABCDEFG.md", "{stem} 2.md", ".{stem}.md.icloud"],
    "temporary": [".syncthing.{stem}.md.tmp", "{stem}.md~", "4913", ".{stem}.md.swp"],
    "foreign-name": ["note.md", ".DS_Store", "memories.db", "CON", "-rf.md", "a|b#c]].md", "e\u0301.md", "\u00e9.md",
                     "2026-03-28T10-00-00.000Z--{token}--diary.md", "x" * 250 + ".md"],
}  # fmt: skip
STRANGE = [b"\xff\xfe.md", b"new\nline.md", b"\x1b[31mred.md", b"nb\xc2\xa0sp.md", "\u202egnp.md".encode()]


def test_names_that_are_not_ours_are_ignored_with_their_reason(vault):
    stem, token = NAME.removesuffix(".md"), made.token_for()
    wanted = {}
    for code, patterns in IGNORED.items():
        for pattern in patterns:
            name = pattern.format(stem=stem, token=token)
            (vault.memory / name).write_bytes(summary())
            wanted[f"memory/{name}"] = ("ignored", code)
    for raw in STRANGE:
        Path(os.fsdecode(os.fsencode(vault.memory) + b"/" + raw)).write_bytes(summary())
    (vault.memory / ".stversions").mkdir()
    (vault.memory / ".stversions" / NAME).write_bytes(summary())
    before = contents(vault.memory)
    document = vault.reindex()
    problems = judged(vault, document)
    strange = {path for path in problems if path not in wanted}
    assert {path: problems.get(path) for path in wanted} == wanted
    assert len(strange) == len(STRANGE) and all(problems[path] == ("ignored", "foreign-name") for path in strange)
    assert all(path.isprintable() for path in problems)
    assert "memory/\\xff\\xfe.md" in strange and "memory/new\\nline.md" in strange
    assert vault.hits("five tries") == []
    assert document["counts"]["ignored"] == len(problems) and document["counts"]["indexed"] == 6
    assert {p: c for p, c in contents(vault.memory).items() if "manifest" not in p} == {
        p: c for p, c in before.items() if "manifest" not in p
    }
    assert vault.call("check", "--json").json["problems"] == document["problems"]
    answer = vault.call("check", "--now", NOW)
    assert answer.code == 0 and "Traceback" not in answer.err and "\x1b[31mred" not in answer.out


def test_b19_a_hard_link_of_an_outside_file_is_never_written_through(vault, tmp_path):
    outside = tmp_path / "outside.md"
    name, raw = made.manifest(**who(3))
    outside.write_bytes(raw)
    os.link(outside, vault.memory / name)
    vault.put(dict([made.summary(**who(3)), made.transcript(**who(3))]))
    document = vault.reindex()
    assert document["agents"]["default"]["sessions_in_window"] == 3
    assert outside.read_bytes() == raw and (vault.memory / name).read_bytes() != raw
