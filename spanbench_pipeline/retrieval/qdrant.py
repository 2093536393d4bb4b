"""The dense engine on Qdrant: in memory, in a folder, or on a server.

One collection holds the vectors of one (corpus, chunker, encoder). Its name ends in a digest of its
content, so that an equal one is used again and an outdated one is recognised and removed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.retrieval.dense import Floats32, Vectors, margin
from spanbench_pipeline.retrieval.lists import Ints
from spanbench_pipeline.retrieval.scope import Scope

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

BATCH = 256
TIMEOUT = 60
"""Points a request carries, and seconds a server has to answer one."""

Payload = dict[str, str]


@contextmanager
def open_engine(
    location: str,
    *,
    corpus: str,
    chunker: str,
    encoder: str,
    vectors: Vectors,
    chunks: pa.Table,
    documents: pa.Table,
) -> Iterator[QdrantEngine]:
    """Yield a Qdrant engine over a ``chunks`` table and its vectors, closed on leaving the block.

    ``location`` is ``:memory:``, a folder, or a server's ``http(s)://host:port``. ``corpus``,
    ``chunker`` and ``encoder`` are short names (``[a-z0-9_]+``). Raises InputError naming the
    location when it cannot be reached, is in use by another process, or answers nonsense.
    """
    rows = np.flatnonzero(vectors.present)
    payloads = _payloads(chunks.take(pa.array(rows)), documents)
    prefix = f"spanbench-{corpus}-{chunker}-{encoder}-"
    name = prefix + _digest(rows, vectors.matrix[rows], payloads)
    with _explained(location):
        client = _connect(location)
    try:
        if len(rows):
            with _explained(location):
                _fill(client, name, rows, vectors.matrix, payloads)
                _remove_outdated(client, prefix, name)
        yield QdrantEngine(client, location, name)
    finally:
        client.close()


class QdrantEngine:
    """Proposes candidates by exact search in a collection."""

    def __init__(self, client: QdrantClient, location: str, collection: str) -> None:
        self._client = client
        self._location = location
        self._collection = collection

    def candidates(self, queries: Floats32, scope: Scope, depth: int) -> Iterator[Ints]:
        """See :class:`~spanbench_pipeline.retrieval.dense.Engine`."""
        if scope.routed == ():  # nothing to ask for
            yield from (np.empty(0, np.int64) for _ in queries)
            return
        condition = payload_filter(scope)
        for query in queries:
            with _explained(self._location):
                rows = self._rows(query, condition, depth)
            yield rows

    def _rows(self, query: Floats32, condition: models.Filter | None, depth: int) -> Ints:
        """Return the candidates of one query: twice as many until the score has fallen."""
        from qdrant_client import models

        # In process every search is exact, and the client warns of a parameter that it ignores.
        params = models.SearchParams(exact=True) if _is_server(self._location) else None
        limit = 2 * depth
        while True:
            points = self._client.query_points(
                self._collection,
                query=query.tolist(),
                query_filter=condition,
                limit=limit,
                search_params=params,
                with_payload=False,
            ).points
            if len(points) < limit or _fallen([p.score for p in points], depth, len(query)):
                return np.array([p.id for p in points], dtype=np.int64)
            limit *= 2


def payload_filter(scope: Scope) -> models.Filter | None:
    """Return what a point's payload must hold to be inside ``scope``; None: anything."""
    from qdrant_client import models

    wanted = {metadata_key(field): value for field, value in scope.filters}
    if scope.doc_id is not None:
        wanted["doc_id"] = scope.doc_id
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value))
        for key, value in wanted.items()
    ]
    if scope.routed is not None:
        any_of = models.MatchAny(any=list(scope.routed))
        must.append(models.FieldCondition(key="doc_id", match=any_of))
    return models.Filter(must=must) if must else None


def metadata_key(field: str) -> str:
    """Return the payload key of a metadata field, different for different fields.

    Qdrant reads a key as a path in which only ASCII letters, digits, ``_`` and ``-`` mean nothing
    else, so every other byte is written ``-`` and two hexadecimal digits, and so is ``-`` itself.
    """
    plain = re.sub(rb"[^A-Za-z0-9_]", lambda found: b"-%02x" % found[0][0], field.encode())
    return "metadata_" + plain.decode()


