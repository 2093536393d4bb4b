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

T = TypeVar("T")

VERSIONS = (2, 1, 3, 1, 2, 1, 1, 2, 1)
"""How many versions the first, second, ... agreement has; starts over at the end."""


@dataclass(frozen=True)
class Industry:
    """A kind of agreement: roles of the parties and words for what passes between them."""

    kind: str
    provider: str
    customer: str
    goods: str
    thing: str
    provide: str
    field: str
    trade: str
    item: str = "Lot"


INDUSTRIES: tuple[Industry, ...] = (
    Industry(
        "Supply Agreement", "Supplier", "Buyer", "Products",
        "refrigerated sensor units and their spare parts", "supply",
        "cold-chain logistics", "Instruments",
    ),
    Industry(
        "Hosting Agreement", "Provider", "Customer", "Services",
        "the operation of servers, storage and backups", "render",
        "managed hosting", "Datacentres", "Package",
    ),
    Industry(
        "Distribution Agreement", "Principal", "Distributor", "Goods",
        "espresso machines for the catering trade", "supply",
        "beverage equipment", "Machines",
    ),
    Industry(
        "Consulting Agreement", "Consultant", "Client", "Deliverables",
        "studies, training courses and advice on plant safety", "prepare",
        "process safety", "Advisory", "Package",
    ),
    Industry(
        "Software License Agreement", "Licensor", "Licensee", "Programs",
        "route-planning programs and their maintenance", "provide",
        "public transport planning", "Software", "Package",
    ),
    Industry(
        "Agency Agreement", "Principal", "Agent", "Articles",
        "surgical textiles and sterile packaging", "supply",
        "hospital supplies", "Medical",
    ),
    Industry(
        "Contract Manufacturing Agreement", "Manufacturer", "Brand Owner", "Components",
        "bicycle frames and forks made to drawings", "manufacture",
        "cycling equipment", "Works",
    ),
    Industry(
        "Maintenance Agreement", "Contractor", "Operator", "Works",
        "the upkeep of lifts, escalators and moving walks", "carry out",
        "vertical transport", "Technical", "Package",
    ),
    Industry(
        "Franchise Agreement", "Franchisor", "Franchisee", "Supplies",
        "recipes, fittings and ingredients for bakery shops", "supply",
        "bakery retail", "Bakeries",
    ),
    Industry(
        "Content License Agreement", "Studio", "Broadcaster", "Titles",
        "animated series with their music and artwork", "deliver",
        "children's television", "Pictures", "Package",
    ),
    Industry(
        "Transport Agreement", "Carrier", "Shipper", "Transports",
        "the carriage of grain by barge and rail", "perform",
        "bulk freight", "Freight", "Package",
    ),
    Industry(
        "Research Agreement", "Institute", "Sponsor", "Studies",
        "field trials of drought-resistant seed", "conduct",
        "plant breeding", "Laboratories", "Package",
    ),
)  # fmt: skip

