"""Write a corpus of made-up contracts, and questions whose answers are known.

Every contract is put together by :mod:`contract` from the clauses of ``wording.toml`` around the
facts of :mod:`deals`, in one of the layouts of :mod:`layout`. Where an answer stands is recorded
while it is written. The same arguments give the same bytes on every machine;
the defaults give ``data/sample``::

    python -m tools.sample.generate --documents N --queries M --seed S --out DIR
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanbench_pipeline.core.errors import InputError
from tools.sample.contract import Contract, contract
from tools.sample.deals import deals, pick, shuffled, stream
from tools.sample.layout import Mark
from tools.sample.texts import CLAUSES, WORDING

DOCUMENTS, QUERIES, SEED = 14, 60, 2
"""The bundled corpus."""

FILTERS = (("entity", "version"), ("effective_date",), ("entity",), ("entity", "version"))
EVERY = 3
"""Every third query declares filters, on these fields in turn. An entity alone leaves several
documents: versions of one agreement, and other agreements of that party."""


@dataclass(frozen=True)
class Corpus:
    """Generated documents, and queries as lines of ``queries.jsonl``."""

    contracts: Sequence[Contract]
    queries: Sequence[dict[str, Any]]


def generate(*, documents: int = DOCUMENTS, queries: int = QUERIES, seed: int = SEED) -> Corpus:
    """Return a corpus of any size; InputError where so few documents do not answer so many
    queries.
    """
    if documents < 1 or queries < 1:
        raise InputError(f"{documents} documents and {queries} queries: both must be at least 1")
    contracts = [contract(deal, seed) for deal in deals(documents, seed)]
    return Corpus(contracts, _queries(contracts, queries, seed))


def write(corpus: Corpus, folder: Path) -> None:
    """Write ``documents/*.txt``, ``queries.jsonl`` and ``metadata.json`` into a folder.

    Files of the same names are replaced. Raises InputError, before anything is written, where
    ``documents`` holds a file that is none of this corpus: it would be taken for a part of it.
    """
    texts = {f"{c.deal.doc_id}.txt": c.text for c in corpus.contracts}
    inside = folder / "documents"
    strangers = sorted({p.name for p in inside.glob("*")} - set(texts)) if inside.exists() else []
    if strangers:
        raise InputError(
            f"{inside}: {strangers[0]} is no document of this corpus; remove it or choose another "
            "folder"
        )
    inside.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (inside / name).write_bytes(text.encode("utf-8"))
    lines = "".join(json.dumps(q, ensure_ascii=False) + "\n" for q in corpus.queries)
    (folder / "queries.jsonl").write_bytes(lines.encode("utf-8"))
    metadata = {c.deal.doc_id: c.deal.metadata for c in corpus.contracts}
    data = json.dumps(metadata, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    (folder / "metadata.json").write_bytes(data.encode("utf-8"))


def _queries(contracts: Sequence[Contract], count: int, seed: int) -> list[dict[str, Any]]:
    """Return ``count`` queries as lines of ``queries.jsonl``, in order of their documents."""
    candidates = [_candidates(c, seed) for c in contracts]
    possible = sum(map(len, candidates))
    if count > possible:
        raise InputError(
            f"{len(contracts)} documents answer {possible} queries, not {count}; ask for more "
            "documents or fewer queries"
        )
    metadata = {c.deal.doc_id: c.deal.metadata for c in contracts}
    width = max(3, len(str(count)))
    lines = []
    for number, query in enumerate(_chosen(candidates, count)):
        if number % EVERY == 0:
            fields = FILTERS[number // EVERY % len(FILTERS)]
            query["filters"] = {name: metadata[query["doc_id"]][name] for name in fields}
        lines.append({"query_id": f"q{number + 1:0{width}d}", **query})
    return lines


def _chosen(candidates: Sequence[list[dict[str, Any]]], count: int) -> list[dict[str, Any]]:
    """Round after round, each document gives a query of the clause type asked about least.

    A document repeats a type only when it has no other; ties: the document's own order.
    """
    chosen: list[list[dict[str, Any]]] = [[] for _ in candidates]
    here = [Counter[str]() for _ in candidates]
    overall = Counter[str]()
    left = count
    while left:
        for mine, open_, asked in zip(chosen, candidates, here, strict=True):
            if not open_ or not left:
                continue
            types = [q["clause_type"] for q in open_]
            best = min(range(len(open_)), key=lambda i: (asked[types[i]], overall[types[i]]))
            mine.append(open_.pop(best))
            asked[types[best]] += 1
            overall[types[best]] += 1
            left -= 1
    return [query for mine in chosen for query in mine]


def _candidates(document: Contract, seed: int) -> list[dict[str, Any]]:
    """Return all that can be asked of a contract, in random order."""
    deal, found = document.deal, []
    for key, clause in CLAUSES.items():
        for question in clause.questions:
            marks = [m for m in document.marks if m.key == key]
            marks = [m for m in marks if question.place in (None, m.place)]
            if marks:
                found.append(_query(document, clause.name, question.text, marks, deal.slots))
    for entry in deal.entries:
        marks = [m for m in document.marks if m.key == entry]
        text = pick(stream(seed, deal.doc_id, entry), WORDING["entry_questions"])
        slots = {"item": deal.item.lower(), "entry": entry}
        found.append(_query(document, "Schedule Entry", text, marks, slots))
    return shuffled(stream(seed, deal.doc_id, "queries"), found)


def _query(
    document: Contract, name: str, text: str, marks: Sequence[Mark], slots: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "query": text.format_map(slots),
        "doc_id": document.deal.doc_id,
        "clause_type": name,
        "gold_spans": [
            {"start": m.start, "end": m.end, "text": document.text[m.start : m.end]} for m in marks
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the command line; 2 where the arguments ask for what cannot be made."""
    parser = argparse.ArgumentParser(description="Write a corpus of made-up contracts.")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=Path("data/sample"))
    given = parser.parse_args(arguments)
    try:
        corpus = generate(documents=given.documents, queries=given.queries, seed=given.seed)
        write(corpus, given.out)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
