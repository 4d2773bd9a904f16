"""Prompts on the terminal before a change."""

import sys
from contextlib import redirect_stdout
from signal import SIGINT

import typer

from consumer.cli import render
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE
from consumer.model.errors import ConfigError


def check_terminal(options: str = "--yes") -> None:
    """Raise ``ConfigError`` if standard input is not a terminal. ``options`` names options that avoid the prompt."""
    if not sys.stdin.isatty():
        raise ConfigError(f"cannot prompt: standard input is not a terminal; add {options}")


def ask_confirmation(question: str) -> bool:
    """Ask for confirmation on the terminal, and return the answer. Ctrl-C or the end of the input ends the command."""
    try:
        # Typer writes part of a prompt to standard output, which is for results only.
        with redirect_stdout(sys.stderr):
            return typer.confirm(question, err=True)
    except typer.Abort as stopped:
        render.console(stderr=True).print("\nNothing was changed.")
        raise typer.Exit(SIGNAL_EXIT_BASE + SIGINT) from stopped
