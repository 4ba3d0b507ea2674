"""What a person or agent says of a statement: done, not true, open again. Pages and `recall` follow, and a rebuild."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Vault

from signet_sync.app.workspace import opened
from signet_sync.errors import UsageError
from signet_sync.formats.timestamps import parse_instant
from signet_sync.recall import pinning
from signet_sync.settings.model import Settings

STEP, DECIDED = "Measure the retry loop of the queue.", "The lamp of the tower burns whale oil."
BODY = f"# One\n\n## Decisions\n\n- {DECIDED}\n\n## Next steps\n\n- {STEP}\n"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault(tmp_path / "vault")
    made.session(1, body=BODY)
    made.reindex()
    return made


def handle(vault: Vault, text: str) -> str:
    ((found,),) = vault.rows("select distinct id from statements where text = ?", text)
    return f"^{found}"


def ask(vault: Vault, *words: str, code: int = 0) -> Any:
    answer = vault.call("forget", *words, "--json", "--now", NOW)
    assert answer.code == code, answer
    return answer.json


def shown(vault: Vault) -> list[str]:
    """Which of the two the page shows above its session log, and `recall` finds as statements."""
    page = vault.page().partition("## Session Ledger")[0]
    hits = vault.call("recall", "retry loop of the queue, whale oil", "--json", "--now", NOW).json["hits"]
    on_page = [text for text in (STEP, DECIDED) if text in page]
    assert {hit["text"] for hit in hits if hit["tier"] == "statement"} == set(on_page)
    return on_page


def test_what_is_marked_leaves_pages_and_recall_also_after_a_rebuild_until_it_is_open_again(vault: Vault) -> None:
    step, decided = handle(vault, STEP), handle(vault, DECIDED)
    assert shown(vault) == [STEP, DECIDED]
    assert ask(vault, step, "--done") == {"id": step[1:], "text": STEP, "status": "done"}
    assert shown(vault) == [DECIDED]
    assert "not true: " in vault.call("forget", decided, "--now", NOW).out
    assert shown(vault) == []
    vault.reindex("--full")
    assert shown(vault) == []
    vault.db.unlink()  # a backup brings back what was said of them
    vault.reindex()
    assert shown(vault) == []
    assert vault.call("expand", decided, "--json").json["node"]["status"] == "withdrawn"
    for one in (step, decided):
        assert ask(vault, one, "--undo")["status"] == "open"
    assert shown(vault) == [STEP, DECIDED]


def test_only_a_statement_is_marked_and_an_agent_takes_back_no_other_ones_words(vault: Vault) -> None:
    ((node,),) = vault.rows("select id from session_summaries where source_type = 'summary'")
    assert ask(vault, node, "--done", code=2)["error"]["code"] == "not-a-statement"
    assert ask(vault, "^f-abcdefghijkl", code=2)["error"]["code"] == "unknown-handle"
    now_us = parse_instant(NOW) or 0
    with opened(str(vault.root), Settings()) as workspace:
        with pytest.raises(UsageError, match="no agent's statement"):
            pinning.mark(workspace, "default", handle(vault, DECIDED), "withdrawn", now_us, by_agent=True)
        pinning.mark(workspace, "default", handle(vault, STEP), "done", now_us, by_agent=True)
    assert shown(vault) == [DECIDED]
