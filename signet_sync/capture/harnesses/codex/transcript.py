"""Parses Codex CLI's rollouts: `{timestamp, type, payload}` a line; `response_item` records hold the conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from signet_sync.capture.harnesses.reader import NO_TIME, UNNAMED, LineReader, Restored, TranscriptEntry, time_of
from signet_sync.capture.harnesses.texts import (
    Tags,
    compaction_text,
    drop_injected,
    first_text,
    items_of,
    join_paragraphs,
    mapping_of,
    one_line,
    text_of,
    texts_of,
)
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import SECOND

_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call", "mcp_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
# A fork copies at once what it continues, and each record gets the time at which it was copied.
FORK_US = 2 * SECOND

# How texts begin that the harness writes in the user's name.
_CONTEXT = (
    *("<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "# AGENTS.md instructions", "<skill>"),
    *("<skills_instructions>", "<permissions instructions>", "<apps_instructions>", "<plugins_instructions>"),
    *("<collaboration_mode>", "<model_switch>", "<personality_spec>", "<developer_instructions>", "<turn_aborted>"),
)
_IDE_CONTEXT, _IDE_REQUEST = (
    ("# Context from my IDE setup", "# Files mentioned by the user"),
    late(r"^## My request for Codex:?[ \t]*\n", re.MULTILINE),
)
_TAGS = Tags("user_shell_command", "subagent_notification", "image", "environment_context")
_SHELL = Tags("command", "result")
# The header that the harness puts above a command's output for the model.
_OUTPUT_HEAD = late(r"(?=Chunk ID: |Exit code: |Wall time: |Process |Script )(?:[A-Z][^\n]{2,200}\n){1,6}?Output:\n")
_EXIT = late(r"(?:Process exited with code|Exit code:) (-?\d{1,10})")
# The program in which the newest versions call their tools: the calls, a command, and how one ended that it prints.
_CALLED = late(r"\btools\.(\w{1,80})\(")
_RUN = late(r"\btools\.exec_command\(\s*\{\s*\"?cmd\"?\s*:\s*(\"(?:[^\"\\]|\\.)*\"|`(?:[^`\\]|\\.)*`)", re.DOTALL)
_ENDED_BADLY = late(r"\AScript failed\n|\"wall_time_seconds\":[\d.e-]{1,30},\"exit_code\":-?[1-9]")
_ROLLOUT = late(r"rollout-[0-9T-]{19}-(.+)", re.DOTALL)


class _CodexReader(LineReader):
    """The file's name names the session if no record does."""

    harness = "codex"
    subagents = ("spawn_agent",)

    def __init__(self, file_name: str = "") -> None:
        super().__init__(file_name)
        named = _ROLLOUT.fullmatch(self.stem)
        self.stem = named[1] if named else ""
        self.began = NO_TIME

    def take(self, record: Mapping[str, Any]) -> None:
        kind, payload = text_of(record.get("type")), mapping_of(record.get("payload"))
        self.at = time_of(record.get("timestamp"))
        if kind == "session_meta":
            self._header(payload)
            self.began = self.at if self.began == NO_TIME else self.began
        elif kind == "response_item":
            self._item(payload)
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "compacted":
            summary = compaction_text(text_of(payload.get("message")))
            last = self.entries[-1] if self.entries else None
            # The model's answer to the request for a summary is not addressed to the user.
            if last and summary and last.kind == "assistant" and compaction_text(last.text) == summary:
                self.entries.pop()
            self.add("compaction", summary)
        elif kind in ("turn_context", "world_state"):
            self.project = self.project or text_of(payload.get("cwd"))

    def _header(self, meta: Mapping[str, Any]) -> None:
        """Reads the first header: a fork's file continues with that of its original session, and the history of it."""
        if self.session:
            original = first_text(meta, "id", "session_id")
            self.origin = self.origin or (original if original != self.session else "")
            return
        self.origin = text_of(meta.get("forked_from_id"))
        self.session = first_text(meta, "id", "session_id")
        self.project = text_of(meta.get("cwd")) or self.project
        git = mapping_of(meta.get("git"))
        self.remote, self.branch = text_of(git.get("repository_url")), text_of(git.get("branch"))
        self.headless = meta.get("source") in ("exec", "mcp")
        origin = mapping_of(meta.get("source"))
        if "subagent" in origin or meta.get("thread_source") == "subagent":
            spawn = mapping_of(mapping_of(origin.get("subagent")).get("thread_spawn"))
            root = text_of(meta.get("session_id"))
            self.parent = text_of(spawn.get("parent_thread_id")) or (root if root != self.session else "") or UNNAMED

    def _item(self, item: Mapping[str, Any]) -> None:
        kind, content = text_of(item.get("type")), item.get("content")
        if kind == "message":
            if item.get("role") == "assistant":
                self.add("assistant", join_paragraphs(texts_of(content)))
            elif item.get("role") == "user":
                self.add_words(_choose_own_texts(item))
        elif kind in _CALLS:
            self._call(kind, item)
        elif kind in _OUTPUTS:
            call = text_of(item.get("call_id"))
            output = item.get("output", item.get("tools"))
            text, failed = _read_output(output)
            name = self.tools.get(call, "") or text_of(item.get("name"))
            if self.ours.is_ours(call, name):
                # With the harness's header, which names the session that the command continues in.
                text = self.ours.filter_result(call, name, "\n".join(texts_of(output)))
            self.result(call, text, failed=failed)
        elif kind == "image_generation_call":
            about = one_line(text_of(item.get("revised_prompt")))
            self.entries.append(TranscriptEntry("tool", self.at, about, name="image_generation"))

    def _call(self, kind: str, item: Mapping[str, Any]) -> None:
        call = first_text(item, "call_id", "id")
        name = one_line(text_of(item.get("name")) or kind.removesuffix("_call"), 80)
        given = item.get("arguments", item.get("input", item.get("action")))
        if isinstance(given, str) and given.lstrip().startswith("{"):
            given = _read_json(given)
        # MCP tools are identified by name and namespace (`mcp__<server>`), in older versions by one name.
        self.ours.record_call(call, name, given, f"{first_text(item, 'namespace', 'server_label')}_{name}")
        if isinstance(given, str) and name == "exec":  # a program: the tool that it calls, with its commands or patch
            called = set(_CALLED.findall(given))
            if commands := [str(_read_json(found)).strip("`") for found in _RUN.findall(given)]:
                name, given = "exec_command", {"cmd": "; ".join(commands)}
            else:
                name, given = called.pop() if len(called) == 1 else name, given.replace("\\n", "\n")
        self.call(call, name, given)

    def _event(self, event: Mapping[str, Any]) -> None:
        kind, message, count = text_of(event.get("type")), text_of(event.get("message")), event.get("num_turns")
        if kind == "thread_rolled_back" and isinstance(count, int) and count > 0:
            begins = [place for place, entry in enumerate(self.entries) if entry.kind == "user"]
            if begins:
                del self.entries[begins[max(len(begins) - count, 0)] :]
        elif kind == "turn_aborted":
            reason = one_line(text_of(event.get("reason")), 80)
            self.add("event", "turn interrupted" if reason == "interrupted" else f"turn aborted: {reason}")
        elif kind == "error":
            self.add("event", f"error: {message}")

    def add_words(self, texts: Iterable[str]) -> None:
        """Adds the user's own words as one entry, after events for what the harness wrote in the user's name."""
        words = []
        for text in map(drop_injected, texts):
            if text.lstrip().startswith(_CONTEXT):
                continue
            own, spans = _TAGS.split(text.strip("\r\n"))
            for name, inner in spans:
                if name == "user_shell_command":
                    self.add("event", f"! {dict(_SHELL.split(inner)[1]).get('command', inner)}")
                elif name == "subagent_notification":
                    self.add("event", f"sub-agent: {inner}")
            if own.lstrip().startswith(_IDE_CONTEXT) and (request := _IDE_REQUEST.search(own)):
                own = own[request.end() :]
            words.append(own if own.strip() not in ("<image>", "</image>") else "")
        self.add("user", join_paragraphs(words))

    def choose(self) -> list[TranscriptEntry]:
        self.copied_until = self.began + FORK_US if self.origin else NO_TIME
        return self.entries


