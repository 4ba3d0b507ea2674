"""Registers what takes part in a pass: the one list of features that a pass knows."""

from __future__ import annotations

from signet_sync.sync.stages import Pipeline

DERIVERS = (
    "signet_sync.agent.graph:Graph",
    "signet_sync.agent.threads:Threads",
    "signet_sync.agent.facts:Facts",
    "signet_sync.agent.session_log:SessionLog",
    "signet_sync.agent.recall_lines:RecallLines",
)
PIPELINE = Pipeline(DERIVERS)
