"""Stores the rows of pages: candidates, what was written last, page leases.

Tables: pages, ledger_rows, ledger_days, memory_md_heads.
"""
