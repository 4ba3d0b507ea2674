"""Registers what takes part in a pass: the one list of features that a pass knows."""

from __future__ import annotations

from signet_sync.sync.workspace import InFull, Pipeline

DERIVERS = (
    "signet_sync.graph.stage:SessionProjects",
    "signet_sync.graph.stage:Graph",
    "signet_sync.graph.stage:Threads",
    "signet_sync.graph.stage:Statements",
    "signet_sync.graph.stage:Quotes",
    "signet_sync.sessions.live.stage:LiveStatements",
    "signet_sync.pages.stage:SessionLog",
    "signet_sync.recall.stage:FoundStatements",
)
RECOVERIES = (
    "signet_sync.app.recovery:Words",
    # First, because removing a second link changes the signature of a file published just before a crash.
    "signet_sync.pages.conflict_copies:DisplacedSaves",
    # Before flows are finished: one of a removed session must not write.
    "signet_sync.privacy.stage:SignetRemovals",
    "signet_sync.app.recovery:LiveTurns",
    "signet_sync.app.recovery:UnfinishedFlows",
)
ERASERS = (
    "signet_sync.privacy.stage:RemovedSessions",
    "signet_sync.entities.stage:Entities",
    "signet_sync.app.recovery:LiveTurns",
)
MAINTENANCE = (
    InFull("signet_sync.sync.deriving:FullText"),
    "signet_sync.app.recovery:Words",
    "signet_sync.entities.stage:Entities",
    InFull("signet_sync.sync.manifests:MissingManifests"),
    InFull("signet_sync.integrity.stage:Retention"),
    InFull("signet_sync.privacy.stage:ReturnedPages"),
    "signet_sync.privacy.stage:Scrub",
    InFull("signet_sync.sync.database:Backup"),
)
PUBLISHERS = (
    "signet_sync.pages.stage:MemoryPages",
    "signet_sync.pages.stage:LogPages",
    "signet_sync.pages.stage:ConflictCopies",
)
PIPELINE = Pipeline(DERIVERS, RECOVERIES, ERASERS, MAINTENANCE, PUBLISHERS)
