"""The bundled corpus and its generator: made-up contracts, and questions whose answers are known.

Every contract is put together from the clauses of :mod:`sample_text` around the facts of
:mod:`sample_deals` in one of the layouts of :mod:`sample_layout`. Where an answer stands is noted
while it is written. The same arguments give the same bytes on every machine; the defaults give
``data/sample``::

    python -m spanbench_pipeline.corpora.sample --documents N --queries M --seed S --out DIR
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

from spanbench_pipeline.corpora import sample_text as wording
from spanbench_pipeline.corpora.sample_deals import Deal, deals, pick, shuffled, stream
from spanbench_pipeline.corpora.sample_layout import (
    CHOICE,
    STYLES,
    Builder,
    Mark,
    paragraphs,
)
from spanbench_pipeline.errors import InputError

DOCUMENTS, QUERIES, SEED = 14, 60, 42
"""The bundled corpus."""

REWRITTEN = 0.15
"""Share of clauses that a later version words anew."""

BURIED, AGAIN = 0.2, 0.7
"""Shares of clauses without a title of their own, and with a second provision among the special
conditions (where there is one)."""

RIDERS = 5
"""A clause has fewer than so many sentences beside its own, as long as there are any left."""

LEFT_OVER = 4
"""Most sentences in the section that collects what no clause took."""

ROOM = (6_500, 10_500)
"""Characters of clause templates in one contract; what stands around them has about as many."""

FILTERED_AMONG_VERSIONS, FILTERED_ALONE = 0.45, 0.15
FILTERS = (("entity", "version"), ("effective_date",), ("entity",), ("entity", "version"))
"""Share of queries that declare filters, and on what."""

FRONT = """This TITLE (this “Agreement”) is made as of {date} between {A} (the “{a}”) and {B} (the
“{b}”), each a “party” and together the “parties”."""
REPLACES = """It takes the place of version VERSION.0 of the same agreement, whose terms end on the
day before; what was performed under them is not touched."""
SIGNATURES = """IN WITNESS WHEREOF the parties have had this Agreement signed by persons who are
authorised to do so, with effect from {date}."""


@dataclass(frozen=True)
class Contract:
    """A generated document: its deal, its text, and what in it answers which questions."""

    deal: Deal
    text: str
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Corpus:
    """Generated documents, and queries as lines of ``queries.jsonl``."""

    contracts: Sequence[Contract]
    queries: Sequence[dict[str, Any]]


def generate(
    *, documents: int = DOCUMENTS, queries: int = QUERIES, seed: int = SEED
) -> Corpus:
    """A corpus of any size; InputError where so few documents do not answer so many queries."""
    if documents < 1 or queries < 1:
        raise InputError(f"{documents} documents and {queries} queries: both must be at least 1")
    contracts = [_contract(deal, seed) for deal in deals(documents, seed)]
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


def _contract(deal: Deal, seed: int) -> Contract:
    return _Writer(deal, seed).contract()


class _Writer:
    """Writes one contract from front page to signatures."""

    def __init__(self, deal: Deal, seed: int) -> None:
        self.deal = deal
        self.seed = seed
        self.page = Builder(STYLES[deal.agreement % len(STYLES)])
        self.outline = self.stream("outline")
        self.texts = self._chosen_texts()

    def stream(self, *key: object) -> Any:
        return stream(self.seed, self.deal.agreement, *key)

    def contract(self) -> Contract:
        self._front()
        self._definitions()
        titles = {key: pick(self.stream(key), t) for key, t in wording.ARTICLES.items()}
        self._guide(titles)
        for key, title in titles.items():
            self.page.article(title)
            self._article(key)
        self._special_conditions()
        self._schedule()
        self._signatures()
        return Contract(self.deal, self.page.text, tuple(self.page.marks))

    def _chosen_texts(self) -> dict[str, str]:
        """Clause key -> template, as many clauses as the contract's length has room for."""
        room = ROOM[0] + self.outline.random() * (ROOM[1] - ROOM[0])
        chosen: dict[str, str] = {}
        for key in shuffled(self.outline, [k for k, c in wording.CLAUSES.items() if c.texts]):
            clause = wording.CLAUSES[key]
            longest = max(map(len, clause.texts)) + len(clause.again or "")
            if longest <= room:
                room -= longest
                chosen[key] = pick(self._wording_of(key), clause.texts)
        return chosen

    def _wording_of(self, key: str) -> Any:
        """What decides a clause's wording: its agreement, and in some later versions the version.

        Every version looks at its own dice only, so a clause may come back to its first wording.
        """
        version = self.deal.version
        anew = version > 1 and self.stream("rewrite", version, key).random() < REWRITTEN
        return self.stream("wording", key, version if anew else 1)

    def _fill(self, key: str, template: str) -> list[str]:
        """A template's paragraphs, facts filled in and choices made."""
        rng = self.stream("choices", key)
        text = CHOICE.sub(lambda m: pick(rng, m.group(1).split("|")), template)
        return paragraphs(text.format_map(self.deal.slots))

    def _say(self, name: str, template: str) -> None:
        self.page.paragraphs(self._fill(name, template))

    def _front(self) -> None:
        page, deal = self.page, self.deal
        page.raw(f"{deal.title.upper()}\n\n")
        self._say("front", FRONT.replace("TITLE", deal.title))
        if deal.version > 1:
            page.raw("\n\n")
            self._say("replaces", REPLACES.replace("VERSION", str(deal.version - 1)))
        recitals = shuffled(self.stream("recitals"), wording.RECITALS)[:4]
        whereas = self.outline.random() < 0.5
        for letter, recital in zip("ABCD", recitals, strict=True):
            page.raw("\n\nWHEREAS, the" if whereas else f"\n\n({letter})\tThe")
            page.raw(" ")
            self._say("recital", recital)

    def _definitions(self) -> None:
        self.page.article("Definitions")
        chosen = shuffled(self.stream("definitions"), wording.DEFINITIONS)[:11]
        for definition in sorted(chosen):
            self.page.raw("\n\n" + self.page.style.indent)
            self._say("definition", definition)

    def _guide(self, titles: Mapping[str, str]) -> None:
        self.page.article("Guide to this Agreement")
        for key, title in titles.items():
            self.page.section(f"On {title}")
            self.page.paragraphs([wording.GUIDE[key].format(title=title)])

    def _article(self, article: str) -> None:
        """An article's clauses in random order, boilerplate between them, and what is left over."""
        rng = self.stream("article", article)
        keys = [k for k in self.texts if wording.CLAUSES[k].article == article]
        items: list[Any] = [*keys, *(f for f in wording.FILLERS if f[0] == article)]
        riders = shuffled(rng, wording.RIDERS[article])
        for number, item in enumerate(shuffled(rng, items)):
            if isinstance(item, str):
                mine = [riders.pop() for _ in range(int(rng.random() * RIDERS)) if riders]
                self._clause(item, mine, buried=number > 0 and rng.random() < BURIED)
            else:
                self.page.section(item[1])
                self._say(item[1], item[2])
        if riders:
            self.page.section(pick(rng, wording.PROCEDURE))
            self._say("procedure", " ".join(riders[:LEFT_OVER]))

    def _clause(self, key: str, riders: Sequence[str], *, buried: bool) -> None:
        """A clause under its title, or ``buried``: as a further paragraph of what came before."""
        rng = self._wording_of(key)
        texts = self._fill(key, self.texts[key])
        for rider in riders:
            said = self._fill(key, rider)[0]
            if rng.random() < 0.5:
                texts[0] = f"{said} {texts[0]}"
            else:
                texts[-1] = f"{texts[-1]} {said}"
        if buried:
            self.page.raw("\n\n" + self.page.style.indent)
        else:
            self.page.section(pick(rng, wording.CLAUSES[key].titles))
        self.page.paragraphs(texts, key)

    def _special_conditions(self) -> None:
        self.page.article("Special Conditions")
        for key in shuffled(self.stream("special"), list(self.texts)):
            clause = wording.CLAUSES[key]
            if clause.again and self.stream("again", key).random() < AGAIN:
                self.page.section(clause.again_title.format_map(self.deal.slots))
                self.page.paragraphs(self._fill(key, clause.again), key, "again")

    def _schedule(self) -> None:
        item = self.deal.item
        self.page.article(f"Schedule of {item}s")
        templates = wording.ENTRIES[item]
        for entry in self.deal.entries:
            rng = self.stream("entry", entry)
            few, many = str(2 + int(rng.random() * 18)), str(30 + 5 * int(rng.random() * 14))
            text = pick(rng, templates).format(entry=entry, few=few, many=many, **self.deal.slots)
            self.page.section(f"{item} {entry}")
            self.page.paragraphs([text], entry)

    def _signatures(self) -> None:
        self.page.raw("\n\n")
        self._say("signatures", SIGNATURES)
        for role, person in (("A", "person_a"), ("B", "person_c")):
            party, name = self.deal.slots[role], self.deal.slots[person]
            self.page.raw(f"\n\n{party}\n\nBy:\t______________________\nName:\t{name}")
        self.page.raw("\n")


