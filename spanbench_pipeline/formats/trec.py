"""TREC runs and relevance judgements (qrels): white space parts the columns, ids are one word.

A run's line is ``query Q0 chunk rank score tag``, a judgement's ``query 0 chunk relevance``. Tools
order a run by its score alone and break ties each in its own way, so the score that is written
falls by one from rank to rank: whatever reads the file has our order. Our own scores stand in
Parquet and in JSON lines.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.formats import Entry, GivenList, Rankings, strict_json
from spanbench_pipeline.formats.given_file import Given
from spanbench_pipeline.formats.ids import decoder, encode
from spanbench_pipeline.formats.results import Results
from spanbench_pipeline.formats.stamp import of_tag
from spanbench_pipeline.metrics.joins import deduplicate
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline.storage.folders import Files


def recognizes(given: Given) -> bool:
    """Return whether a file is text that does not open as JSON does."""
    return not given.is_json


def parse(given: Given, config: str | None, corpus: str) -> Rankings:
    """Return the run in a file; raise InputError as ``read_run`` does, and for a table in cells."""
    text = given.text()
    _require_no_cells(text, given.where)
    read = read_run(text, given.where)
    stamp = None if read.tag is None else of_tag(read.tag)
    return Rankings(partial(_of_corpus, read), stamp)


def write(results: Results) -> Files:
    """Yield a run a configuration and judgements a chunker."""
    evalset = results.evalset
    for config in results.measured:
        tag = results.stamps[config.chunker].tag(config.slug)
        yield f"{config.slug}.run", run(results.rankings(config), tag)
    for chunker in results.experiment.chunkers:
        chunks = results.chunks(chunker)
        yield f"{chunker}.qrels", qrels(evalset.queries, evalset.gold_spans, chunks)


def run(rankings: pa.Table, tag: str) -> Iterator[bytes]:
    """Yield one configuration's rankings, a line a ranked chunk; a chunk's repeats are left out.

    ``tag`` ends every line: what names the run, and says what it is of.

    A query with an empty list has no line: the format has no way to say it.
    """
    ranked = deduplicate(rankings).select(["query_id", "chunk_id", "rank"]).to_pylist()
    deepest = max((row["rank"] for row in ranked), default=0)
    for row in ranked:
        query, chunk = encode(row["query_id"]), encode(row["chunk_id"])
        score = deepest + 1 - row["rank"]
        yield f"{query} Q0 {chunk} {row['rank']} {score} {encode(tag)}\n".encode()


def qrels(queries: pa.Table, gold_spans: pa.Table, chunks: pa.Table) -> Iterator[bytes]:
    """Yield every relevant chunk of every query: one that shares a character with its gold.

    A query without any has no line.
    """
    for query, chunk in judgements(queries, gold_spans, chunks):
        yield f"{encode(query)} 0 {encode(chunk)} 1\n".encode()


def judgements(
    queries: pa.Table, gold_spans: pa.Table, chunks: pa.Table
) -> Iterator[tuple[str, str]]:
    """Return (query id, chunk id) of every relevant chunk, sorted by query, then in chunk order."""
    known = scored_run(None, gold_spans, chunks, queries)
    return zip(
        known.query_ids.take(known.pair_query).to_pylist(),
        known.chunk_ids.take(known.pair_chunk).to_pylist(),
        strict=True,
    )


COLUMNS = ("query", "Q0", "chunk", "rank", "score", "tag")
HEADINGS = {"query_id", "qid", "query", "doc_id", "docid", "chunk_id", "rank", "score"}
"""Words that head a column in tables of rankings, where a run has no header at all."""
_COLUMN = re.compile(r"[^ \t\f\v]+")
"""A column as other tools read it: parted by white space of ASCII alone."""
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

Decode = Callable[[list[str], str], dict[str, str]]
"""(ids, what they are) -> the known id that each stands for"""


@dataclass(frozen=True)
class Run:
    """The lines of a run: query id -> rank and entry of each, ids as they stand; and the tag."""

    where: str
    of_query: Mapping[str, list[tuple[int, Entry]]]
    tag: str | None


def read_run(text: str, where: str) -> Run:
    """Return the lines of a run, which may stand in any order.

    Raises InputError naming file and line for a line without six columns, a rank that is no whole
    number, a score that is no number, and a second tag: two runs have two rankings a query.
    """
    of_query: dict[str, list[tuple[int, Entry]]] = defaultdict(list)
    first: tuple[str, int] | None = None
    for number, line in enumerate(_LINE_ENDS.split(text), 1):
        columns = _COLUMN.findall(line)
        if not columns:
            continue
        query, rank, entry, tag = _line(columns, f"{where} line {number}", number)
        first = first or (tag, number)
        if tag != first[0]:
            raise InputError(
                f"{where} line {number}: tag {tag[:60]!r}, but line {first[1]} has "
                f"{first[0][:60]!r}: two runs in one file; score each alone"
            )
        of_query[query].append((rank, entry))
    return Run(where, of_query, first and first[0])


def lists(run: Run, decode: Decode) -> list[GivenList]:
    """Return the lists of a run, each by rank; InputError for a rank given twice."""
    queries = decode(list(run.of_query), "query")
    pieces = [str(entry.chunk_id) for entries in run.of_query.values() for _, entry in entries]
    chunks = decode(pieces, "chunk") if pieces else {}
    found = []
    for query, given in run.of_query.items():
        ranked = sorted(given, key=lambda item: item[0])
        _check_ranks(ranked, query, run.where)
        entries = (Entry(e.at, chunk_id=chunks[str(e.chunk_id)], score=e.score) for _, e in ranked)
        found.append(GivenList(queries[query], tuple(entries), run.where, "line"))
    return found


_CELLS = {",": "CSV", ";": "CSV with semicolons", "\t": "TSV"}


def _require_no_cells(text: str, where: str) -> None:
    """Raise InputError where the first line is that of a table in cells: not a ranking."""
    first = text.lstrip().partition("\n")[0].strip()
    words = first.split()
    is_run = len(words) == len(COLUMNS)
    for mark, what in _CELLS.items():
        cells = [cell.strip(" \"'").lower() for cell in first.split(mark)]
        headed = len(cells) > 1 and any(cell in HEADINGS for cell in cells)
        torn = len(cells) > max(1, len(words))
        if (headed and mark == "\t") or (not is_run and (headed or torn)):
            raise InputError(
                f"{where} line 1: this seems to be {what}, which is no format of rankings: write "
                f"JSON lines, Parquet, or a TREC run ({' '.join(COLUMNS)}, no header)"
            )


def _of_corpus(run: Run, evalset: EvalSet, chunks: pa.Table | None) -> list[GivenList]:
    if not run.of_query:
        return []
    if chunks is None:
        raise InputError(
            f"{run.where}: a TREC run names chunks and not their places; give the chunk table with "
            "--chunks FILE or --chunker NAME"
        )
    known = {
        "query": dict.fromkeys(evalset.queries["query_id"].to_pylist()),
        "chunk": dict.fromkeys(chunks["chunk_id"].to_pylist()),
    }
    return lists(run, lambda ids, what: decoder(ids, known[what], what, run.where))


def _line(columns: list[str], where: str, number: int) -> tuple[str, int, Entry, str]:
    if len(columns) != len(COLUMNS):
        raise InputError(
            f"{where}: {len(columns)} columns, not the six of a TREC run ({' '.join(COLUMNS)}); an "
            "id that holds white space must be percent-encoded"
        )
    query, _, chunk, rank, score, tag = columns
    entry = Entry(number, chunk_id=chunk, score=_score(score, where))
    return query, strict_json.whole_text(rank, "rank", where), entry, tag


def _score(text: str, where: str) -> float:
    # float() alone takes "1_0" and digits of other scripts, which no other tool reads so.
    score = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(score):
        raise InputError(f"{where}: score {text[:60]!r} is no number that could order anything")
    return score


def _check_ranks(ranked: list[tuple[int, Entry]], query: str, where: str) -> None:
    for (rank, one), (other, two) in itertools.pairwise(ranked):
        if rank == other:
            raise InputError(
                f"{where}: query {query}: rank {rank} is given twice, in lines {one.at} and "
                f"{two.at}; number the ranks of each query, from 1"
            )
