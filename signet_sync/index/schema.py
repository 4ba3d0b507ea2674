"""Names the schema where every version since 0.1.0 looks for it before it makes way (`host.installed_version`)."""

from signet_sync.storage.database.tables import VERSION

__all__ = ["VERSION"]
