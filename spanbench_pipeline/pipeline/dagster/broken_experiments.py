"""Experiment files that could not be used, where a person who looks at the web UI sees them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import dagster as dg

from spanbench_pipeline.core import keys
from spanbench_pipeline.core.codepoints import without_halves
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline.staleness import Key

GROUP = "broken_experiments"


def assets(broken: Mapping[str, InputError], taken: Collection[Key] = ()) -> list[dg.AssetSpec]:
    """Return one asset a broken file, in a group of its own: what is wrong stands in its
    description.

    ``taken`` are the keys of other assets, since a corpus may have the group's name.

    Nothing can materialize it. It is gone when the file has been mended and the code location
    reloaded.
    """
    named = keys.keys(broken)
    for stem, key in named.items():
        if (GROUP, key) in taken:
            named[stem] = keys.hashed(key, stem, ())
    return [
        dg.AssetSpec(
            key=[GROUP, named[stem]],
            group_name=GROUP,
            description=f"**Left out, with all its assets:** {without_halves(str(error))}\n\n"
            "Mend the file, then reload the code location. The other corpora are not concerned.",
            tags={"broken": "experiment"},
            kinds={"toml"},
            metadata={"error": without_halves(str(error))},
        )
        for stem, error in broken.items()
    ]
