"""``dupwatch tokens``: add, list and revoke the tokens that programs use for the HTTP service."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SetOption, command_config
from consumer.cli.results import answer, results, write
from consumer.config.config import Config
from consumer.model.errors import ConfigError
from consumer.text.timestamps import DURATION_HELP, option_duration, shown_duration
from consumer.web.token import Role, Token, current_time
from consumer.web.token_file import LIFETIME, LIFETIME_MAX, NewToken, Tokens, add_token, read_tokens, revoke_token
from consumer.wiring.audit import opened_audit_log, record_change

app = typer.Typer(no_args_is_help=True, help="Add, list or revoke tokens for the HTTP service.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The token's name, which logs show.")]
FileOption = Annotated[
    str | None,
    typer.Option("--tokens", help="The token file; default: the setting service.tokens.", metavar="FILE"),
]


@app.command()
def add(
    name: NameArgument,
    role: Annotated[
        list[Role],
        typer.Option(
            "--role",
            help="reader: check texts, read articles, banks and metrics. writer: judge and retract articles. reviewer: "
            "release articles, change deny banks. admin: manage tokens and banks, read the audit log. No role "
            "contains another; may be repeated.",
        ),
    ],
    owner: Annotated[str, typer.Option(help="Who is responsible for the program: a person or a team.", metavar="WHO")],
    expires: Annotated[
        str,
        typer.Option(
            help=f"How long the token is valid: {DURATION_HELP}; at most {shown_duration(LIFETIME_MAX)}.",
            metavar="SPAN",
        ),
    ] = shown_duration(LIFETIME),
    tokens: FileOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Add a token and print its secret, which is not stored and cannot be shown again.

    Running services accept the token within two seconds. The file is created with mode 0600 if it does not exist.
    """
    chosen = command_config(config, overrides, service__tokens=tokens)
    path, new = _token_file(chosen), NewToken(name, owner, role, option_duration("--expires", expires))
    with opened_audit_log(chosen) as audit_log:
        token = add_token(path, new, current_time(), _show_secret)
        record_change(audit_log, "tokens.add", token.name, "added")
    render.console(stderr=True).print(
        f"Added {token.name} ({', '.join(token.roles)}), valid until {_format_time(token.expires_at)}. Keep the "
        "secret: it cannot be shown again. Programs send it as Authorization: Bearer SECRET.",
    )


@app.command("list")
def list_(
    tokens: FileOption = None, json: JsonOption = False, config: ConfigOption = None, overrides: SetOption = None
) -> None:
    """List all tokens in order of addition, including revoked and expired ones, without their secrets."""
    path = _token_file(command_config(config, overrides, service__tokens=tokens))
    found, now = read_tokens(path), current_time()
    answer(json=json, lines=(_fields(token, now) for token in found), text=[_table(found, now)])


@app.command()
def revoke(
    name: NameArgument, tokens: FileOption = None, config: ConfigOption = None, overrides: SetOption = None
) -> None:
    """Revoke a token: running services refuse it within two seconds. The name cannot be used again."""
    chosen = command_config(config, overrides, service__tokens=tokens)
    path = _token_file(chosen)
    with opened_audit_log(chosen) as audit_log:
        token, is_new = revoke_token(path, name, current_time())
        if is_new:
            record_change(audit_log, "tokens.revoke", token.name, "revoked")
    unchanged = f"was already revoked, at {_format_time(token.revoked_at)}; nothing was changed"
    with results():
        render.console().print(f"{token.name} {'is revoked' if is_new else unchanged}.")


def _token_file(config: Config) -> Path:
    if config.service.tokens is None:
        raise ConfigError("no token file: add --tokens FILE, or set service.tokens in the configuration")
    return Path(config.service.tokens)


def _show_secret(secret: str) -> None:
    with results():
        write(f"{secret}\n".encode())


def _fields(token: Token, now: datetime) -> dict[str, object]:
    """Return the fields of a token for JSON output, without the digest of its secret."""
    return {
        "name": token.name,
        "roles": token.roles,
        "owner": token.owner,
        "state": token.state(now),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
    }


def _table(tokens: Tokens, now: datetime) -> Table:
    columns: list[Column | str] = [
        Column("name", overflow="fold"),
        "roles",
        Column("owner", overflow="fold"),
        *(Column(name, no_wrap=True) for name in ("state", "created", "expires")),
    ]
    rows = (
        (
            token.name,
            ", ".join(token.roles),
            render.plain(token.owner),
            token.state(now),
            _format_time(token.created_at),
            _format_time(token.expires_at),
        )
        for token in tokens
    )
    return render.table(columns, rows)


def _format_time(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat().replace("+00:00", "Z")
