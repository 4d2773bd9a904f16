"""``dupwatch stress``: send a generated feed at a given rate, and measure the time from arrival to verdict."""

from importlib import import_module

from consumer.cli.options import ConfigOption, JsonOption, SetOption
from consumer.cli.runs.stress_options import (
    AuthoritiesOption,
    BurstOption,
    CharsOption,
    CheckOption,
    ConnectionsOption,
    CopiesOption,
    LanguageOption,
    PlotOption,
    RateOption,
    SecondsOption,
    SeedOption,
    ServiceOption,
    SinkOption,
    SourceOption,
    StressRequest,
    TokenFileOption,
    WaitOption,
    WarmUpOption,
)


def stress(
    source: SourceOption = None,
    sink: SinkOption = None,
    service: ServiceOption = None,
    check: CheckOption = False,
    token_file: TokenFileOption = None,
    ca: AuthoritiesOption = None,
    connections: ConnectionsOption = 64,
    rate: RateOption = 50.0,
    seconds: SecondsOption = 60.0,
    burst: BurstOption = None,
    warm_up: WarmUpOption = 0.0,
    copies: CopiesOption = 0.2,
    chars: CharsOption = 2_000,
    language: LanguageOption = None,
    seed: SeedOption = None,
    wait: WaitOption = 30.0,
    plot_file: PlotOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Send generated articles at a steady rate, and report how long each one waits for its verdict.

    Use a deployment for trials, because the articles are stored like any others. Its consumers must write all verdicts
    (run --emit all). Articles are sent when they are due, even if earlier ones still wait, and the time of each counts
    from then. The exit code is 1 if an article gets no verdict.
    """
    request = StressRequest(
        source, sink, service, check, token_file, ca, connections, rate, seconds, burst, warm_up, copies, chars,
        tuple(language or ()), seed, wait, plot_file, json,
    )  # fmt: skip
    # It takes long to import, and dupwatch --help imports every command.
    import_module("consumer.cli.runs.stress_run").run_stress(request, config, overrides)
