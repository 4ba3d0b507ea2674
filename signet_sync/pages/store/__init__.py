"""Stores what was written to pages, their leases and the session log (`pages`); reads what is known (`views`).

Tables: pages, ledger_rows, ledger_days, memory_md_heads.
"""
