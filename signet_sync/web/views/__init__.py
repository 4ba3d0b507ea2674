"""Answers what each page asks for: plain functions from a request to what is shown."""
