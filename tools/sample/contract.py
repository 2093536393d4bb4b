"""Writes one made-up contract: chooses its clauses and their wording, and puts them in order.

Wording is drawn per agreement and clause, each from a stream of its own: two versions of one
agreement agree wherever the later one was not written anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tools.sample.deals import Deal, pick, shuffled, stream
from tools.sample.layout import CHOICE, STYLES, Builder, Mark, paragraphs
from tools.sample.texts import ARTICLES, CLAUSES, FILLERS, WORDING, Filler

REWRITTEN = 0.15
"""Share of clauses that a later version words anew."""

BURIED, AGAIN, FILLER = 0.2, 0.7, 0.8
"""Shares of clauses without a title of their own, of clauses with a second provision among the
special conditions (where there is one), and of boilerplate that is not left out."""

RIDERS = 5
"""A clause has fewer than so many sentences beside its own, as long as there are any left."""

LEFT_OVER = 4
"""Most sentences in the section that collects what no clause took."""

ROOM = (6_500, 10_500)
"""Characters of clause templates in one contract; what stands around them has about as many."""


@dataclass(frozen=True)
class Contract:
    """A generated document: its deal, its text, and what in it answers which questions."""

    deal: Deal
    text: str
    marks: Sequence[Mark]


def contract(deal: Deal, seed: int) -> Contract:
    """Return the document of a deal; the same deal and seed give the same text."""
    return _Writer(deal, seed).contract()


class _Writer:
    """Writes one contract from front page to signatures."""

    def __init__(self, deal: Deal, seed: int) -> None:
        self.deal = deal
        self.seed = seed
        self.page = Builder(STYLES[deal.agreement % len(STYLES)])
        self.outline = self.stream("outline")
        self.texts = self._chosen_texts()

    def stream(self, *key: object) -> Random:
        return stream(self.seed, self.deal.agreement, *key)

    def contract(self) -> Contract:
        self._front()
        self._definitions()
        titles = {key: pick(self.stream(key), a.titles) for key, a in ARTICLES.items()}
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
        for key in shuffled(self.outline, [k for k, c in CLAUSES.items() if c.texts]):
            clause = CLAUSES[key]
            longest = max(map(len, clause.texts)) + len(clause.again or "")
            if longest <= room:
                room -= longest
                chosen[key] = pick(self._wording_of(key), clause.texts)
        return chosen

    def _wording_of(self, key: str) -> Random:
        """Return what decides a clause's wording: the agreement, and for some clauses also the
        version.
        """
        version = self.deal.version
        anew = version > 1 and self.stream("rewrite", version, key).random() < REWRITTEN
        return self.stream("wording", key, version if anew else 1)

    def _fill(self, key: str, template: str) -> list[str]:
        """Return a template's paragraphs, facts filled in and choices made."""
        rng = self.stream("choices", key)
        text = CHOICE.sub(lambda m: pick(rng, m.group(1).split("|")), template)
        return paragraphs(text.format_map(self.deal.slots))

    def _say(self, name: str, template: str) -> None:
        self.page.paragraphs(self._fill(name, template))

    def _front(self) -> None:
        page, deal = self.page, self.deal
        page.raw(f"{deal.title.upper()}\n\n")
        self._say("front", WORDING["front"].replace("TITLE", deal.title))
        if deal.version > 1:
            page.raw("\n\n")
            self._say("replaces", WORDING["replaces"].replace("VERSION", str(deal.version - 1)))
        recitals = shuffled(self.stream("recitals"), WORDING["recitals"])[:4]
        whereas = self.outline.random() < 0.5
        for letter, recital in zip("ABCD", recitals, strict=True):
            page.raw("\n\nWHEREAS, the" if whereas else f"\n\n({letter})\tThe")
            page.raw(" ")
            self._say("recital", recital)

    def _definitions(self) -> None:
        self.page.article("Definitions")
        chosen = shuffled(self.stream("definitions"), WORDING["definitions"])[:11]
        for definition in sorted(self._fill("definition", d)[0] for d in chosen):
            self.page.raw("\n\n" + self.page.style.indent)
            self.page.paragraphs([definition])

    def _guide(self, titles: Mapping[str, str]) -> None:
        self.page.article("Guide to this Agreement")
        for key, title in titles.items():
            self.page.section(f"On {title}")
            self.page.paragraphs([ARTICLES[key].guide.format(title=title)])

    def _article(self, article: str) -> None:
        """Add an article's clauses in random order, boilerplate between them, and what is left."""
        rng = self.stream("article", article)
        keys = [k for k in self.texts if CLAUSES[k].article == article]
        fillers = [f for f in FILLERS if f.article == article and rng.random() < FILLER]
        items: list[str | Filler] = [*keys, *fillers]
        riders = shuffled(rng, ARTICLES[article].riders)
        for number, item in enumerate(shuffled(rng, items)):
            if isinstance(item, str):
                mine = [riders.pop() for _ in range(int(rng.random() * RIDERS)) if riders]
                self._clause(item, mine, buried=number > 0 and rng.random() < BURIED)
            else:
                self.page.section(item.title)
                self._say(item.title, item.text)
        if riders:
            self.page.section(pick(rng, WORDING["procedure"]))
            self._say("procedure", " ".join(riders[:LEFT_OVER]))

    def _clause(self, key: str, riders: Sequence[str], *, buried: bool) -> None:
        """Add a clause under its title, or ``buried``: as a further paragraph of what came
        before.
        """
        rng = self.stream("clause", key)
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
            self.page.section(pick(rng, CLAUSES[key].titles))
        self.page.paragraphs(texts, key)

    def _special_conditions(self) -> None:
        self.page.article("Special Conditions")
        for key in shuffled(self.stream("special"), list(self.texts)):
            clause = CLAUSES[key]
            if clause.again and self.stream("again", key).random() < AGAIN:
                self.page.section(clause.again_title.format_map(self.deal.slots))
                self.page.paragraphs(self._fill(key, clause.again), key, "again")

    def _schedule(self) -> None:
        item = self.deal.item
        self.page.article(f"Schedule of {item}s")
        templates = WORDING["entries"][item]
        for entry in self.deal.entries:
            rng = self.stream("entry", entry)
            few, many = str(2 + int(rng.random() * 18)), str(30 + 5 * int(rng.random() * 14))
            text = pick(rng, templates).format(entry=entry, few=few, many=many, **self.deal.slots)
            self.page.section(f"{item} {entry}")
            self.page.paragraphs([text], entry)

    def _signatures(self) -> None:
        self.page.raw("\n\n")
        self._say("signatures", WORDING["signatures"])
        for role, person in (("A", "person_a"), ("B", "person_d")):
            party, name = self.deal.slots[role], self.deal.slots[person]
            self.page.raw(f"\n\n{party}\n\nBy:\t______________________\nName:\t{name}")
        self.page.raw("\n")
