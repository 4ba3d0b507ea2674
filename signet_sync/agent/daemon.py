"""Loads all of an agent where every version since 0.1.0 asks for it before it makes way (`host.installed_version`)."""

from signet_sync.app.daemon import Daemon

__all__ = ["Daemon"]
