"""Where every version since 0.1.0 looks for a newer one's schema before it makes way for it (`host.installed`)."""

from signet_sync.storage.database.tables import VERSION

__all__ = ["VERSION"]
