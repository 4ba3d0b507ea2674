"""What is particular to each harness beside its parser: where its transcripts are, its hooks, what we write for it."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from signet_sync.host.harness_settings.facts import Environ, HarnessFacts, JsonFacts, Payload, home, part_of_file

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from signet_sync.host.harness_settings.harness import Program

# What Claude Code calls itself where a person sits before it; `sdk-cli` is `claude -p`.
_CLAUDE_ATTENDED = frozenset(("cli", "claude-vscode", "claude-jetbrains", "claude-desktop"))
_CODEX_ATTENDED = frozenset(("cli", "vscode"))  # `exec` is without a person
# Codex passes hardly any of its environment to a server, which would otherwise use other paths than a hook.
_CODEX_PASSES = ("SIGNET_CONFIG", "SIGNET_DB", "SIGNET_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
_OPENCLAW_ENABLE = "openclaw hooks enable signet-sync  (then restart the gateway)"
# What is read of files that tell whether a person sits before a session, in bytes.
_FIRST_LINE, _LOG, _NOTE = 256 * 1024, 4 * 1024 * 1024, 4_096


class _ClaudeCode(JsonFacts):
    place, variable = ".claude", "CLAUDE_CONFIG_DIR"
    folders = ("projects",)
    pattern = r"projects/[^/]+/[^/]+\.jsonl"
    memory_beside = ("memory/*.md",)
    instructions = ("CLAUDE.md",)
    first_prompt = ("claude",)
    hooks = "settings.json"
    events = (
        ("SessionStart", 10, ""),
        ("UserPromptSubmit", 5, ""),  # the person waits, for what memory holds on it
        ("PreToolUse", 1, "Edit|Write|Bash"),
        ("PostToolUseFailure", 1, "Bash"),
        ("PostCompact", 10, ""),
        ("Stop", 10, ""),  # not `async`: Claude Code would wait for it at its end, and be late
        ("SessionEnd", 10, ""),  # without a time of its own it would be killed after 1.5 seconds
    )
    servers = ".claude.json"

    def server_file(self, environ: Environ) -> str:
        """Returns the list for all projects: beside the settings folder, unless a variable names that folder.

        Claude Code has its own data in the same file, and writes it while it runs.
        """
        older = os.path.join(self.own(environ), ".config.json")
        newer = os.path.join(environ.get(self.variable) or home(environ), self.servers)
        return older if os.path.exists(older) else newer

    def server_entry(self, words: Sequence[str]) -> dict[str, Any]:
        return {"type": "stdio", **super().server_entry(words)}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return environ.get("CLAUDE_CODE_ENTRYPOINT") in _CLAUDE_ATTENDED


class _Codex(JsonFacts):
    place, variable = ".codex", "CODEX_HOME"
    folders = ("sessions", "archived_sessions")
    pattern = r"(?:archived_)?sessions/(?:.+/)?rollout-[^/]+\.jsonl"
    pathless = "not to be kept"  # an ephemeral session
    memory = ("memories/*.md", "memories/rollout_summaries/*.md")
    first_prompt = ("codex",)
    hooks = "hooks.json"
    events = (
        ("SessionStart", 10, ""),
        ("UserPromptSubmit", 5, ""),
        ("PreToolUse", 1, "Bash|apply_patch"),  # what comes after a tool does not say whether it failed
        ("PostCompact", 10, ""),
        ("Stop", 10, ""),
        ("SessionEnd", 3, ""),  # Codex cuts a longer time to three seconds and prints a warning at every start
    )
    servers = "config.toml"
    asks = "Codex asks you once, at its next start, whether these hooks may run; until then codex exec omits them"

    def settings_folder(self, environ: Environ) -> str:
        """Returns its folder as Codex names it: it resolves `CODEX_HOME`, but not the default path."""
        place = self.own(environ)
        return os.path.realpath(place) if environ.get("CODEX_HOME") else place

    def server_way(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        return ("mcp_servers",)

    def fresh_entry(self, environ: Environ) -> dict[str, Any]:
        passed = [each for each in _CODEX_PASSES if environ.get(each)]
        return {"env_vars": passed} if passed else {}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns how a session was begun, by the first record of its file, which exists when it starts."""
        with suppress(ValueError, TypeError, KeyError):
            first = part_of_file(payload.get("transcript_path"), _FIRST_LINE).split(b"\n", 1)[0]
            return json.loads(first)["payload"]["source"] in _CODEX_ATTENDED
        return False


