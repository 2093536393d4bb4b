"""What is stale, why, and in which waves to run it.

Level-triggered: the answer follows from what is recorded and what is defined now, never from an
event that could be lost. Staleness here is an asset's own: its code changed, an input's data
changed, it is missing, or its blocking check failed. A descendant of a stale asset is *waiting*:
whether it must run is known when its inputs have settled, since output that comes out the same
stops the cascade. So assets run in waves, with a new look after each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Key = tuple[str, ...]
NOT_EVALUATED = " (not evaluated)"
"""Ends the name of a check that has yet to judge a materialization."""


@dataclass(frozen=True)
class Node:
    """An asset as it is defined now."""

    key: Key
    code_version: str
    deps: tuple[Key, ...] = ()


@dataclass(frozen=True)
class Record:
    """An asset's latest materialization, as the instance recorded it.

    ``inputs`` holds each input's data version then; ``failed_checks`` the names of blocking checks
    whose latest evaluation of this very materialization failed; ``damage`` says in words what is
    wrong with the stored file, empty where it is the one that was recorded.
    """

    code_version: str
    data_version: str
    inputs: Mapping[Key, str] = field(default_factory=dict)
    failed_checks: tuple[str, ...] = ()
    damage: str = ""


def name(key: Key) -> str:
    """Return ``("cuad", "chunks", "naive")`` -> ``cuad/chunks/naive``."""
    return "/".join(key)


def reasons(node: Node, records: Mapping[Key, Record]) -> list[str]:
    """Return why the asset itself is stale; [] when it is not."""
    return own_reasons(node, records) + changed_inputs(node, records)


def own_reasons(node: Node, records: Mapping[Key, Record]) -> list[str]:
    """Return why the asset must run whatever becomes of its inputs; [] when it need not."""
    record = records.get(node.key)
    if record is None:
        return ["never materialized"]
    found = [record.damage] if record.damage else []
    if record.code_version != node.code_version:
        found.append("its code, parameters or models changed")
    return found + [_said_of(check) for check in record.failed_checks]


def _said_of(check: str) -> str:
    """Return what a blocking check that has not passed is said to be."""
    evaluated = not check.endswith(NOT_EVALUATED)
    named = check.removesuffix(NOT_EVALUATED)
    return f"{'blocking check failed' if evaluated else 'check never evaluated'}: {named}"


def changed_inputs(node: Node, records: Mapping[Key, Record]) -> list[str]:
    """Return the inputs whose data is not what the asset was made of; [] for one never
    materialized.
    """
    record = records.get(node.key)
    if record is None:
        return []
    return [
        f"input changed: {name(dep)}"
        for dep in node.deps
        if dep in records and record.inputs.get(dep) != records[dep].data_version
    ]


def stale(nodes: Iterable[Node], records: Mapping[Key, Record]) -> dict[Key, list[str]]:
    """Return the assets that are stale themselves, each with its reasons; in the nodes' order."""
    found = {node.key: reasons(node, records) for node in nodes}
    return {key: why for key, why in found.items() if why}


def fails_as_it_is(node: Node, records: Mapping[Key, Record]) -> bool:
    """Return whether it was made of what there is now, by the code there is now, and a check
    failed.

    Made again it would fail again; something else has to change first.
    """
    record = records.get(node.key)
    if record is None or record.damage or record.code_version != node.code_version:
        return False
    judged = [check for check in record.failed_checks if not check.endswith(NOT_EVALUATED)]
    return bool(judged) and not changed_inputs(node, records)


def settled(nodes: Mapping[Key, Node], unsettled: Iterable[Key]) -> set[Key]:
    """Return the assets that are not in ``unsettled`` and have no ancestor there."""
    bad = set(unsettled)
    for key in topological(nodes):
        if any(dep in bad for dep in nodes[key].deps):
            bad.add(key)
    return set(nodes) - bad


def next_wave(
    nodes: Mapping[Key, Node], records: Mapping[Key, Record], held: Iterable[Key] = ()
) -> list[Key]:
    """Return the assets to run now, inputs before users; none of ``held``, nor what lies below
    them.

    A stale asset runs when its inputs are settled. One that must run whatever becomes of its inputs
    runs behind them in the same wave: a first run is one wave. ``held`` were tried and failed.
    """
    kept = set(held)
    found = stale(nodes.values(), records)
    ready = settled(nodes, kept | set(found))
    wave: list[Key] = []
    for key in topological(nodes):
        if key not in found or key in kept:
            continue
        allowed = ready | set(wave) if own_reasons(nodes[key], records) else ready
        if all(dep in allowed for dep in nodes[key].deps if dep in nodes):
            wave.append(key)
    return wave


def waves(
    nodes: Mapping[Key, Node],
    look: Callable[[], Mapping[Key, Record]],
    run: Callable[[list[Key]], set[Key]],
) -> set[Key]:
    """Run wave after wave until nothing can run; return the assets that failed.

    ``look`` reads the records, ``run`` materializes a wave and return the keys that failed.
    Every asset runs at most once.
    """
    failed: set[Key] = set()
    done: set[Key] = set()
    while wave := [k for k in next_wave(nodes, look(), failed) if k not in done]:
        done.update(wave)
        failed |= run(wave)
    return failed


def forecast(nodes: Mapping[Key, Node], records: Mapping[Key, Record]) -> list[list[Key]]:
    """Return the waves that would run if all that runs came out changed and sound.

    The first wave is the one that runs now. Of the others every asset may yet turn out fresh; no
    asset that is in none of them can run.
    """
    assumed = dict(records)
    found: list[list[Key]] = []

    def run(wave: list[Key]) -> set[Key]:
        found.append(wave)
        for key in wave:
            inputs = {d: assumed[d].data_version for d in nodes[key].deps if d in assumed}
            assumed[key] = Record(nodes[key].code_version, f"of wave {len(found)}", inputs)
        return set()

    waves(nodes, lambda: assumed, run)
    return found


def ancestors(nodes: Mapping[Key, Node], keys: Iterable[Key]) -> set[Key]:
    """Return ``keys`` and every asset that one of them is made from, near or far."""
    found: set[Key] = set()
    waiting = [key for key in keys if key in nodes]
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += [dep for dep in nodes[key].deps if dep in nodes]
    return found


def topological(nodes: Mapping[Key, Node]) -> list[Key]:
    """Return keys with every input before its users; otherwise in the nodes' order."""
    order: list[Key] = []
    seen: set[Key] = set()

    def visit(key: Key) -> None:
        if key in seen or key not in nodes:
            return
        seen.add(key)
        for dep in nodes[key].deps:
            visit(dep)
        order.append(key)

    for key in nodes:
        visit(key)
    return order
