"""`export` and `import-bundle`: rows as lines, back again equal, whole or not at all, and nothing that was removed."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import native_rows
import pytest
from invented_secrets import some
from native_rows import BACKED_UP
from workbench import NOW, Vault

from signet_sync.backup import bundle_format
from signet_sync.backup.bundle_format import BundleProblem
from signet_sync.text.memory import TYPES

LATER = "2026-03-29T13:00:00.000Z"
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A filled vault without its state, and a bundle of it, made once."""
    place = tmp_path_factory.mktemp("made")
    with native_rows.elsewhere(place) as vault:
        native_rows.done(vault.call("export", str(place / "rows.jsonl"), "--now", NOW))
        again = native_rows.done(vault.call("export", "--now", LATER))
        assert again.out.encode() == (place / "rows.jsonl").read_bytes(), "equal rows make equal bytes, whenever"
    return vault.root, place / "rows.jsonl"


@pytest.fixture
def rows(_made: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy2(_made[1], tmp_path / "rows.jsonl"))


@pytest.fixture
def vault(_made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """The workspace on a machine that has never seen it."""
    monkeypatch.setenv("HOME", str(_made[0].parent / "home"))
    shutil.copytree(_made[0], tmp_path / "vault", copy_function=shutil.copy2)
    return Vault(tmp_path / "vault")


def take_in(vault: Vault, rows: Path | str, *more: str, code: int = 0) -> Any:
    answer = vault.call("import-bundle", str(rows), "--json", "--now", LATER, *more)
    assert answer.code == code, answer
    return answer.json["error"] if code else answer.json


def documents(rows: Path) -> Lines:
    return [json.loads(line) for line in rows.read_bytes().splitlines()]


def sealed(lines: Lines) -> bytes:
    """Lines with an end that fits them."""
    raw = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    end = {"end": {"rows": len(lines) - 1, "sha256": sha256(raw).hexdigest()}}
    return raw + json.dumps(end).encode() + b"\n"


def changed(rows: Path, change: Callable[[Lines], Any]) -> Path:
    """A bundle whose lines somebody changed, checksum and all."""
    lines = documents(rows)[:-1]
    change(lines)
    rows.write_bytes(sealed(lines))
    return rows


def of(lines: Lines, table: str) -> dict[str, Any]:
    return next(line for line in lines if line.get("table") == table)


# ── there and back ──


def test_rows_come_back_as_they_were_and_a_second_time_none(vault: Vault, rows: Path, tmp_path: Path) -> None:
    answer = take_in(vault, rows)
    found = native_rows.native(vault)
    told = {table: len(of_table(rows, table)) for table in BACKED_UP}
    assert answer["rows"] == {**told, "sealed_bytes": 0} == {**{t: len(found[t]) for t in BACKED_UP}, "sealed_bytes": 0}
    assert found["forgotten_memories"] == [("0" * 32,)] and found["acceptances"] and found["redactions"]
    assert [row[2] for row in found["recall_events"] if row[0] == "scout"] == ["Bogotá"]
    again = tmp_path / "again.jsonl"
    native_rows.done(vault.call("export", str(again), "--now", LATER))
    assert again.read_bytes() == rows.read_bytes()
    before = native_rows.native(vault)
    assert take_in(vault, rows)["total"] == 0
    assert native_rows.native(vault) == before
    assert native_rows.LAMP.partition(".")[0] in vault.page()
    assert stat.S_IMODE(again.stat().st_mode) == 0o600


def of_table(rows: Path, table: str) -> Lines:
    return [line for line in documents(rows) if line.get("table") == table]


def test_lines_can_be_read_by_a_person_and_by_another_tool(rows: Path) -> None:
    lines = documents(rows)
    assert lines[0] == {
        "format": "signet-sync bundle",
        "version": 1,
        "workspace": lines[0]["workspace"],
        "agents": ["default", "scout"],
        "as_of": NOW,
        "seals": True,
    }
    assert lines[-1]["end"]["rows"] == len(lines) - 2
    told = of_table(rows, "memories")
    assert {one["content"]: one["private"] for one in told}[native_rows.PRIVATE] is True
    assert all(isinstance(one["tags"], list) for one in told)
    assert of_table(rows, "flow_results")[0]["answer"] == {"summary": "memory/x.md", "words": ["é"]}
    assert of_table(rows, "captures")[0]["path"] == "~/.claude/projects/a/b.jsonl"
    assert base64.b64decode(of_table(rows, "seals")[0]["packed"])


def test_a_bundle_goes_through_a_pipe(vault: Vault, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.read_bytes())))
    assert take_in(vault, "-")["rows"]["memories"] == 4


