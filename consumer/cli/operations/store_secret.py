"""``dupwatch store secret``: the secret that keys the sketches of a store."""

from pathlib import Path
from typing import Annotated

import typer

from consumer.cli import render
from consumer.cli.options import ConfigOption, LastingStoreOption, SetOption, command_config
from consumer.model.errors import ConfigError, SinkError, StoreMismatch
from consumer.wiring.audit import opened_audit_log, record_change
from consumer.wiring.stores import opened_store, stored_secret
from consumer.workers.secret_file import write_secret

app = typer.Typer(no_args_is_help=True, help="Export the secret that keys the sketches of a store.")


@app.callback()
def secret() -> None:
    """Export the secret that keys the sketches of a store."""


@app.command()
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, which only its owner may read.")],
    store: LastingStoreOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Write the secret of a store to a new file with mode 0600, for fingerprint.secret_file of another store.

    Anybody who has the secret can compute which letters of a text decide its sketch. Stores in several regions need
    the same secret to be comparable, and a rebuilt store needs its old secret to reach the same verdicts.
    """
    chosen = command_config(config, overrides, store__url=store)
    with opened_store(chosen, readonly=True) as opened, opened_audit_log(chosen) as audit_log:
        cell = opened.settings()
        if cell is None:
            raise StoreMismatch("the store is empty: nothing has been judged into it, so it has no secret yet")
        secret = stored_secret(cell)
        if secret is None:
            raise StoreMismatch("the scheme of this store has no secret; jieba-tfidf/3 is the first scheme with one")
        try:
            write_secret(file, secret)
        except FileExistsError as error:
            raise ConfigError(f"{file} already exists; name a new file") from error
        except OSError as error:
            raise SinkError(f"{file} cannot be written: {error.strerror}") from error
        record_change(audit_log, "store.secret.export", secret.id, "exported")
    render.console(stderr=True).print(
        f"Wrote the secret {secret.id} to {render.plain(str(file))}. Protect it like a password."
    )
