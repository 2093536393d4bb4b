"""Chunkers: one module a strategy, from a document's text to pieces of it.

A strategy is a module: one of this package, one that a plug-in registers (entry points of the group
``spanbench.chunkers``), or any other that Python can import. It has

- ``TILES``: whether every character of a text is in a piece (False: gaps are allowed),
- ``OVERLAPS``: whether two pieces may share a character,
- ``chunk(text: str, *, ...) -> list[tuple[int, int]]``: ``[start, end)`` of each piece in code
  points, sorted by (start, end). Parameters are keyword-only and annotated int, float, str or bool;
- where parameters can be wrong, ``problem(**parameters) -> str | None``: what is wrong;
- and ``CARD = True`` where each piece is to be embedded behind a card of its document. The card is
  no part of the piece: nothing but the vector knows of it.
- and where they promise a size, ``sizes(**parameters) -> tuple[int, int]``: the fewest and the most
  characters of a piece. The last piece of a text may be shorter, none may be longer.

What a chunker declares is checked on every document; a chunker knows nothing of queries.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spanbench_pipeline.config.experiment import ChunkerSettings
from spanbench_pipeline.core import tables
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.plugins import Registry
from spanbench_pipeline.core.suggestions import nearest

Ints = npt.NDArray[np.int64]

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_TYPES = {t.__name__: t for t in (int, float, str, bool)}


@dataclass(frozen=True)
class Chunker:
    """A strategy with its parameters; ``params`` holds every one of them, defaults included."""

    name: str
    module: str
    tiles: bool
    overlaps: bool
    params: Mapping[str, Any]
    function: Callable[..., Any]
    card: bool = False
    """Whether pieces are embedded behind a card of their document."""
    sizes: tuple[int, int] | None = None
    """Fewest and most characters of a piece, as its parameters promise; None: they promise none."""


def load(settings: ChunkerSettings, path: Path | str) -> Chunker:
    """Return the chunker that an experiment names.

    A strategy without a dot is a module of this package or a plug-in, one with dots any module
    that Python can import. Raises InputError naming ``path`` (the experiment's file), the key, and
    the nearest valid name.
    """
    where = f"{path}: chunkers.{settings.name}"
    try:
        return _load(where, settings)
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        # The module is the user's own code, which may do anything where it is imported or asked.
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{where}: module {settings.strategy!r} cannot be used: {told}") from error


def _load(where: str, settings: ChunkerSettings) -> Chunker:
    module = _module(where, settings.strategy)
    card = getattr(module, "CARD", False)
    declared = (getattr(module, "TILES", None), getattr(module, "OVERLAPS", None), card)
    is_bool = [isinstance(value, bool) for value in declared]
    if not all(is_bool) or not callable(getattr(module, "chunk", None)):
        raise InputError(
            f"{where}: module {module.__name__} is no chunker: it must have TILES and OVERLAPS, "
            "True or False, and a function chunk (CARD, where given, is True or False too)"
        )
    params = _parameters(where, module, settings.params)
    wrong = module.problem(**params) if hasattr(module, "problem") else None
    if wrong:
        raise InputError(f"{where}: {wrong}")
    sizes = module.sizes(**params) if hasattr(module, "sizes") else None
    return Chunker(
        settings.name,
        module.__name__,
        module.TILES,
        module.OVERLAPS,
        params,
        module.chunk,
        card=card,
        sizes=sizes,
    )


def chunk_documents(corpus: str, documents: pa.Table, chunker: Chunker) -> pa.Table:
    """Return the table ``chunks``: the pieces that ``chunker`` makes of a documents table.

    Raises InputError naming chunker, document and offsets where pieces are empty, out of range,
    unsorted or given twice, or overlap or leave a gap that the chunker did not declare.
    """
    doc_ids: list[str] = documents["doc_id"].to_pylist()
    texts: list[str] = documents["text"].to_pylist()
    made = [_pieces(chunker, d, t) for d, t in zip(doc_ids, texts, strict=True)]
    counts = [len(pieces) for pieces in made]
    doc_of = np.repeat(np.array(doc_ids, dtype=object), counts)
    numbers = np.concatenate([np.arange(n) for n in counts] or [np.empty(0, np.int64)])
    offsets = np.concatenate([*made, np.empty((0, 2), np.int64)])
    return tables.from_columns(
        "chunks",
        {
            "corpus": pa.repeat(corpus, len(numbers)),
            "chunker": pa.repeat(chunker.name, len(numbers)),
            "chunk_id": [
                f"{doc_id}:{chunker.name}:{number}"
                for doc_id, number in zip(doc_of, numbers.tolist(), strict=True)
            ],
            "doc_id": doc_of,
            "chunk_no": numbers,
            "start_char": offsets[:, 0],
            "end_char": offsets[:, 1],
        },
    )


def strategies() -> Registry:
    """Return the strategies that have a name: the modules of this package, and plug-ins."""
    own = {module.name: f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)}
    return Registry("spanbench.chunkers", own)


def _module(where: str, strategy: str) -> ModuleType:
    if not _MODULE.fullmatch(strategy):
        raise InputError(f"{where}: strategy = {strategy!r} is no module name")
    if "." in strategy:
        return _imported(where, strategy)
    hint = "; a module of your own is named with its package, such as my_package.paragraphs"
    module: ModuleType = strategies().choose(where, "strategy", strategy, hint)
    return module


def _imported(where: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise InputError(
            f"{where}: no module {error.name!r}: install it beside spanbench, or put its "
            "folder on PYTHONPATH"
        ) from error


def _parameters(where: str, module: ModuleType, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every parameter of ``module.chunk`` with its value: the given one, else the
    default.
    """
    declared = {
        p.name: p
        for p in inspect.signature(module.chunk, eval_str=True).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    }
    for name in given:
        if name not in declared:
            raise InputError(f"{where}: unknown key {name!r}{nearest(name, sorted(declared))}")
    values: dict[str, Any] = {}
    for name, parameter in sorted(declared.items()):
        values[name] = given.get(name, parameter.default)
        if values[name] is parameter.empty:
            raise InputError(f"{where}: key {name!r} is missing")
        _check_type(where, module, parameter, values[name])
    return values


def _check_type(where: str, module: ModuleType, parameter: inspect.Parameter, value: Any) -> None:
    kind = parameter.annotation
    if kind not in _TYPES.values():
        raise InputError(
            f"{where}: {module.__name__}.chunk must annotate {parameter.name} as one of "
            f"{', '.join(_TYPES)}"
        )
    fits = type(value) is kind or (kind is float and type(value) is int)
    if not fits:
        raise InputError(f"{where}: {parameter.name} = {value!r} must be of type {kind.__name__}")


def _pieces(chunker: Chunker, doc_id: str, text: str) -> Ints:
    """Return the checked pieces of one document, shape (n, 2)."""
    where = f"chunker {chunker.name!r}, document {doc_id!r} ({len(text)} characters)"
    made = chunker.function(text, **chunker.params)
    try:
        pieces = np.asarray(made if len(made) else np.empty((0, 2), np.int64))
    except (TypeError, ValueError) as error:  # no sequence, or one of unequal parts
        raise InputError(f"{where}: did not return pairs of integers: {error}") from error
    if pieces.ndim != 2 or pieces.shape[1] != 2 or pieces.dtype.kind not in "iu":
        raise InputError(f"{where}: did not return pairs of integers: {made[0]!r}, ...")
    pieces = pieces.astype(np.int64)
    problem = next(_problems(pieces, len(text), chunker), None)
    if problem:
        raise InputError(f"{where}: {problem}")
    return pieces


def _problems(pieces: Ints, n_chars: int, chunker: Chunker) -> Iterator[str]:
    """Yield what is wrong with the pieces, the first of each kind, worst kind first."""
    start, end = pieces[:, 0], pieces[:, 1]
    reach = np.maximum.accumulate(end)  # how far the pieces so far go: ends need not be sorted
    same_start = start[1:] == start[:-1]
    unsorted = (start[1:] < start[:-1]) | (same_start & (end[1:] < end[:-1]))
    checks = [
        ((start < 0) | (end > n_chars), "lies outside the text"),
        (end <= start, "has no characters"),
        (np.append(False, unsorted), "belongs before the piece that precedes it: sort them"),
        (np.append(False, same_start & (end[1:] == end[:-1])), "is given twice"),
    ]
    if chunker.sizes is not None:
        fewest, most = chunker.sizes
        last = np.arange(len(start)) == len(start) - 1
        checks += [
            (end - start > most, f"has more characters than the {most} of its parameters"),
            (~last & (end - start < fewest), f"has fewer characters than the {fewest} it promises"),
        ]
    if not chunker.overlaps:
        overlap = np.append(False, start[1:] < reach[:-1])
        checks.append((overlap, "overlaps a piece before it, but OVERLAPS is False"))
    for wrong, problem in checks:
        for i in np.flatnonzero(wrong)[:1]:
            yield f"piece {i}, [{start[i]}, {end[i]}), {problem}"
    if chunker.tiles:
        covered, following = np.append(0, reach), np.append(start, n_chars)
        for i in np.flatnonzero(following > covered)[:1]:
            gap = f"[{covered[i]}, {following[i]})"
            yield f"characters {gap} are in no piece, but TILES is True"
