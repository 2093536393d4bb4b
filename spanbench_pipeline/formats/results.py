"""The stored results of a corpus, as formats write them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import pyarrow as pa

from spanbench_pipeline.config.experiment import Configuration, Experiment
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.formats import stamp
from spanbench_pipeline.formats.stamp import Stamp
from spanbench_pipeline.storage import parquet
from spanbench_pipeline.storage.results import Key, ResultsStore


class Results:
    """The results of a corpus with its experiment; ``tables`` names the table of each asset."""

    def __init__(
        self, store: ResultsStore, experiment: Experiment, tables: Mapping[Key, str]
    ) -> None:
        self.store = store
        self.experiment = experiment
        self.tables = tables

    @property
    def evalset(self) -> EvalSet:
        """Return documents, queries and gold spans."""
        return self.store.evalset

    @property
    def states(self) -> dict[str, str]:
        """Return the state of each configuration, such as ``measured``."""
        return self.store.states

    @property
    def measured(self) -> list[Configuration]:
        """Return the configurations that ran, in the experiment's order."""
        return [
            c for c in self.experiment.configurations if self.states[c.name] == parquet.MEASURED
        ]

    @cached_property
    def stamps(self) -> dict[str, Stamp]:
        """Return what its configurations rank, by chunker."""
        made, depth = self.experiment.chunkers, self.experiment.depth
        return {name: stamp.made(self.evalset, self.chunks(name), name, depth) for name in made}

    def chunks(self, chunker: str) -> pa.Table:
        """Return the table ``chunks`` of one chunker."""
        return self.store.table("chunks", chunker)

    def rankings(self, config: Configuration) -> pa.Table:
        """Return the table ``rankings`` of one configuration."""
        return self.store.table("rankings", config.slug)

    def query_metrics(self, config: Configuration) -> pa.Table:
        """Return the table ``query_metrics`` of one configuration."""
        return self.store.table("query_metrics", config.slug)
