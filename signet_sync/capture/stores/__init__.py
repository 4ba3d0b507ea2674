"""Finds and reads the transcripts that coding agents keep on this machine; writes nothing there."""
