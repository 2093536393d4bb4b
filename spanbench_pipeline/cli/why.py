"""``spanbench status --why ASSET``: everything that decides whether one asset is up to date."""

from __future__ import annotations

import json
from typing import Any

from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.run import find
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.suggestions import suggested
from spanbench_pipeline.pipeline import code_version, staleness
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline.pipeline.dagster.instance import judged, look_at, made_by
from spanbench_pipeline.pipeline.dagster.runner import Runner
from spanbench_pipeline.pipeline.graph import Graph
from spanbench_pipeline.pipeline.staleness import Key, name

SHOWN = 16
"""Digits of a data version that a terminal shows."""


def why(project: Project, asset: str, shape: str = "table") -> str:
    """Return one asset explained: as text, or as JSON where ``shape`` is ``json``.

    Raises InputError where there is no such asset, with the nearest name.
    """
    graph = graphs.build(project)
    key = _key(graph, asset)
    of = graph.experiments if len(key) == 1 else [key[0]]
    with look_at(project) as instance:
        found = _explained(Runner(project, instance, graph.of(of)), key)
    return json.dumps(found, indent=2, ensure_ascii=False) if shape == "json" else _text(found)


def _key(graph: Graph, asset: str) -> Key:
    key = tuple(asset.strip("/").split("/"))
    known = {name(stage.key): stage.key for stage in graph.stages}
    if name(key) in known:
        return key
    if len(key) > 1:
        find(graph, key[0])
    raise InputError(
        f"no asset {asset!r}{suggested(name(key), known)} (an asset's name is corpus/stage/name)"
    )


def _explained(runner: Runner, key: Key) -> dict[str, Any]:
    """Return what there is to know, as JSON has it."""
    stage, node, record = runner.stages[key], runner.nodes[key], runner.records().get(key)
    stale = runner.stale()
    before, now = made_by(runner.instance, key), stage.made_by()
    return {
        "asset": name(key),
        "state": _state(runner, key),
        "reasons": stale.get(key, []),
        "waits_for": [name(k) for k in stale if k != key and k in _above(runner, key)],
        "code_version": {
            "recorded": record.code_version if record else None,
            "current": node.code_version,
            "changes": code_version.differences(before, now) if before else [],
            **now,
        },
        "inputs": [
            {
                "asset": name(dep),
                "recorded": record.inputs.get(dep) if record else None,
                "current": runner.records()[dep].data_version if dep in runner.records() else None,
            }
            for dep in node.deps
        ],
        "data_version": record.data_version if record else None,
        "checks": judged(runner.instance, stage),
    }


def _state(runner: Runner, key: Key) -> str:
    stale = runner.stale()
    if key in stale:
        return "stale"
    return "fresh" if key in staleness.settled(runner.nodes, stale) else "waiting"


def _above(runner: Runner, key: Key) -> set[Key]:
    """Return all assets that it is made of, directly or not."""
    found: set[Key] = set()
    waiting = [key]
    while waiting:
        deps = runner.nodes[waiting.pop()].deps
        waiting += [dep for dep in deps if dep in runner.nodes and dep not in found]
        found.update(deps)
    return found


_SAID = {
    "stale": "stale: it will run",
    "fresh": "up to date",
    "waiting": "up to date, but it waits to see whether its inputs change",
}


def _text(found: dict[str, Any]) -> str:
    version = found["code_version"]
    lines = [f"{found['asset']}: {_SAID[found['state']]}"]
    lines += [f"  {reason}" for reason in found["reasons"]]
    lines += [f"  {change}" for change in version["changes"]]
    if found["waits_for"]:
        lines.append(f"  below what is stale: {', '.join(found['waits_for'])}")
    recorded = version["recorded"] or "never materialized"
    lines += ["", f"code version {version['current']}, recorded: {recorded}"]
    lines += [f"  module     {module}" for module in version["modules"]]
    lines += [f"  parameter  {k} = {_value(v)}" for k, v in version["parameters"].items()]
    lines += [f"  library    {library} {v}" for library, v in version["libraries"].items()]
    return "\n".join([*lines, *_inputs(found), *_checks(found)])


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _inputs(found: dict[str, Any]) -> list[str]:
    if not found["inputs"]:
        return ["", "no inputs"]
    rows = [
        [dep["asset"], *((dep[when] or "none")[:SHOWN] for when in ("recorded", "current"))]
        for dep in found["inputs"]
    ]
    for row in rows:
        row.append("the same" if row[1] == row[2] else "changed")
    return ["", terminal.table(["input", "data version recorded", "current", "it is"], rows)]


def _checks(found: dict[str, Any]) -> list[str]:
    if not found["checks"]:
        return ["", "no checks"]
    rows = [
        [c["check"], "blocking" if c["blocking"] else "warns", c["result"], str(c["rows"] or "")]
        for c in found["checks"]
    ]
    lines = ["", terminal.table(["check", "kind", "result", "offending rows"], rows)]
    for check in found["checks"]:
        if check["first"]:
            lines += ["", f"{check['check']}, first rows:", check["first"]]
    return lines
