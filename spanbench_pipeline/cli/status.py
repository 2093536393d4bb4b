"""``spanbench status``: what is stale, and why."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import DONE
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import staleness
from spanbench_pipeline.pipeline.dagster.home_state import HomeState
from spanbench_pipeline.pipeline.staleness import Key, name
from spanbench_pipeline.pipeline.state import WAREHOUSE, State


def status(project: Project, names: Sequence[str], shape: str = "table") -> str:
    """Return each corpus's stale assets with their reasons, and what waits for them.

    As text, or as JSON where ``shape`` is ``json``: ``corpora`` and ``broken`` experiments.
    """
    home = HomeState(project)
    experiments = home.experiments
    for corpus in names:
        experiments.require(corpus)
    corpora = [_corpus(corpus, home.state([corpus])) for corpus in names or experiments.files]
    broken = [{"experiment": stem, "error": str(e)} for stem, e in experiments.broken.items()]
    if shape == "json":
        return json.dumps({"corpora": corpora, "broken": broken}, indent=2, ensure_ascii=False)
    left_out = [f"{b['experiment']}: broken experiment: {b['error']}" for b in broken]
    return "\n".join([*map(_text, corpora), *left_out])


def _corpus(corpus: str, state: State) -> dict[str, Any]:
    """Return what there is to say of a corpus, as JSON has it."""
    stale = state.stale
    settled = staleness.settled(state.nodes, stale)
    own = [key for key in state.nodes if key != WAREHOUSE]
    return {
        "corpus": corpus,
        "assets": len(state.nodes),
        "never_run": all(stale.get(key) == ["never materialized"] for key in own),
        "stale": [
            {"asset": name(key), "reasons": [*_absent(state, key), *why]}
            for key, why in stale.items()
        ],
        "waiting": [name(k) for k in state.nodes if k not in stale and k not in settled],
    }


def _absent(state: State, key: Key) -> list[str]:
    """Return why the files that an asset reads cannot be read; [] where they can."""
    return [state.absent[key]] if key in state.absent else []


def _text(found: dict[str, Any]) -> str:
    corpus, total, stale = found["corpus"], found["assets"], found["stale"]
    if not stale:
        return f"{corpus}: all {total} assets are up to date"
    if found["never_run"]:
        own = [item["reasons"] for item in stale if item["asset"].startswith(f"{corpus}/")]
        told = [f"  {why}" for reasons in own for why in reasons if why != "never materialized"]
        first = f"{corpus}: never run ({total} assets); spanbench run {corpus}"
        return "\n".join([first, *told])
    width = max(len(item["asset"]) for item in stale)
    lines = [f"  {item['asset']:<{width}}  {_short(item['reasons'])}" for item in stale]
    waiting = len(found["waiting"])
    return "\n".join(
        [f"{corpus}: {len(stale)} of {total} assets stale, {waiting} more wait for them", *lines]
    )


def _short(why: Sequence[str], most: int = 3) -> str:
    """Return the first reasons, and how many more there are."""
    more = [f"and {len(why) - most} more"] if len(why) > most else []
    return "; ".join([*why[:most], *more])


EXAMPLES = """\
  spanbench status cuad
  spanbench status --why cuad/chunks/clause
  spanbench status --format json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench status``."""
    parser.add_argument("corpus", nargs="*", metavar="CORPUS", help="default: all corpora")
    parser.add_argument(
        "--why", metavar="ASSET", help="explain one asset: its code, its inputs and its checks"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench status``; return the exit code."""
    if parsed.why is not None and parsed.corpus:
        raise InputError("status: give corpora or --why ASSET, one of the two")
    if parsed.why is not None:
        from spanbench_pipeline.cli.why import why

        terminal.say(why(project, parsed.why, parsed.format))
    else:
        terminal.say(status(project, parsed.corpus, parsed.format))
    return DONE
