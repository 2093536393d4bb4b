"""A corpus as BEIR lays it out: the chunks of one chunker as documents, queries, judgements."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from spanbench_pipeline.core.evalset import EvalSet, texts
from spanbench_pipeline.formats.ids import encode
from spanbench_pipeline.formats.json_lines import line
from spanbench_pipeline.formats.results import Results
from spanbench_pipeline.formats.trec import judgements
from spanbench_pipeline.storage.folders import Files


def write(results: Results) -> Files:
    """Yield a folder a chunker."""
    for chunker in results.experiment.chunkers:
        for path, content in files(results.evalset, results.chunks(chunker)):
            yield f"{chunker}/{path}", content


def files(evalset: EvalSet, chunks: pa.Table) -> Files:
    """Return ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv`` of one chunker.

    Ids are percent-encoded as in TREC files, so that a run over this folder can be scored;
    ``metadata`` holds the plain ones, and the place of each chunk.
    """
    return [
        ("corpus.jsonl", _corpus(evalset, chunks)),
        ("queries.jsonl", _queries(evalset)),
        ("qrels/test.tsv", _qrels(evalset, chunks)),
    ]


def _corpus(evalset: EvalSet, chunks: pa.Table) -> Iterator[bytes]:
    text_of = texts(evalset.documents)
    titles = dict(
        zip(
            evalset.documents["doc_id"].to_pylist(),
            evalset.documents["title"].to_pylist(),
            strict=True,
        )
    )
    for row in chunks.to_pylist():
        doc_id, start, end = row["doc_id"], row["start_char"], row["end_char"]
        place = {"chunk_id": row["chunk_id"], "doc_id": doc_id, "start": start, "end": end}
        yield line(
            {
                "_id": encode(row["chunk_id"]),
                "title": titles[doc_id],
                "text": text_of[doc_id][start:end],
                "metadata": place,
            }
        )


def _queries(evalset: EvalSet) -> Iterator[bytes]:
    for row in evalset.queries.to_pylist():
        metadata = {key: row[key] for key in ("query_id", "clause_type", "subset", "doc_id")}
        yield line({"_id": encode(row["query_id"]), "text": row["query"], "metadata": metadata})


def _qrels(evalset: EvalSet, chunks: pa.Table) -> Iterator[bytes]:
    yield b"query-id\tcorpus-id\tscore\n"
    for query, chunk in judgements(evalset.queries, evalset.gold_spans, chunks):
        yield f"{encode(query)}\t{encode(chunk)}\t1\n".encode()
