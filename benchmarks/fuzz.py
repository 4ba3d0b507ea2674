"""Files that nobody should write, read by everything that reads: how many, how long, how much memory.

`python -m benchmarks.fuzz --files 1000000 --seed 1` (`--vaults FOLDER` adds real artifacts to what is broken, `--only
NAME` takes some readers alone). Every file comes from the seed and its number: what fails is told with both and can be
had again with `--seed S --number N`. Goals: no exception but ours, no death of an interpreter, every file read in
under 50 ms (a larger one than 64 KiB in so much more), less than 256 MiB in a process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import mutation
from benchmarks.digest import digest
from signet_sync.capture.harnesses import markdown
from signet_sync.capture.harnesses.claude_code import transcript as claude_code
from signet_sync.capture.harnesses.codex import transcript as codex
from signet_sync.capture.harnesses.gemini import transcript as gemini
from signet_sync.capture.harnesses.opencode import transcript as opencode
from signet_sync.capture.harnesses.pi import transcript as pi
from signet_sync.capture.harnesses.reader import parse_line
from signet_sync.capture.harnesses.texts import compaction_text
from signet_sync.digest.model import question
from signet_sync.digest.model import read as read_answer
from signet_sync.entities import agent_text, events, replay
from signet_sync.entities import document as documents
from signet_sync.entities.agent_text import fit
from signet_sync.entities.repository import new_ulid
from signet_sync.entities.sections import lint
from signet_sync.errors import SignetSyncError
from signet_sync.formats import frontmatter, managed_block
from signet_sync.formats.artifact import MODELS, FieldProblem, Tombstone
from signet_sync.formats.body import HASH_SCOPE, normalize, text_sha256
from signet_sync.formats.entity_paths import shapes
from signet_sync.formats.filename import artifact_file_name, artifact_name, find_ignored_code, tombstone_file_name
from signet_sync.formats.ids import derive_token
from signet_sync.formats.paths import leaves_workspace, targets
from signet_sync.formats.snapshot import Found, Signature
from signet_sync.host.harness_settings import harness
from signet_sync.host.harness_settings.files import TomlText
from signet_sync.host.harness_settings.settings_text import JsonText
from signet_sync.pages.session_log import Part, compose
from signet_sync.recall import query
from signet_sync.sessions import input as sessions_input
from signet_sync.sessions.input import turn_of
from signet_sync.statements import sections
from signet_sync.sync.index_records import Judgement, NoiseRule
from signet_sync.sync.planner import JudgeContext, Tombstones, judge, judge_tombstone
from signet_sync.text import chunking
from signet_sync.text.memory import derive_tags
from signet_sync.text.sanitizer import sanitize_line, sanitize_transcript_v2
from signet_sync.text.secrets.engine import redact
from signet_sync.text.token_estimate import estimate_tokens

LIMIT_S = 0.05
LIMIT_MIB = 256
OURS = (
    SignetSyncError,
    frontmatter.FrontmatterProblem,
    FieldProblem,
    documents.DocumentProblem,
)
NOW_US = 1_774_785_600_000_000  # 2026-03-29T12:00:00Z
_AT = "2026-03-28T10:00:00.000Z"
# What moves a cursor, ends a line for somebody, or turns letters around.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SESSION = "0195d7a2-6f00-7cc0-8a44-1d2e3f405162"
_TOKEN = derive_token("default", None, _SESSION)
_BODY = """# Retry loop of the queue

The loop in src/queue.py now gives up after five tries; see [[memory/other.md|the other]] and PR #44 of ada/lantern.

## Decisions

- **Retries**: five, then a dead letter. `pip install backoff==2.2.1`
- [x] Ask @ben about AB-17

## Open Questions

1. Who drains the dead letters?

```python
from backoff import on_exception
```

## Next

