"""``dupwatch health``: check whether the consumer on this machine is alive, for health checks of containers."""

from typing import Annotated, Final

import typer

from consumer.cli import render
from consumer.cli.options import ConfigOption, SetOption, command_config
from consumer.doctor.pages_client import (
    ClientAccess,
    PagesClient,
    PageUnavailable,
    configured_url,
    with_own_certificate,
)

WAIT_S: Final = 5.0
"""Time limit of the request."""
_HEALTHY_STATUS: Final = 200


def health(
    ready: Annotated[
        bool, typer.Option("--ready", help="Check that the consumer is ready to judge, not only alive.")
    ] = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Check the health of the consumer that runs with this configuration: exit with 0 if it is healthy, else with 1.

    The request goes to http.listen, over TLS if TLS is configured, and needs no password. Without http.listen there is
    nothing to check, and the exit code is 0.
    """
    chosen = command_config(config, overrides)
    console = render.console()
    if not chosen.http.listen:
        console.print("http.listen is empty: the consumer serves no health pages.")
        return
    url = configured_url(chosen)
    pages = PagesClient(url, with_own_certificate(ClientAccess(), chosen), WAIT_S)
    page = "/readyz" if ready else "/healthz"
    try:
        answer = pages.get(page)
    except PageUnavailable as error:
        console.print(
            f"No answer from {render.plain(url)}: {render.plain(str(error))}. Check that the consumer is running, and "
            "that this is its http.listen.",
            soft_wrap=True,
        )
        raise typer.Exit(1) from error
    body = answer.body.decode(errors="replace").strip()
    console.print(f"{page}: {answer.status} {render.plain(body)}")
    if answer.status != _HEALTHY_STATUS or not answer.is_dupwatch:
        raise typer.Exit(1)
