"""Rows of pages: candidates, what was written last, leases.

Tables: pages, ledger_rows, ledger_days, memory_md_heads.
"""
