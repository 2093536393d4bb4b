"""Experiment files that could not be used, where a person who looks at the web UI sees them."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from spanbench_pipeline.errors import InputError
from spanbench_pipeline.experiment import slug

GROUP = "broken_experiments"


def assets(broken: Mapping[str, InputError]) -> list[dg.AssetSpec]:
    """One asset a broken file, in a group of its own: what is wrong stands in its description.

    Nothing can materialize it. It is gone when the file has been mended and the code location
    reloaded.
    """
    return [
        dg.AssetSpec(
            key=[GROUP, slug(stem) or "unnamed"],
            group_name=GROUP,
            description=f"**Left out, with all its assets:** {error}\n\n"
            "Mend the file, then reload the code location. The other corpora are not concerned.",
            tags={"broken": "experiment"},
            kinds={"toml"},
            metadata={"error": str(error)},
        )
        for stem, error in broken.items()
    ]