STEMS: tuple[str, ...] = (
    "Halvorsen", "Béranger", "Ångström", "Peñalosa", "Kowalczyk", "Østergaard", "Brightwater",
    "Tanaka-Reyes", "Lindqvist", "Marchetti", "Thistlewood", "Szabó", "Ravenscar", "Dvořák",
    "Oakhampton", "Müller-Brandt", "Castellanos", "Penhaligon", "Vasconcelos", "Zieliński",
    "Greyfriars", "Labrecque", "Hämäläinen", "Quillfeather", "Sørensen", "Aldermere", "Gonçalves",
    "Wolverton", "Çelik", "Norrvik", "Fairbourne", "Jónsdóttir", "Capricorn", "Étoile",
    "Stonebridge", "Maelström", "Ironwood", "Küstenland", "Farrowdale", "Nováček",
)  # fmt: skip
FORMS: tuple[str, ...] = ("Ltd.", "GmbH", "S.A.", "Inc.", "AB", "B.V.", "S.p.A.", "LLC", "plc")
FIRST: tuple[str, ...] = (
    "Aurélie", "Tomás", "Ingrid", "Rajesh", "Małgorzata", "Desmond", "Zoë", "Håkon", "Priya",
    "Matthias", "Élodie", "Cormac", "Yuki", "Beatriz", "Anselm", "Noémie",
)  # fmt: skip
LAST: tuple[str, ...] = (
    "Castagnier", "Okafor", "Ibáñez", "Brandvold", "Nakamura", "Whitlock", "Deschênes", "Kaur",
    "Pettersson", "Lüders", "Abernathy", "Moravec", "Sjöberg", "Fontaine", "Grzywacz", "Tremblay",
)  # fmt: skip
SYSTEMS: tuple[tuple[str, ...], tuple[str, ...]] = (
    ("Halcyon", "Kestrel", "Meridian", "Orrery", "Bramble", "Quarry", "Lantern", "Saffron", "Tern"),
    ("Ledger", "Gateway", "Console", "Planner", "Relay", "Atlas", "Index Desk", "Board", "Vault"),
)
PLACES: tuple[tuple[str, ...], tuple[str, ...]] = (
    ("Port Ellery", "Grünau", "Saint-Rémy", "Dunmore", "Vila Nova", "Østby", "Harlow Cross",
     "Kilbrannan", "Mirande"),
    ("depot", "works", "campus", "terminal", "annex", "warehouse", "laboratory"),
)  # fmt: skip
INDICES: tuple[tuple[str, ...], tuple[str, ...]] = (
    ("Halden", "Corvino", "Eastmark", "Brabant", "Tyrrell", "Oresund"),
    ("Freight Index", "Producer Price Series", "Wage Barometer", "Materials Index", "Cost Gauge"),
)
SEATS_OF_LAW: tuple[tuple[str, str], ...] = (
    ("the State of Delaware", "Wilmington"), ("England and Wales", "London"),
    ("the Province of Québec", "Montréal"), ("the Republic of Austria", "Vienna"),
    ("Switzerland", "Zürich"), ("the State of New York", "Albany"), ("Ireland", "Dublin"),
    ("the Federal Republic of Germany", "Düsseldorf"), ("the Kingdom of Denmark", "Århus"),
    ("Singapore", "Singapore"), ("the Kingdom of Spain", "Málaga"), ("Scotland", "Edinburgh"),
    ("the Netherlands", "Rotterdam"), ("the Republic of Poland", "Łódź"),
    ("the Commonwealth of Massachusetts", "Boston"), ("Brazil", "São Paulo"),
)  # fmt: skip
TERRITORIES: tuple[str, ...] = (
    "the Nordic countries", "the Benelux states", "the Iberian Peninsula", "New England",
    "the United Kingdom and Ireland", "Central Europe", "the Pacific Northwest",
    "the Canadian provinces east of Manitoba", "the Southern Cone", "the Alpine region",
)  # fmt: skip
REGIONS: tuple[str, ...] = (
    "the European Economic Area", "the country of the {b}'s seat", "Canada", "Switzerland",
)  # fmt: skip

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

COUNTS: dict[str, tuple[int, ...]] = {
    "term_years": (2, 3, 4, 5, 6, 7, 8, 10),
    "renew_months": (6, 12, 18, 24, 36),
    "renew_days": (30, 45, 60, 75, 90, 120, 180),
    "conv_days": (30, 40, 60, 90, 120, 150),
    "cure_days": (10, 15, 20, 28, 30, 35),
    "pay_days": (14, 21, 30, 45, 60),
    "step_days": (7, 10, 14, 18, 20, 25),
    "exit_days": (60, 80, 90, 120, 180),
    "pilot_days": (5, 8, 12, 16),
    "pilot_months": (3, 4, 8, 9),
    "pilot_hours": (2, 3, 5, 6),
    "cap_months": (6, 12, 18, 24),
    "audit_days": (5, 7, 10, 12, 15),
    "conf_years": (2, 3, 4, 5, 7),
    "nc_months": (6, 12, 18, 24),
    "ns_months": (9, 12, 15, 24),
    "warr_months": (12, 18, 24, 30, 36),
    "breach_hours": (12, 24, 36, 48, 72),
    "fix_hours": (4, 6, 8, 10),
    "fm_days": (45, 60, 90, 100, 120),
    "coc_days": (20, 30, 50, 60, 90),
    "ld_days": (10, 15, 20, 30),
    "lead_days": (14, 21, 28, 35, 42),
    "seats": (25, 40, 60, 75, 90),
}
"""Numbers that are written out, as in ``thirty (30)``."""