def _fallen(scores: Sequence[float], depth: int, dimensions: int) -> bool:
    """Return whether the last score is clearly below the one at the depth."""
    return scores[-1] < scores[depth - 1] - margin(dimensions)


def _payloads(chunks: pa.Table, documents: pa.Table) -> list[Payload]:
    """Return what each chunk's point says of it: doc_id, chunk_id and its document's metadata."""
    metadata = {
        doc_id: {metadata_key(field): value for field, value in fields}
        for doc_id, fields in zip(
            documents["doc_id"].to_pylist(), documents["metadata"].to_pylist(), strict=True
        )
    }
    ids = zip(chunks["doc_id"].to_pylist(), chunks["chunk_id"].to_pylist(), strict=True)
    return [{"doc_id": d, "chunk_id": c, **metadata[d]} for d, c in ids]


def _digest(rows: Ints, matrix: Floats32, payloads: Sequence[Payload]) -> str:
    """Return 16 hexadecimal digits that stand for all that a collection holds."""
    content = hashlib.sha256(f"cosine {matrix.shape}".encode())
    for part in (rows.tobytes(), matrix.tobytes(), json.dumps(payloads, sort_keys=True).encode()):
        content.update(part)
    return content.hexdigest()[:16]


def _fill(
    client: QdrantClient, name: str, rows: Ints, matrix: Floats32, payloads: Sequence[Payload]
) -> None:
    """Make the collection ``name``, unless it is there whole; point ids are chunk rows."""
    from qdrant_client import models

    if client.collection_exists(name):
        if client.count(name, exact=True).count == len(rows):
            return
        client.delete_collection(name)  # an upload that was broken off
    size = models.VectorParams(size=matrix.shape[1], distance=models.Distance.COSINE)
    client.create_collection(name, vectors_config=size)
    for key in _indexed(client, payloads):
        client.create_payload_index(name, key, models.PayloadSchemaType.KEYWORD, wait=True)
    for start in range(0, len(rows), BATCH):
        part = slice(start, start + BATCH)
        ids, vectors = rows[part].tolist(), matrix[rows[part]].tolist()
        batch = models.Batch(ids=ids, vectors=vectors, payloads=list(payloads[part]))
        client.upsert(name, batch, wait=True)
    held = client.count(name, exact=True).count
    if held != len(rows):
        raise RuntimeError(f"collection {name} holds {held} points of {len(rows)} uploaded")


def _indexed(client: QdrantClient, payloads: Sequence[Payload]) -> list[str]:
    """Return the payload keys that searches filter by; none where there is no server to index
    them.
    """
    if client.init_options["url"] is None:
        return []
    return sorted({key for payload in payloads for key in payload} - {"chunk_id"})


def _remove_outdated(client: QdrantClient, prefix: str, name: str) -> None:
    """Delete collections of the same corpus, chunker and encoder with another content."""
    ours = re.compile(re.escape(prefix) + "[0-9a-f]{16}")
    for collection in client.get_collections().collections:
        if ours.fullmatch(collection.name) and collection.name != name:
            client.delete_collection(collection.name)


def _connect(location: str) -> QdrantClient:
    from qdrant_client import QdrantClient

    if location == ":memory:":
        return QdrantClient(location)
    if _is_server(location):
        return QdrantClient(url=location, timeout=TIMEOUT, check_compatibility=False)
    if "://" in location or re.fullmatch(r"[\w.-]+:\d+", location):
        raise InputError(f"Qdrant location {location!r}: a server's must start with http(s)://")
    return QdrantClient(path=location)


def _is_server(location: str) -> bool:
    return re.match("https?://", location) is not None


@contextmanager
def _explained(location: str) -> Iterator[None]:
    """Turn what the client raises into one message that names the location."""
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ApiException

    # RuntimeError: a folder in use by another process, or an upload that came out incomplete.
    expected: tuple[type[Exception], ...] = (RuntimeError, OSError)
    if _is_server(location):
        # ValueError: an answer that is no JSON. AssertionError: one without a result.
        expected += (ApiException, QdrantException, ValueError, AssertionError)
    try:
        yield
    except expected as error:
        reason = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
        raise InputError(
            f"Qdrant at {location}: {reason}. Check QDRANT_URL (a server's http(s)://host:port, a "
            'folder that no other process uses, or :memory:), or take dense_engine = "exact"'
        ) from error
