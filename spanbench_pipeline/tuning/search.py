"""The grid of one configuration: measured and chosen on development queries, then held out.

The metric is measured on development queries alone until the choice stands; held-out ones are
looked at after it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline.config.experiment import Configuration, Experiment
from spanbench_pipeline.metrics.metric import MetricAt
from spanbench_pipeline.metrics.quality.characters import BUDGET
from spanbench_pipeline.metrics.query_metrics import query_metrics
from spanbench_pipeline.metrics.scored_run import scored_run
from spanbench_pipeline.retrieval import ranking
from spanbench_pipeline.tuning import objective
from spanbench_pipeline.tuning.lists import Corpus, route_of, sources_of
from spanbench_pipeline.tuning.objective import Values
from spanbench_pipeline.tuning.routing_sweep import Reading
from spanbench_pipeline.tuning.splits import Split


@dataclass(frozen=True)
class Search:
    """What a search over the grid found, and on what.

    ``routes`` holds each (setting, development mean of ``routing_recall``) that a routing alpha was
    chosen from, ``grid`` each (setting, development mean of the metric). ``swept`` has the best
    setting of each number of documents kept, the first of which keeps all of them; their readings,
    and those of ``untuned``, are of all queries.
    """

    routes: tuple[tuple[Configuration, float | None], ...]
    grid: tuple[tuple[Configuration, float | None], ...]
    chosen: Configuration
    untuned: Configuration
    swept: tuple[Configuration, ...]
    readings: dict[Configuration, Reading]


def router(experiment: Experiment, config: Configuration) -> str | None:
    """Return the encoder that would choose documents; None where routing cannot be swept.

    Which is so where a query's document is given anyway, and where no encoder is named and there
    is not just one.
    """
    if config.doc_scope:
        return None
    only = next(iter(experiment.encoders)) if len(experiment.encoders) == 1 else None
    return config.encoder or only


def search(corpus: Corpus, config: Configuration, metric: MetricAt, split: Split) -> Search:
    """Choose the configuration's settings on the development queries.

    First the routing alpha of each number of documents, by ``routing_recall``; then that number
    together with the fusion's constant, by ``metric``.
    """
    bench = _Bench(corpus, metric)
    development = split.development.queries
    routes = _routes(corpus, config, development)
    depths = [_off(config), *(objective.choose(means) for means in routes)]
    found = bench.readings([p for depth in depths for p in objective.constants(depth)], development)
    means = {p: objective.mean_over(r.metric, development) for p, r in found.items()}
    swept = tuple(
        objective.choose({p: means[p] for p in objective.constants(depth)}) for depth in depths
    )
    chosen, untuned = objective.choose(means), _off(config)
    everybody = (*development, *split.held_out.queries)
    return Search(
        routes=tuple(pair for alphas in routes for pair in alphas.items()),
        grid=tuple(means.items()),
        chosen=chosen,
        untuned=untuned,
        swept=swept,
        readings=bench.readings([*dict.fromkeys([*swept, untuned])], everybody),
    )


def depths_of(corpus: Corpus, config: Configuration) -> list[int]:
    """Return the numbers of documents that are swept: those that leave a document out."""
    if router(corpus.experiment, config) is None:
        return []
    return [int(n) for n in objective.GRID["routing"] if 0 < n < corpus.documents.num_rows]


def _off(config: Configuration) -> Configuration:
    """Return the configuration untuned; one without a dense channel then encodes nothing."""
    plain = objective.untuned(config)
    return plain if plain.uses_dense else replace(plain, encoder=None)


def _routes(
    corpus: Corpus, config: Configuration, development: Collection[str]
) -> list[dict[Configuration, float | None]]:
    """For each number of documents, each routing alpha's recall on the development queries."""
    base = replace(objective.untuned(config), encoder=router(corpus.experiment, config))
    found: list[dict[Configuration, float | None]] = []
    for keep in depths_of(corpus, config):
        alphas = objective.GRID["routing_alpha"]
        points = [replace(base, routing=keep, routing_alpha=alpha) for alpha in alphas]
        found.append(
            {p: objective.mean_over(_recall(corpus, p) or {}, development) for p in points}
        )
    return found


def _recall(corpus: Corpus, config: Configuration) -> Values | None:
    route = route_of(config)
    return None if route is None else corpus.routing_recall(route)


class _Bench:
    """Measures settings of one configuration on some queries."""

    def __init__(self, corpus: Corpus, metric: MetricAt) -> None:
        self.corpus = corpus
        self.metric = metric
        self._depth = corpus.experiment.depth

    def readings(
        self, points: Sequence[Configuration], queries: Collection[str]
    ) -> dict[Configuration, Reading]:
        """Return what each setting gives on ``queries``, which alone are looked at."""
        routes = tuple(dict.fromkeys(route_of(point) for point in points))
        asked = pa.array(sorted(queries), pa.string())
        lists = {
            source: dict(zip(routes, self.corpus.lists(source, routes), strict=True))
            for source in sources_of(points[0])
        }
        return {
            point: self._reading(
                point,
                ranking.rank(
                    corpus=self.corpus.experiment.corpus,
                    config=point.name,
                    queries=self.corpus.queries,
                    chunks=self._chunks(point),
                    channels={s.channel: of[route_of(point)] for s, of in lists.items()},
                    fuse=ranking.fusion_of(
                        point.fusion_used,
                        self._chunks(point)["chunk_id"].combine_chunks(),
                        self._depth,
                    ),
                ),
                asked,
            )
            for point in points
        }

    def _chunks(self, point: Configuration) -> pa.Table:
        return self.corpus.table("chunks", point.chunker)

    def _reading(self, point: Configuration, rankings: pa.Table, asked: pa.Array) -> Reading:
        given = (rankings, self.corpus.gold_spans, self.corpus.queries)
        ranked, gold, queries = (t.filter(pc.is_in(t["query_id"], value_set=asked)) for t in given)
        run = scored_run(ranked, gold, self._chunks(point), queries)
        name, k = self.metric
        budget = (BUDGET, k or self._depth)
        found = query_metrics(
            run,
            corpus=self.corpus.experiment.corpus,
            config=point.name,
            metrics=dict.fromkeys([self.metric, budget]),
        )
        return Reading(
            metric=_values(found, name, k),
            chars={query: value or 0.0 for query, value in _values(found, *budget).items()},
            routing_recall=_recall(self.corpus, point),
        )


def _values(table: pa.Table, name: str, k: int | None) -> Values:
    """Return query -> value of one metric."""
    at = pc.field("k").is_null() if k is None else pc.field("k") == k
    of_metric = table.filter((pc.field("metric") == name) & at)
    return dict(zip(*(of_metric[c].to_pylist() for c in ("query_id", "value")), strict=True))
