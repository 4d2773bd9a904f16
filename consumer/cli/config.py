"""``dupwatch config``: what is configured, and whether it holds."""

import sys

import typer

from consumer.app import judge_settings, lexicon_of
from consumer.cli.options import ConfigOption, SetOption, configured
from consumer.cli.results import results
from consumer.config import HIDDEN, flatten

app = typer.Typer(no_args_is_help=True, help="Look at the configuration.")


@app.command()
def show(config: ConfigOption = None, settings: SetOption = None) -> None:
    """Print every setting as it is in force, as TOML that can be read back."""
    chosen = configured(config, settings)
    with results():
        for name, value in flatten(chosen):
            sys.stdout.write(f"# {name} is set, and not shown\n" if value == HIDDEN else f"{name} = {value}\n")


@app.command()
def check(config: ConfigOption = None, settings: SetOption = None) -> None:
    """Check the configuration without running anything; exit code 2 and one sentence where something is wrong."""
    chosen = configured(config, settings)
    judge_settings(chosen, lexicon_of(chosen))
    with results():
        sys.stdout.write("The configuration is right.\n")
