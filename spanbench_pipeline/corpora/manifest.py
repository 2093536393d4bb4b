"""What was recorded of a corpus's documents, and whether they still extract to the same text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spanbench_pipeline.core import evalset
from spanbench_pipeline.core.errors import InputError, refuse_all
from spanbench_pipeline.corpora import files
from spanbench_pipeline.corpora.extract import FORM_VALUES, Extracted

Manifest = dict[str, dict[str, Any]]
"""doc_id -> extractor, source_bytes, source_sha256, n_chars, text_sha256 and, if any, notes."""

AGAIN = "Check the gold spans, then register the corpus again: spanbench adapt"


def entry(data: bytes, made: Extracted) -> dict[str, Any]:
    """Return what a manifest records of one document: its bytes and the text made of them."""
    found = {
        "extractor": made.extractor,
        "source_bytes": len(data),
        "source_sha256": hashlib.sha256(data).hexdigest(),
        "n_chars": len(made.text),
        "text_sha256": evalset.text_sha256(made.text),
    }
    return found | ({"notes": list(made.notes)} if made.notes else {})


def to_bytes(entries: Manifest) -> bytes:
    """Return the manifest as a JSON file, sorted by doc_id."""
    text = json.dumps(entries, ensure_ascii=False, indent=1, sort_keys=True)
    return (text + "\n").encode("utf-8")


def check(path: Path, now: Manifest) -> None:
    """Hold the documents as they are ``now`` to the manifest at ``path``.

    Raises InputError naming every document that was added, removed, or extracts to another text
    than the recorded one, with both hashes. A file whose bytes changed and whose text did not is no
    difference: every offset still holds.
    """
    recorded = _load(path)
    problems = [
        f"{path}: document {doc_id!r} is recorded, but its file is gone. {AGAIN}"
        for doc_id in sorted(recorded.keys() - now.keys())
    ]
    problems += [
        f"{path}: document {doc_id!r} was added since. {AGAIN}"
        for doc_id in sorted(now.keys() - recorded.keys())
    ]
    problems += [
        f"{path}: document {doc_id!r} extracts to another text than the recorded one "
        f"({_why(recorded[doc_id], now[doc_id])}: recorded {_measure(recorded[doc_id])}; found "
        f"{_measure(now[doc_id])}. {AGAIN}"
        for doc_id in sorted(now.keys() & recorded.keys())
        if recorded[doc_id]["text_sha256"] != now[doc_id]["text_sha256"]
    ]
    refuse_all(problems, str(path))


def notes(path: Path) -> dict[str, list[str]]:
    """Return what the manifest at ``path`` notes of its documents: doc_id -> sentences, where
    any.
    """
    return {doc_id: e["notes"] for doc_id, e in sorted(_load(path).items()) if e.get("notes")}


def _why(was: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return why a document's text is another, and which offsets still hold."""
    if was["source_sha256"] != found["source_sha256"]:
        return "the file was changed), so no offset holds"
    why = f"{was['extractor']} extracted it, {found['extractor']} does now)"
    if found["extractor"] == was["extractor"] + FORM_VALUES:
        return f"{why}: the values of its form now stand behind its pages, whose offsets hold"
    return f"{why}, so no offset holds"


def _measure(entry: Mapping[str, Any]) -> str:
    return f"{entry['n_chars']} characters, sha256 {entry['text_sha256']}"


def _load(path: Path) -> Manifest:
    wrong = InputError(f"{path}: not a manifest. {AGAIN}")
    try:
        value = json.loads(files.read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise wrong from error
    if not isinstance(value, dict) or not all(map(_is_entry, value.values())):
        raise wrong
    return value


def _is_entry(value: Any) -> bool:
    keys = {"extractor", "source_sha256", "n_chars", "text_sha256"}
    if not isinstance(value, dict) or not keys <= value.keys():
        return False
    notes = value.get("notes", [])
    return isinstance(notes, list) and all(isinstance(note, str) for note in notes)
