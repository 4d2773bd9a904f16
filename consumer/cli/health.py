"""``dupwatch health``: whether the consumer of this machine is alive, for health checks of containers."""

from typing import Annotated, Final

import typer

from consumer.cli import render
from consumer.cli.options import ConfigOption, SetOption, configured
from consumer.top.client import Access, PagesClient, Unanswered
from consumer.top.own import own_url, with_own_certificate

WAIT_S: Final = 5.0
_ALIVE: Final = 200


def health(
    ready: Annotated[
        bool, typer.Option("--ready", help="Ask whether it can judge, not only whether it is alive.")
    ] = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Ask the consumer that runs with this configuration how it is: 0 where all is well, 1 where not.

    It asks at http.listen, over TLS where that is configured, and needs no password.
    """
    chosen = configured(config, settings)
    console = render.console()
    if not chosen.http.listen:
        console.print("http.listen is empty: there is nothing to ask.")
        return
    pages = PagesClient(own_url(chosen), with_own_certificate(Access(), chosen), WAIT_S)
    page = "/readyz" if ready else "/healthz"
    try:
        answer = pages.get(page)
    except Unanswered as error:
        console.print(f"No answer: {render.plain(str(error))}.")
        raise typer.Exit(1) from error
    told = answer.body.decode(errors="replace").strip()
    console.print(f"{page}: {answer.status} {render.plain(told)}")
    if answer.status != _ALIVE or not answer.ours:
        raise typer.Exit(1)