class _Copilot(HarnessFacts):
    place, variable = ".copilot", "COPILOT_HOME"
    folders = ("session-state",)
    pattern = r"session-state/[^/]+/events\.jsonl"
    reports_compaction = False
    first_prompt = ("copilot", "-i")
    result = ("tool_result", "text_result_for_llm")
    failed = r"completed with exit code [1-9]\d*>\s*$"
    # It reads every file of this folder, and gives documents with Claude Code's names to events that have them.
    hooks = "hooks/signet-sync.json"
    events = (
        ("SessionStart", 10, ""),
        ("UserPromptSubmit", 5, ""),
        ("PostToolUse", 1, "Bash|Write|Edit"),  # not PreToolUse: a hook of that which fails forbids the call
        ("Stop", 10, ""),
        ("SessionEnd", 10, ""),
    )
    servers = "mcp-config.json"

    def payload(self, given: Payload, environ: Environ) -> Payload:
        """Returns the document with the transcript's path, which only that of a stop has.

        A resumed session has lost what the hook of its start gave before.
        """
        session, more = given.get("session_id"), {"source": "startup"} if "source" in given else {}
        if "transcript_path" not in given and isinstance(session, str):
            place = ("session-state", os.path.basename(session), "events.jsonl")
            more["transcript_path"] = os.path.join(self.own(environ), *place)
        return {**given, **more}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns whether its window runs, which has a process of its own; `-p` in one of its calls inherits that."""
        return "COPILOT_LOADER_PID" in environ and "COPILOT_AGENT_SESSION_ID" not in environ

    def server_entry(self, words: Sequence[str]) -> dict[str, Any]:
        return {"type": "local", "tools": ["*"], **super().server_entry(words)}

    def printed(self, event: str, text: str) -> str:
        return json.dumps({"additionalContext": text})


class _Gemini(JsonFacts):
    place = ".gemini"
    folders = ("tmp",)
    pattern = r"tmp/[^/]+/chats/session-[^/]+\.jsonl"
    silence = "{}"
    # At a resume, it drops each message that begins with a hook's context; without a terminal that is the first prompt,
    # with the user's words. Behind the words of a prompt it stays, so what a start gives waits for the next one.
    starts_at_prompts = True
    reports_compaction = False
    instructions = ("GEMINI.md",)
    first_prompt = ("gemini", "-i")
    result = ("tool_response", "llmContent")
    failed = r"\nExit Code: [1-9]"
    hooks = "settings.json"
    # PreCompress fires on every turn, compressed or not, and no event follows it: it is of no use.
    events = (
        ("SessionStart", 10, ""),
        ("BeforeAgent", 5, ""),
        ("AfterTool", 1, "run_shell_command|write_file|replace"),
        ("AfterAgent", 10, ""),
        ("SessionEnd", 10, ""),
    )
    servers = "settings.json"

    def handler(self, command: str, seconds: int) -> dict[str, Any]:
        return {"type": "command", "command": command, "name": "signet-sync", "timeout": 1000 * seconds}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns whether somebody typed a prompt: it is the last of those that only the program's window records."""
        place, prompt = payload.get("transcript_path"), payload.get("prompt")
        if not isinstance(place, str) or not isinstance(prompt, str):
            return False
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            records = json.loads(part_of_file(os.path.join(os.path.dirname(os.path.dirname(place)), "logs.json"), _LOG))
            said = [one["message"] for one in records if one["sessionId"] == payload.get("session_id")]
            return bool(said) and prompt.strip().startswith(said[-1])
        return False


class _OpenClaw(HarnessFacts):
    """Its transcripts are those of older versions."""

    place = ".openclaw"
    folders = ("agents",)
    # A transcript that ended by a reset or was deleted is renamed.
    ending = r"\.jsonl(?:\.(?:reset|deleted)\.[0-9A-Za-z.:-]{1,40})?$"
    pattern = rf"agents/[^/]+/sessions/[^/]+{ending}"
    pathless = "a database"
    memory = ("workspace/MEMORY.md", "workspace/USER.md", "workspace/memory/*.md")
    parser = "pi"
    instructions = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md")
    carries_chats = True
    scripts = (("hooks/signet-sync/handler.js", "openclaw.js"), ("hooks/signet-sync/HOOK.md", "openclaw.md"))
    script_events = (
        *("agent:bootstrap", "command:new", "command:reset", "session:auto-reset"),
        "session:compact:after",
    )

    def by_hand(self, program: Program, flags: Sequence[str] | None) -> tuple[str, ...]:
        """Returns the commands for a person: OpenClaw alone edits its settings, which are JSON5."""
        import shlex  # not for hooks

        if flags is None:
            return (_OPENCLAW_ENABLE,)
        # One server serves all chats, groups included: MEMORY.md is available to all only with an explicit scope.
        words = [*program.start, "mcp", *flags, *(() if "--scope" in flags else ("--scope", "shared"))]
        entry = json.dumps(self.server_entry(words), ensure_ascii=False)
        command = shlex.join(["openclaw", "mcp", "set", "signet-sync", entry])
        return _OPENCLAW_ENABLE, f"{command}  (the MCP server; OpenClaw alone edits the list of them)"

    def left(self, environ: Environ) -> tuple[str, ...]:
        """Names our server if its words are anywhere in the settings; the words of the hook do not count."""
        from signet_sync.errors import SignetSyncError
        from signet_sync.host.harness_settings import files  # not for hooks

        try:
            raw = files.read(os.path.join(self.own(environ), "openclaw.json")) or b""
        except (SignetSyncError, OSError):
            return ()
        return ("openclaw mcp unset signet-sync",) if b"signet_sync" in raw else ()


