"""What a ranking is of, written into the file itself, so that one file copied away still says it.

Chunk ids and places mean something beside the chunks, documents and queries that were ranked, and
beside no others. An exported file therefore carries four hashes, and the depth at which its lists
were cut, which a list that is shorter does not show: JSON under the key ``spanbench``,
Parquet in the metadata of its schema, a TREC run in its tag. A file without them is taken at its
word, as far as that can be checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from spanbench_pipeline.analysis.fingerprints import rows_hash
from spanbench_pipeline.config.experiment import MAX_DEPTH
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.formats.strict_json import Number

KEY = "spanbench"
_DIGITS = 16
_HASHED: dict[str, tuple[str, ...]] = {
    "documents": ("doc_id", "text_sha256"),
    "queries": ("query_id", "query"),
    "gold_spans": ("query_id", "doc_id", "start_char", "end_char"),
    "chunks": ("chunk_id", "doc_id", "start_char", "end_char"),
}
"""What makes a ranking mean what it means. A chunk's id belongs to it: a TREC run has nothing
else. What only decides how a ranking is made, such as metadata, does not."""


@dataclass(frozen=True)
class Stamp:
    """A ranking's chunker by name, the hashes of what was ranked and asked, and its depth."""

    chunker: str
    documents: str
    queries: str
    gold_spans: str
    chunks: str
    depth: int | None = None
    """Where lists were cut; None in files from before it was said."""

    def tag(self, name: str) -> str:
        """Return the tag of a TREC run: the configuration's name, then the stamp."""
        said = ";".join(f"{key}={value}" for key, value in self.said().items())
        return f"{name};{said}"

    def said(self) -> dict[str, str | int]:
        """Return the stamp as JSON holds it."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def made(evalset: EvalSet, chunks: pa.Table, chunker: str, depth: int | None = None) -> Stamp:
    """Return the stamp of whatever ranks these chunks for these queries, in lists cut at
    ``depth``.
    """
    given = {
        "documents": evalset.documents,
        "queries": evalset.queries,
        "gold_spans": evalset.gold_spans,
        "chunks": chunks,
    }
    hashes = {name: digest(name, table) for name, table in given.items()}
    return Stamp(chunker, **hashes, depth=depth)


def digest(name: str, table: pa.Table) -> str:
    """Return the hash that a stamp has of one of its four tables."""
    return rows_hash(table, _HASHED[name])[:_DIGITS]


_HASH = re.compile(f"[0-9a-f]{{{_DIGITS}}}")
_TAG = re.compile(
    ".*?;chunker=(?P<chunker>.*)"
    + "".join(f";{name}=(?P<{name}>{_HASH.pattern})" for name in _HASHED)
    + "(?:;depth=(?P<depth>[0-9]+))?"
)


def of_tag(tag: str) -> Stamp | None:
    """Return the stamp in the tag of a TREC run; None for a tag that has none."""
    found = _TAG.fullmatch(unquote(tag))
    if found is None:
        return None
    said: dict[str, Any] = found.groupdict()
    depth = said.pop("depth")
    if depth is None:
        return Stamp(**said)
    return Stamp(**said, depth=int(depth)) if _is_depth(depth) else None


def of_json(value: Any, where: str) -> Stamp | None:
    """Return the stamp under ``KEY``; None where there is none, InputError for anything else
    there.
    """
    if value is None:
        return None
    names = ["chunker", *_HASHED]
    texts = [value.get(n) for n in names] if isinstance(value, Mapping) else [None]
    hashes = [text for text in texts[1:] if isinstance(text, str) and _HASH.fullmatch(text)]
    sound = isinstance(texts[0], str) and len(hashes) == len(_HASHED)
    # Stamps from before it was said have no depth.
    depth = value.get("depth") if sound else None
    if not sound or not (depth is None or (isinstance(depth, Number) and _is_depth(depth.text))):
        raise InputError(
            f"{where}: {KEY} must hold {', '.join(names)} and depth as spanbench export writes "
            "them; leave it as it was written, or out"
        )
    said = {name: value[name] for name in names}
    return Stamp(**said, depth=None if depth is None else int(depth.text))


def _is_depth(text: str) -> bool:
    """Return whether a text is a depth that lists may have."""
    return re.fullmatch("[1-9][0-9]{0,4}", text) is not None and int(text) <= MAX_DEPTH