def test_a_dry_run_says_what_would_come_and_changes_nothing(vault: Vault, rows: Path) -> None:
    vault.reindex(now=LATER)
    before = native_rows.native(vault)
    answer = take_in(vault, rows, "--dry-run")
    assert answer["rows"]["memories"] == 4 and answer["dry_run"]
    assert native_rows.native(vault) == before
    out = native_rows.done(vault.call("import-bundle", str(rows), "--dry-run")).out
    assert "\nwould be added: 4 memories, 3 pins" in out and "nothing was changed" in out


def test_rows_that_are_there_win(vault: Vault, rows: Path) -> None:
    native_rows.done(vault.call("remember", native_rows.LAMP, "--type", "preference", "--tag", "mine", "--now", LATER))
    answer = take_in(vault, rows)
    assert answer["rows"]["memories"] == 3 and answer["before"]
    memory = native_rows.memory(native_rows.LAMP, kind="preference").id
    assert vault.rows("select tags from memories where id = ?", memory) == [('["mine"]',)]


def test_agents_stay_apart(vault: Vault, rows: Path, tmp_path: Path) -> None:
    answer = take_in(vault, rows, "--agent", "scout")
    assert {t: n for t, n in answer["rows"].items() if n} == {"memories": 1, "memory_sources": 1, "recall_events": 1}
    alone = tmp_path / "scout.jsonl"
    native_rows.done(vault.call("export", str(alone), "--agent", "scout"))
    assert documents(alone)[0]["agents"] == ["scout"] and native_rows.LAMP not in alone.read_text()
    assert vault.rows("select distinct agent_id from memories") == [("scout",)]


def test_without_seals_no_text_of_an_artifact_is_in_a_bundle(vault: Vault, tmp_path: Path) -> None:
    place = tmp_path / "bare.jsonl"
    vault.reindex()
    native_rows.done(vault.call("export", str(place), "--no-seals"))
    assert all("packed" not in line for line in of_table(place, "seals")) and len(of_table(place, "seals")) == 4
    shutil.rmtree(vault.state)
    assert take_in(vault, place)["rows"]["seals"] == 4
    assert vault.rows("select count(*) from seals where packed is not null") == [(4,)], "made of the files that fit"


def test_seals_of_files_that_are_not_here_wait_for_them(vault: Vault, rows: Path) -> None:
    raw = {path: path.read_bytes() for path in vault.memory.glob("*.md")}
    for path in raw:
        path.unlink()
    answer = take_in(vault, rows)
    assert answer["left_out"]["seals_of_absent_files"] == 4 and answer["rows"]["seals"] == 0
    assert native_rows.done(vault.call("violations", "list", "--json")).json["violations"] == []
    for path, data in raw.items():
        path.write_bytes(data)
    assert take_in(vault, rows)["rows"]["seals"] == 4


# ── what was removed ──


def test_nothing_of_a_removed_session_or_a_forgotten_memory_comes_in(vault: Vault, rows: Path, tmp_path: Path) -> None:
    take_in(vault, rows)
    native_rows.done(vault.call("remove", native_rows.FIRST, "--reason", "asked for", "--yes", "--now", LATER))
    native_rows.done(vault.call("forget", native_rows.memory(native_rows.PRIVATE).id, "--now", LATER))
    before = native_rows.native(vault)
    answer = take_in(vault, rows)
    assert (answer["left_out"]["removed_sessions"], answer["left_out"]["forgotten_memories"]) == (1, 1)
    assert native_rows.native(vault) == before
    rows.unlink()
    for word in ("zqxcanary", "opals", "number1x", native_rows.FIRST, "moths"):
        assert native_rows.holding(tmp_path, word) == [], word


# ── what is refused ──


