"""Reads and writes files and standard streams: records, verdicts, dead letters, checkpoints and banks."""
