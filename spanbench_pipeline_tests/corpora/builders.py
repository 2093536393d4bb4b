"""What the tests of corpora build their inputs with."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spanbench_pipeline.config.experiment import Configuration, Experiment
from spanbench_pipeline.config.project import Project

ROOT = Path(__file__).parents[2]


def project(home: Path) -> Project:
    """The real checkout with a home of the test's own."""
    return Project(ROOT, home)


def experiment(source: Mapping[str, Any], corpus: str = "own") -> Experiment:
    return Experiment(
        corpus=corpus,
        path=Path(f"{corpus}.toml"),
        description="",
        source=source,
        chunkers={},
        configurations=(Configuration("naive", "naive"),),
    )


def listing(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: name -> bytes (None for a folder)."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def zipped(path: Path, **members: bytes) -> Path:
    """A zip with these members; ``CUADv1_json`` stands for ``CUADv1.json``."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_json", ".json"), data)
    return path


class Corpus:
    """A directory corpus in ``folder``: documents, queries and, if told, metadata."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents = folder / "documents"
        self.documents.mkdir(parents=True)
        self.queries = folder / "queries.jsonl"
        self.metadata: Path | None = None

    def document(self, name: str, data: str | bytes) -> Corpus:
        raw = data.encode("utf-8") if isinstance(data, str) else data
        (self.documents / name).write_bytes(raw)
        return self

    def lines(self, *lines: Mapping[str, Any] | str, end: str = "\n") -> Corpus:
        texts = [x if isinstance(x, str) else json.dumps(x) for x in lines]
        self.queries.write_bytes("".join(text + end for text in texts).encode("utf-8"))
        return self

    def declare(self, text: str) -> Corpus:
        self.metadata = self.folder / "metadata.json"
        self.metadata.write_bytes(text.encode("utf-8"))
        return self

    def settings(self, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = {
            "kind": "directory",
            "documents": str(self.documents),
            "queries": str(self.queries),
        }
        if self.metadata:
            found["metadata"] = str(self.metadata)
        return found | more
