"""Whether what a file ranked is what it is scored with."""

from __future__ import annotations

import pyarrow as pa

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.formats import stamp
from spanbench_pipeline.formats.stamp import Stamp

_DIFFERENT = {
    "documents": "the documents are not those that were ranked: export the rankings anew from a "
    "run over the documents of today",
    "queries": "the queries are not those that were asked: export the rankings anew from a run "
    "over the queries of today",
}


def said(given: Stamp | None) -> str:
    """Return what a file says that it ranks, as the report shows it."""
    if given is None:
        return "not said"
    cut = "" if given.depth is None else f"; lists cut at {given.depth}"
    return (
        f"chunks {given.chunks} of the chunker {given.chunker}, of documents {given.documents}{cut}"
    )


def require_corpus(given: Stamp | None, evalset: EvalSet, *, where: str) -> None:
    """Raise InputError naming which of documents and queries are not those that the file ranked.

    Gold may have changed: it is noted. Nothing is known of a file that says nothing.
    """
    if given is None:
        return
    found = [
        f"{why} (the file says {getattr(given, name)}, here it is {here})"
        for name, why in _DIFFERENT.items()
        if (here := stamp.digest(name, getattr(evalset, name))) != getattr(given, name)
    ]
    if found:
        raise InputError(f"{where}: " + "; ".join(found))


def require_chunks(given: Stamp | None, chunks: pa.Table | None, *, where: str, cut: str) -> None:
    """Raise InputError where the chunks are not those that the file ranked; ``cut`` says whose they
    are.

    Its ids would stand for other places, and the relevant chunks would be others.
    """
    if given is None or chunks is None or (here := stamp.digest("chunks", chunks)) == given.chunks:
        return
    raise InputError(
        f"{where}: the chunks are not those that were ranked: the file ranks chunks of the chunker "
        f"{given.chunker!r} with fingerprint {given.chunks}, but those of {cut} have {here}; give "
        "the chunks that were ranked with --chunks FILE (chunks.parquet or the BEIR folder of the "
        "same export), or run and export anew"
    )


def require_stored(cut: pa.Table, stored: pa.Table, *, where: str, chunker: str, file: str) -> None:
    """Raise InputError where a chunker now cuts otherwise than when the corpus was last run.

    A file that does not say which chunks it ranks was made of the last run's, if of any.
    """
    if stamp.digest("chunks", cut) != stamp.digest("chunks", stored):
        raise InputError(
            f"{where}: the file does not say which chunks it ranks, and the chunker {chunker!r} "
            "cuts otherwise now than when the corpus was last run: its parameters or its code have "
            f"changed. Give the chunks that were ranked: --chunks {file} for those of the last "
            "run; or run the corpus again, and rank its chunks"
        )


def notes(given: Stamp | None, evalset: EvalSet, kind: str, chunker: str | None) -> list[str]:
    """Return what a reader must know of how the file stands to what it was scored with."""
    if given is None:
        if kind == "trec" and chunker is not None:
            return [
                "the file does not say which chunks it ranks; its ids are taken for those of "
                f"the chunker {chunker}, as it cuts now"
            ]
        return []
    if given.gold_spans != stamp.digest("gold_spans", evalset.gold_spans):
        return [
            "the gold spans have changed since the rankings were exported: the figures are of the "
            "gold of today, and not those that the export gave"
        ]
    return []
