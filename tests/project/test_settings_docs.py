"""docs/settings.md is generated from the model; this test holds it, and says how to bring it up to date."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

from signet_sync.settings.model import Settings, environment_name, spec
from signet_sync.settings.model_choice import SERVERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"

HEAD = """\
# Settings

Every setting, generated from `signet_sync.settings.model.Settings`. Sources in order of precedence: flags, environment,
your own `config.toml` (`~/.config/signet-sync/` on Linux, `~/Library/Application Support/signet-sync/` on macOS, or
`SIGNET_CONFIG`), the workspace's `signet-sync.toml`, defaults. Because a workspace may come from a checkout, its file
cannot make the marked settings: it can run nothing, send nothing and write nowhere else.

A broken `signet-sync.toml` stops nothing. For each value that cannot be used, the last good one counts (it is kept in
the state folder), else the default; `status`, `doctor`, the log and MEMORY.md report it. So a typing error neither
shows what `noise.*` hides nor assigns sessions to another agent.

An error in `config.toml` or the environment makes commands fail. Hooks, the agent, `session …`, `transcript …` and the
MCP server use the valid part, but ask no language model, write no history and delete no kept data until it is
corrected.

The environment variable of a setting is its key in capitals: `watch.mode` is `SIGNET_WATCH_MODE`. In addition,
`SIGNET_WORKSPACE` (or `--workspace`) names the workspace, `SIGNET_DB` (or `--db`) the database and `SIGNET_STATE` the
folder with the state of all workspaces.

`signet-sync settings list` shows each value and where it is from, `settings explain NAME` what it may be, and
`settings set NAME VALUE` changes it in your own file, whose comments stay.

| key | default | meaning |
|---|---|---|
"""

TAIL = """
## A language model

Without a model, rules make summaries and sentences from the session's own words. A model proposes them instead (one
call each), and its text is checked. If it is slow, fails or says nothing useful, the rules' text is used after
`timeout` seconds at most.

Two more things are asked for later, newest first:

* Facts of each summary and compaction, one call each. A fact is kept if it quotes its artifact in the artifact's words;
  it neither closes nor replaces facts found by rules. To avoid these calls, name a provider under `[llm.synthesis]`
  only.
* A paragraph about each arc and epoch, one call whenever its sessions change.

All calls share one budget, `llm.daily_tokens` a UTC day, in all workspaces. Before a call its prompt (estimated a third
too high) and its longest answer must fit in what is left; otherwise rules are used, which is logged once a day. Then
the tokens that the server reports count, or an estimate. A program's own prompts are not seen, and nobody can stop a
server that ignores the limit of an answer. The record is `llm-tokens.json` in the folder with the state of all
workspaces; if it is damaged, no model is asked until the next day.

`doctor` names models of this machine.

A run asks for at most 20 of each and starts nothing new after a minute. Failed requests are repeated a day later. After
two failures in a row the model is not asked for a quarter of an hour.

```toml
[llm]
provider = "ollama"
model = "qwen3:4b"
```

| provider | endpoint | environment variable of the key |
|---|---|---|
{servers}
| `command` | – (a program of yours: `command = ["llm", "-m", "small"]`) | – |
| `none` | – | – |

All but the last two use a server with OpenAI's `/chat/completions` and need the extra `llm`. An
`endpoint` of your own replaces the default; it is then sent only the key named by `api_key_env` or `api_key_file`.

`[llm.synthesis]` sets single keys of `[llm]` otherwise for summaries, sentences and paragraphs; facts are always asked
for with `[llm]`. `provider = "none"` or `enabled = false` there turn the former off. With another `provider` there only
the timeout of `[llm]` counts, and a key is sent to no other server than the one it was set for.

If no provider is named, Signet's `agent.yaml` in the workspace is read for `enabled` and `provider` under
`memory.pipelineV2`. It can switch the model off, or select a provider whose `endpoint` (with a `model`) or `command` is
in your settings. A checkout can therefore never decide where your sessions are sent.

A program gets the prompt on stdin and prints the answer. It runs in your home folder with `SIGNET_SYNC_CHILD=1` set,
and is killed with its child processes at the timeout.

`[embeddings]` names a model that makes vectors, on one of these servers or in a folder: see
[recall.md](recall.md#similar-in-meaning). It takes nothing from the other blocks.
"""


def servers() -> str:
    def cell(text: str) -> str:
        return f"`{text}`" if text else "–"

    return "\n".join(f"| `{name}` | {cell(url)} | {cell(key)} |" for name, (url, key) in SERVERS.items())


def generated() -> str:
    rows = []
    for field in fields(Settings):
        key, default, doc, allowed = spec(field)
        plain = (
            "[]"
            if default == ()
            else '""'
            if default == ""
            else str(default).lower()
            if isinstance(default, bool)
            else str(default)
        )
        shown = f"`{plain}`"
        own = "" if allowed else " *Not in a workspace's file.*"
        assert environment_name(field) == f"SIGNET_{key.replace('.', '_').upper()}"
        rows.append(f"| `{key}` | {shown} | {doc}{own} |")
    return HEAD + "\n".join(rows) + "\n" + TAIL.format(servers=servers())


def test_the_settings_page_is_what_the_model_says() -> None:
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(generated(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == generated(), "WRITE_DOCS=1 pytest brings it up to date"
