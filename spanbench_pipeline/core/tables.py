"""The schema of every table that leaves a stage, declared once.

Parquet files, DuckDB views, the web UI and the documentation all read it from here. A table is an
Arrow table with exactly these columns, in this order, sorted by ``order``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TEXT = pa.string()
INT = pa.int64()
REAL = pa.float64()
TEXT_MAP = pa.map_(pa.string(), pa.string())
TEXTS = pa.list_(pa.string())
TIME = pa.timestamp("us", tz="UTC")
VECTOR = pa.list_(pa.float32())


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, what it means, and whether a value may be absent.

    A ``nullable`` column may be left out of a table's rows, and is null then; a ``stated`` one may
    not, because its null is a finding (a metric that is undefined).
    """

    name: str
    type: pa.DataType
    description: str
    nullable: bool = False
    stated: bool = False


@dataclass(frozen=True)
class TableSpec:
    """One table: what a row is, its key, and the order its rows are stored in.

    ``key`` columns identify a row; a key may hold a nullable column (``k`` of a metric without a
    depth). ``order`` defaults to the key. ``has_view``: whether the warehouse shows it.
    """

    name: str
    description: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    order: tuple[str, ...] = ()
    has_view: bool = True

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """Return the columns that rows are stored by."""
        return self.order or self.key

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema, with each column's description as field metadata."""
        return pa.schema(
            [
                pa.field(c.name, c.type, c.nullable, metadata={"description": c.description})
                for c in self.columns
            ]
        )


def _specs(*specs: TableSpec) -> dict[str, TableSpec]:
    return {spec.name: spec for spec in specs}


_CORPUS = Column("corpus", TEXT, "name of the corpus")
_CONFIG = Column("config", TEXT, "name of the configuration, as published")
_CHUNKER = Column("chunker", TEXT, "name of the chunker in the experiment")
_QUERY = Column("query_id", TEXT, "id of the query, unique in the corpus")
_DOC = Column("doc_id", TEXT, "id of the document")
_CHUNK = Column("chunk_id", TEXT, "document, chunker and number: doc_id:chunker:chunk_no")
_START = Column("start_char", INT, "first character, in Unicode code points from 0")
_END = Column("end_char", INT, "one past the last character, in Unicode code points")
_METRIC = Column("metric", TEXT, "bare name of the metric")
_K = Column("k", INT, "depth the metric looks at; null where it has none", nullable=True)
_SPAN_NO = Column("span_no", INT, "number of the gold span within its query, from 0")

