"""Small copies of LegalBench-RAG, as zips and as folders."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BENCHMARKS = ("contractnli", "cuad", "maud", "privacy_qa")


def snippet(path: str, text: str, answer: str) -> dict[str, Any]:
    """A snippet whose offsets are where the answer stands in the text, for the first time."""
    start = text.index(answer)
    return {"file_path": path, "span": [start, start + len(answer)], "answer": answer}


def asked(query: str, *snippets: Mapping[str, Any]) -> dict[str, Any]:
    return {"query": query, "snippets": list(snippets)}


def members(
    files: Mapping[str, str | bytes], tests: Mapping[str, list[dict[str, Any]]]
) -> dict[str, bytes]:
    """An archive's members: ``files`` is ``<benchmark>/<name>.txt`` -> text.

    A benchmark that ``tests`` does not name gets a document and a test of its own.
    """
    found: dict[str, bytes] = {}
    given = dict(files)
    for benchmark in BENCHMARKS:
        entries = tests.get(benchmark)
        if entries is None:
            path = f"{benchmark}/plain.txt"
            given.setdefault(path, f"The {benchmark} term is one year.")
            one_year = snippet(path, str(given[path]), "one year")
            entries = [asked(f"Consider {benchmark}; what is the term?", one_year)]
        found[f"benchmarks/{benchmark}.json"] = json.dumps({"tests": entries}).encode()
    for path, text in given.items():
        found[f"corpus/{path}"] = text.encode("utf-8") if isinstance(text, str) else text
    return found


def zipped(path: Path, found: Mapping[str, bytes], prefix: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in found.items():
            made.writestr(prefix + name, data)
    return path


def unpacked(folder: Path, found: Mapping[str, bytes], prefix: str = "") -> Path:
    for name, data in found.items():
        path = folder / (prefix + name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def contents(archive: Path) -> dict[str, bytes]:
    """Every member of a zip."""
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}
