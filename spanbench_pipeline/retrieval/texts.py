"""The texts of chunks, cut out of their documents."""

from __future__ import annotations

import pyarrow as pa


def chunk_texts(documents: pa.Table, chunks: pa.Table) -> list[str]:
    """Return ``document[start:end]`` of each row of a ``chunks`` table, in its order."""
    columns = (documents[name].to_pylist() for name in ("doc_id", "text"))
    text_of = dict(zip(*columns, strict=True))
    spans = (chunks[name].to_pylist() for name in ("doc_id", "start_char", "end_char"))
    return [text_of[doc_id][start:end] for doc_id, start, end in zip(*spans, strict=True)]
