"""Stores rows of files and artifacts, full text, passes, removals, violations, redactions and access counts.

Tables: files, memory_artifacts, seals, links, violations, acceptances, redactions, passes, outbox,
derivers, texts, text_owners, passages, said, printed, memory_artifact_tombstones, removed_handles, removed_lines.
"""
