"""The lists that a corpus's channels give, and would give with routing, from what is stored.

Vectors of chunks and, where a configuration has them, lists are read; only lists of queries that
search within routed documents are made here, by the functions that the pipeline calls.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.config import asset_keys
from spanbench_pipeline.config.asset_keys import Key, ListSource
from spanbench_pipeline.config.experiment import DENSE, Configuration, Experiment
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.metrics.quality import routing_recall as routing_measures
from spanbench_pipeline.models import encoding
from spanbench_pipeline.retrieval import dense, ranking, routing
from spanbench_pipeline.retrieval.cards import ROUTING_CHARS, cards
from spanbench_pipeline.retrieval.dense import Vectors
from spanbench_pipeline.retrieval.exact import ExactEngine
from spanbench_pipeline.retrieval.lists import Ints, Lists
from spanbench_pipeline.retrieval.scope import Scope, ScopedRows, scopes
from spanbench_pipeline.retrieval.texts import chunk_texts
from spanbench_pipeline.storage.results import ResultsStore
from spanbench_pipeline.tuning import objective

T = TypeVar("T")
Route = tuple[str, int, float, tuple[tuple[str, str], ...]]
"""(encoder, how many documents are kept, routing alpha, settings of BM25 not at their default)"""


def route_of(config: Configuration) -> Route | None:
    """Return how a configuration chooses documents; None where it searches all."""
    if not config.routing:
        return None
    return config.encoder or "", config.routing, config.routing_alpha, (*config.bm25_set.items(),)


def sources_of(config: Configuration) -> list[ListSource]:
    """Return the configuration's channels, without its routing."""
    return [replace(source, routing="") for source in asset_keys.sources(config)]


def needed(experiment: Experiment, config: Configuration) -> list[Key]:
    """Return the assets that the configuration's lists are read or made from."""
    corpus = experiment.corpus
    keys: list[Key] = [(corpus, table) for table in ("documents", "queries", "gold_spans")]
    keys += [(corpus, "fingerprints"), (corpus, "chunks", config.chunker)]
    used = asset_keys.used_keys(experiment)
    for source in sources_of(config):
        made_of = [asset_keys.list_key(experiment, source)]
        if source.encoder is not None:
            made_of.append(asset_keys.vectors_key(experiment, source.chunker, source.encoder))
        keys += [key for key in made_of if key in used]
    return keys


