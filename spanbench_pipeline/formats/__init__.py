"""Rankings and eval sets in the formats of other tools, written and read.

One module a format, ours or a plug-in (entry points of the group ``spanbench.formats``). It has

- ``recognizes(given: Given) -> bool`` and ``parse(given, config, corpus) -> Rankings``, where it
  can be read,
- ``write(results: Results)``, which yields ``(path, chunks of bytes)``, where it can be written.

None of them measures anything: what is read is a list of entries a query, as the file gives them,
and ``scoring`` holds those to the corpus.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spanbench_pipeline.core.plugins import Registry

if TYPE_CHECKING:
    import pyarrow as pa

    from spanbench_pipeline.core.evalset import EvalSet
    from spanbench_pipeline.formats.stamp import Stamp

FORMATS = Registry(
    "spanbench.formats",
    {
        "trec": f"{__name__}.trec",
        "beir": f"{__name__}.beir",
        "legalbenchrag": f"{__name__}.legalbenchrag",
        "parquet": f"{__name__}.parquet_file",
        "jsonl": f"{__name__}.json_lines",
        "directory": "spanbench_pipeline.corpora.corpus_folder",
    },
)
"""Each format, in the order of an export."""
READABLE = ("jsonl", "trec", "legalbenchrag", "parquet")
"""Those of ours that hold rankings to score."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One retrieved piece as a file names it: by place, by chunk id, or by both.

    ``at`` is its number in the list, from 1, or the line of the file. ``text`` is what the file
    says stands there, ``rank`` the rank that it states beside the list's order; None where it says
    nothing. A place may be stated in part where a chunk id says the rest.
    """

    at: int
    doc_id: str | None = None
    start: int | None = None
    end: int | None = None
    chunk_id: str | None = None
    score: float | None = None
    text: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class GivenList:
    """What a file says was retrieved for one query, best first.

    ``where`` is the list's place in the file, for messages; ``counted`` what ``Entry.at`` counts.
    ``query`` and ``corpus`` are what the file says was asked, and of what; None where it says
    nothing. ``others`` are keys of the entries that say nothing to score.
    """

    query_id: str
    entries: tuple[Entry, ...]
    where: str
    counted: str = "entry"
    query: str | None = None
    corpus: str | None = None
    others: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rankings:
    """A parsed file of rankings.

    ``lists(evalset, chunks)`` returns its lists, queries and documents by the ids of the corpus;
    ``stamp`` is what was ranked, None where the file does not say.
    """

    lists: Callable[[EvalSet, pa.Table | None], list[GivenList]]
    stamp: Stamp | None = None
