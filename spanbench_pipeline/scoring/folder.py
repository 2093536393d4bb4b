"""Where a scored ranking lies: a folder of its own for every name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spanbench_pipeline.core import keys

_NAMED = "config_metrics.parquet"
"""A table that every scored ranking has: its column ``config`` is the name."""


def folder_of(scored: Path, name: str) -> Path:
    """Return the folder of ``scored`` for a name: the one that holds it, else the first that is
    free.

    Of names with one slug, the one that was scored first has the folder of that name; the others
    have one whose name ends in a hash. No name ever takes another's.
    """
    choices = [scored / key for key in keys.choices(name)]
    holders = {folder: held_by(folder) for folder in choices if _holds_something(folder)}
    for folder, held in holders.items():
        if held is not None and keys.tidy(held) == keys.tidy(name):
            return folder
    return next(folder for folder in choices if folder not in holders)


def held_by(folder: Path) -> str | None:
    """Return the name whose scores a folder holds; None where it is no folder of a scored
    ranking.
    """
    try:
        found = pq.read_table(folder / _NAMED, columns=["config"], partitioning=None)
    except (OSError, pa.ArrowException, KeyError):
        return None
    return str(found["config"][0]) if found.num_rows else None


def _holds_something(folder: Path) -> bool:
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
