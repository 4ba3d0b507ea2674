"""A made-up workspace of any size: valid sessions of three files each, the same bytes for the same seed.

It shares no code with `signet_sync`: token, body hash, file name and written frontmatter are spelled out here
a second time (contracts: *Sessions, names, tokens, hashes* and *Frontmatter, as written*), so that a corpus
that the package finds fault with shows that one of the two has misread the contract.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import random
import re
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypedDict, TypeVar

DEFAULT_END = "2026-03-29T12:00:00.000Z"
DAY_MS = 86_400_000

Field = str | int | None | list[str]


class Session(TypedDict):
    """What was written for one session: timestamps ISO 8601 UTC, `paths` by kind from the workspace on."""

    agent_id: str
    session_id: str
    session_key: str | None
    token: str
    project: str
    captured_at: str
    ended_at: str | None
    sentence: str
    paths: dict[str, str]


# ── the contract, spelled out a second time ──

# What the original, written in TypeScript, trims: `str.strip` would take U+001C as well, and leave U+FEFF.
_SPACES = "".join(map(chr, range(0x2000, 0x200B)))
_BLANKS = f"\t\n\v\f\r \xa0\u1680{_SPACES}\u2028\u2029\u202f\u205f\u3000\ufeff"


def token(agent_id: str, session_key: str | None, session_id: str) -> str:
    """16 characters of lower-case base32 of `sha256("{agent_id}:{identity}")`; a key goes before the id."""
    identity = (session_key or "").strip(_BLANKS) or session_id.strip(_BLANKS)
    digest = hashlib.sha256(f"{agent_id}:{identity}".encode()).digest()
    return base64.b32encode(digest).decode("ascii").lower()[:16]


def normalized(body: str) -> str:
    """`body-normalized-v1`: LF only, no blanks or tabs at line ends, no empty lines or newline at the end."""
    lines = [line.rstrip(" \t") for line in body.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)


def body_hash(body: str) -> str:
    """Hex sha256 over the UTF-8 bytes of the normalized body."""
    return hashlib.sha256(normalized(body).encode()).hexdigest()


_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


def _scalar(value: str | int | None) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def document(fields: dict[str, Field], body: str) -> str:
    """One file as it is written: the fields, one line each in the order given, then the normalized body."""
    lines = ["---"]
    for key, value in fields.items():
        if isinstance(value, list):
            lines.append(f"{key}:")
            lines += [f"  - {_scalar(item)}" for item in value]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return "\n".join(lines) + "\n---\n" + normalized(body) + "\n"


def milliseconds(stamp: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 timestamp; one without an offset is UTC."""
    moment = datetime.fromisoformat(stamp)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def iso(ms: int) -> str:
    """ISO 8601 UTC with milliseconds and `Z`."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{ms % 1000:03d}Z"


# ── words ──


def _words(block: str) -> list[str]:
    return block.split()


_NOUNS = _words(
    """
    adapter alarm alias anchor archive arena artifact atlas audit balancer banner barrier batch beacon
    binding bloom boundary branch bridge broker bucket budget buffer bundle cache calendar canary catalog
    channel checkpoint chunk circuit client clock cluster codec collector column commit compiler config
    connector container context contract coordinator counter crawler cursor daemon dashboard dataset
    deadline decoder delta deployment digest dispatcher document domain driver editor element emitter
    encoder endpoint engine envelope epoch event exchange executor export extractor factory feature feed
    fence fetcher filter fixture flag fold folder footer formatter fragment frame garden gateway gauge
    glossary graph grammar guard handler harbor header heartbeat histogram hook horizon import index
    ingest inspector interval inventory invoice iterator journal junction kernel label lattice layer
    layout leader ledger lens lexer library listener loader locale lock logger loop mailbox manifest
    mapping marker matcher matrix meter migration mirror module monitor mutex namespace network node
    notifier observer offset operator option orchard outbox overlay packet pager palette parser partition
    patch payload pipeline planner plugin pointer policy pool portal preview probe profile projection
    protocol provider proxy queue quorum quota range reader receipt reconciler record reducer region
    registry release renderer replica report request resolver response retry ring rollout router ruler
    sampler scanner schedule schema scope scroll segment selector sender sensor sequence shard sidebar
    signal sink slice slot snapshot socket sorter source spool stack stage station storage stream subject
    summary supervisor surface switch symbol syncer table tag template tenant terminal theme thread
    throttle ticket timeline timer toolbar topic tracer tracker transform transport trigger tunnel updater
    uploader validator vector vessel viewer volume voucher walker watcher webhook widget window worker
    wrapper writer zone
    """
)
_ADJECTIVES = _words(
    """
    absent ambiguous ancient bounded brittle broad cautious cheap clean coarse cold complete concurrent
    consistent constant correct dense direct distant durable eager early empty even exact explicit fair
    final flaky frequent fresh generous gradual idle immutable implicit late lazy linear local loud
    minimal narrow noisy nullable obvious opaque optional ordered partial patient plain portable precise
    private quiet random rare recent remote repeated robust safe shallow shared silent slow sparse stable
    stale steady strict sudden tidy total uniform unsafe upstream visible warm
    """
)
_PAST = _words(
    """
    added adjusted aligned archived benchmarked bounded bundled capped checked cleared collapsed compared
    confirmed counted deferred delayed derived detached documented dropped exposed extracted flushed
    folded guarded hardened inlined isolated joined limited logged measured merged migrated mirrored moved
    narrowed normalized ordered patched pinned profiled pruned rebuilt recorded refactored rejected
    released renamed replaced restored retried reverted reviewed sampled simplified sorted split
    stabilized tested throttled traced trimmed tuned unified validated widened
    """
)
_BASE = _words(
    """
    align append batch bound build cap check clear close collect compare count decode defer derive drain
    drop emit encode enqueue expand export extract fetch filter flush fold guard handle import index join
    limit list load lock match measure merge migrate mirror move open order parse patch pin poll prune
    publish push read rebuild record reduce refresh release render replay reset resolve restore retry scan
    schedule seal select send skip sort split stage start stop store stream sync trace trim update
    validate verify walk watch widen wrap write
    """
)
_PEOPLE = _words(
    """
    Amara Benedikt Chiara Dmitri Elif Farouk Greta Hanneke Ingrid Jonas Kavya Lucienne Mateus Nobuko Oisin
    Priya Quentin Rosalind Sanne Tomasz Ulrike Vikram Wanjiru Yara
    """
)
_PLURALS = [noun[:-1] + "ies" if noun.endswith("ry") else noun + "s" for noun in _NOUNS]
_GERUNDS = [before + base.removesuffix("e") + "ing" for base in _BASE for before in ("", "re", "pre", "over", "un")]
_ABLES = [before + base.removesuffix("e") + "able" for base in _BASE for before in ("", "un", "re")]
_PROJECTS = (
    ("/home/rowan/src/harbor-sync", "py"),
    ("/home/rowan/src/lantern-web", "ts"),
    ("/home/rowan/src/orchardctl", "go"),
    ("/home/rowan/src/tidewater-core", "rs"),
    ("/home/rowan/src/maple-notes", "ts"),
    ("/home/rowan/code/quarry-billing", "py"),
    ("/home/rowan/code/heron-gateway", "go"),
    ("/home/rowan/code/saltmarsh-etl", "py"),
    ("/Users/rowan/dev/juniper-desktop", "ts"),
    ("/Users/rowan/dev/granite-store", "rs"),
    ("/srv/agents/kestrel-search", "py"),
    ("/srv/agents/willow-mobile", "ts"),
)
_HARNESSES = ("claude-code", "codex", "opencode", "gemini", "openclaw")
_AGENTS = ("default", "builder", "reviewer")

Template = tuple[str, str]
T = TypeVar("T")


def _template(text: str) -> Template:
    """`the {n} of {i}` → a %-format and the pools that fill it, one letter each."""
    keys = "".join(re.findall(r"\{(\w)\}", text))
    return re.sub(r"\{\w\}", "%s", text.replace("%", "%%")), keys


def _templates(block: str) -> list[Template]:
    """One template a line; an indented line goes on with the one before."""
    joined = re.sub(r"\n[ ]+", " ", textwrap.dedent(block).strip())
    return [_template(line) for line in joined.split("\n")]


def _code_lines(block: str) -> list[Template]:
    return [_template(line) for line in textwrap.dedent(block).strip("\n").split("\n")]


# pools: n noun, m nouns, a adjective, v past, b base form, g -ing form, k -able form, i identifier, p path,
# d number, h commit, x hex, w person, j project
_SENTENCES = _templates(
    """
    {v} the {n} {n} of {j} behind {i} in {p}, so that a {a} {n} no longer holds up the {n} when {d}
      requests arrive.
    Traced the {a} {n} in {j} to {i}, {v} it in {p}, and left #{d} open until the {n} has been
      measured again.
    In {j} the {n} now reads {p} once, {i} was {v}, and the {a} path through the {n} is gone for good.
    Agreed with {w} that {j} keeps its {n} {a}, {v} {i} accordingly, and moved the {n} questions to
      issue #{d} for later.
    Rebuilt the {n} tests of {j} around {i}, found a {a} {n} in {p}, and {v} the {n} before the release.
    {v} {i} and the {a} {n} next to it, which lets {j} start its {n} {d} ms sooner on a {a} machine.
    Compared two designs for the {n} of {j}, chose the {a} one because {i} needs no {n}, and {v} {p}
      to match.
    """
)
_PROSE = _templates(
    """
    The {n} in `{p}` was {a}, so {i} returned before the {n} had been {v}.
    We {v} the {n} and the {a} {n} that depends on it.
    {w} asked whether {i} may run twice; it may, as long as the {n} stays {a}.
    A {a} {n} costs {d} ms here, which is more than the whole {n}.
    After commit {h} the {n} no longer waits for {i}, and the {n} is {v} in one step.
    Nothing else reads `{p}`, therefore the {n} could be {v} without a migration.
    The {a} case is covered: when the {n} is missing, {i} falls back to the {n} and says so.
    Running it {d} times gave the same {n}, apart from one {a} run that we {v} by hand.
    I would rather {b} the {n} early than keep a {a} {n} around for weeks.
    It fails only if {i} and {i} both {b} the same {n} within {d} ms.
    The error came from `{p}` at line {d}, where a {a} {n} was passed to {i}.
    See issue #{d} for the history; the short version is that the {n} was never {v}.
    Both the {n} and the {n} now share {i}, and the {a} copy in `{p}` is gone.
    On a {a} disk the {n} took {d} ms before and less than half of that after {h}.
    What remains is to {b} the {n}, to {b} the {a} {n}, and to tell {w} about it.
    Before {g} anything we listed the {m}, the {m} and the {m} that {w} had mentioned in passing.
    {m} are {k} now, {m} still are not, and {g} them together would hide which of the two was at fault.
    One could argue that {g} {m} belongs elsewhere, yet every {k} design we tried ended up {g} {m} anyway.
    It turned out that {g} costs little once the {m} are {k}; the expensive half was always {g} the {m}.
    My guess is that somebody started {g} {m} years ago, forgot about {k} {m}, and noticed when {x} failed.
    Their documentation promises {k} {m}, whereas our own notes from {h} only speak of {g} {m} under load.
    Between {h} and {h} roughly {d} lines went away, mostly {m}, {m}, and one {k} special case for {m}.
    If you prefer {k} {m}, say so; otherwise I continue {g} the {m} with {i} and leave {i} for tomorrow.
    Surprisingly, {i} calls {i}, which means that {g} {m} happens twice whenever {m} arrive out of order.
    """
)
_REQUESTS = _templates(
    """
    Please {b} the {n} in {p}, it is {a} since {h}.
    Why does {i} {b} the {n} twice? I expected one {a} {n}.
    Can you look at #{d} and tell me whether the {n} has to be {a}?
    The {n} test is {a} again on my machine, {i} times out after {d} ms.
    Let us {b} {i} first and leave the {n} as it is.
    Good. Now {b} the {a} {n} too, and {b} `{p}` while you are there.
    What would happen to the {m} if we stopped {g} them and made {i} {k} instead?
    Show me which {m} are affected by {h}, then start {g} whatever is {k}.
    """
)
_TITLES = _templates(
    """
    {j}: {v} the {a} {n}
    The {n} of {j} and its {a} {n}
    {i} and the {a} {n}
    Issue #{d}: a {a} {n} in {j}
    """
)
_SECTIONS: list[tuple[str, float, list[Template]]] = [
    (
        "Decisions",
        0.8,
        _templates(
            """
            {i} stays {a}; the {n} is {v} by its caller.
            The {n} of {j} is written before the {n}, because a {a} {n} can be rebuilt.
            We keep one {n} per {n} and {b} it on every {n} change (#{d}).
            No {a} {n}: {w} and I prefer to {b} the {n} in `{p}`.
            """
        ),
    ),
    (
        "Constraints",
        0.5,
        _templates(
            """
            The {n} must not take longer than {d} ms on a {a} machine.
            {i} may never {b} the {n} while the {n} is being {v}.
            `{p}` has to stay readable for the {a} {n} of the last release.
            """
        ),
    ),
    (
        "Blockers",
        0.4,
        _templates(
            """
            Waiting for {w}: the {n} in `{p}` is still {a}.
            The {a} {n} fails after {d} runs and nobody knows why {i} is {v} first.
            #{d} has to be merged before the {n} can be {v}.
            """
        ),
    ),
    (
        "Next",
        0.7,
        _templates(
            """
            {b} the {n} in `{p}` and measure {i} again.
            Write a test for the {a} {n} of #{d}.
            Ask {w} whether {j} still needs the {n}.
            """
        ),
    ),
    (
        "People",
        0.3,
        _templates(
            """
            {w} looks after the {n} and reviews changes to `{p}`.
            {w} reported the {a} {n} in #{d}.
            {w} and {w} decide about the {n} of {j} together.
            """
        ),
    ),
]
_CODE = {
    "py": _code_lines(
        """
        def {i}(source: str, limit: int = {d}) -> list[str]:
            rows = [row for row in {i}(source) if row]
            if len(rows) > {d}:
                raise ValueError("{a} {n}")
            return {i}(rows)[:limit]  # {n}, see {p}
        """
    ),
    "ts": _code_lines(
        """
        export async function {i}(source: string, limit = {d}): Promise<string[]> {
          const rows = (await {i}(source)).filter((row) => row !== "");
          if (rows.length > {d}) throw new Error("{a} {n}");
          return {i}(rows).slice(0, limit); // {n}, see {p}
        }
        """
    ),
    "go": _code_lines(
        """
        func {i}(source string, limit int) ([]string, error) {
            rows, err := {i}(source)
            if err != nil || len(rows) > {d} {
                return nil, fmt.Errorf("{a} {n}: %w", err)
            }
            return {i}(rows, limit), nil // {n}, see {p}
        }
        """
    ),
    "rs": _code_lines(
        """
        pub fn {i}(source: &str, limit: usize) -> Result<Vec<String>, Error> {
            let rows = {i}(source)?;
            if rows.len() > {d} { return Err(Error::new("{a} {n}")); }
            Ok({i}(rows).into_iter().take(limit).collect()) // {n}, see {p}
        }
        """
    ),
}
_OUTPUT = _code_lines(
    """
    {p}:{d}: {i}: {m} {x} not {k} after {d} ms
    [{x}] {g} {m} {d}/{d} ({i})
    ok {i} {m} {d} ms {x}
    FAILED {p}::test_{b}_{m} - expected {x}, found {x}
      {d} {m}, {d} {m} skipped, {x}
    """
)
_FOREIGN = (
    _templates(
        """
        我们把索引改成增量更新，{i} 不再重复读取同一个文件。
        备份任务在夜里运行，需要{d}毫秒，台账里没有丢失任何记录。
        请在合并之前确认 `{p}` 的校验结果，缓存可以稍后清理。
        决定保留旧的数据库格式，迁移放到下一个版本处理（#{d}）。
        """
    ),
    _templates(
        """
        データベースの移行は{d}ミリ秒で終わり、{i} は一度だけ呼ばれます。
        キャッシュが古いときは `{p}` を読み直してから同期を続けます。
        次の作業はバックアップの検証と、ログに残った警告の調査です。
        設計の見直しを提案し、チームは単純な方法を選びました（#{d}）。
        """
    ),
    _templates(
        """
        네트워크가 끊기면 {i} 함수가 대기열을 디스크에 저장합니다.
        데이터베이스를 다시 만들어도 기록은 그대로 남아 있었습니다.
        `{p}` 파일의 검사는 {d}밀리초가 걸렸고 오류는 없었습니다.
        다음에는 백업 일정을 확인하고 캐시 크기를 줄이기로 했습니다 (#{d}).
        """
    ),
)

_FOREIGN_SHARE = 0.04
_SUMMARY_CHARS = 3_500
_TRANSCRIPT_CHARS = 10_200


class _Voice:
    """The words of one session: a few of each pool, so that most words stand in few sessions."""

    def __init__(self, rng: random.Random, project: str, suffix: str, identifiers: Sequence[str]) -> None:
        self.random: Callable[[], float] = rng.random
        self.suffix = suffix
        nouns = self._some(_NOUNS, 22)
        adjectives = self._some(_ADJECTIVES, 10)
        self.pools: dict[str, Sequence[str]] = {
            "n": nouns,
            "m": self._some(_PLURALS, 55),
            "g": self._some(_GERUNDS, 45),
            "k": self._some(_ABLES, 35),
            "x": [f"{rng.getrandbits(32):08x}" for _ in range(60)],
            "a": adjectives,
            "v": self._some(_PAST, 9),
            "b": self._some(_BASE, 9),
            "i": self._some(identifiers, 40),
            "p": [f"src/{self.pick(nouns)}/{self.pick(nouns)}_{self.pick(_NOUNS)}.{suffix}" for _ in range(7)],
            "d": [str(2 + int(1900 * self.random() ** 3)) for _ in range(50)],
            "h": [f"{rng.getrandbits(36):09x}" for _ in range(9)],
            "w": self._some(_PEOPLE, 4),
            "j": [os.path.basename(project)],
        }

    def _some(self, pool: Sequence[str], count: int) -> list[str]:
        return [pool[int(self.random() * len(pool))] for _ in range(count)]

    def pick(self, pool: Sequence[T]) -> T:
        return pool[int(self.random() * len(pool))]

    def fill(self, template: Template) -> str:
        form, keys = template
        pools, rnd = self.pools, self.random
        words = [pools[key][int(rnd() * len(pools[key]))] for key in keys]
        return form % tuple(words)

    def say(self, templates: Sequence[Template]) -> str:
        template = self.pick(templates)
        text = self.fill(template)
        named = template[0].startswith("%s") and template[1][0] in "ijw"
        return text if named else text[0].upper() + text[1:]

    def paragraph(self) -> str:
        return " ".join([self.say(_PROSE) for _ in range(2 + int(self.random() * 4))])

    def code(self) -> str:
        return f"```{self.suffix}\n" + "\n".join([self.fill(line) for line in _CODE[self.suffix]]) + "\n```"

    def output(self) -> str:
        lines = [self.fill(self.pick(_OUTPUT)) for _ in range(3 + int(self.random() * 8))]
        return "```text\n" + "\n".join(lines) + "\n```"

    def foreign(self, language: int) -> str:
        return "\n".join([self.fill(line) for line in _FOREIGN[language]])

    def length(self, mean: int) -> int:
        """A length in characters around the mean; one in a hundred is five times as long."""
        return int(mean * (0.35 + 1.25 * self.random()) * (5 if self.random() < 0.01 else 1))


def _summary(voice: _Voice, foreign: int | None) -> str:
    blocks = ["# " + voice.say(_TITLES), voice.paragraph()]
    if foreign is not None:
        blocks.append(voice.foreign(foreign))
    for heading, share, templates in _SECTIONS:
        if voice.random() < share:
            items = [f"- {voice.say(templates)}" for _ in range(1 + int(voice.random() * 3))]
            blocks.append(f"## {heading}\n\n" + "\n".join(items))
    wanted, have = voice.length(_SUMMARY_CHARS), sum(map(len, blocks))
    while have < wanted:
        blocks.append(voice.code() if voice.random() < 0.15 else voice.paragraph())
        have += len(blocks[-1])
    return "\n\n".join(blocks)


def _transcript(voice: _Voice, foreign: int | None) -> str:
    blocks: list[str] = []
    wanted, have = voice.length(_TRANSCRIPT_CHARS), 0
    while have < wanted:
        blocks.append("User: " + voice.say(_REQUESTS))
        answer = [voice.paragraph() for _ in range(1 + int(voice.random() * 2))]
        chance = voice.random()
        if chance < 0.25:
            answer.append(voice.code())
        elif chance < 0.5:
            answer.append(voice.output())
        if foreign is not None and voice.random() < 0.3:
            answer.append(voice.foreign(foreign))
        blocks.append("Assistant: " + "\n\n".join(answer))
        have += len(blocks[-1]) + len(blocks[-2])
    return "\n\n".join(blocks)


# ── sessions ──


class Corpus:
    """Sessions by number: the n-th is the same whatever their count."""

    def __init__(self, *, agents: int, seed: int) -> None:
        self.agents = [_AGENTS[n] if n < len(_AGENTS) else f"agent-{n + 1}" for n in range(agents)]
        self.seed = seed
        self.identifiers = {project: self._identifiers(project) for project, _ in _PROJECTS}

    def _identifiers(self, project: str) -> list[str]:
        rng = random.Random(f"{self.seed}:{project}")

        def word(pool: Sequence[str]) -> str:
            return pool[int(rng.random() * len(pool))]

        return [word(_BASE) + word(_NOUNS).title() + word(_NOUNS).title() for _ in range(1500)]

    def compose(
        self,
        number: int,
        *,
        ended_ms: int,
        slack_ms: int = 1500,
        agent_id: str | None = None,
        word: str | None = None,
    ) -> tuple[Session, dict[str, str]]:
        """Session `number`, and its files as text by path relative to the workspace.

        `ended_ms` is its end in milliseconds since 1970; it is captured up to `slack_ms` later. `word` is put
        into the sentence and the summary, so that exactly this session can be found by it.
        """
        rng = random.Random(f"{self.seed}:{number}")
        rnd = rng.random
        agent = agent_id or self.agents[number % len(self.agents)]
        project, suffix = _PROJECTS[int(rnd() * len(_PROJECTS))]
        voice = _Voice(rng, project, suffix, self.identifiers[project])
        foreign = int(rnd() * len(_FOREIGN)) if rnd() < _FOREIGN_SHARE else None

        captured = iso(ended_ms + int(rnd() * slack_ms))
        harness = voice.pick(_HARNESSES) if rnd() > 0.02 else None
        session_id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        kind_of_key = rnd()
        session_key = session_id
        if kind_of_key < 0.25:
            session_key = f"agent:{agent}:{os.path.basename(project)}:{session_id[:8]}"
        key = None if kind_of_key > 0.9 else session_key
        mark = token(agent, key, session_id)
        stem = f"memory/{captured.replace(':', '-')}--{mark}--"
        paths = {kind: f"{stem}{kind}.md" for kind in ("summary", "transcript", "manifest")}

        sentence = voice.say(_SENTENCES)
        summary = _summary(voice, foreign)
        if word is not None:
            sentence = sentence[:-1] + f", known as {word}."
            summary += f"\n\nThis session is known as {word}."
        who: dict[str, Field] = {
            "agent_id": agent,
            "session_id": session_id,
            "session_key": key,
            "project": project,
            "harness": harness,
            "captured_at": captured,
            "started_at": iso(ended_ms - 60_000 * (3 + int(rnd() * 170))) if rnd() > 0.05 else None,
            "ended_at": iso(ended_ms) if rnd() > 0.02 else None,
        }
        lineage: dict[str, Field] = {
            "manifest_path": paths["manifest"],
            "source_node_id": f"node-{rng.getrandbits(48):012x}" if rnd() < 0.2 else None,
        }
        verdict: dict[str, Field] = {
            "memory_sentence": sentence,
            "memory_sentence_version": "memory_sentence_v1",
            "memory_sentence_quality": "ok",
            "memory_sentence_generated_at": captured,
        }
        files: dict[str, str] = {}
        for kind, body in (("summary", summary), ("transcript", _transcript(voice, foreign))):
            hashed: dict[str, Field] = {"content_sha256": body_hash(body), "hash_scope": "body-normalized-v1"}
            last: dict[str, Field] = {"sanitizer_version": "sanitize_transcript_v1"} if kind == "transcript" else {}
            files[paths[kind]] = document({"kind": kind, **who, **lineage, **hashed, **verdict, **last}, body)
        files[paths["manifest"]] = _manifest(who, paths, captured)
        session: Session = {
            "agent_id": agent,
            "session_id": session_id,
            "session_key": key,
            "token": mark,
            "project": project,
            "captured_at": captured,
            "ended_at": iso(ended_ms) if who["ended_at"] is not None else None,
            "sentence": sentence,
            "paths": paths,
        }
        return session, files


def _manifest(who: dict[str, Field], paths: dict[str, str], captured: str) -> str:
    body = f"[[{paths['summary']}|summary]] [[{paths['transcript']}|transcript]]"
    links: dict[str, Field] = {
        "summary_path": paths["summary"],
        "transcript_path": paths["transcript"],
        "compaction_path": None,
        "memory_md_refs": [],
        "updated_at": captured,
        "revision": 1,
        "content_sha256": body_hash(body),
        "hash_scope": "body-normalized-v1",
    }
    return document({"kind": "manifest", **who, **links}, body)


def write_files(root: str, files: dict[str, str], modified_ms: int | None = None) -> int:
    """Writes the texts under the workspace, modified at that time if one is given; returns the bytes."""
    total = 0
    for path, text in files.items():
        data = text.encode()
        full = os.path.join(root, path)
        with open(full, "wb") as handle:
            handle.write(data)
        if modified_ms is not None:
            os.utime(full, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        total += len(data)
    return total


def write_corpus(
    root: str | os.PathLike[str],
    sessions: int,
    per_day: float = 50,
    end: str = DEFAULT_END,
    agents: int = 3,
    seed: int = 1,
) -> list[Session]:
    """Writes `sessions` × 3 files into `<root>/memory/`, newest session first, and returns what was written.

    Sessions are spread evenly backwards from `end`, `per_day` of them in 24 hours over all agents together,
    each moved by chance within its own share of the day, so that N days hold exactly `per_day` × N. Raises
    `FileExistsError` when `<root>/memory` holds anything.
    """
    where = os.fspath(root)
    folder = os.path.join(where, "memory")
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise FileExistsError(f"{folder} is not empty: a corpus is only written into a new workspace")
    corpus = Corpus(agents=agents, seed=seed)
    step = DAY_MS / per_day
    last = milliseconds(end)
    written: list[Session] = []
    for number in range(sessions):
        share = 0.5 + 0.8 * (random.Random(f"{seed}:when:{number}").random() - 0.5)
        ended = last - int((number + share) * step)
        session, files = corpus.compose(number, ended_ms=ended, slack_ms=int(min(1500, step / 20)))
        write_files(where, files, milliseconds(session["captured_at"]))
        written.append(session)
    return written


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m benchmarks.corpus OUT --sessions N`: writes a workspace and prints its size as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=__doc__.splitlines()[0])
    parser.add_argument("out", help="folder of the new workspace")
    parser.add_argument("--sessions", type=int, default=5000, help="number of sessions, three files each")
    parser.add_argument("--per-day", type=float, default=50, help="sessions in 24 hours, all agents together")
    parser.add_argument("--days", type=float, help="spread the sessions over so many days, in place of --per-day")
    parser.add_argument("--end", default=DEFAULT_END, help="no session ends after this moment")
    parser.add_argument("--agents", type=int, default=3, help="number of agents; one is `default`")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another corpus")
    chosen = parser.parse_args(argv)
    per_day = chosen.per_day if chosen.days is None else chosen.sessions / max(chosen.days, 1e-9)
    if chosen.sessions < 1 or chosen.agents < 1 or per_day <= 0:
        parser.error("--sessions, --agents, --per-day and --days must be greater than zero")
    began = time.perf_counter()
    try:
        written = write_corpus(chosen.out, chosen.sessions, per_day, chosen.end, chosen.agents, chosen.seed)
    except FileExistsError as error:
        parser.error(str(error))
    seconds = time.perf_counter() - began
    paths = [os.path.join(chosen.out, path) for session in written for path in session["paths"].values()]
    size = sum(map(os.path.getsize, paths))
    print(json.dumps({"sessions": len(written), "files": len(paths), "bytes": size, "seconds": seconds}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