- api_key = "sk-proj-notarealkey0123456789abcdefABCDEF"
"""


class Reader(NamedTuple):
    """Something that reads what others wrote: files that it takes, and how it takes one."""

    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], object]


# ── artifacts ──


def artifact(kind: str, body: str = _BODY) -> bytes:
    """A valid artifact of a kind, in the written form."""
    return frontmatter.write(_fields(kind, body), body.removesuffix("\n"))


def _fields(kind: str, body: str) -> dict[str, Any]:
    common: dict[str, Any] = {"kind": kind, "agent_id": "default", "session_id": _SESSION, "session_key": None}
    common |= {"project": "/home/ada/code/lantern", "harness": "claude-code", "captured_at": _AT}
    common |= {"started_at": None, "ended_at": _AT}
    if kind == "manifest":
        links = {f"{of}_path": _path(of) for of in ("summary", "transcript")}
        return common | links | {"compaction_path": None, "memory_md_refs": [], "updated_at": _AT, "revision": 1}
    sentence = "In lantern the retry loop of src/queue.py was bounded so that a dead broker no longer blocks a start."
    common |= {"manifest_path": _path("manifest"), "source_node_id": None}
    common |= {"content_sha256": text_sha256(normalize(body)), "hash_scope": HASH_SCOPE, "memory_sentence": sentence}
    common |= {"memory_sentence_version": "memory_sentence_v1", "memory_sentence_quality": "ok"}
    common |= {"memory_sentence_generated_at": _AT}
    return common | ({"sanitizer_version": "sanitize_transcript_v1"} if kind == "transcript" else {})


def _path(kind: str) -> str:
    return f"memory/{artifact_file_name(_AT, _TOKEN, kind)}"


_REAL: list[bytes] = []


@cache
def _artifacts() -> Sequence[bytes]:
    talk = "\n\n".join(f"## {who} · {_AT}\n\n{_BODY}" for who in ("User", "Assistant", "User"))
    made = [artifact("summary"), artifact("transcript", talk), artifact("compaction"), artifact("manifest", "")]
    obsidian = artifact("summary").replace(b'"', b"").replace(b"null", b"")
    return [*made, obsidian, artifact("summary").replace(b"\n", b"\r\n"), *_REAL]


def _context() -> JudgeContext:
    return JudgeContext(Tombstones(), NoiseRule(), lambda _: None, _AT)


def _resealed(raw: bytes) -> bytes:
    """The file with the hash of the body that it has now, so that what lies behind that check is reached."""
    head, fence, body = raw.partition(b"\n---\n")
    try:
        sha = text_sha256(normalize(body.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")))
    except UnicodeDecodeError:
        return raw
    lines = [
        f'content_sha256: "{sha}"'.encode() if line.startswith(b"content_sha256:") else line
        for line in head.split(b"\n")
    ]
    return b"\n".join(lines) + fence + body


def read_artifact(raw: bytes) -> Judgement:
    """A file all the way from its bytes to what a pass makes of it; both readers of heads are held to one answer."""
    raw = _resealed(raw) if raw[-1:] not in (b"x", b"") else raw
    try:
        source = frontmatter.open_source(raw)
    except frontmatter.FrontmatterProblem:
        pass
    else:
        _agree(source.head)
        targets(source.body)
    judgement = judge(_path(_kind(raw)), Found(raw, Signature(len(raw), 1, 1, 1)), _context())
    for note in judgement.notes:
        assert not _CONTROL.search(note.message), f"a note with control characters: {note!r}"
    assert not _CONTROL.search(judgement.message), f"a message with control characters: {judgement.message!r}"
    row = judgement.row
    if row is not None:
        _follow(judgement)
    return judgement


def _kind(raw: bytes) -> str:
    start = raw.find(b"kind:")
    named = raw[start + 5 : start + 40].split(b"\n")[0].strip(b" \"'").decode("ascii", "replace")
    return named if named in MODELS else "summary"


def _agree(head: str) -> None:
    """What the fast reader takes, YAML reads alike."""
    if len(head) > frontmatter.HEAD_LIMIT:
        return
    fast = frontmatter.read_written(head)
    if fast is not None:
        assert fast == frontmatter.read_yaml(head), "the two readers of frontmatter differ"


def _follow(judgement: Judgement) -> None:
    row = judgement.row
    assert row is not None
    part = Part(
        row.source_path, row.source_kind, row.session_id, row.session_key, row.project, row.memory_sentence,
        row.captured_us, row.membership_us, row.noise,
    )  # fmt: skip
    line = compose(row.agent_id, row.session_token, [part])
    if line is not None:
        assert not _CONTROL.search(line.line), f"a ledger row with control characters: {line.line!r}"
        estimate_tokens(line.line)
    if row.source_kind == "manifest":
        return
    list(chunking.pieces(row.content, 1_000))
    sections.items(row.content)
    digest(row.content, project=row.project, harness=row.harness)


def _tombstones() -> Sequence[bytes]:
    told: dict[str, Any] = {"kind": "tombstone", "agent_id": "default", "session_token": _TOKEN, "removed_at": _AT}
    told |= {"reason": "asked for", "removed_paths": [_path("summary")], "tombstone_version": 1}
    stone = Tombstone.read(told | {"session_ids": [_SESSION]})
    return [frontmatter.write(stone.fields(), "")]


def _read_tombstone(raw: bytes) -> object:
    path = f"memory/tombstones/{tombstone_file_name('default', _TOKEN)}"
    return judge_tombstone(path, Found(raw, Signature(len(raw), 1, 1, 1)))


def _read_manifest(raw: bytes) -> object:
    document = frontmatter.parse(raw)
    frontmatter.unknown_entries(document.head, frozenset(MODELS["manifest"].FIELDS))
    return MODELS["manifest"].read(frontmatter.read(document.head)).fields()


def _names() -> Sequence[bytes]:
    return [
        _path("summary")[7:].encode(),
        b"2026-03-28T10-00-00-05-30--" + _TOKEN.encode() + b"--summary.md",
        b"a 2.md",
    ]


def _read_name(raw: bytes) -> object:
    name = os.fsdecode(raw)
    return artifact_name(name), find_ignored_code(name), leaves_workspace(name)


# ── texts ──


def _texts() -> Sequence[bytes]:
    return [_BODY.encode(), (_BODY * 10).encode(), "漢字かな交じり文。Привет, мир! 🔦 naïve ﷺ\n".encode() * 20]


def _answers() -> Sequence[bytes]:
    item = {"kind": "decision", "turn": 1, "quote": "five, then a dead letter"}
    fact = {"sentence": "It gives up.", "status": "done", "items": [item], "done": ["h1"], "replaced": []}
    plain = b"<think>hm</think>The loop in src/queue.py gives up after five tries; dead letters wait for Ada.\n"
    return [json.dumps([fact]).encode(), _jsonl(fact, item), b"```json\n[]\n```\n" + plain, plain]


def _read_text(raw: bytes) -> object:
    text = raw.decode("utf-8", "surrogateescape")
    clean = sanitize_transcript_v2(text)
    assert sanitize_transcript_v2(clean) == clean == redact(clean)[0], "the sanitizer changes what it wrote"
    return clean


def _read_words(raw: bytes) -> object:
    text = raw.decode("utf-8", "surrogateescape")
    return query.read(text), derive_tags(sanitize_transcript_v2(text))


def _read_answer(raw: bytes) -> object:
    """What a language model, or somebody in its name, answers."""
    text = raw.decode("utf-8", "replace")
    compaction_text(text)
    asked = question(f"## User · {_AT}\n\n{_BODY}", project=None, harness=None)
    assert asked is not None
    return read_answer(text, asked)


# ── pages ──


def _pages() -> Sequence[bytes]:
    text = "# Working Memory\n\n## Session Ledger (Last 30 Days)\n\n- x"
    block = managed_block.block(text)
    return [
        block,
        b"# Mine\n\n" + block + b"\nmore\n",
        b"<!-- generated x -->\n# Working Memory\n",
    ]


def _read_page(raw: bytes) -> object:
    merged = managed_block.merge(raw, "new\ntext")
    again = managed_block.merge(merged.data, "new\ntext")
    assert again.data == merged.data, "a page that was merged changes again"
    managed_block.drop_block(raw)
    return managed_block.read_generated(raw)


# ── entities ──


@cache
def _entity() -> documents.EntityDocument:
    document = documents.blank("part", title="Wick", entity_id="p-aaaaaaaaaaaa", agent_id="default", created_at=_AT)
    return documents.append(document, "identity", fit("The one who trims.\n\n### More\n\n- a\n- b"))


def _entity_files() -> Sequence[bytes]:
    return [documents.render(_entity()).encode()]


def _read_entity(raw: bytes) -> object:
    document = documents.parse(raw.decode("utf-8", "replace"))
    assert documents.render(document) == raw.decode("utf-8", "replace"), "an entity file is not read to the byte"
    for section in document.sections:
        for item in documents.items(section):
            agent_text.read_item(item.text)
    return lint(document, shapes("part"))


@cache
def _ledgers() -> Sequence[bytes]:
    lines, last = [], events.GENESIS
    for number in range(4):
        event = events.Event(
            id=new_ulid(NOW_US + number), at=_AT, agent_id="default", actor="agent",
            entity_id="p-aaaaaaaaaaaa", op="create", file="profile", left="0" * 64,
            text=replay.change(None, _entity()) | {"reason": "because", "evidence": ["memory/x.md#3"]},
        )  # fmt: skip
        sealed = events.seal(event, last)
        lines.append(events.encode(sealed))
        last = sealed.hash
    return ["".join(f"{line}\n" for line in lines).encode()]


def _read_ledger(raw: bytes) -> object:
    lines = events.lines_of("2026-03", raw)
    events.verify(lines, known_last="", agent_id="default")
    return replay.fold(one for line in lines if isinstance(one := events.decode(line.text), events.Event))


# ── harnesses ──


def _record(**more: Any) -> dict[str, Any]:
    return {"timestamp": _AT, "sessionId": _SESSION, "cwd": "/home/ada/code", **more}


def _jsonl(*records: Any) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def _transcripts() -> Sequence[bytes]:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls", "path": "x"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}], "is_error": True}
    said = [
        _record(type="user", uuid="a", parentUuid=None, message={"role": "user", "content": _BODY}),
        _record(type="assistant", uuid="b", parentUuid="a", message={"role": "assistant", "content": [use]}),
        _record(type="user", uuid="c", parentUuid="b", message={"role": "user", "content": [result]}, isMeta=False),
        _record(type="system", uuid="d", parentUuid="c", subtype="compact_boundary", compactMetadata={"trigger": "x"}),
        _record(type="summary", leafUuid="c", summary="Title"),
    ]
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": _BODY}]}
    call = {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"}
    output = {"type": "function_call_output", "call_id": "c", "output": '{"output":"x","metadata":{"exit_code":1}}'}
    rollout = [
        {"timestamp": _AT, "type": "session_meta", "payload": {"id": _SESSION, "cwd": "/x", "timestamp": _AT}},
        *({"timestamp": _AT, "type": "response_item", "payload": payload} for payload in (item, call, output)),
        {"timestamp": _AT, "type": "compacted", "payload": {"message": "x", "replacement_history": [item]}},
        {"timestamp": _AT, "type": "event_msg", "payload": {"type": "user_message", "message": "x"}},
    ]
    calls = [{"id": "1", "name": "read_file", "args": {"path": "x"}, "result": [{"functionResponse": {"x": 1}}]}]
    chat = {"sessionId": _SESSION, "projectHash": "x", "startTime": _AT, "lastUpdated": _AT, "messages": [
        {"id": "1", "timestamp": _AT, "type": "user", "content": [{"text": _BODY}]},
        {"id": "2", "timestamp": _AT, "type": "gemini", "content": "x", "toolCalls": calls, "thoughts": []},
    ]}  # fmt: skip
    claw = [
        {"type": "session", "id": _SESSION, "timestamp": _AT, "cwd": "/x", "version": 3},
        {"type": "message", "id": "1", "parentId": None, "timestamp": _AT, "message": {"role": "user", "content": "x"}},
        {"type": "message", "id": "2", "parentId": "1", "timestamp": _AT, "message": {"role": "assistant", "content": [
            {"type": "text", "text": "x"}, {"type": "toolCall", "id": "c", "name": "exec", "arguments": {"x": "y"}}]}},
        {"type": "compaction", "id": "3", "parentId": "2", "timestamp": _AT, "summary": "x", "firstKeptEntryId": "1"},
    ]  # fmt: skip
    deep = b"[" * 500 + b"]" * 500
    nested = _jsonl(said[0]).replace(b'"content": ', b'"content": ' + deep + b', "x": ')
    return [_jsonl(*said), _jsonl(*rollout), json.dumps(chat).encode(), _jsonl(*claw), nested]


def _read_transcripts(raw: bytes) -> object:
    lines = raw.splitlines(keepends=True)
    name = f"rollout-2026-03-28T10-00-00-{_SESSION}.jsonl"
    read = [reader.read(iter(lines), file_name=name) for reader in (claude_code, codex, gemini, pi)]
    for conversation in read:
        markdown.render(conversation.entries)
    parts = [(str(number), line.decode("utf-8", "replace")) for number, line in enumerate(lines[:20])]
    rows = [opencode.MessageRow(str(number), data, parts[:3]) for number, data in parts]
    session = next((found for line in lines if (found := parse_line(line)) is not None), {})
    return read, opencode.read(session, rows)


# ── what comes in, what lies around ──


def _inputs() -> Sequence[bytes]:
    end = {"session_id": _SESSION, "project": "/x", "captured_at": _AT, "transcript": _BODY, "summary": _BODY}
    turn = {"turn": 3, "role": "user", "text": "x", "at": _AT}
    return [json.dumps(end).encode(), _jsonl(turn, turn), json.dumps({"session_id": "x", "compaction": "y"}).encode()]


def _read_input(raw: bytes) -> object:
    for number, line in enumerate(raw.split(b"\n"), 1):
        try:
            turn_of(line, number, now_us=NOW_US)
        except OURS:
            continue
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    try:
        return sessions_input.session_input(document, now_us=NOW_US)
    except OURS:
        return sessions_input.compaction_input(document, now_us=NOW_US)


def _settings() -> Sequence[bytes]:
    hooks = {"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "x hook"}]}]}, "other": [1, "a"]}
    table = '[mcp_servers.ours]\ncommand = "x"  # y\n\n[a.b]\nc = [1, 2]\n'
    script = 'const PROGRAM = ["python", "-m", "signet_sync"];\n'
    return [json.dumps(hooks).encode(), json.dumps(hooks, indent=2).encode(), table.encode(), script.encode()]


def _read_settings(raw: bytes) -> object:
    harness.script_words(raw.decode("utf-8", "replace"))
    reads: tuple[Callable[[], object], ...] = (
        lambda: harness.merge(JsonText("x", raw), {"SessionEnd": {"command": "x"}}),
        lambda: harness.take_out(file := JsonText("x", raw), harness.places(file.data)),
        lambda: TomlText("x", raw).put(("mcp_servers", "ours"), {"command": "x"}),
        lambda: TomlText("x", raw).remove(("mcp_servers", "ours")),
    )
    for read in reads:
        try:
            read()
        except OURS:
            continue
    return None


_KEYS = (*MODELS["transcript"].FIELDS, *MODELS["manifest"].FIELDS, "tags", "aliases", "modified")


def _made_up(raw: bytes) -> Judgement:
    return read_artifact(mutation.head(_KEYS, random.Random(raw)))


READERS: dict[str, Reader] = {
    "artifacts": Reader(_artifacts, read_artifact),
    "heads": Reader(lambda: [b"x"], _made_up),
    "manifests": Reader(lambda: [artifact("manifest", "")], _read_manifest),
    "tombstones": Reader(_tombstones, _read_tombstone),
    "names": Reader(_names, _read_name),
    "texts": Reader(_texts, _read_text),
    "lines": Reader(_texts, lambda raw: sanitize_line(raw.decode("utf-8", "surrogateescape"))),
    "words": Reader(_texts, _read_words),
    "answers": Reader(_answers, _read_answer),
    "pages": Reader(_pages, _read_page),
    "entities": Reader(_entity_files, _read_entity),
    "ledgers": Reader(_ledgers, _read_ledger),
    "transcripts": Reader(_transcripts, _read_transcripts),
    "inputs": Reader(_inputs, _read_input),
    "settings": Reader(_settings, _read_settings),
}


# ── the run ──


class Failure(NamedTuple):
    """A file that was not read as it should be; `raw` is the file."""

    reader: str
    number: int
    what: str
    raw: bytes


@dataclass(slots=True)
class Report:
    """What a run found: failures, the times of all readings in microseconds (a count for each), the largest process."""

    files: int = 0
    failures: list[Failure] = field(default_factory=list)
    times: dict[int, int] = field(default_factory=dict)
    slowest: tuple[float, str, int] = (0.0, "", 0)
    memory_mib: float = 0.0

    def add(self, other: Report) -> None:
        """Takes another report in."""
        self.files += other.files
        self.failures += other.failures
        for time_us, count in other.times.items():
            self.times[time_us] = self.times.get(time_us, 0) + count
        self.slowest = max(self.slowest, other.slowest)
        self.memory_mib = max(self.memory_mib, other.memory_mib)

    def percentile_ms(self, share: float) -> float:
        """The time in which this share of the files was read, in milliseconds."""
        left = share * self.files
        for time_us, count in sorted(self.times.items()):
            left -= count
            if left <= 0:
                return time_us / 1000
        return 0.0


def file_of(reader: str, number: int, seed: int) -> bytes:
    """The file of this number, as every run with this seed makes it."""
    dice = random.Random(f"{seed}/{reader}/{number}")
    seeds = READERS[reader].seeds()
    return mutation.mutant(seeds, dice)


def one(reader: str, number: int, seed: int) -> tuple[float, Failure | None]:
    """Makes a file and reads it; how long reading took, in seconds of this process, and what was wrong."""
    raw = file_of(reader, number, seed)
    began = time.process_time()
    wrong = None
    try:
        READERS[reader].read(raw)
    except OURS:
        pass
    except BaseException as error:  # noqa: BLE001 - that there is none is what is proved
        wrong = Failure(reader, number, f"{type(error).__name__}: {error}"[:300], raw)
    took = time.process_time() - began
    limit = LIMIT_S * max(1.0, len(raw) / 65_536)
    if wrong is None and took > limit:
        took = min(took, *(_again(reader, raw) for _ in range(3)))
        if took > limit:
            wrong = Failure(reader, number, f"{took * 1000:.0f} ms for {len(raw):,} bytes", raw)
    return took, wrong


def _again(reader: str, raw: bytes) -> float:
    """The time of another reading: what was slow once may have been the garbage collector's, or another process's."""
    began = time.process_time()
    with suppress(*OURS):
        READERS[reader].read(raw)
    return time.process_time() - began


def some(readers: Sequence[str], numbers: range, seed: int) -> Report:
    """A stretch of a run, in this process."""
    report = Report()
    for number in numbers:
        reader = readers[number % len(readers)]
        took, wrong = one(reader, number, seed)
        report.files += 1
        rounded = round(took * 100_000) * 10
        report.times[rounded] = report.times.get(rounded, 0) + 1
        report.slowest = max(report.slowest, (took, reader, number))
        if wrong is not None and len(report.failures) < 100:
            report.failures.append(wrong)
    report.memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1 << 10 if sys.platform != "darwin" else 1 << 20
    )
    return report


STRETCH = 2_000


def run(files: int, seed: int, *, readers: Sequence[str] = tuple(READERS), workers: int = 0) -> Report:
    """A run over all cores. An interpreter that dies is a failure like any other."""
    report = Report()
    stretches = [range(start, min(start + STRETCH, files)) for start in range(0, files, STRETCH)]
    with ProcessPoolExecutor(workers or os.cpu_count()) as pool:
        begun = [(stretch, pool.submit(some, readers, stretch, seed)) for stretch in stretches]
        for stretch, pending in begun:
            try:
                report.add(pending.result())
            except BrokenProcessPool:
                report.failures.append(
                    Failure("", stretch.start, "an interpreter died in this stretch or beside it", b"")
                )
                break
    return report


def use_vaults(folder: str) -> int:
    """Puts the artifacts under a folder beside our own as what is broken; gives how many."""
    found = sorted(Path(folder).glob("**/memory/*--*--*.md"))
    _REAL[:] = [path.read_bytes() for path in found if path.is_file()]
    _artifacts.cache_clear()
    return len(_REAL)


def figures(report: Report) -> Sequence[tuple[str, float, str]]:
    """What a run is told by."""
    return (
        ("broken and made-up files read or refused", report.files, "files"),
        (
            "exceptions that are not ours, deaths of an interpreter, files read too slowly",
            len(report.failures),
            "",
        ),
        ("99.9 of 100 files read within", round(report.percentile_ms(0.999), 1), "ms"),
        ("longest reading of a file", round(report.slowest[0] * 1000, 1), "ms"),
        ("largest process", round(report.memory_mib), "MiB"),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, help="only this one, shown")
    parser.add_argument("--only", help="readers, by comma")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--vaults", help="a folder of vaults whose artifacts are broken, too")
    parser.add_argument("--json", metavar="FILE", help="append the figures, one JSON document a line")
    given = parser.parse_args(argv)
    readers = tuple(given.only.split(",")) if given.only else tuple(READERS)
    if given.vaults:
        print(f"{use_vaults(given.vaults)} artifacts of {given.vaults}")
    if given.number is not None:
        reader = readers[given.number % len(readers)]
        print(reader, file_of(reader, given.number, given.seed)[:4000], one(reader, given.number, given.seed)[1])
        return 0
    began = time.monotonic()
    report = run(given.files, given.seed, readers=readers, workers=given.workers)
    took = time.monotonic() - began
    print(f"{report.files:,} files in {took:.0f} s, seed {given.seed}: {len(report.failures)} failures")
    shares = " · ".join(f"{name} {report.percentile_ms(share):.2f}" for name, share in (("p50", 0.5), ("p99.9", 0.999)))
    slowest, reader, number = report.slowest
    print(f"ms: {shares} · longest {slowest * 1000:.1f} ({reader} {number}); {report.memory_mib:.0f} MiB")
    for failure in report.failures[:20]:
        print(f"{failure.reader} {failure.number}: {failure.what}")
    if given.json:
        with open(given.json, "a", encoding="utf-8") as file:
            for what, value, unit in figures(report):
                told = {"proof": "benchmarks/fuzz.py", "what": what, "value": value, "unit": unit}
                file.write(json.dumps(told) + "\n")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
