"""Tokens by which programs are let in: who has one, what it allows, until when; the file with their hashes."""
