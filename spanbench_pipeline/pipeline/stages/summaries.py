"""What is said of a corpus as a whole: its configurations, their means, chunkers, comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pyarrow as pa

from spanbench_pipeline import chunkers
from spanbench_pipeline.analysis import (
    aggregate,
    bm25_stats,
    chunk_stats,
    comparisons,
    config_stats,
    label_cross,
)
from spanbench_pipeline.checks import bm25_stats as bm25_checks
from spanbench_pipeline.checks import consistency, invariants
from spanbench_pipeline.chunkers import clause
from spanbench_pipeline.config import asset_keys
from spanbench_pipeline.config.experiment import BM25, Configuration, Experiment
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.headers import headers
from spanbench_pipeline.core.tokenizer import Tokenizer
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline.pipeline.stage import Check, Outcome, Reader, Rows, Stage
from spanbench_pipeline.pipeline.staleness import Key
from spanbench_pipeline.retrieval.cards import ROUTING_CHARS, cards
from spanbench_pipeline.retrieval.texts import chunk_texts
from spanbench_pipeline.storage import parquet

_ANALYSIS = "spanbench_pipeline.analysis"
_RETRIEVAL = "spanbench_pipeline.retrieval"


def stages(experiment: Experiment) -> list[Stage]:
    """Return the summary stages of one experiment; all take configurations that are not
    measured.
    """
    rankings = _per_config(experiment, "rankings")
    metrics = _per_config(experiment, "query_metrics")
    queries, gold = (experiment.corpus, "queries"), (experiment.corpus, "gold_spans")
    chunks: list[Key] = [(experiment.corpus, "chunks", c) for c in experiment.chunkers]
    vectors = _first_embeddings(experiment)
    configs = [repr(c) for c in experiment.configurations]
    stats_key = (experiment.corpus, "chunk_stats")
    stage = partial(_stage, experiment)
    return [
        stage(
            "configs",
            partial(_configs, experiment),
            rankings,
            (),
            configs,
            (_every(experiment),),
        ),
        stage(
            "chunk_stats",
            partial(_chunk_stats, experiment),
            [*chunks, *vectors.values(), queries, gold, (experiment.corpus, "documents")],
            (f"{_ANALYSIS}.chunk_stats", "spanbench_pipeline.core.headers"),
            [repr(e) for e in experiment.encoders.values()],
            (_COUNTS,),
        ),
        stage(
            "config_metrics",
            _config_metrics,
            [*metrics, queries],
            (f"{_ANALYSIS}.aggregate",),
            checks=(_AGGREGATES,),
        ),
        stage(
            "label_cross",
            partial(_label_cross, experiment),
            [
                *_per_config(experiment, "failure_labels"),
                *_per_config(experiment, "forensic_labels"),
            ],
            (f"{_ANALYSIS}.label_cross",),
            checks=(_sums_to_queries(experiment),),
        ),
        stage(
            "clause_type_metrics",
            _clause_type_metrics,
            [*metrics, queries],
            (f"{_ANALYSIS}.aggregate",),
            checks=(_BY_TYPE,),
        ),
        stage(
            "config_stats",
            partial(_config_stats, experiment),
            [*metrics, *rankings, gold, stats_key, *_bm25_reads(experiment)],
            (
                *(f"{_ANALYSIS}.{module}" for module in ("config_stats", "bm25_stats")),
                *(f"{_RETRIEVAL}.{module}" for module in ("cards", "texts")),
            ),
            configs,
            (_STATS, *_BM25),
        ),
        stage(
            "config_pairs",
            partial(_config_pairs, experiment),
            [*metrics, *rankings, gold],
            (f"{_ANALYSIS}.comparisons",),
            configs,
            (_follows_from_queries(experiment),),
        ),
    ]


def _stage(
    experiment: Experiment,
    table: str,
    compute: object,
    deps: list[Key],
    modules: tuple[str, ...],
    params: list[str] | None = None,
    checks: tuple[Check, ...] = (),
) -> Stage:
    return Stage(
        key=(experiment.corpus, table),
        table=table,
        description=f"{tables.TABLES[table].description}.".capitalize(),
        compute=compute,  # type: ignore[arg-type]
        deps=tuple(deps),
        modules=modules,
        params={"settings": params or [], **experiment.measured_at},
        checks=checks,
        tags={"corpus": experiment.corpus},
        owns={"corpus": experiment.corpus},
        partial=True,
    )


def _per_config(experiment: Experiment, stage: str) -> list[Key]:
    return [(experiment.corpus, stage, c.slug) for c in experiment.configurations]


def _first_embeddings(experiment: Experiment) -> dict[str, Key]:
    """Return chunker -> the embeddings that say how many of its chunks are cut: the first
    encoder's.
    """
    found: dict[str, Key] = {}
    for config in experiment.configurations:
        if config.uses_dense:
            key = asset_keys.vectors_key(experiment, config.chunker, config.encoder or "")
            found.setdefault(config.chunker, key)
    return found


def _configs(experiment: Experiment, reader: Reader) -> Outcome:
    rows = [
        {
            "corpus": experiment.corpus,
            "config": c.name,
            "chunker": c.chunker,
            "retriever": c.retriever,
            "reranker": c.reranker,
            "doc_scope": c.doc_scope,
            "metadata_filters": c.metadata_filters,
            "encoder": c.encoder,
            "state": reader.stored((experiment.corpus, "rankings", c.slug)).state,
        }
        for c in experiment.configurations
    ]
    return Outcome(tables.from_rows("configs", rows))


def _chunk_stats(experiment: Experiment, reader: Reader) -> Outcome:
    parts = []
    vectors = _first_embeddings(experiment)
    for name, settings in experiment.chunkers.items():
        stored = reader.stored(vectors[name]) if name in vectors else None
        measured = stored is not None and stored.state == parquet.MEASURED
        encoder = _encoder_of(experiment, name)
        parts.append(
            chunk_stats.chunk_stats(
                scored_run(
                    None,
                    reader.table("gold_spans"),
                    reader.table("chunks", name),
                    reader.table("queries"),
                ),
                corpus=experiment.corpus,
                chunker=name,
                embeddings=stored.table if stored is not None and measured else None,
                max_length=experiment.encoders[encoder].max_length if encoder else None,
                context=experiment.context,
            )
        )
        if chunkers.load(settings, experiment.path).module == clause.__name__:
            parts.append(_headerless(experiment.corpus, name, reader))
    return Outcome(pa.concat_tables(parts))


def _encoder_of(experiment: Experiment, chunker: str) -> str | None:
    used = (c.encoder for c in experiment.configurations if c.chunker == chunker and c.uses_dense)
    return next(used, None)


def _headerless(corpus: str, chunker: str, reader: Reader) -> pa.Table:
    """Return how many documents have no header that the clause chunker could split at."""
    texts = reader.table("documents")["text"].to_pylist()
    n = sum(not headers(text) for text in texts)
    row = {"corpus": corpus, "chunker": chunker, "stat": "documents_without_header", "value": n}
    return tables.from_rows("chunk_stats", [row])


def _config_metrics(reader: Reader) -> Outcome:
    return Outcome(aggregate.config_metrics(reader.all("query_metrics"), reader.table("queries")))


def _clause_type_metrics(reader: Reader) -> Outcome:
    return Outcome(
        aggregate.clause_type_metrics(reader.all("query_metrics"), reader.table("queries"))
    )


def _label_cross(experiment: Experiment, reader: Reader) -> Outcome:
    return Outcome(
        label_cross.label_cross(
            reader.all("failure_labels"),
            reader.all("forensic_labels"),
            corpus=experiment.corpus,
            context=experiment.context,
        )
    )


def _config_stats(experiment: Experiment, reader: Reader) -> Outcome:
    found = config_stats.config_stats(
        experiment.configurations,
        reader.all("query_metrics"),
        reader.table("chunk_stats"),
        reader.all("rankings"),
        reader.table("gold_spans"),
        corpus=experiment.corpus,
        context=experiment.context,
    )
    read = _Bm25Texts(reader).read
    stats = {
        c.name: _bm25_stats(experiment, c, reader, read)
        for c in _of_bm25(experiment)
        if _is_measured(experiment, c, reader)
    }
    return Outcome(pa.concat_tables([found, bm25_stats.table(experiment.corpus, stats)]))


def _is_measured(experiment: Experiment, config: Configuration, reader: Reader) -> bool:
    """Return whether a configuration ranked anything, whatever its depth lets be measured of
    that.
    """
    rankings = reader.stored((experiment.corpus, "rankings", config.slug))
    return rankings.state == parquet.MEASURED


def _of_bm25(experiment: Experiment) -> list[Configuration]:
    """Return the configurations that use BM25."""
    return [c for c in experiment.configurations if c.uses_bm25]


def _bm25_reads(experiment: Experiment) -> list[Key]:
    """Return what the stats of BM25 are counted from, beside what all configurations' are."""
    found: list[Key] = []
    for config in _of_bm25(experiment):
        found += [(experiment.corpus, "documents"), (experiment.corpus, "queries")]
        if (lists := _bm25_list(experiment, config)) is not None:
            found += [lists, (experiment.corpus, "chunks", config.chunker)]
    return list(dict.fromkeys(found))


