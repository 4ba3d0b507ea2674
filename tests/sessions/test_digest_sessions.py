"""Hold the sessions that measure the digest to their own format."""

import datetime
import json
import pathlib
import re
import unicodedata
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parents[2] / "benchmarks" / "digest_sessions"
FILES = sorted(ROOT.glob("*/*.json"))
KINDS = ("decisions", "constraints", "blockers", "next_steps", "preferences")
STATUSES = {"done", "open", "blocked", "aborted", "question-only"}
HARNESSES = {"claude-code", "codex", "gemini", "opencode"}


def folded(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text)).casefold().strip()


def plain(text: str) -> str:
    return folded(re.sub(r"[`*]", "", text))


def hit(groups: list[list[str]], text: str) -> bool:
    def one(key: str) -> bool:
        if folded(key).isdigit():
            return bool(re.search(rf"(?<!\d)(?<!\d[.,]){folded(key)}(?![.,]?\d)", folded(text)))
        return folded(key) in folded(text) or plain(key) in plain(text)

    return bool(groups) and all(any(one(key) for key in group) for group in groups)


def junk(text: str, not_items: list[str]) -> bool:
    return any(plain(n) in plain(text) or (len(plain(text)) >= 12 and plain(text) in plain(n)) for n in not_items)


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [s for v in (value.values() if isinstance(value, dict) else value) for s in strings(v)]


def read(path: pathlib.Path) -> dict[str, Any]:
    session = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(session, dict)
    return session


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_session_is_whole_and_its_gold_is_said_in_it(path: pathlib.Path) -> None:
    session = read(path)
    assert set(session) == {"id", "harness", "project", "started_at", "ended_at", "turns", "gold", "questions"}
    assert session["harness"] in HARNESSES and session["project"].startswith("/")
    times = [session["started_at"], *(t["at"] for t in session["turns"]), session["ended_at"]]
    assert times == sorted(times) and times[0] == times[1] and times[-2] == times[-1]
    assert all(datetime.datetime.fromisoformat(t).tzinfo for t in times)
    for turn in session["turns"]:
        assert turn["role"] in {"user", "assistant", "tool"}
        if turn["role"] == "tool":
            assert turn["text"] == "" and set(turn["tool"]) == {"name", "input", "output"}
        else:
            assert turn["text"].strip() and "tool" not in turn
    said = [s for t in session["turns"] for s in [t["text"], *strings(t.get("tool", {}))]]
    talk = [folded(s) for s in said]

    gold = session["gold"]
    assert set(gold) == {"lang", "outcome", "outcome_keys", "status", "not_items", "optional_items", *KINDS}
    assert gold["status"] in STATUSES
    assert bool(gold["outcome"]) == bool(gold["outcome_keys"])
    if gold["outcome"]:
        assert hit(gold["outcome_keys"], gold["outcome"]) and not junk(gold["outcome"], gold["not_items"])
        assert not hit(gold["outcome_keys"], next(t["text"] for t in session["turns"] if t["role"] == "user"))
    assert bool(gold["blockers"]) == (gold["status"] == "blocked")
    assert {o["kind"] for o in gold["optional_items"]} <= set(KINDS)
    for item in [*gold["optional_items"], *(i for kind in KINDS for i in gold[kind])]:
        assert any(folded(item["text"]) in s for s in talk), item
        assert hit(item["keys"], item["text"]) and not junk(item["text"], gold["not_items"]), item
    for passage in gold["not_items"]:
        assert any(passage in s for s in said), passage