def _queries(contracts: Sequence[Contract], count: int, seed: int) -> list[dict[str, Any]]:
    """``count`` queries: document after document gives one, of the type used least so far."""
    asked: list[list[dict[str, Any]]] = [[] for _ in contracts]
    open_ = [_candidates(c, seed) for c in contracts]
    possible = sum(map(len, open_))
    if count > possible:
        raise InputError(
            f"{len(contracts)} documents answer {possible} queries, not {count}; ask for more "
            "documents or fewer queries"
        )
    used: Counter[str] = Counter()
    left = count
    while left:
        for mine, candidates in zip(asked, open_, strict=True):
            if candidates and left:
                here = Counter(q["clause_type"] for q in mine)
                best = min(
                    candidates, key=lambda q: (here[q["clause_type"]], used[q["clause_type"]])
                )
                candidates.remove(best)
                mine.append(best)
                used[best["clause_type"]] += 1
                left -= 1
    flat = [q for mine in asked for q in mine]
    width = max(3, len(str(count)))
    return [{"query_id": f"q{n:0{width}d}", **q} for n, q in enumerate(flat, 1)]


def _candidates(contract: Contract, seed: int) -> list[dict[str, Any]]:
    """All that can be asked of a contract, in random order."""
    deal = contract.deal
    found = []
    for key, clause in wording.CLAUSES.items():
        for question in clause.questions:
            marks = [
                m for m in contract.marks if m.key == key and question.place in (None, m.place)
            ]
            if marks:
                found.append(_query(contract, clause.name, question.text, marks, deal.slots))
    for entry in deal.entries:
        marks = [m for m in contract.marks if m.key == entry]
        text = pick(stream(seed, deal.doc_id, entry), wording.ENTRY_QUESTIONS)
        slots = {"item": deal.item.lower(), "entry": entry}
        found.append(_query(contract, "Schedule Entry", text, marks, slots))
    rng = stream(seed, deal.doc_id, "queries")
    mixed = shuffled(rng, found)
    for query in mixed:
        query["filters"] = _filters(deal, rng.random(), rng.random())
    return [{k: v for k, v in q.items() if v} for q in mixed]


def _query(
    contract: Contract, name: str, text: str, marks: Sequence[Mark], slots: Any
) -> dict[str, Any]:
    return {
        "query": text.format_map(slots),
        "doc_id": contract.deal.doc_id,
        "clause_type": name,
        "filters": {},
        "gold_spans": [
            {"start": m.start, "end": m.end, "text": contract.text[m.start : m.end]} for m in marks
        ],
    }


def _filters(deal: Deal, chance: float, which: float) -> dict[str, str]:
    """None for most queries; else fields that tell the document from its other versions, or not."""
    if chance >= (FILTERED_AMONG_VERSIONS if deal.siblings > 1 else FILTERED_ALONE):
        return {}
    fields = FILTERS[int(which * len(FILTERS))] if deal.siblings > 1 else ("entity",)
    return {name: deal.metadata[name] for name in fields}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 2 where the arguments ask for what cannot be made."""
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