TABLES = _specs(
    TableSpec(
        "source_files",
        "the files a corpus was read from, with their hashes: its provenance",
        ("corpus", "file"),
        (
            _CORPUS,
            Column("file", TEXT, "name of the file, relative to the corpus's source"),
            Column("role", TEXT, "archive, member, document, queries or metadata"),
            Column("n_bytes", INT, "size in bytes", nullable=True),
            Column("sha256", TEXT, "sha256 of the bytes"),
            Column("note", TEXT, "what a reader must know about this file", nullable=True),
        ),
    ),
    TableSpec(
        "documents",
        "the documents of a corpus, with their whole text",
        ("corpus", "doc_id"),
        (
            _CORPUS,
            _DOC,
            Column("title", TEXT, "title as the source gives it"),
            Column("n_chars", INT, "length of the text in Unicode code points"),
            Column("text", TEXT, "the whole text; every offset counts in it"),
            Column("text_sha256", TEXT, "sha256 of the text's UTF-8 bytes"),
            Column("source_file", TEXT, "file the text came from"),
            Column("extractor", TEXT, "what made text of the file, with its version"),
            Column("metadata", TEXT_MAP, "declared fields, as text, sorted by name"),
        ),
    ),
    TableSpec(
        "queries",
        "the queries of a corpus",
        ("corpus", "query_id"),
        (
            _CORPUS,
            _QUERY,
            Column("query", TEXT, "the text that is searched for"),
            Column("clause_type", TEXT, "kind of clause asked for", nullable=True),
            Column("subset", TEXT, "part of a pooled corpus; null where there is none", True),
            Column("doc_id", TEXT, "the document asked about; null: unscoped", nullable=True),
            Column("filters", TEXT_MAP, "metadata values that the query declares, as text"),
        ),
    ),
    TableSpec(
        "gold_spans",
        "the characters that answer each query, as marked by people",
        ("corpus", "query_id", "span_no"),
        (
            _CORPUS,
            _QUERY,
            _SPAN_NO,
            _DOC,
            _START,
            _END,
            Column("text", TEXT, "the span's characters, equal to document[start:end]"),
        ),
    ),
    TableSpec(
        "chunks",
        "the pieces that a chunker makes of the documents",
        ("corpus", "chunker", "chunk_id"),
        (
            _CORPUS,
            _CHUNKER,
            _CHUNK,
            _DOC,
            Column("chunk_no", INT, "number of the chunk within its document, from 0"),
            _START,
            _END,
        ),
        order=("corpus", "chunker", "doc_id", "chunk_no"),
    ),
    TableSpec(
        "embeddings",
        "one vector a chunk",
        ("corpus", "chunker", "encoder", "chunk_id"),
        (
            _CORPUS,
            _CHUNKER,
            Column("encoder", TEXT, "name of the encoder in the experiment"),
            _CHUNK,
            Column("vector", VECTOR, "unit vector; null: the text has no word piece", True),
            Column("n_tokens", INT, "word pieces before any cut, special ones included"),
        ),
    ),
    TableSpec(
        "routed_documents",
        "the documents that a configuration with routing searches for a query, best first",
        ("corpus", "config", "query_id", "rank"),
        (
            _CORPUS,
            _CONFIG,
            _QUERY,
            Column("rank", INT, "position among the documents kept, from 1"),
            _DOC,
            Column("score", REAL, "what ordered the documents, in [0, 1]"),
        ),
    ),
    TableSpec(
        "candidates",
        "the chunks that one channel finds for a query, best first",
        ("corpus", "source", "query_id", "rank"),
        (
            _CORPUS,
            Column("source", TEXT, "name of the list: chunker, channel, encoder and scope"),
            Column("channel", TEXT, "what retrieved: dense, bm25, or a channel of one's own"),
            _QUERY,
            Column("rank", INT, "position in the list, from 1"),
            _CHUNK,
            _DOC,
            _START,
            _END,
            Column("score", REAL, "what ordered the list"),
        ),
    ),
    TableSpec(
        "rankings",
        "the chunks that a configuration returns for a query, best first",
        ("corpus", "config", "query_id", "rank"),
        (
            _CORPUS,
            _CONFIG,
            _QUERY,
            Column("rank", INT, "position in the list, from 1"),
            _CHUNK,
            _DOC,
            _START,
            _END,
            Column("score", REAL, "what ordered the final list"),
            Column("dense_rank", INT, "rank in the dense list; null: not in it", True),
            Column("bm25_rank", INT, "rank in the BM25 list; null: not in it", True),
            Column("fused_rank", INT, "rank in the fused list; null: not fused", True),
        ),
    ),
    TableSpec(
        "query_metrics",
        "each metric of each query",
        ("corpus", "config", "query_id", "metric", "k"),
        (
            _CORPUS,
            _CONFIG,
            _QUERY,
            _METRIC,
            _K,
            Column(
                "value", REAL, "value of the metric; null: undefined for this query", True, True
            ),
        ),
    ),
    TableSpec(
        "span_outcomes",
        "how much of each gold span the top k chunks hold",
        ("corpus", "config", "query_id", "span_no", "k"),
        (
            _CORPUS,
            _CONFIG,
            _QUERY,
            _SPAN_NO,
            Column("k", INT, "depth looked at"),
            _DOC,
            _START,
            _END,
            Column("covered_chars", INT, "distinct characters of the span inside the top k"),
        ),
    ),
    TableSpec(
        "failure_labels",
        "why each failing query failed; queries that succeed have no row",
        ("corpus", "config", "query_id"),
        (
            _CORPUS,
            _CONFIG,
            _QUERY,
            Column("label", TEXT, "the first label that holds"),
            Column("lever", TEXT, "what to change; null: nothing (metric artifact)", True),
            Column("evidence", TEXT, "JSON: enough to derive the label again by hand"),
        ),
    ),
    TableSpec(
        "forensic_labels",
        "what became of each query at each depth, by characters alone: one of six labels",
        ("corpus", "config", "query_id", "k"),
        (
            _CORPUS,
            _CONFIG,
            _QUERY,
            Column("k", INT, "depth looked at; labels of different k are never compared"),
            Column("label", TEXT, "the first that holds; null: needs a chunk table", True),
            Column(
                "excess",
                REAL,
                "characters of the relevant top k chunks / of gold; null: none is relevant",
                True,
            ),
            Column("stability", TEXT, "JSON: the label under each changed setting"),
        ),
    ),
    TableSpec(
        "span_states",
        "whether the top k chunks cover each gold span, and the stage that lost it if not",
        ("corpus", "config", "query_id", "span_no", "k"),
        (
            _CORPUS,
            _CONFIG,
            _QUERY,
            _SPAN_NO,
            Column("k", INT, "depth looked at"),
            Column("state", TEXT, "covered, partial or missed"),
            Column("covered_chars", INT, "distinct characters of the span inside the top k"),
            Column(
                "severed",
                pa.bool_(),
                "no single chunk holds the whole span; null: not measured: no chunk table",
                True,
            ),
            Column("lost_stage", TEXT, "first stage that did not keep it; null: covered", True),
        ),
    ),
    TableSpec(
        "label_cross",
        "how the failure labels and the forensic labels of one depth relate: queries with both",
        ("corpus", "config", "failure_label", "forensic_label"),
        (
            _CORPUS,
            _CONFIG,
            Column("failure_label", TEXT, "of failure_labels; null: the query does not fail", True),
            Column("forensic_label", TEXT, "of forensic_labels; null: needs a chunk table", True),
            Column("n_queries", INT, "queries with these two labels"),
        ),
    ),
    TableSpec(
        "chunk_stats",
        "what a chunker makes possible, before any retrieval",
        ("corpus", "chunker", "stat"),
        (
            _CORPUS,
            _CHUNKER,
            Column("stat", TEXT, "name of the statistic"),
            Column("value", REAL, "its value, shares in [0, 1]; null: not measured", True, True),
        ),
    ),
    TableSpec(
        "config_metrics",
        "each metric of each configuration: the mean over its queries",
        ("corpus", "config", "subset", "metric", "k"),
        (
            _CORPUS,
            _CONFIG,
            Column("subset", TEXT, "part of a pooled corpus; null: the whole", nullable=True),
            _METRIC,
            _K,
            Column("value", REAL, "mean over the queries where it is defined", True, True),
            Column("n_queries", INT, "queries with a defined value"),
        ),
    ),
    TableSpec(
        "clause_type_metrics",
        "each metric of each configuration by clause type",
        ("corpus", "config", "clause_type", "metric", "k"),
        (
            _CORPUS,
            _CONFIG,
            Column("clause_type", TEXT, "kind of clause asked for"),
            _METRIC,
            _K,
            Column("value", REAL, "mean over the queries where it is defined", True, True),
            Column("n_queries", INT, "queries with a defined value"),
        ),
    ),
    TableSpec(
        "config_stats",
        "what the developer report says of a configuration beside its metrics",
        ("corpus", "config", "stat"),
        (
            _CORPUS,
            _CONFIG,
            Column("stat", TEXT, "name of the statistic"),
            Column("value", REAL, "its value; null: undefined", True, True),
        ),
    ),
    TableSpec(
        "config_pairs",
        "two configurations that differ in exactly one lever, and what changing it did",
        ("corpus", "lever", "from_config", "to_config"),
        (
            _CORPUS,
            Column("lever", TEXT, "the one lever that differs"),
            Column("from_config", TEXT, "the configuration before the change"),
            Column("to_config", TEXT, "the configuration after it"),
            Column("delta", REAL, "change in complete grounding at the context"),
            Column("fixed", INT, "queries grounded after and not before"),
            Column("broken", INT, "queries grounded before and not after"),
            Column(
                "promoted",
                INT,
                "relevant chunks brought into the context; null: chunkers differ",
                True,
            ),
            Column("fixed_queries", pa.list_(pa.string()), "their ids, sorted"),
            Column("broken_queries", pa.list_(pa.string()), "their ids, sorted"),
        ),
    ),
    TableSpec(
        "headroom",
        "complete grounding at k as it is, and the most that candidates, chunks and anything allow",
        ("corpus", "config", "subset", "k", "bound"),
        (
            _CORPUS,
            _CONFIG,
            Column("subset", TEXT, "part of a pooled corpus; null: the whole", nullable=True),
            Column("k", INT, "depth looked at"),
            Column("bound", TEXT, "actual, candidates, chunks or perfect, each at least the last"),
            Column("value", REAL, "complete grounding, the mean over the queries"),
        ),
    ),
    TableSpec(
        "configs",
        "the configurations of a corpus: every lever's setting, and whether it was measured",
        ("corpus", "config"),
        (
            _CORPUS,
            _CONFIG,
            _CHUNKER,
            Column("retriever", TEXT, "dense, bm25 or hybrid"),
            Column("reranker", TEXT, "name of the reranker; null: none", nullable=True),
            Column("doc_scope", pa.bool_(), "search only the document asked about"),
            Column("metadata_filters", pa.bool_(), "apply the query's metadata filters"),
            Column("encoder", TEXT, "name of the encoder; null: not used", nullable=True),
            Column("state", TEXT, "measured, or not measured: why"),
        ),
    ),
    TableSpec(
        "fingerprints",
        "what the figures rest on, as hashes, settings and counts: of the corpus and of each "
        "configuration",
        ("corpus", "config", "name"),
        (
            _CORPUS,
            Column("config", TEXT, "name of the configuration; null: the whole corpus", True),
            Column("name", TEXT, "what is fingerprinted"),
            Column("value", TEXT, "a hash, a setting or a count, as text"),
        ),
    ),
    TableSpec(
        "regression",
        "each metric of each configuration against the accepted run, query by query",
        ("corpus", "config", "metric", "k"),
        (
            _CORPUS,
            _CONFIG,
            _METRIC,
            _K,
            Column(
                "comparable",
                TEXT,
                "comparable (and with what difference of the chunks), or why not",
            ),
            Column("n", INT, "queries with a defined value in both; null: not compared", True),
            Column("accepted", REAL, "the accepted run's mean over these queries", True),
            Column("current", REAL, "this run's mean over these queries", True),
            Column("difference", REAL, "current minus accepted", nullable=True),
            Column("low", REAL, "lower end of the difference's interval", nullable=True),
            Column("high", REAL, "upper end of the difference's interval", nullable=True),
            Column("p", REAL, "chance of moving as far the same way by luck alone", True),
            Column(
                "verdict",
                TEXT,
                "pass, changed, regression, improved, not comparable, not accepted, "
                "new configuration or missing configuration",
            ),
            Column("n_changed", INT, "queries whose value is another, or undefined in one only"),
            Column("broken_queries", TEXTS, "ids of queries whose value fell, sorted"),
            Column("fixed_queries", TEXTS, "ids of queries whose value rose, sorted"),
            Column("changed_queries", TEXTS, "ids of all queries that n_changed counts, sorted"),
        ),
    ),
    TableSpec(
        "metric_history",
        "config_metrics of every run that made them anew: the one table with times",
        ("corpus", "run_at", "run_id", "config", "subset", "metric", "k"),
        (
            _CORPUS,
            Column("run_at", TIME, "when these values were recorded, UTC"),
            Column("run_id", TEXT, "Dagster's id of the run"),
            _CONFIG,
            Column("subset", TEXT, "part of a pooled corpus; null: the whole", nullable=True),
            _METRIC,
            _K,
            Column("value", REAL, "mean over the queries where it is defined", True, True),
            Column("n_queries", INT, "queries with a defined value"),
            Column("fingerprint", TEXT, "hash of all that the configuration's figures rest on"),
        ),
    ),
    TableSpec(
        "report_files",
        "the files that the reports consist of",
        ("corpus", "file"),
        (
            _CORPUS,
            Column("file", TEXT, "path below the corpus's reports folder"),
            Column("sha256", TEXT, "sha256 of the bytes"),
            Column("baseline", TEXT, "the configuration that the client report starts from"),
        ),
    ),
    TableSpec(
        "warehouse_views",
        "the views of spanbench.duckdb",
        ("view",),
        (
            Column("view", TEXT, "name of the view"),
            Column("n_files", INT, "Parquet files that it reads"),
            Column("definition", TEXT, "sha256 of its SQL, with paths relative to the home", True),
        ),
        has_view=False,
    ),
)