def test_a_cut_or_changed_bundle_is_noticed_wherever_it_was_cut(rows: Path) -> None:
    raw = rows.read_bytes()
    lines = raw.splitlines(keepends=True)
    assert len(bundle_format.read(lines).rows) == len(lines) - 2
    for number in range(len(lines)):
        with pytest.raises(BundleProblem) as caught:
            bundle_format.read(lines[:number])
        assert caught.value.cut and caught.value.line == number + 1
        with pytest.raises(BundleProblem) as caught:
            bundle_format.read([*lines[:number], lines[number][:-9]])
        assert caught.value.cut or number == 0
    with pytest.raises(BundleProblem, match="differs"):
        bundle_format.read(raw.replace(b"trims", b"Trims").splitlines(keepends=True))
    with pytest.raises(BundleProblem, match="after"):
        bundle_format.read([*lines, lines[3]])
    # What a mail or an editor does to the ends of lines takes nothing away.
    assert bundle_format.read([b"\xef\xbb\xbf" + lines[0], *(line.replace(b"\n", b"\r\n") for line in lines[1:])]).rows


HOSTILE: dict[str, Callable[[Lines], Any]] = {
    "another agent's name": lambda lines: of(lines, "pins").update(agent_id="../up"),
    "a path that leaves the vault": lambda lines: of(lines, "seals").update(path="memory/../../x--y--summary.md"),
    "a removal of what is no artifact": lambda lines: as_removal(of(lines, "pins"), ["memory/../victim"]),
    "an access to what is no artifact": lambda lines: of(lines, "artifact_telemetry").update(source_path="/etc/passwd"),
    "bytes of another file": lambda lines: of(lines, "seals").update(packed=base64.b64encode(b"x").decode()),
    "no base64": lambda lines: of(lines, "seals").update(packed="§"),
    "words that are not those of the id": lambda lines: of(lines, "memories").update(content="Something else."),
    "a secret": lambda lines: of(lines, "memories").update(content="The key is ghp_" + some_secret()),
    "a number that is too large": lambda lines: of(lines, "recall_events").update(at_us=10**30),
    "a sweep that is none": lambda lines: of(lines, "dream_sweeps").update(sweep_id="soon"),
    "a field that is gone": lambda lines: of(lines, "memories").pop("type"),
    "a text in place of a number": lambda lines: of(lines, "artifact_telemetry").update(accesses="3"),
    "half a letter": lambda lines: of(lines, "recall_events").update(query="\ud800"),
    "another mark": lambda lines: of(lines, "forgotten_memories").update(mark="halted"),
}


def as_removal(line: dict[str, Any], paths: list[str]) -> None:
    line.clear()
    line.update(table="memory_artifact_tombstones", agent_id="default", session_token="a" * 16, removed_at=NOW)
    line.update(reason="asked", removed_paths=paths)


def some_secret() -> str:
    from random import Random

    return some(Random(8), 36)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_line_that_no_export_wrote_is_named_and_nothing_comes_in(
    name: str, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from signet_sync.backup import incoming
    from signet_sync.errors import UsageError

    lines = documents(rows)[:-1]
    before = [json.dumps(line) for line in lines]
    HOSTILE[name](lines)
    (number,) = [n for n, line in enumerate(lines, 1) if json.dumps(line) != before[n - 1]]
    raw = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    raw += b'{"end": {"rows": %d, "sha256": "%s"}}\n' % (len(lines) - 1, sha256(raw).hexdigest().encode())
    with (
        pytest.raises(UsageError, match=f"^line {number}: ") as caught,
        incoming.of_bundle(raw.splitlines(keepends=True), "rows.jsonl", [], None),
    ):
        pass
    assert caught.value.code == "bundle-invalid" and caught.value.hint


def test_an_error_of_a_bundle_reaches_a_person_with_line_and_remedy(vault: Vault, rows: Path) -> None:
    rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:5]))
    vault.reindex()
    before = native_rows.native(vault)
    answer = vault.call("import-bundle", str(rows))
    assert answer.code == 2 and answer.err.count("\n") == 1
    assert "line 6: the last line is missing" in answer.err and "copy the complete file again" in answer.err
    assert native_rows.native(vault) == before
    for name, said in (("none", "cannot be read"), ("vault", "cannot be read")):
        answer = vault.call("import-bundle", str(rows.parent / name))
        assert answer.code == 2 and said in answer.err and "Traceback" not in answer.err