def _bm25_list(experiment: Experiment, config: Configuration) -> Key | None:
    """Return where the lists of a configuration's BM25 channel are; None where it only routes."""
    keyed = asset_keys.keyed_sources(experiment, config)
    return next((key for source, key in keyed if source.channel == BM25), None)


class _Bm25Texts:
    """Tokenizes texts of a corpus, each kind once for each way to find words."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._read: dict[tuple[str, str, str | None], bm25_stats.Read] = {}

    def read(self, what: str, config: Configuration) -> bm25_stats.Read:
        """Return what the configuration's tokenizer finds in queries, cards or a chunker's
        chunks.
        """
        key = (what, config.tokenizer, config.stemming)
        if key not in self._read:
            tokens = Tokenizer(config.tokenizer, config.stemming)
            self._read[key] = bm25_stats.read(self._texts(what), tokens)
        return self._read[key]

    def _texts(self, what: str) -> Iterable[str]:
        if what == "queries":
            texts: list[str] = self._reader.table("queries")["query"].to_pylist()
            return texts
        documents = self._reader.table("documents")
        if what == "cards":
            return cards(documents, ROUTING_CHARS).values()
        return chunk_texts(documents, self._reader.table("chunks", what))


def _bm25_stats(
    experiment: Experiment,
    config: Configuration,
    reader: Reader,
    read: Callable[[str, Configuration], bm25_stats.Read],
) -> bm25_stats.Stats:
    """Return the stats of one configuration's BM25: of its chunks, its cards, and its queries."""
    found = bm25_stats.of_queries(read("queries", config))
    if (lists := _bm25_list(experiment, config)) is not None:
        of_chunks = read(config.chunker, config)
        found |= bm25_stats.of_texts(bm25_stats.CHUNKS, of_chunks, config.bm25)
        if experiment.depth >= 2:  # a list of one says nothing of what it was chosen before
            found |= bm25_stats.of_lists(reader.stored(lists).table)
    if config.routing:
        of_cards = read("cards", config)
        found |= bm25_stats.of_texts(bm25_stats.CARDS, of_cards, config.bm25)
    return found


