"""Answers the requests for each page: plain functions from a request to what is shown."""
