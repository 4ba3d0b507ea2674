"""Makes a database as Signet leaves it, of any size, with the columns that version jun has, or an older subset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from signet_sync.formats.frontmatter import FrontmatterProblem, parse
from signet_sync.formats.ids import token_of

# Columns of version jun, but for many that nobody reads; an older version lacks those of `YOUNGER`.
COLUMNS: dict[str, str] = {
    "memories": "id type category content importance source_id source_type tags project created_at updated_at pinned "
    "is_deleted deleted_at scope agent_id visibility",
    "memory_history": "id memory_id new_content created_at",
    "memory_artifacts": "agent_id source_path source_kind session_id session_key session_token content is_deleted",
    "memory_artifact_tombstones": "agent_id session_token removed_at reason removed_paths",
    "session_transcripts": "session_key content harness project agent_id created_at updated_at",
    "session_summaries": "id project depth kind content earliest_at latest_at session_key harness agent_id created_at "
    "source_type source_ref",
    "session_summary_children": "parent_id child_id ordinal",
    "session_summary_memories": "summary_id memory_id",
    "memory_thread_heads": "agent_id thread_key label project session_key latest_at sample updated_at",
    "transcript_capture_jobs": "id agent_id session_key session_id status",
    "agents": "id name read_policy policy_group created_at updated_at",
    "summary_jobs": "id status payload",
}
YOUNGER = {"memories": {"scope", "agent_id", "visibility"}}
# What versions after August 2026 have more, by the newest migration that is known.
NEWER = {
    "memories": "superseded_by memory_kind stale_at",
    "session_transcripts": "completed_at content_hash source_id",
    "memory_head_entries": "entry_id agent_id canonical_text status created_at updated_at",
    "memory_head_revisions": "id agent_id revision content created_at entry_id entry_text operation",
}
YOUNGER_TABLES = {"agents", "memory_thread_heads", "summary_jobs"}
AT = "2026-02-{day:02d}T{hour:02d}:00:00.000Z"
HARNESSES = ("codex", "opencode", "claude-code")
TYPES = ("fact", "decision", "preference", "procedural", "constraint")


@dataclass
class Made:
    """What a database holds: `asked` are queries with words that one row alone has; `rows` by table."""

    path: Path
    asked: list[tuple[str, str]] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)


class Database:
    """A database of Signet that rows are put into, of version jun or an older or newer one."""

    def __init__(self, path: Path, *, older: bool = False, newer: bool = False, wal: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.made = Made(path)
        self.older, self.newer = older, newer
        self.connection = apsw.Connection(str(path))
        self.connection.execute(f"pragma journal_mode = {'wal' if wal else 'delete'}")
        self.connection.execute("begin")
        for table in COLUMNS | NEWER:
            if self.columns(table):
                self.connection.execute(f"create table {table}({', '.join(self.columns(table))})")

    def columns(self, table: str) -> list[str]:
        if self.older and table in YOUNGER_TABLES:
            return []
        younger = YOUNGER.get(table, set()) if self.older else set()
        names = f"{COLUMNS.get(table, '')} {NEWER.get(table, '') if self.newer else ''}".split()
        return [name for name in names if name not in younger]

    def put(self, table: str, **values: Any) -> None:
        """Puts a row; what this version does not have is left out."""
        known = {name: value for name, value in values.items() if name in self.columns(table)}
        if known:
            names, marks = ", ".join(known), ", ".join("?" * len(known))
            self.connection.execute(f"insert into {table}({names}) values({marks})", list(known.values()))
            self.made.rows[table] = self.made.rows.get(table, 0) + 1

    def memory(self, number: int, content: str, **values: Any) -> None:
        row = {
            "id": f"mem-{number}", "type": TYPES[number % len(TYPES)], "content": content, "importance": 0.5,
            "tags": "queue,night work", "created_at": at(number), "updated_at": at(number), "pinned": 0,
            "is_deleted": 0, "agent_id": "default", "visibility": "global",
        }  # fmt: skip
        self.put("memories", **(row | values))

    def close(self) -> Made:
        self.connection.execute("commit")
        self.connection.close()
        return self.made


def at(number: int) -> str:
    return AT.format(day=1 + number % 28, hour=number % 24)


def word(kind: str, number: int) -> str:
    """A word that one row alone has, of letters: no two have a stem in common."""
    letters = "".join(chr(ord("a") + int(digit)) for digit in f"{number:04d}")
    return f"zq{kind}{letters}x"


def transcript(number: int) -> str:
    return (
        f"User: Why does the queue of {word('talk', number)} wait at night?\n"
        f"Assistant: We decided to bound the retry loop of src/{word('talk', number)}.py in lantern."
    )


def build(root: Path, *, older: bool = False, wal: bool = True) -> Made:
    """Makes `memory/memories.db` of a workspace, and a file of transcripts beside it."""
    signet = Database(root / "memory/memories.db", older=older, wal=wal)
    asked = signet.made.asked
    for number in range(3):
        token = token_of("default", f"gone-{number}")
        signet.put(
            "memory_artifact_tombstones", agent_id="default", session_token=token, removed_at=at(number),
            reason="asked", removed_paths=json.dumps([f"memory/{at(number).replace(':', '-')}--{token}--summary.md"]),
        )  # fmt: skip
    for number in range(12):
        values: dict[str, Any] = {}
        if number % 10 == 3:
            values = {"is_deleted": 1, "deleted_at": at(number)}
        elif number % 10 == 4:
            values = {"source_id": f"gone-{number % 3}", "source_type": "session"}
        elif number % 10 == 5:
            values = {"pinned": 1, "importance": 0.9}
        elif number % 10 == 6:
            values = {"visibility": "private", "scope": "client-a"}
        elif number % 10 == 7:
            values = {"agent_id": "scout", "tags": json.dumps(["radio", "far away"])}
        if number % 10 not in (3, 4):
            asked.append(("scout" if number % 10 == 7 and not older else "default", word("mem", number)))
        signet.memory(number, f"The lantern of {word('mem', number)} is drained by hand at night.", **values)
        signet.put("memory_history", id=f"h{number}", memory_id=f"mem-{number}", new_content="Old words.")
    for number in range(4):
        key = f"talk-{number}"
        shared = {"agent_id": "default", "harness": HARNESSES[number % 3], "project": "/home/ada/lantern"}
        signet.put(
            "session_transcripts", session_key=key, content=transcript(number), created_at=at(number),
            updated_at=at(number), **shared,
        )  # fmt: skip
        asked.append(("default", word("talk", number)))
        if number % 2 == 0:
            signet.put(
                "session_summaries", id=f"sum-{number}", depth=0, kind="session", session_key=key,
                content=f"# Night work\n\nThe queue of {word('sum', number)} drains.", earliest_at=at(number),
                latest_at=at(number), created_at=at(number), **shared,
            )  # fmt: skip
            signet.put("session_summary_children", parent_id="arc-1", child_id=f"sum-{number}", ordinal=number)
    _summaries(signet)
    for agent, policy, group in (("default", "isolated", None), ("scout", "shared", None), ("ops", "group", "crew")):
        signet.put("agents", id=agent, name=agent, read_policy=policy, policy_group=group)
    signet.put("summary_jobs", id="j1", status="done")
    _transcript_file(root)
    return signet.close()


def _summaries(signet: Database) -> None:
    """An arc over sessions, and two summaries that are below each other."""
    for name, kind, depth in (("arc-1", "arc", 1), ("circle-1", "arc", 1), ("circle-2", "epoch", 2)):
        text = f"The work of the month was about {word(kind, depth)} and {name.replace('-', ' ')}."
        signet.put("session_summaries", id=name, depth=depth, kind=kind, content=text, latest_at=at(20),
                   created_at=at(20), agent_id="default")  # fmt: skip
    for parent, child in (("circle-1", "circle-2"), ("circle-2", "circle-1")):
        signet.put("session_summary_children", parent_id=parent, child_id=child, ordinal=0)
    signet.put("memory_thread_heads", agent_id="default", thread_key="lantern", label="lantern", latest_at=at(21),
               sample=f"The thread of {word('head', 1)} goes on in March.")  # fmt: skip


def turn(**values: Any) -> str:
    record = {
        "schema": "signet.transcript.v1", "captured_at": at(5), "agent_id": "default", "harness": "codex",
        "session_key": "file-key", "session_id": "file-session", "project": "/home/ada/lantern", "seq": 1,
        "role": "user", "content": "Hello.", "source_format": "normalized",
    }  # fmt: skip
    return json.dumps(record | values)


def _transcript_file(root: Path) -> None:
    """A file with a session that the database lacks, one that it has, and a line that breaks off."""
    lines = [
        turn(content=f"Where does {word('file', 1)} wait?"),
        turn(role="assistant", content="In the shed.", seq=2),
        turn(role="unknown", content="- Behind the door.", seq=3),
        *(
            turn(session_key="talk-0", session_id="talk-0", role=role.lower(), content=text)
            for role, _, text in (line.partition(": ") for line in transcript(0).split("\n"))
        ),
    ]
    folder = root / "memory/codex/transcripts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "transcript.jsonl").write_text("\n".join([*lines, '{"schema": "signet.tr']))


def counted(document: Mapping[str, Any]) -> dict[str, int]:
    """The rows of which a report says something, by table."""
    return {
        name: found["brought"] + found["here"] + sum(found["left"].values())
        for name, found in document["tables"].items()
    }


def of_files(root: Path) -> tuple[Made, list[str]]:
    """Makes the database that a vault of Signet had beside its files; gives sentences of its memories, too.

    Of each session: its transcript, summary, chunks of that, a memory twice under two types.
    """
    signet, said = Database(root / "memory/memories.db"), list[str]()
    for number, path in enumerate(sorted((root / "memory").glob("*--*--*.md"))):
        try:
            document = parse(path.read_bytes())
        except FrontmatterProblem:
            continue
        fields, body, kind = document.fields, document.body, document.fields.get("kind")
        who = {name: fields.get(name) for name in ("agent_id", "harness", "project")}
        who |= {"created_at": fields.get("captured_at"), "latest_at": fields.get("captured_at"), "content": body}
        key, ids = fields.get("session_key") or fields.get("session_id"), ("session_id", "session_key")
        signet.put("memory_artifacts", agent_id=who["agent_id"], **{name: fields.get(name) for name in ids})
        one = {**who, "depth": 0, "kind": "session", "session_key": key}
        if kind == "transcript":
            signet.put("session_transcripts", session_key=key, **who)
        elif kind in ("compaction", "summary"):
            signet.put("session_summaries", id=f"{kind}{number}", source_type=kind, **one)
        if kind == "summary":
            for place, part in enumerate(part for part in body.split("\n\n") if len(part) > 40):
                chunk = {"session_key": None, "source_type": "chunk", "source_ref": key, "content": part}
                signet.put("session_summaries", id=f"s{number}:{place}", **(one | chunk))
            lines = [line.strip("-* ") for line in body.split("\n") if len(line) > 40 and line[0] not in "#>|`"]
            agent_id = who["agent_id"]
            for fact, twice in ((fact, twice) for fact in lines[:2] for twice in ("fact", "decision")):
                name = f"m{number}{twice}{len(said)}"
                signet.memory(number, fact, type=twice, source_id=key, agent_id=agent_id, id=name)
                said += [fact] if agent_id == "default" else []
            label = f"project:{who['project']}#source:{key}#harness:{who['harness']}"
            signet.put("memory_thread_heads", agent_id="default", thread_key=label, label=label, sample=body[:240])
    return signet.close(), said