class TableError(ValueError):
    """A table does not have the columns, types or keys that it declares."""


def conform(name: str, table: pa.Table) -> pa.Table:
    """Return ``table`` as the declared table ``name``: columns in order, cast, sorted, checked.

    Raises TableError for a missing or unknown column, a value that does not fit its type, a null
    where none may be, or two rows with one key.
    """
    spec = TABLES[name]
    expected = [c.name for c in spec.columns]
    if sorted(table.column_names) != sorted(expected):
        missing = sorted(set(expected) - set(table.column_names))
        unknown = sorted(set(table.column_names) - set(expected))
        raise TableError(f"table {name}: missing columns {missing}, unknown columns {unknown}")
    try:
        table = table.select(expected).cast(spec.schema).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
        raise TableError(f"table {name}: {error}") from error
    table = table.sort_by([(c, "ascending") for c in spec.sort_columns])
    repeated = repeated_keys(name, table)
    if repeated.num_rows:
        first = repeated.slice(0, 1).to_pylist()[0]
        raise TableError(f"table {name}: {repeated.num_rows} keys given more than once: {first}")
    return table.replace_schema_metadata(None)


def repeated_keys(name: str, table: pa.Table) -> pa.Table:
    """Return the keys of ``table`` that more than one row has, with a column ``n``."""
    key = list(TABLES[name].key)
    counted = table.select(key).group_by(key, use_threads=False).aggregate([([], "count_all")])
    counted = counted.rename_columns({"count_all": "n"})
    return counted.filter(pc.greater(counted.column("n"), 1))


