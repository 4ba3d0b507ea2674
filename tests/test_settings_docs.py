"""docs/settings.md is generated from the model; this test holds it, and says how to bring it up to date."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

from signet_sync.config import SERVERS, Settings, environment_name, spec

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"

HEAD = """\
# Settings

Every setting with its default, generated from `signet_sync.config.Settings`. Order: flags, environment, your own
`config.toml` (`~/.config/signet-sync/` on Linux, `~/Library/Application Support/signet-sync/` on macOS, or
`SIGNET_CONFIG`), the workspace's `signet-sync.toml`, defaults. A workspace may set everything but what is marked: it
may come from a checkout, and can therefore run nothing, send nothing and write nowhere else.

It can stop nothing either. Where `signet-sync.toml`, or a value in it, cannot be used, the last good value counts (it
is kept in the state folder), else the default, and `status`, `doctor`, the log and a line in MEMORY.md say so. So a
slip in it neither shows on a page what `noise.*` keeps off, nor gives an agent's sessions to another one. Only where
no good one was ever read on this machine are the defaults all there is. What is wrong with your own file or the
environment is an error of the command that you type; hooks, the agent, `session …`, `transcript …` and the MCP server
go on with what of it can be used, and until it is mended ask no language model, write no history and let nothing go
that is kept.

Besides these, `SIGNET_WORKSPACE` (or `--workspace`) names the workspace, `SIGNET_DB` (or `--db`) the database and
`SIGNET_STATE` the folder that holds the state of all workspaces.

| key | default | environment | meaning |
|---|---|---|---|
"""

TAIL = """
## A language model

Without one everything works: summaries and sentences are made from the session's own words. With one they are
proposed by it, and checked; where it is slow, broken or says nothing of use, the session is written without it after
`timeout` seconds at most. A summary costs one call, a sentence another.

Later, when nobody waits for anything, two more things are asked for, newest first and in small portions:

* Where `[extraction]` names a `provider`: the facts in each summary and compaction, old ones too, one call each. What
  quotes its artifact and says it in the artifact's words is kept; it stands beside what is found without a model, and
  neither closes nor replaces anything of that. Name a provider under `[synthesis]` alone if you don't want this.
* Where `[synthesis]` has one: a paragraph about each arc and epoch of sessions, one call whenever its sessions change.
  It is shown beside the list that it tells of.

A run asks at most 20 of each and begins nothing new after a minute. What gave no answer is asked for again a day later;
whoever fails twice in a row is left alone for a quarter of an hour.

```toml
[synthesis]
provider = "ollama"
model = "qwen3:4b"
```

| provider | endpoint | environment variable of the key |
|---|---|---|
{servers}
| `command` | – (a program of yours: `command = ["llm", "-m", "small"]`) | – |
| `none` | – | – |

All but the last two speak to a server with OpenAI's `/chat/completions` and need `pip install 'signet-sync[llm]'`. An
`endpoint` of your own takes the place of the usual one; with it no key is sent but the one that `api_key_env` or
`api_key_file` names.

`[synthesis]` says who is asked. Without a `provider` of its own it is `[extraction]`, but for `model` and `timeout`
where it gives them. Where neither names a provider, Signet's `agent.yaml` in the workspace is looked at, for `enabled`
and `provider` under `memory.pipelineV2` and nothing else: it may turn off, or name a provider for which your
`[extraction]` holds the `endpoint` (with a `model`) or the `command`. So a checkout can never decide where your
sessions are sent.

A program gets the prompt on stdin and prints the answer. It runs in your home folder with `SIGNET_SYNC_CHILD=1` set,
and is killed with all that it started when the time is over.
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
        rows.append(f"| `{key}` | {shown} | `{environment_name(field)}` | {doc}{own} |")
    return HEAD + "\n".join(rows) + "\n" + TAIL.format(servers=servers())


def test_the_settings_page_is_what_the_model_says() -> None:
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(generated(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == generated(), "WRITE_DOCS=1 pytest brings it up to date"
