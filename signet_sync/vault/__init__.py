"""The door to the workspace's files: safe paths, durable writes, scans, manifests, tombstones."""
