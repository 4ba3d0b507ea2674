"""docs/settings.md is generated from the model; this test holds it, and says how to bring it up to date."""

from __future__ import annotations

import os
from pathlib import Path

from signet_sync.settings.model import ALL_SETTINGS, environment_name
from signet_sync.settings.model_choice import SERVERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"

HEAD = """\
# Settings

Every setting, made from the code. In order of precedence: options of a command, environment, your own `config.toml`
(`~/.config/signet-sync/` on Linux, `~/Library/Application Support/signet-sync/` on macOS, or `SIGNET_CONFIG`), the
workspace's `signet-sync.toml`, defaults. A workspace may come from a checkout, so its file cannot make the settings
marked *own*: it can run nothing, send nothing and write nowhere else.

`signet-sync settings` shows each value and where it is from, `settings NAME` what it may be, and `settings NAME VALUE`
changes it in your own file, whose comments stay.

The environment variable of a setting is its key in capitals: `watch.mode` is `SIGNET_WATCH_MODE`. `SIGNET_WORKSPACE`
names the workspace, `SIGNET_DB` the database, `SIGNET_STATE` the folder with the state of all workspaces.

**A broken `signet-sync.toml`** stops nothing. For a value that cannot be used, the last good one counts, else the
default; `status`, `doctor`, the log and MEMORY.md report it.

**A broken `config.toml`** or environment: `reindex`, `check`, `render`, `context` and commands that change data exit
with 2; most others that read still work. Hooks, the agent and the MCP server use the valid part, but ask no model,
write no history, share nothing and delete no kept data until it is corrected.

"""

TAIL = """
## A language model

Rules make the summary of a session from what was done and said. If you name a model, it is asked once a session, at the
end, about deeds, the person's own words and the agent's reports (at most 26,000 characters, usually some 6,000; nothing
that a tool printed). It answers with a sentence, a status and quotes. A quote must stand in the turn that it names, is
shown as the whole sentence, and is the person's or the agent's by where it stands; a question, a refusal and words that
a tool printed decide nothing. What holds stands in place of what rules found; what does not is refused, and the log
says why. Without an answer within `timeout` seconds, and if most of it is refused, the rules' digest is used. Sessions
without a person are not asked about.

**After two failures in a row** no process asks a model for an hour, imports neither; `status` says until when.

```toml
[llm]
provider = "ollama"
model = "qwen3:4b"
```

| provider | endpoint | variable with the key |
|---|---|---|
{servers}
| `command` | a program of yours: `command = ["llm", "-m", "small"]` | – |
| `none` | – | – |

A server needs the extra `llm` and is asked at `/chat/completions`, one of `anthropic` at `/messages`. An `endpoint` of
your own replaces the default; it is sent only the key that `api_key_env` or `api_key_file` names. A program gets the
prompt on stdin and prints the answer; it runs in a folder of its own, by which a session that it leaves is known as
ours and not captured, and is ended at the timeout. `setup` names models of this machine.

**Budget.** All calls share `llm.daily_tokens` a UTC day, in all workspaces. Before a call, its prompt (by estimate) and
its longest answer must fit in what is left; otherwise rules are used, and the log says so once a day. Then what the
server reports counts. The record is `llm-tokens.json` in the folder with the state of all workspaces; if it is damaged,
no model is asked until you delete it. `status` says what was spent.

**`recall.meaning`** may be one of these servers, too (not `anthropic`): see [recall](recall.md#in-other-words). It
takes nothing of `[llm]`. Prefixes are known for e5, nomic, bge, arctic-embed and mxbai; a blank stands for none.
"""


def servers() -> str:
    def cell(text: str) -> str:
        return f"`{text}`" if text else "–"

    return "\n".join(f"| `{name}` | {cell(url)} | {cell(key)} |" for name, (url, key) in SERVERS.items())


def generated() -> str:
    rows = []
    for field in ALL_SETTINGS:
        key, default, doc, allowed = field.key, field.default, field.doc, field.workspace
        plain = (
            "[]"
            if default == ()
            else '""'
            if default == ""
            else str(default).lower()
            if isinstance(default, bool)
            else str(default)
        )
        own = "" if allowed else ", *own*"
        assert environment_name(field) == f"SIGNET_{key.replace('.', '_').upper()}"
        rows.append(f"* `{key}` (`{plain}`{own}): {doc}")
    return HEAD + "\n".join(rows) + "\n" + TAIL.format(servers=servers())


def test_the_settings_page_is_what_the_model_says() -> None:
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(generated(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == generated(), "WRITE_DOCS=1 pytest brings it up to date"
