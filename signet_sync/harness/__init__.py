"""What coding agents leave behind: records of their hooks and transcripts, read by pure parsers, one module each."""
