"""chunks/<chunker>: the documents cut into pieces."""

from __future__ import annotations

from collections.abc import Callable

from spanbench_pipeline import chunkers
from spanbench_pipeline.checks import invariants
from spanbench_pipeline.chunkers import Chunker
from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Stage


def stages(experiment: Experiment) -> list[Stage]:
    """Return one stage a chunker of the experiment."""
    corpus = experiment.corpus
    found = []
    for settings in experiment.chunkers.values():
        chunker = chunkers.load(settings, experiment.path)
        found.append(
            Stage(
                key=(corpus, "chunks", chunker.name),
                table="chunks",
                description=f"The documents of {corpus}, cut by the chunker {chunker.name}.",
                compute=_compute(corpus, chunker),
                deps=((corpus, "documents"),),
                modules=(chunker.module, "spanbench_pipeline.chunkers"),
                params={"name": chunker.name, "params": dict(chunker.params)},
                checks=_checks(chunker),
                owns={"corpus": corpus, "chunker": chunker.name},
                tags={"corpus": corpus, "chunker": chunker.name},
            )
        )
    return found


def _compute(corpus: str, chunker: Chunker) -> Callable[[Reader], Outcome]:
    def compute(reader: Reader) -> Outcome:
        return Outcome(chunkers.chunk_documents(corpus, reader.table("documents"), chunker))

    return compute


_NO_OVERLAP = Check(
    "no_undeclared_overlap",
    "The chunker declares that it does not overlap: no two chunks share a character.",
    lambda reader: invariants.undeclared_overlaps(reader.own()),
)


def _sizes(fewest: int, most: int) -> Check:
    """Return the check that chunks have the sizes that their chunker promises."""
    short = f"at least {fewest:,} but for the last of a document, and " if fewest > 1 else ""
    return Check(
        "sizes_as_declared",
        f"Every chunk has as many characters as the chunker is set to: {short}at most {most:,}.",
        lambda reader: invariants.undeclared_sizes(reader.own(), fewest, most),
    )


def _checks(chunker: Chunker) -> tuple[Check, ...]:
    inside = Check(
        "chunks_inside_text",
        "Every chunk has at least one character and lies inside its document's text.",
        lambda reader: invariants.chunks_outside_text(reader.own(), reader.table("documents")),
    )
    ids = Check(
        "chunk_ids_unique",
        "Every chunk id occurs once and is <doc_id>:<chunker>:<chunk_no>.",
        lambda reader: invariants.wrong_chunk_ids(reader.own()),
    )
    found: tuple[Check, ...] = (inside, ids)
    if chunker.sizes is not None:
        found += (_sizes(*chunker.sizes),)
    if not chunker.overlaps:
        found += (_NO_OVERLAP,)
    if not chunker.tiles:
        return found
    tiles = Check(
        "every_character_in_a_chunk",
        "The chunker declares that it tiles: no character of a document is outside all chunks.",
        lambda reader: invariants.untiled_documents(reader.own(), reader.table("documents")),
    )
    return (*found, tiles)
