"""What is stale, why, and in which waves to run it.

Level-triggered: the answer follows from what is recorded and what is defined now, never from an
event that could be lost. Staleness here is an asset's own: its code changed, an input's data
changed, it is missing, or its blocking check failed. A descendant of a stale asset is *waiting*:
whether it must run is known when its inputs have settled, since output that comes out the same
stops the cascade.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Key = tuple[str, ...]


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
    """``("cuad", "chunks", "naive")`` -> ``cuad/chunks/naive``."""
    return "/".join(key)


def reasons(node: Node, records: Mapping[Key, Record]) -> list[str]:
    """Why the asset itself is stale; [] when it is not."""
    record = records.get(node.key)
    if record is None:
        return ["never materialized"]
    found = []
    if record.damage:
        found.append(record.damage)
    if record.code_version != node.code_version:
        found.append("its code, parameters or models changed")
    found += [f"blocking check failed: {check}" for check in record.failed_checks]
    for dep in node.deps:
        now = records.get(dep)
        if now is not None and record.inputs.get(dep) != now.data_version:
            found.append(f"input changed: {name(dep)}")
    return found


def stale(nodes: Iterable[Node], records: Mapping[Key, Record]) -> dict[Key, list[str]]:
    """The assets that are stale themselves, each with its reasons; in the nodes' order."""
    found = {node.key: reasons(node, records) for node in nodes}
    return {key: why for key, why in found.items() if why}


def settled(nodes: Mapping[Key, Node], unsettled: Iterable[Key]) -> set[Key]:
    """The assets that are not in ``unsettled`` and have no ancestor there."""
    bad = set(unsettled)
    for key in topological(nodes):
        if any(dep in bad for dep in nodes[key].deps):
            bad.add(key)
    return set(nodes) - bad


def next_wave(
    nodes: Mapping[Key, Node], records: Mapping[Key, Record], held: Iterable[Key] = ()
) -> list[Key]:
    """The stale assets whose inputs are all settled, but none of ``held``: safe to run now.

    ``held`` are assets that were tried and failed: neither they nor what lies below them runs.
    """
    kept = set(held)
    unsettled = set(stale(nodes.values(), records)) | kept
    fine = settled(nodes, unsettled)
    return [
        key
        for key in topological(nodes)
        if key in unsettled
        and key not in kept
        and all(dep in fine for dep in nodes[key].deps if dep in nodes)
    ]


def waves(
    nodes: Mapping[Key, Node],
    look: Callable[[], Mapping[Key, Record]],
    run: Callable[[list[Key]], set[Key]],
) -> set[Key]:
    """Runs wave after wave until nothing can run; returns the assets that failed.

    ``look`` reads the records, ``run`` materializes a wave and returns the keys that failed.
    Every asset runs at most once.
    """
    failed: set[Key] = set()
    done: set[Key] = set()
    while wave := [k for k in next_wave(nodes, look(), failed) if k not in done]:
        done.update(wave)
        failed |= run(wave)
    return failed


def topological(nodes: Mapping[Key, Node]) -> list[Key]:
    """Keys with every input before its users; otherwise in the nodes' order."""
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