class Corpus:
    """What is stored of a corpus, and the lists made of it, each once.

    ``used`` are the keys of the lists and vectors that are stored: by default those that some
    configuration of the experiment uses.
    """

    def __init__(
        self, store: ResultsStore, experiment: Experiment, used: Container[Key] | None = None
    ) -> None:
        self.project = store.project
        self.experiment = experiment
        self._store = store
        self._used = asset_keys.used_keys(experiment) if used is None else used
        self._made: dict[Hashable, Any] = {}
        self.documents = self.table("documents")
        self.queries = self.table("queries")
        self.gold_spans = self.table("gold_spans")

    def table(self, *names: str) -> pa.Table:
        """Return a stored table of the corpus; InputError where it is not measured."""
        where = "/".join((self.experiment.corpus, *names))
        return self._store.measured(*names, action=f"tune: {where} is ")

    def routed(self, route: Route) -> pa.Table:
        """Return the table ``routed_documents`` of a way to choose documents; config is left
        empty.
        """
        encoder, keep, alpha, settings = route
        # A shorter list is the beginning of a longer one: documents are ranked once an alpha.
        most = max(keep, *(int(n) for n in objective.GRID["routing"]))
        found = self._once(
            ("route", encoder, alpha, settings),
            lambda: self._ranked(encoder, alpha, most, dict(settings)),
        )
        return found.filter(pc.less_equal(found["rank"], keep))

    def routing_recall(self, route: Route) -> dict[str, float | None]:
        """Return the metric ``routing_recall``, by query."""
        table = routing_measures.routing_recall(
            self.routed(route),
            self.gold_spans,
            self.queries,
            corpus=self.experiment.corpus,
            config="",
            keep=route[1],
        )
        return dict(zip(*(table[c].to_pylist() for c in ("query_id", "value")), strict=True))

    def lists(self, source: ListSource, routes: tuple[Route | None, ...]) -> list[Lists]:
        """Return the channel's list of every query, for each of ``routes``; None searches
        everything.
        """
        return self._once((source, routes), lambda: self._lists(source, routes))

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        found: T = self._made[key]
        return found

    def _lists(self, source: ListSource, routes: tuple[Route | None, ...]) -> list[Lists]:
        chunks = self.table("chunks", source.chunker)
        key = asset_keys.list_key(self.experiment, source)
        made = {route: i for i, route in enumerate(r for r in routes if r or key not in self._used)}
        searched = self._searched(source, list(made)) if made else []
        return [
            searched[made[route]]
            if route in made
            else ranking.read_candidates(self.table(*key[1:]), self.queries, chunks)
            for route in routes
        ]

    def _searched(self, source: ListSource, routes: Sequence[Route | None]) -> list[Lists]:
        """Return one search for all ``routes``: each query is asked once a route."""
        scoped = [
            scope
            for route in routes
            for scope in scopes(
                self.queries,
                doc_scope=source.doc_scope,
                metadata_filters=source.metadata_filters,
                routed=None if route is None else self.routed(route),
            )
        ]
        search = self._dense if source.channel == DENSE else self._of_texts
        found = search(source, scoped, len(routes))
        n = self.queries.num_rows
        ends = np.searchsorted(found.query, np.arange(len(routes) + 1) * n)
        return [_part(found, slice(*ends[i : i + 2].tolist()), i * n) for i in range(len(routes))]

    def _dense(self, source: ListSource, scoped: list[Scope], times: int) -> Lists:
        chunks, encoder = self.table("chunks", source.chunker), source.encoder or ""
        stored = asset_keys.vectors_key(self.experiment, source.chunker, encoder)
        vectors = dense.chunk_vectors(chunks, self.table(*stored[1:]))
        engine = ExactEngine(vectors, ScopedRows(self.documents, chunks))
        asked = self._asked(encoder)
        repeated = Vectors(np.tile(asked.matrix, (times, 1)), np.tile(asked.present, times))
        return dense.search(engine, vectors, repeated, scoped, self.experiment.depth)

    def _of_texts(self, source: ListSource, scoped: list[Scope], times: int) -> Lists:
        module = importlib.import_module(f"spanbench_pipeline.retrieval.{source.channel}")
        chunks = self.table("chunks", source.chunker)
        rows_in = ScopedRows(self.documents, chunks)
        allowed: list[Ints | None] = [rows_in(scope) for scope in scoped]
        texts = chunk_texts(self.documents, chunks)
        asked = pa.concat_tables([self.queries] * times)
        depth, settings = self.experiment.depth, dict(source.settings)
        try:
            lists: Lists = module.retrieve(texts, asked, allowed, depth, **settings)[0]
        except NotMeasured as why:
            raise InputError(f"tune: {why}") from why
        return lists

    def _ranked(
        self, encoder: str, alpha: float, keep: int, settings: Mapping[str, str]
    ) -> pa.Table:
        card_of = cards(self.documents, ROUTING_CHARS)
        doc_ids = list(card_of)
        found = routing.route(
            list(card_of.values()),
            self._encoded(encoder, "documents", list(card_of.values()), doc_ids),
            self.queries["query"].to_pylist(),
            self._asked(encoder),
            doc_ids=doc_ids,
            alpha=alpha,
            keep=keep,
            **settings,
        )
        return routing.routed_documents(
            found, self.queries, doc_ids, corpus=self.experiment.corpus, config=""
        )

    def _asked(self, encoder: str) -> Vectors:
        texts, names = (self.queries[c].to_pylist() for c in ("query", "query_id"))
        return self._encoded(encoder, "queries", texts, names)

    def _encoded(self, encoder: str, what: str, texts: list[str], names: list[str]) -> Vectors:
        """Return vectors of texts through the cache that the pipeline fills."""
        return self._once((what, encoder), lambda: self._encode(encoder, texts, names))

    def _encode(self, encoder: str, texts: list[str], names: list[str]) -> Vectors:
        try:
            found = encoding.encode(
                texts,
                self.experiment.encoders[encoder],
                models=self.project.models,
                cache=self.project.vectors,
                names=names,
            )
        except NotMeasured as why:
            raise InputError(f"tune: {why}") from why
        return Vectors(found.vectors, found.usable)


def _part(lists: Lists, rows: slice, first: int) -> Lists:
    """Return the lists at ``rows``, queries counted from ``first``."""
    query = lists.query[rows] - first
    return Lists(query, lists.rank[rows], lists.row[rows], lists.score[rows])