FIGURES: dict[str, tuple[str, ...]] = {
    "late_pct": ("0.75", "1", "1.25", "1.5", "1.8"),
    "price_pct": ("2.5", "3", "3.75", "4", "4.5", "5"),
    "sla_pct": ("99.2", "99.5", "99.75", "99.85", "99.9", "99.95"),
    "ld_pct": ("0.5", "0.75", "1", "1.5", "2"),
    "ld_cap": ("5", "7.5", "8", "10", "12"),
    "min_pct": ("30", "40", "45", "55", "60", "70"),
    "min_units": ("4,200", "6,500", "9,800", "14,000", "21,500", "36,000"),
}

AMOUNTS: dict[str, tuple[int, int]] = {
    "cap": (10, 90),
    "ins": (20, 120),
    "min_value": (3, 40),
    "pilot_cap": (1, 9),
    "fee": (1, 8),
    "ld_amount": (1, 3),
}
"""Sums of money, as a range of multiples of a step."""

STEP = {"cap": 250_000, "ins": 500_000, "min_value": 75_000, "pilot_cap": 45_000}
CURRENCIES = (("USD", "US dollars"), ("EUR", "euros"), ("GBP", "pounds sterling"))


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
    """One of ``items``. ``Random.random`` is the only draw that Python keeps stable for good."""
    return items[int(rng.random() * len(items))]


def shuffled(rng: Random, items: Sequence[T]) -> list[T]:
    """The items in a random order, by ``Random.random`` alone."""
    keys = [rng.random() for _ in items]
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]


def stream(seed: int, *key: object) -> Random:
    """A generator of its own for each thing drawn, so that one draw never moves another."""
    return Random("/".join(map(str, (seed, *key))))


def deals(count: int, seed: int) -> list[Deal]:
    """The first ``count`` documents' deals, agreement by agreement, version by version."""
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
    """Every fourth agreement is with the provider of an earlier one: an entity is no key."""
    own = agreement - 3 if agreement % 4 == 3 else agreement
    rng = stream(seed, own, "provider")
    trade = INDUSTRIES[own % len(INDUSTRIES)].trade
    return f"{pick(rng, STEMS)} {trade} {pick(rng, FORMS)}"


def _names(rng: Random, industry: Industry, provider: str) -> dict[str, str]:
    stems = [s for s in STEMS if not provider.startswith(s)]
    people = [f"{a} {b}" for a, b in zip(shuffled(rng, FIRST), shuffled(rng, LAST), strict=True)]
    (law, city), (law2, city2) = shuffled(rng, SEATS_OF_LAW)[:2]
    codes = [f"{pick(rng, 'QXKZVWJ')}{pick(rng, 'TRNLDM')}-{1000 + int(rng.random() * 8999)}"
             for _ in range(3)]  # fmt: skip
    return {
        "A": provider,
        "B": f"{pick(rng, stems)} {pick(rng, ('Group', 'Holding', 'Trading', 'Partners'))} "
        f"{pick(rng, FORMS)}",
        "a": industry.provider,
        "b": industry.customer,
        "goods": industry.goods,
        "thing": industry.thing,
        "provide": industry.provide,
        "field": industry.field,
        "territory": pick(rng, TERRITORIES),
        "region": pick(rng, REGIONS),
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
        "system": " ".join(pick(rng, words) for words in SYSTEMS),
        "site": " ".join(pick(rng, words) for words in PLACES),
        "index": " ".join(pick(rng, words) for words in INDICES),
        "escrow": f"{pick(rng, stems)} Safekeeping {pick(rng, FORMS)}",
        "shall": pick(rng, ("shall", "shall", "will", "must")),
    }


def _numbers(rng: Random, before: Mapping[str, str], revision: int) -> dict[str, str]:
    """Every number of a first version; about half of them anew in a later one."""
    code, currency = pick(rng, CURRENCIES)
    fresh = {name: spelled(pick(rng, values)) for name, values in COUNTS.items()}
    fresh |= {name: pick(rng, values) for name, values in FIGURES.items()}
    for name, (low, high) in AMOUNTS.items():
        amount = (low + int(rng.random() * (high - low + 1))) * STEP.get(name, 2_500)
        fresh[name] = f"{before.get('code_of_money', code)} {amount:,}"
    if revision > 1:
        return {name: value for name, value in fresh.items() if rng.random() < 0.5}
    return fresh | {"currency": currency, "code_of_money": code}


def _entries(rng: Random) -> list[str]:
    start = 2000 + int(rng.random() * 6000)
    return [f"{start + 7 * i}-{pick(rng, 'ABCDEF')}" for i in range(6)]


def spelled(number: int) -> str:
    """``30`` -> ``thirty (30)``, for numbers below 1000."""
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
