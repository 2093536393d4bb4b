"""What was recorded of a corpus's documents, and whether they still extract to the same text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spanbench_pipeline import evalset
from spanbench_pipeline.corpora import files
from spanbench_pipeline.corpora.extract import Extracted
from spanbench_pipeline.errors import InputError

Manifest = dict[str, dict[str, Any]]
"""doc_id -> extractor, source_bytes, source_sha256, n_chars, text_sha256."""

AGAIN = "Check the gold spans, then register the corpus again: spanbench adapt"


def entry(data: bytes, made: Extracted) -> dict[str, Any]:
    """What a manifest records of one document: its bytes and the text made of them."""
    return {
        "extractor": made.extractor,
        "source_bytes": len(data),
        "source_sha256": hashlib.sha256(data).hexdigest(),
        "n_chars": len(made.text),
        "text_sha256": evalset.text_sha256(made.text),
    }


def to_bytes(entries: Manifest) -> bytes:
    """The manifest as a JSON file, sorted by doc_id."""
    text = json.dumps(entries, ensure_ascii=False, indent=1, sort_keys=True)
    return (text + "\n").encode("utf-8")


def check(path: Path, now: Manifest) -> None:
    """Hold the documents as they are ``now`` to the manifest at ``path``.

    Raises InputError naming the first document that was added, removed, or extracts to another
    text than the recorded one, with both hashes. A file whose bytes changed and whose text did not
    is no difference: every offset still holds.
    """
    recorded = _load(path)
    for doc_id in sorted(recorded.keys() - now.keys()):
        raise InputError(f"{path}: document {doc_id!r} is recorded, but its file is gone. {AGAIN}")
    for doc_id in sorted(now.keys() - recorded.keys()):
        raise InputError(f"{path}: document {doc_id!r} was added since. {AGAIN}")
    for doc_id in sorted(now):
        _check_document(path, doc_id, recorded[doc_id], now[doc_id])


def _check_document(
    path: Path, doc_id: str, was: Mapping[str, Any], found: Mapping[str, Any]
) -> None:
    if was["text_sha256"] == found["text_sha256"]:
        return
    if was["source_sha256"] == found["source_sha256"]:
        why = f"{was['extractor']} extracted it, {found['extractor']} does now"
    else:
        why = "the file was changed"
    raise InputError(
        f"{path}: document {doc_id!r} extracts to another text than the recorded one ({why}), so "
        f"no offset holds: recorded {was['n_chars']} characters, sha256 {was['text_sha256']}; "
        f"found {found['n_chars']} characters, sha256 {found['text_sha256']}. {AGAIN}"
    )


def _load(path: Path) -> Manifest:
    wrong = InputError(f"{path}: not a manifest. {AGAIN}")
    try:
        value = json.loads(files.read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise wrong from error
    keys = {"extractor", "source_sha256", "n_chars", "text_sha256"}
    entries = value.values() if isinstance(value, dict) else [None]
    if not all(isinstance(e, dict) and keys <= e.keys() for e in entries):
        raise wrong
    return dict(value)