def from_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the declared table ``name`` from one mapping a row.

    Columns that may be left out are left out of every row or of none.
    """
    names = TABLES[name].schema.names
    given = rows[0].keys() if rows else names
    for row in rows:
        if row.keys() != given:
            raise TableError(
                f"table {name}: a row with {sorted(row)}, another with {sorted(given)}"
            )
    return from_columns(name, {column: [row[column] for row in rows] for column in given})


def from_columns(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """Return the declared table ``name`` from one sequence (or array) a column.

    A nullable column that is left out is null, unless it is to be stated or is of the key.
    """
    spec, schema = TABLES[name], TABLES[name].schema
    unknown = sorted(set(columns) - set(schema.names))
    if unknown:
        raise TableError(f"table {name}: unknown columns {unknown}")
    try:
        arrays = {key: _array(columns[key], schema.field(key).type) for key in columns}
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TableError(f"table {name}: {error}") from error
    n_rows = max(map(len, arrays.values()), default=0)
    for column in spec.columns:
        if column.nullable and not column.stated and column.name not in spec.key:
            arrays.setdefault(column.name, pa.nulls(n_rows, column.type))
    return conform(name, pa.table(arrays))


def _array(values: Any, kind: pa.DataType) -> Any:
    """Return an Arrow array of ``values``; a fraction is never cut to a whole number."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if pa.types.is_integer(kind) and len(values):
        return pa.array(values).cast(kind)
    return pa.array(values, kind)


def empty(name: str) -> pa.Table:
    """Return the declared table ``name`` with no rows."""
    return TABLES[name].schema.empty_table()
