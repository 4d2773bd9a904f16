"""Detectors side by side on public sets of real texts: ``python -m benchmarks.quality.real DIR``.

Nothing is fetched: put the sets into DIR as their publishers lay them out; ``--help`` says how to get them. Sets that
are not there are skipped and named. Every detector runs with the threshold that its publisher sets, and peers also with
the one of a few that has the best F1 on the same set, marked *best*. dupwatch is not tuned: its profiles run as they
come, with several secrets, whose flags are added up.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.quality.real.detectors import PROFILES_SHOWN, Judged, Peer, dupwatch, missing_peers, peers
from benchmarks.quality.real.layout import LayoutError
from benchmarks.quality.real.sets import NAMES, SOURCES, how_to_get, read_sets
from benchmarks.quality.real.text_dedup import NAME as TEXT_DEDUP
from benchmarks.quality.real.text_dedup import text_dedup
from benchmarks.quality.real.truth import Counts, RealSet, total
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.report import OUT, Row, publish, tell

PART: Final = "real"
SECRETS: Final = 5
PUBLISHED: Final = ""
BEST: Final = "best"
_MICROSECONDS: Final = 1e6


def row(real: RealSet, detector: str, setting: str, counts: Sequence[Counts], seconds: Sequence[float]) -> Row:
    """Return the figures of one or several runs of a detector: flags are means, rates are those of all runs."""
    added, runs = total(counts), len(counts)
    return {
        "set": real.name,
        "detector": detector,
        "setting": setting,
        "flags": _mean(added.flags, runs),
        "wrong": _mean(added.wrong, runs),
        "variants": _mean(added.variants, runs),
        "precision": _rate([one.precision for one in counts], added.precision),
        "recall": _rate([one.recall for one in counts], added.recall),
        "F1": _rate([], added.f1),
        "µs a text": round(_MICROSECONDS * sum(seconds) / runs),
    }


def rows_of_dupwatch(real: RealSet, secrets: int) -> Iterator[Row]:
    """Yield a row for each profile."""
    for profile in PROFILES_SHOWN:
        tell(f"{real.name}: dupwatch, {profile} …")
        judged = [dupwatch(profile, seed)(real) for seed in range(secrets)]
        counts = [real.truth.count(one.flags) for one in judged]
        yield row(real, f"dupwatch, {profile}", PUBLISHED, counts, [one.seconds for one in judged])


def rows_of_peer(real: RealSet, peer: Peer) -> Iterator[Row]:
    """Yield a row with the published threshold, and one with the best of all if another one is better."""
    tell(f"{real.name}: {peer.name} …")
    published = peer.judge(real, peer.published)
    counts = real.truth.count(published.flags)
    yield row(real, peer.name, setting(peer, peer.published), [counts], [published.seconds])
    if counts.f1 is None:
        return
    best: tuple[float, float, Judged] | None = None
    for threshold in peer.others:
        judged = peer.judge(real, threshold)
        f1 = real.truth.count(judged.flags).f1 or 0.0
        if f1 > max(counts.f1, best[0] if best else 0.0):
            best = (f1, threshold, judged)
    if best is not None:
        _, threshold, judged = best
        shown = f"{BEST}: {setting(peer, threshold)}"
        yield row(real, peer.name, shown, [real.truth.count(judged.flags)], [judged.seconds])


def setting(peer: Peer, threshold: float) -> str:
    """Write a threshold with its unit."""
    return f"{threshold:g} {peer.unit}" if threshold >= 1 else f"{peer.unit} {threshold:g}"


def _mean(count: int, runs: int) -> float | int:
    return count if runs == 1 else round(count / runs, 1)


def _rate(of_runs: Sequence[float | None], of_all: float | None) -> str | None:
    """Write the rate of all runs, with the lowest and the highest of one where these differ."""
    if of_all is None:
        return None
    low, high = (f"{of([rate for rate in of_runs if rate is not None], default=of_all):.3f}" for of in (min, max))
    return f"{of_all:.3f}" if low == high else f"{of_all:.3f} ({low}–{high})"


def main(
    folder: Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Folder with the sets.")],
    only: Annotated[
        list[str] | None, typer.Option("--set", help=f"One of {', '.join(NAMES)}; may be repeated.")
    ] = None,
    secrets: Annotated[int, typer.Option(min=1, help="Secrets that dupwatch runs with.")] = SECRETS,
    text_dedup_python: Annotated[
        Path | None,
        typer.Option("--text-dedup", exists=True, dir_okay=False, help="The Python that has text-dedup 0.4.0."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Score near-duplicate detectors on the public sets of real texts in DIR, and skip those that are not there.

    Nothing is fetched. Get the sets that you want from their publishers, and mind their terms.
    """
    unknown = [name for name in only or () if name not in NAMES]
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} is not a set; choose from {', '.join(NAMES)}")
    single_threaded()
    keep_to_one_core()
    try:
        found = read_sets(folder, tuple(only or NAMES))
        contenders = [*peers(), *([text_dedup(text_dedup_python)] if text_dedup_python else [])]
    except LayoutError as error:
        raise typer.BadParameter(f"{error}. --help says how to get each set") from error
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    for source in found.missing:
        tell(f"Skipped {source.name}: {folder / source.place} is not there. Get it at {source.where}")
    skipped = [*missing_peers(), *([] if text_dedup_python else [TEXT_DEDUP])]
    tell(
        f"{len(found.sets)} sets; {len(found.missing)} of {len(SOURCES)} sources skipped; "
        f"detectors skipped: {', '.join(skipped) or 'none'}"
    )
    if not found.sets:
        raise typer.BadParameter(f"{folder} has none of the sets. --help says how to get each")
    rows: list[Row] = []
    for real in found.sets:
        rows += rows_of_dupwatch(real, secrets)
        for peer in contenders:
            rows += rows_of_peer(real, peer)
    publish(PART, "Detectors on real texts", rows, out=out, folder=str(folder), secrets=secrets)


app = typer.Typer(add_completion=False)
app.command(epilog=f"Sets, and how to get them:\n\n{how_to_get()}")(main)

if __name__ == "__main__":
    app()
