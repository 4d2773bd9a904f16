"""Sends a generated feed at a given rate, and measures how long each article waits for its verdict.

The constants here are those of the command's options, so that ``dupwatch --help`` imports nothing more.
"""

from typing import Final

LANGUAGES: Final = ("zh", "en", "ja")
"""The languages of generated articles."""
BURST_HELP: Final = "10x5s/60s means ten times the rate for 5 seconds in the middle of every 60"
"""How to write bursts on the command line, for help and errors."""
SEEDS: Final = 1 << 32
"""Seeds of generated articles are below this."""