class _OpenCode(HarnessFacts):
    folders = ("",)
    pattern = r"opencode\.db"
    ending = r"\.db$"
    depth = 0
    keeps_database = True
    pathless = "a database"
    first_prompt = ("opencode", "--prompt")
    scripts = (("plugins/signet-sync.js", "opencode.js"),)  # a plug-in is loaded from its folder
    script_events = (
        *("session.created", "session.idle", "session.compacted", "dispose"),
        *("experimental.chat.system.transform", "tool.execute.after"),
    )
    servers = "opencode.json"  # it is read whether or not `opencode.jsonc` is beside it

    def homes(self, environ: Environ) -> tuple[str, ...]:
        data = environ.get("XDG_DATA_HOME") or os.path.join(home(environ), ".local/share")
        return os.path.join(data, "opencode"), self.settings_folder(environ)

    def settings_folder(self, environ: Environ) -> str:
        return os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config"), "opencode")

    def server_way(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the newer way if the file has it already, else the one that every version reads."""
        servers = data.get("mcp")
        newer = servers.get("servers") if isinstance(servers, dict) else None
        return ("mcp", "servers") if isinstance(newer, dict) and "type" not in newer else ("mcp",)

    def server_entry(self, words: Sequence[str]) -> dict[str, Any]:
        return {"type": "local", "command": list(words)}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return payload.get("attended") is True  # our plug-in sees the program's words


class _Pi(HarnessFacts):
    place, variable = ".pi/agent", "PI_CODING_AGENT_DIR"
    folders = ("sessions",)
    pattern = r"sessions/[^/]+/[^/]+\.jsonl"
    pathless = "not to be kept"  # `--no-session`
    first_prompt = ("pi",)
    scripts = (("extensions/signet-sync.js", "pi.js"),)
    script_events = (
        *("session_start", "before_agent_start", "tool_result", "agent_end", "session_compact"),
        "session_shutdown",
    )
    servers = "mcp.json"

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return payload.get("attended") is True  # our extension sees the mode


class _Qwen(JsonFacts):
    place, variable = ".qwen", "QWEN_HOME"
    folders = ("projects",)
    pattern = r"projects/[^/]+/chats/[^/]+\.jsonl"
    instructions = ("QWEN.md", "AGENTS.md")
    memory = ("memories/*.md",)
    memory_beside = ("../memory/*.md",)
    first_prompt = ("qwen", "-i")
    hooks = "settings.json"
    events = (
        ("SessionStart", 10, ""),
        ("UserPromptSubmit", 5, ""),
        ("PostToolUse", 1, "run_shell_command|write_file|edit"),  # the text of PreToolUse never reaches the model
        ("PostToolUseFailure", 1, "run_shell_command"),
        ("PostCompact", 10, ""),
        ("Stop", 10, ""),
        ("SessionEnd", 10, ""),
    )
    servers = "settings.json"

    def homes(self, environ: Environ) -> tuple[str, ...]:
        (settings,) = super().homes(environ)
        return environ.get("QWEN_RUNTIME_DIR") or settings, settings

    def settings_folder(self, environ: Environ) -> str:
        return self.homes(environ)[-1]

    def payload(self, given: Payload, environ: Environ) -> Payload:
        """Returns the document with another source: a resumed session has lost what the hook of its start gave."""
        return {**given, "source": "startup"} if given.get("source") == "resume" else given

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns whether its window runs: that alone notes its process beside the transcript, and leaves the note."""
        place = str(payload.get("transcript_path")).removesuffix(".jsonl")
        with suppress(ValueError, TypeError, KeyError, OverflowError, OSError):
            os.kill(json.loads(part_of_file(f"{place}.runtime.json", _NOTE))["pid"], 0)
            return True
        return False


FACTS: dict[str, HarnessFacts] = {
    "claude-code": _ClaudeCode(),
    "codex": _Codex(),
    "copilot": _Copilot(),
    "gemini": _Gemini(),
    "openclaw": _OpenClaw(),
    "opencode": _OpenCode(),
    "pi": _Pi(),
    "qwen": _Qwen(),
}
