"""The keys of what several configurations share: lists of candidates, and vectors of chunks."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from spanbench_pipeline.config.experiment import BM25, DENSE, Configuration, Experiment
from spanbench_pipeline.core import keys as names

Key = tuple[str, ...]


@dataclass(frozen=True)
class ListSource:
    """A channel with everything that decides its lists, but for the experiment's depth."""

    channel: str
    chunker: str
    encoder: str | None
    doc_scope: bool
    metadata_filters: bool
    routing: str = ""
    """The configuration whose routing restricts it; empty for none."""
    settings: tuple[tuple[str, str], ...] = ()
    """What of the channel's own settings is not at its default, by name."""


def sources(config: Configuration) -> list[ListSource]:
    """Return what a configuration's lists come from, in the order of its channels."""
    return [
        ListSource(
            channel,
            config.chunker,
            config.encoder if channel == DENSE else None,
            config.doc_scope,
            config.metadata_filters,
            config.slug if config.routing else "",
            tuple(config.bm25_set.items()) if channel == BM25 else (),
        )
        for channel in config.channels
    ]


def list_key(experiment: Experiment, source: ListSource) -> Key:
    """Return ``candidates/clause_bm25``, ``candidates/clause_dense_minilm_unscoped``.

    A source that no configuration has has a key as well, which is no other one's.
    """
    used = (s for config in experiment.configurations for s in sources(config))
    known = names.told_apart({_thing(s): _list_slug(experiment, s) for s in used})
    found = names.key_of(_thing(source), _list_slug(experiment, source), known)
    return (experiment.corpus, "candidates", found)


def _thing(source: ListSource) -> tuple[Any, ...]:
    """Return what a key's hash is of; settings at their default leave it as it is without them."""
    return astuple(source) if source.settings else astuple(source)[:-1]


def _list_slug(experiment: Experiment, source: ListSource) -> str:
    encoder = "" if source.encoder is None else experiment.encoder_key(source.encoder)
    parts = [source.chunker, source.channel, *(value for _, value in source.settings), encoder]
    parts += ["" if source.doc_scope else "unscoped", "filtered" * source.metadata_filters]
    parts.append(source.routing and f"routed_{source.routing}")
    return "_".join(part for part in parts if part)


def keyed_sources(experiment: Experiment, config: Configuration) -> list[tuple[ListSource, Key]]:
    """Return what a configuration's lists come from with their keys, in the order of its
    channels.
    """
    return [(source, list_key(experiment, source)) for source in sources(config)]


def list_keys(experiment: Experiment, config: Configuration) -> list[Key]:
    """Return the keys of a configuration's lists, in the order of its channels."""
    return [found for _, found in keyed_sources(experiment, config)]


def vectors_key(experiment: Experiment, chunker: str, encoder: str) -> Key:
    """Return ``embeddings/<chunker>``; with a second encoder in the experiment its name is added.

    A pair that no configuration uses has a key as well, which is no used one's.
    """
    known = names.told_apart(
        {pair: _vectors_slug(experiment, *pair) for pair in vector_pairs(experiment)}
    )
    plain = _vectors_slug(experiment, chunker, encoder)
    return (experiment.corpus, "embeddings", names.key_of((chunker, encoder), plain, known))


def vector_pairs(experiment: Experiment) -> list[tuple[str, str]]:
    """Return each chunker and encoder that some configuration uses together."""
    found = [(c.chunker, c.encoder) for c in experiment.configurations if c.uses_dense]
    return [(chunker, encoder) for chunker, encoder in dict.fromkeys(found) if encoder is not None]


def _vectors_slug(experiment: Experiment, chunker: str, encoder: str) -> str:
    first = next(iter(experiment.encoders))
    return chunker if encoder == first else f"{chunker}_{experiment.encoder_key(encoder)}"


def used_keys(experiment: Experiment) -> set[Key]:
    """Return the keys of all lists and vectors that some configuration uses."""
    lists = {key for c in experiment.configurations for key in list_keys(experiment, c)}
    return lists | {vectors_key(experiment, *pair) for pair in vector_pairs(experiment)}