def _choose_own_texts(item: Mapping[str, Any]) -> list[str]:
    """Returns the blocks of a message in the user's name that the harness marks as the user's; all if it marks none."""
    content = item.get("content")
    metadata = mapping_of(item.get("internal_chat_message_metadata_passthrough"))
    kinds = [text_of(kind) for kind in items_of(metadata.get("content_item_kinds"))]
    if isinstance(content, list) and len(kinds) == len(content):
        content = [block for block, kind in zip(content, kinds, strict=True) if kind.startswith(("user.", "unknown"))]
    return texts_of(content)


def _read_output(output: object) -> tuple[str, bool]:
    """Returns a tool's output without the harness's header, and whether the tool failed."""
    failed = False
    if isinstance(output, dict):
        failed = output.get("success") is False
        output = output.get("content", output.get("output"))
    if isinstance(output, str) and output.startswith('{"output"'):
        whole = mapping_of(_read_json(output))
        failed = failed or mapping_of(whole.get("metadata")).get("exit_code") not in (0, None)
        output = whole.get("output", output)
    text = drop_injected("\n".join(texts_of(output))).strip("\r\n")
    failed = failed or _ENDED_BADLY.search(text) is not None
    if head := _OUTPUT_HEAD.match(text):
        code = _EXIT.search(head.group())
        return text[head.end() :], failed or (code is not None and int(code[1]) != 0)
    return text, failed


def _read_json(text: str) -> object:
    """Returns the value of a text in JSON, else the text."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


read = _CodexReader.read


def restore(session_id: str, cwd: str, turns: Sequence[tuple[str, str, str]]) -> Restored:
    """Returns what Codex resumes, a rollout of the day on which the session began: file, records and the command."""
    began = turns[0][1]
    meta: dict[str, Any] = {
        "id": session_id, "timestamp": began, "cwd": cwd, "source": "cli",
        "originator": "codex_cli_rs", "cli_version": "0.100.0", "model_provider": None,
    }  # fmt: skip
    records = [{"timestamp": began, "type": "session_meta", "payload": meta}]
    for role, at, text in turns:
        content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
        said = {"type": "message", "role": role, "content": content}
        records.append({"timestamp": at, "type": "response_item", "payload": said})
        if role == "user":
            shown = {"type": "user_message", "message": text, "kind": "plain"}  # its list of sessions reads these
            records.append({"timestamp": at, "type": "event_msg", "payload": shown})
    name = f"rollout-{began[:19].replace(':', '-')}-{session_id}.jsonl"
    return f"sessions/{began[:10].replace('-', '/')}/{name}", records, f"codex resume {session_id}"
