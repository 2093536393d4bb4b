"""Who the made-up agreements are between and what they turn on: names, dates, numbers.

An agreement may exist in several versions. What identifies it is drawn once; the numbers that
parties renegotiate are drawn again for each version, so that two versions share nearly every
word and differ in what a question asks for.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from tools.sample.texts import FACTS, INDUSTRIES, Industry

T = TypeVar("T")

VERSIONS = (2, 1, 3, 1, 2, 1, 1, 2, 1)
"""How many versions the first, second, ... agreement has; starts over at the end."""


UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
TENS = (
    "zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
UNDECOMPOSED = str.maketrans("øłđ", "old")
"""Letters whose stroke is no accent that Unicode could take off."""


@dataclass(frozen=True)
class Deal:
    """One version of one agreement: what templates are filled with, and its metadata."""

    agreement: int
    version: int
    siblings: int
    doc_id: str
    title: str
    slots: Mapping[str, str]
    metadata: Mapping[str, str]
    entries: Sequence[str]
    item: str


def pick(rng: Random, items: Sequence[T]) -> T:
    """Return one of ``items``.

    ``Random.random`` is the only draw that Python keeps stable for good.
    """
    return items[int(rng.random() * len(items))]


def shuffled(rng: Random, items: Sequence[T]) -> list[T]:
    """Return the items in a random order, by ``Random.random`` alone."""
    keys = [rng.random() for _ in items]
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]


def stream(seed: int, *key: object) -> Random:
    """Return a generator of its own for each thing drawn, so that one draw never moves another."""
    return Random("/".join(map(str, (seed, *key))))


def deals(count: int, seed: int) -> list[Deal]:
    """Return the first ``count`` documents' deals, agreement by agreement, version by version."""
    found: list[Deal] = []
    agreement = 0
    while len(found) < count:
        siblings = min(VERSIONS[agreement % len(VERSIONS)], count - len(found))
        found += [_deal(agreement, v, siblings, seed) for v in range(1, siblings + 1)]
        agreement += 1
    return found


def _deal(agreement: int, version: int, siblings: int, seed: int) -> Deal:
    industry = INDUSTRIES[agreement % len(INDUSTRIES)]
    rng = stream(seed, agreement, "names")
    slots = _names(rng, industry, _provider(agreement, seed))
    signed = datetime.date(2012, 1, 1) + datetime.timedelta(days=int(rng.random() * 3000))
    slots["region"] = slots["region"].format_map(slots)
    for revision in range(1, version + 1):
        slots |= _numbers(stream(seed, agreement, "numbers", revision), slots, revision)
    effective = signed + datetime.timedelta(days=(version - 1) * 547)
    slots["date"] = f"{effective:%B} {effective.day}, {effective.year}"
    slots["kind"] = industry.kind
    title = industry.kind if version == 1 else f"Amended and Restated {industry.kind}"
    stem = _ascii(f"{industry.kind.rsplit(' ', 1)[0]}-{slots['B'].split()[0]}")
    return Deal(
        agreement=agreement,
        version=version,
        siblings=siblings,
        doc_id=f"{agreement + 1:02d}-{stem}-v{version}",
        title=title,
        slots=slots,
        metadata={
            "effective_date": effective.isoformat(),
            "entity": slots["A"],
            "version": f"{version}.0",
        },
        entries=_entries(rng),
        item=industry.item,
    )


def _provider(agreement: int, seed: int) -> str:
    """Return every fourth agreement is with the provider of an earlier one: an entity is no key."""
    own = agreement - 3 if agreement % 4 == 3 else agreement
    rng = stream(seed, own, "provider")
    trade = INDUSTRIES[own % len(INDUSTRIES)].trade
    return f"{pick(rng, FACTS['stems'])} {trade} {pick(rng, FACTS['forms'])}"


def _names(rng: Random, industry: Industry, provider: str) -> dict[str, str]:
    stems = [s for s in FACTS["stems"] if not provider.startswith(s)]
    people = [
        f"{a} {b}"
        for a, b in zip(
            shuffled(rng, FACTS["first_names"]), shuffled(rng, FACTS["last_names"]), strict=True
        )
    ]
    (law, city), (law2, city2) = shuffled(rng, FACTS["seats_of_law"])[:2]
    codes = [f"{pick(rng, 'QXKZVWJ')}{pick(rng, 'TRNLDM')}-{1000 + int(rng.random() * 8999)}"
             for _ in range(3)]  # fmt: skip
    return {
        "A": provider,
        "B": f"{pick(rng, stems)} {pick(rng, ('Group', 'Holding', 'Trading', 'Partners'))} "
        f"{pick(rng, FACTS['forms'])}",
        "a": industry.provider,
        "b": industry.customer,
        "goods": industry.goods,
        "thing": industry.thing,
        "provide": industry.provide,
        "field": industry.field,
        "territory": pick(rng, FACTS["territories"]),
        "region": pick(rng, FACTS["regions"]),
        "law": law,
        "city": city,
        "law2": law2,
        "city2": city2,
        "person_a": people[0],
        "person_b": people[1],
        "person_c": people[2],
        "person_d": people[3],
        "code": codes[0],
        "code2": codes[1],
        "code3": codes[2],
        "system": " ".join(pick(rng, words) for words in FACTS["systems"]),
        "site": " ".join(pick(rng, words) for words in FACTS["places"]),
        "index": " ".join(pick(rng, words) for words in FACTS["indices"]),
        "escrow": f"{pick(rng, stems)} Safekeeping {pick(rng, FACTS['forms'])}",
        "shall": pick(rng, ("shall", "shall", "will", "must")),
    }


def _numbers(rng: Random, before: Mapping[str, str], revision: int) -> dict[str, str]:
    """Return every number of a first version; about half of them anew in a later one."""
    code, currency = pick(rng, FACTS["currencies"])
    fresh = {name: spelled(pick(rng, values)) for name, values in FACTS["counts"].items()}
    fresh |= {name: pick(rng, values) for name, values in FACTS["figures"].items()}
    for name, steps in FACTS["amounts"].items():
        span = steps["high"] - steps["low"] + 1
        amount = (steps["low"] + int(rng.random() * span)) * steps["step"]
        fresh[name] = f"{before.get('code_of_money', code)} {amount:,}"
    if revision > 1:
        return {name: value for name, value in fresh.items() if rng.random() < 0.5}
    return fresh | {"currency": currency, "code_of_money": code}


def _entries(rng: Random) -> list[str]:
    start = 2000 + int(rng.random() * 6000)
    return [f"{start + 7 * i}-{pick(rng, 'ABCDEF')}" for i in range(6)]


def spelled(number: int) -> str:
    """Return ``30`` -> ``thirty (30)``, for numbers below 1000."""
    hundreds, rest = divmod(number, 100)
    words = [f"{UNITS[hundreds]} hundred"] if hundreds else []
    if 0 < rest < 20:
        words.append(UNITS[rest])
    elif rest:
        words.append(TENS[rest // 10] + (f"-{UNITS[rest % 10]}" if rest % 10 else ""))
    return f"{' '.join(words)} ({number})"


def _ascii(text: str) -> str:
    plain = text.lower().translate(UNDECOMPOSED)
    folded = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", folded).strip("-")