def test_what_a_newer_version_adds_is_told_and_left(vault: Vault, rows: Path) -> None:
    def newer(lines: Lines) -> None:
        lines[0].update(colour="blue")
        of(lines, "pins").update(colour="red")
        lines.append({"table": "dragons", "name": "Smaug"})

    answer = take_in(vault, changed(rows, newer))
    assert answer["unknown"] == {"pins.colour": 1, "dragons": 1} and answer["rows"]["pins"] == 3
    said = vault.call("import-bundle", str(rows), "--now", LATER).err
    assert "1 row of the table dragons" in said and "1 row of the field pins.colour" in said


@pytest.mark.parametrize("version", [2, 99])
def test_a_bundle_of_a_newer_version_is_refused(vault: Vault, rows: Path, version: int) -> None:
    vault.reindex()
    before = native_rows.native(vault)
    changed(rows, lambda lines: lines[0].update(version=version))
    for flags in ((), ("--dry-run",)):
        answer = vault.call("import-bundle", str(rows), *flags, "--json")
        assert answer.code == 2 and answer.json["error"]["code"] == "bundle-newer"
        assert f"version {version}" in answer.json["error"]["message"] and "upgrade" in answer.json["error"]["hint"]
    assert native_rows.native(vault) == before


def test_a_tombstone_names_artifacts_alone(vault: Vault, rows: Path) -> None:
    """Neither a bundle, nor a file, nor a row that an older version took in brings another path."""
    vault.reindex()
    stone = vault.memory / "tombstones" / "default--aaaaaaaaaaaaaaaa.md"
    stone.parent.mkdir(exist_ok=True)
    artifact = "memory/2026-01-01T00-00-00.000Z--aaaaaaaaaaaaaaaa--summary.md"
    stone.write_text(
        '---\nkind: "tombstone"\nagent_id: "default"\nsession_token: "aaaaaaaaaaaaaaaa"\n'
        f'removed_at: "{NOW}"\nreason: "asked"\nremoved_paths:\n  - "../victim"\n  - "{artifact}"\n'
        "tombstone_version: 1\n---\n\n"
    )
    vault.reindex()
    told = "select removed_paths from memory_artifact_tombstones"
    assert vault.rows(told) == [(json.dumps([artifact]),)]
    with vault.database(readonly=False) as database, database.transaction():
        old = json.dumps(["../victim", artifact])
        database.execute("update memory_artifact_tombstones set removed_paths = ?", (old,))
    out = rows.parent / "mine.jsonl"
    native_rows.done(vault.call("export", str(out)))
    assert "victim" not in out.read_text() and artifact in out.read_text()


def test_words_pass_the_sanitizer_before_they_reach_a_row(vault: Vault, rows: Path, tmp_path: Path) -> None:
    secret = "ghp_" + some_secret()
    changed(rows, lambda lines: of(lines, "recall_events").update(query=f"what is {secret} for"))
    changed(rows, lambda lines: of(lines, "captures").update(path=f"~/{secret}/s.jsonl", conversation=secret))
    take_in(vault, rows)
    rows.unlink()
    assert native_rows.holding(tmp_path, secret) == []


def test_every_column_that_is_worth_keeping_has_its_place_in_a_line() -> None:
    for table, columns in BACKED_UP.items():
        wanted = {*columns, "packed"} if table == "seals" else {*columns}
        assert set(bundle_format.model(table).model_fields) == wanted, table
    assert bundle_format.tables() == tuple(BACKED_UP)
    assert bundle_format.model("memories").model_fields["type"].annotation.__args__ == TYPES  # type: ignore[union-attr]


def test_a_path_of_one_home_is_one_of_another() -> None:
    here, there = [("<workspace>", "/home/ada/.agents"), ("~", "/home/ada")], [("<workspace>", "/v"), ("~", "/root")]
    for path, told, moved in (
        ("/home/ada/.claude/x", "~/.claude/x", "/root/.claude/x"),
        ("/home/ada/.agents/y", "<workspace>/y", "/v/y"),
        ("/home/adam/z", "/home/adam/z", "/home/adam/z"),
        ("opencode", "opencode", "opencode"),
    ):
        assert bundle_format.portable(path, here) == told and bundle_format.local(told, there) == moved
    assert os.sep == "/"
