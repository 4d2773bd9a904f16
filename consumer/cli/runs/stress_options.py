"""The options of ``dupwatch stress``."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from consumer.stress import BURST_HELP, LANGUAGES, SEEDS

SourceOption = Annotated[
    str | None, typer.Option(help="Topic to send to: kafka://HOST:PORT/TOPIC; default: the setting.", metavar="TOPIC")
]
SinkOption = Annotated[
    str | None,
    typer.Option(
        help="Where the consumers write verdicts: kafka://HOST:PORT/PREFIX; default: the setting.", metavar="SINK"
    ),
]
ServiceOption = Annotated[
    str | None, typer.Option(help="Send to dupwatch serve instead: http://HOST:PORT.", metavar="URL")
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="With --service: only check the articles, and store nothing.")
]
TokenFileOption = Annotated[
    Path | None, typer.Option("--token-file", help="File with a token for the service.", metavar="FILE")
]
AuthoritiesOption = Annotated[
    Path | None, typer.Option("--ca", help="CA certificates for an https:// service, as PEM.", metavar="FILE")
]
ConnectionsOption = Annotated[
    int,
    typer.Option(help="Connections to the service. If all are busy, articles are sent late.", min=1, max=1_000),
]
RateOption = Annotated[float, typer.Option(help="Articles per second.", min=0.01, max=1_000_000)]
SecondsOption = Annotated[float, typer.Option(help="How long to send.", min=0.1, max=1_000_000)]
BurstOption = Annotated[
    str | None, typer.Option(help=f"Bursts: {BURST_HELP}.", metavar="FACTORxSECONDS/SECONDS", show_default=False)
]
WarmUpOption = Annotated[
    float, typer.Option(help="Leave the first seconds out of the percentiles.", metavar="SECONDS", min=0)
]
CopiesOption = Annotated[
    float, typer.Option(help="Share of articles that are edited copies of others.", min=0, max=0.99)
]
CharsOption = Annotated[int, typer.Option(help="Characters of an article.", min=50, max=100_000)]
LanguageOption = Annotated[
    list[str] | None,
    typer.Option(help=f"Language of the articles: {', '.join(LANGUAGES)}; default: zh. Repeat it to mix languages."),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        help="Seed of the texts; default: a new one. With the seed of an earlier run, every article repeats one of "
        "that run.",
        min=0,
        max=SEEDS - 1,
    ),
]
WaitOption = Annotated[
    float,
    typer.Option(
        help="Seconds to wait for servers, and for the next verdict before the rest counts as lost.",
        min=0.1,
        max=86_400,
    ),
]
PlotOption = Annotated[
    Path | None,
    typer.Option("--plot", help="Also plot the times to the verdicts into this file.", metavar="FILE.png|FILE.svg"),
]


class StressRequest(NamedTuple):
    """The options of one call, under the names of ``dupwatch stress``."""

    source: str | None
    sink: str | None
    service: str | None
    check: bool
    token_file: Path | None
    authorities: Path | None
    connections: int
    rate: float
    seconds: float
    burst: str | None
    warm_up: float
    copies: float
    chars: int
    languages: tuple[str, ...]
    seed: int | None
    wait_s: float
    plot_file: Path | None
    json: bool
