"""Desks that turn indexed rows into the text of a page: ledger, head, budget, render."""
