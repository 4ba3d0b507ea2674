"""Registers what takes part in a pass: the one list of features that a pass knows."""

from __future__ import annotations

from signet_sync.sync.stages import InFull, Pipeline

DERIVERS = (
    "signet_sync.agent.graph:Graph",
    "signet_sync.agent.threads:Threads",
    "signet_sync.agent.facts:Facts",
    "signet_sync.agent.session_log:SessionLog",
    "signet_sync.agent.recall_lines:RecallLines",
)
RECOVERIES = (
    # First, because taking away a second link changes the signature of the file that a crash left published.
    "signet_sync.agent.displaced:DisplacedSaves",
    "signet_sync.agent.cut_off:LiveTurns",
    "signet_sync.agent.cut_off:UnfinishedFlows",
)
ERASERS = (
    "signet_sync.agent.scrub:RemovedWords",
    "signet_sync.agent.entities.tending:Entities",
    "signet_sync.agent.cut_off:LiveTurns",
    "signet_sync.agent.captured:Captures",
)
MAINTENANCE = (
    InFull("signet_sync.agent.full_text:FullText"),
    "signet_sync.agent.entities.tending:Entities",
    InFull("signet_sync.agent.manifests:MissingManifests"),
    InFull("signet_sync.agent.retention:Retention"),
    InFull("signet_sync.agent.copied_manifests:ManifestCopies"),
    InFull("signet_sync.agent.copies:PageCopies"),
    InFull("signet_sync.agent.scrubbing:ReturnedPages"),
    "signet_sync.agent.scrubbing:Scrub",
    InFull("signet_sync.agent.backups:Backup"),
)
PUBLISHERS = ("signet_sync.agent.projection:MemoryPages", "signet_sync.agent.projection:LogPages")
CLOSING = ("signet_sync.agent.cut_off:Purges",)
PIPELINE = Pipeline(DERIVERS, RECOVERIES, ERASERS, MAINTENANCE, PUBLISHERS, CLOSING)
