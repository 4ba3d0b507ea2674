"""`check` in CI: the right lines of a hostile pull request, pages, an index from a cache."""

from __future__ import annotations

from pathlib import Path

import artifacts_fixture as made
import pytest
from workbench import NOW, Vault, contents, numbered


@pytest.fixture
def vault(tmp_path):
    found = Vault(tmp_path / "vault")
    found.paths = {number: found.session(number) for number in (1, 2, 3)}
    return found


def problems(vault: Vault, *arguments: str) -> dict[str, tuple[str, int | None]]:
    answer = vault.call("check", "--json", "--now", NOW, *arguments)
    found = {p["path"]: (p["code"], p.get("line")) for p in answer.json["problems"]}
    assert answer.code == (1 if any(code not in ("foreign-name", "conflict-copy") for code, _ in found.values()) else 0)
    return found


def where(vault: Vault, path: str, line: int) -> str:
    """The text of the line that is named."""
    place = vault / path
    if place.is_symlink() or not place.is_file() or place.stat().st_size > 1 << 20:
        return ""
    return place.read_bytes().split(b"\n")[line - 1].decode("latin-1")


# ── a vault in which everything is wrong ──

EDITS: dict[int, tuple[str, str, bytes, bytes]] = {  # code, what the annotated line holds, and what is written for what
    4: ("frontmatter-missing", "# A note", b"---\n", b"# A note\n"),
    5: ("frontmatter-invalid", "[open", b'"claude-code"', b"[open"),
    6: ("frontmatter-invalid", "&anchor", b'harness: "claude-code"', b"harness: &anchor x"),
    7: ("frontmatter-invalid", "<<", b"harness:", b"<<:"),
    8: ("frontmatter-invalid", 'project: "claude', b"harness:", b"project:"),
    9: ("field-missing", "---", b"memory_sentence:", b"another_one:"),
    10: ("field-invalid", "ended_at", b'ended_at: "2026', b'ended_at: "yesterday'),
    11: ("field-invalid", "harness", b'harness: "claude-code"', b"harness:\n  - ::error::x"),
    12: ("hash-mismatch", "content_sha256", b"Lantern keeps", b"Lantern kept"),
    13: ("kind-mismatch", "kind", b'"summary"', b'"transcript"'),
    14: ("token-mismatch", "session_id", b'session_id: "5e55', b'session_id: "5e56'),
    15: ("captured-at-mismatch", "captured_at", b'captured_at: "2026-03', b'captured_at: "2026-02'),
    16: ("agent-invalid", "agent_id", b'agent_id: "default"', b'agent_id: "../up"'),
    17: ("not-utf8", "Lantern keeps", b"its word", b"its w\xffrd"),
    18: ("path-escape", "manifest_path", b'manifest_path: "memory', b'manifest_path: "../memory'),
}


def broken(vault: Vault) -> dict[str, tuple[str, str]]:
    """A file for every code there is; gives code and a piece of the right line by path."""
    wrong: dict[str, tuple[str, str]] = {}

    def name_of(number: int) -> str:
        return made.path_for("summary", **{k: numbered(number)[k] for k in ("session_id", "captured_at")})

    for number, (code, piece, old, new) in EDITS.items():
        name, raw = made.summary(**numbered(number))
        assert old in raw, old
        wrong[vault.put((name, raw.replace(old, new, 1)))[0]] = code, piece
    wrong[name_of(19)] = "not-a-file", ""
    (vault / name_of(19)).symlink_to("/etc/passwd")
    wrong[name_of(20)] = "too-large", ""
    with (vault / name_of(20)).open("wb") as file:
        file.truncate((64 << 20) + 1)
    removed = numbered(21)["session_id"]
    vault.put(made.tombstone(session_id=removed), "memory/tombstones")
    wrong[vault.put(made.summary(**numbered(21)))[0]] = "tombstoned", "---"
    (stone,) = vault.put(made.tombstone(session_id="x", removed_at="never"), "memory/tombstones")
    wrong[stone] = "tombstone-invalid", "removed_at"
    (copy,) = vault.put((Path(name_of(22)).name[:-3] + " (conflicted copy, `x` |y| %0A<b>::error::z).md", b"x"))
    wrong[copy] = "conflict-copy", "x"
    return wrong


HOSTILE = """\
"##[stop-commands]hush" = 1
"::stop-commands::hush" = 1
[reconcile]
max_file_bytes = 4000000000
[llm]
command = ["/bin/sh", "-c", "touch sprung"]
[check]
ignore = ["*"]
"""


def test_the_problems_of_a_hostile_pull_request_have_the_right_lines(vault):
    wrong = broken(vault)
    (vault / "signet-sync.toml").write_text(HOSTILE)
    before = contents(vault.root)
    found = problems(vault)
    assert {path: code for path, (code, _) in found.items()} == {path: code for path, (code, _) in wrong.items()}
    assert [path for path, (_, line) in found.items() if wrong[path][1] not in where(vault, path, line or 1)] == []
    answer = vault.call("check", "--now", NOW)
    assert not [line for line in answer.out.splitlines() if line.lstrip().startswith(("::", "##["))]
    assert "\x1b" not in answer.out and contents(vault.root) == before


# ── what a pull request may say ──

SETTINGS = {
    "nothing": "",
    "what it may not set": HOSTILE,
    "no TOML": "a = [\n\n b",
    "a wrong value": "[projection]\n\nbudget_tokens = '##[stop-commands]x'\n",
    "everything noise": '[noise]\nprojects = ["/"]\nsessions = [""]\n',
    "too long": "#" * 70_000,
}


def test_no_setting_of_a_workspace_changes_a_verdict(vault):
    broken(vault)

    def judged(*arguments: str) -> tuple[list, list]:
        document = vault.call("check", "--json", "--now", NOW, *arguments).json
        mine = [p for p in document["problems"] if p["path"] == "signet-sync.toml"]
        return [p for p in document["problems"] if p not in mine], [(p["code"], p["line"]) for p in mine]

    found, _ = judged()
    assert len(found) == 20
    lines = {}
    for name, text in SETTINGS.items():
        (vault / "signet-sync.toml").write_text(text)
        others, lines[name] = judged("--strict")
        assert others == found, name
    (vault / "signet-sync.toml").unlink()
    (vault / "signet-sync.toml").symlink_to("/etc/passwd")
    assert judged() == (found, [("config-invalid", 1)])
    told = {name: found for name, found in lines.items() if found}
    assert told == {
        "no TOML": [("config-invalid", 3)],
        "a wrong value": [("config-invalid", 3)],
        "too long": [("config-invalid", 1)],
    }


def test_a_note_that_fails_is_shown_as_a_problem(vault):
    path = vault.paths[1]["manifest"]
    (vault / vault.paths[1]["transcript"]).unlink()
    assert vault.call("check").code == 0 and "1 link-broken" in vault.call("check").out
    answer = vault.call("check", "--strict")
    assert answer.code == 1 and f"note link-broken  {path}" in answer.out
