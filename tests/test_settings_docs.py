"""docs/settings.md is generated from the model; this test holds it, and says how to bring it up to date."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

from signet_sync.config import Settings, environment_name, spec

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"

HEAD = """\
# Settings

Every setting with its default, generated from `signet_sync.config.Settings`. Order: flags, environment, your own
`config.toml` (`~/.config/signet-sync/` on Linux, `~/Library/Application Support/signet-sync/` on macOS, or
`SIGNET_CONFIG`), the workspace's `signet-sync.toml`, defaults. A workspace may set everything but what is marked: it
may come from a checkout, and can therefore run nothing, send nothing and write nowhere else.

Besides these, `SIGNET_WORKSPACE` (or `--workspace`) names the workspace, `SIGNET_DB` (or `--db`) the database and
`SIGNET_STATE` the folder that holds the state of all workspaces.

| key | default | environment | meaning |
|---|---|---|---|
"""


def generated() -> str:
    rows = []
    for field in fields(Settings):
        key, default, doc, allowed = spec(field)
        plain = "[]" if default == () else str(default).lower() if isinstance(default, bool) else str(default)
        shown = f"`{plain}`"
        own = "" if allowed else " *Not in a workspace's file.*"
        rows.append(f"| `{key}` | {shown} | `{environment_name(field)}` | {doc}{own} |")
    return HEAD + "\n".join(rows) + "\n"


def test_the_settings_page_is_what_the_model_says() -> None:
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(generated(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == generated(), "WRITE_DOCS=1 pytest brings it up to date"