def _config_pairs(experiment: Experiment, reader: Reader) -> Outcome:
    return Outcome(
        comparisons.config_pairs(
            experiment.configurations,
            reader.all("query_metrics"),
            reader.all("rankings"),
            reader.table("gold_spans"),
            corpus=experiment.corpus,
            context=experiment.context,
        )
    )


def _unsound_stats(stats: pa.Table) -> Rows:
    """Shares outside [0, 1] and negative counts; an average idf is neither."""
    names = stats["stat"].to_pylist()
    counts = [name for name in names if bm25_stats.is_one(name, bm25_stats.COUNTS)]
    plain = [not bm25_stats.is_one(name, [bm25_stats.AVERAGE_IDF]) for name in names]
    return consistency.out_of_unit(
        stats.filter(pa.array(plain, pa.bool_())), "failing_queries", *counts
    )


_AGGREGATES = Check(
    "means_equal_their_parts",
    "Every mean equals the mean of its queries' values, computed again on another path.",
    lambda reader: invariants.wrong_means(
        reader.own(), reader.all("query_metrics"), reader.table("queries")
    ),
)
_COUNTS = Check(
    "counts_and_shares_sound",
    "The number of chunks is the chunk table's, and every share lies in [0, 1].",
    lambda reader: consistency.wrong_chunk_stats(reader.own(), reader.all("chunks")),
)
_BY_TYPE = Check(
    "means_equal_their_parts",
    "Every mean equals the mean of its queries' values, computed again on another path.",
    lambda reader: consistency.metric_means_by_type(
        reader.own(), reader.all("query_metrics"), reader.table("queries")
    ),
)
_STATS = Check(
    "shares_in_range",
    "Every share lies in [0, 1], and no count is negative.",
    lambda reader: _unsound_stats(reader.own()),
)
_BM25 = (
    Check(
        "bm25_weighs_for_what_is_asked",
        "The average word weighs more than nothing for BM25 (its average idf is not negative). "
        "Where it weighs less, a chunk with what is asked for can rank below one without: "
        'bm25 = "lucene" has no such words.',
        lambda reader: bm25_checks.backward(reader.own()),
        blocking=False,
    ),
    Check(
        "bm25_tells_chunks_apart",
        "In no query's BM25 list do the first two chunks have one score: the first place would go "
        "by chunk order alone.",
        lambda reader: bm25_checks.by_order(reader.own()),
        blocking=False,
    ),
    Check(
        "bm25_reads_the_letters",
        f"At most {bm25_stats.MOST_OUTSIDE:.0%} of the letters and digits, of texts and of "
        'queries, are in no word of BM25; tokenizer = "unicode" reads all scripts.',
        lambda reader: bm25_checks.unread(reader.own()),
        blocking=False,
    ),
)


def _sums_to_queries(experiment: Experiment) -> Check:
    return Check(
        "pairs_sum_to_queries",
        "The pairs of labels sum to the queries that have each label, of both kinds.",
        lambda reader: consistency.wrong_label_cross(
            reader.own(),
            reader.all("failure_labels"),
            reader.all("forensic_labels"),
            experiment.context,
        ),
    )


def _follows_from_queries(experiment: Experiment) -> Check:
    return Check(
        "comparisons_follow_from_queries",
        "Every delta, and the queries fixed and broken, follow from the two configurations' "
        "queries.",
        lambda reader: consistency.wrong_pairs(
            reader.own(), reader.all("query_metrics"), experiment.context
        ),
    )


def _every(experiment: Experiment) -> Check:
    names = [c.name for c in experiment.configurations]
    return Check(
        "every_configuration_once",
        "The table has the experiment's configurations, those not measured included.",
        lambda reader: consistency.unknown_configurations(reader.own(), names),
    )
