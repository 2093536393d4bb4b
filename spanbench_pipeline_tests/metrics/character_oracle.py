"""Sections 2 and 3 of the forensic specification by brute force: sets of (document, character).

It shares no code with the package, and it is as slow as it looks.
"""

from __future__ import annotations

from fractions import Fraction

from spanbench_pipeline_tests.metrics.cases import Place
from spanbench_pipeline_tests.metrics.places import Placed

Characters = set[tuple[str, int]]


def characters(*places: Place) -> Characters:
    return {(doc_id, i) for doc_id, start, end in places for i in range(start, end)}


def first_occurrences(ranked: list[Place]) -> list[Place]:
    return list(dict.fromkeys(ranked))


def metrics(case: Placed, query: str, k: int, *, foreign: bool = False) -> dict[str, float]:
    given = list(case.ranked.get(query, []))
    top = first_occurrences(given)[:k]
    gold, retrieved = characters(*case.gold[query]), characters(*top)
    summed = given[:k] if foreign else top
    hits = sum(len(characters(c) & characters(g)) for c in summed for g in case.gold[query])
    lengths = sum(len(characters(c)) for c in summed)
    return {
        "chars_retrieved": len(retrieved),
        "char_precision_union": len(gold & retrieved) / len(retrieved) if retrieved else 0,
        "char_recall_union": len(gold & retrieved) / len(gold),
        "char_precision_paper": hits / lengths if lengths else 0,
        "char_recall_paper": hits / sum(len(characters(g)) for g in case.gold[query]),
    }


def covered(case: Placed, query: str, place: Place, k: int) -> int:
    top = first_occurrences(list(case.ranked.get(query, [])))[:k]
    return len(characters(place) & characters(*top))


def severed(case: Placed, place: Place) -> bool | None:
    if case.chunks is None:
        return None
    return not any(characters(place) <= characters(chunk) for chunk in case.chunks)


def state(covered_chars: int, length: int) -> str:
    if covered_chars / length >= 0.5:  # exact: a half is a float
        return "covered"
    return "partial" if covered_chars else "missed"


def relevant(case: Placed, query: str, k: int) -> Characters:
    """The characters of the top k chunks that share one with gold."""
    top = first_occurrences(list(case.ranked.get(query, [])))[:k]
    gold = characters(*case.gold[query])
    return characters(*(chunk for chunk in top if characters(chunk) & gold))


def excess(case: Placed, query: str, k: int) -> float | None:
    found = relevant(case, query, k)
    return len(found) / len(characters(*case.gold[query])) if found else None


def label(
    case: Placed, query: str, k: int, share: Fraction = Fraction(1, 2), factor: int = 3
) -> str | None:
    top = first_occurrences(list(case.ranked.get(query, [])))[:k]
    places = case.gold[query]
    if not {doc_id for doc_id, _, _ in top} & {doc_id for doc_id, _, _ in places}:
        return "DRM"
    found = {place: covered(case, query, place, k) for place in places}
    if not any(found.values()):
        return "ICR"
    is_covered = {p: Fraction(found[p], p[2] - p[1]) >= share for p in places}
    cut = [severed(case, p) for p in places if found[p] and not is_covered[p]]
    if True in cut:
        return "CBF"
    if None in cut:
        return None
    if not all(is_covered.values()):
        return "SGP" if any(is_covered.values()) else "ICR"
    gold = len(characters(*places))
    return "OVR" if len(relevant(case, query, k)) >= factor * gold else "OK"


def stability(case: Placed, query: str, k: int) -> dict[str, str | None]:
    shares = {f"covered {text}": Fraction(text) for text in ("0.3", "0.7", "1.0")}
    return {name: label(case, query, k, share=share) for name, share in shares.items()} | {
        f"factor {factor}": label(case, query, k, factor=factor) for factor in (2, 5)
    }
