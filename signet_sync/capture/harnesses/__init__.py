"""Parses transcripts of coding agents into one form of conversation; pure, one module for each harness."""
