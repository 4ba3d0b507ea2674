"""The commands over many workspaces, `fleet …`."""
