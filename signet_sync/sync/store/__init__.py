"""Stores rows of files and artifacts, full text, passes, violations, redactions and access counts.

Tables: files, memory_artifacts, seals, links, violations, acceptances, redactions, artifact_telemetry, passes,
recall_lines.
"""
