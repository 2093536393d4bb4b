"""What was tried and failed, so that what runs by itself does not try the same thing again.

A stage that raises leaves no materialization, so nothing would say that it was tried. Its run gets
a tag: which stage, and from what it was to be made (code version, data versions of its inputs).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg

from spanbench_pipeline.pipeline.stage import UnsoundInput
from spanbench_pipeline.pipeline.staleness import Key, Node, Record, name

_FAILED = "spanbench/failed/"


@contextmanager
def noted(context: Any, node: Node) -> Iterator[None]:
    """Note on the run that an asset failed, where the body raises.

    An input that was not used says nothing of what the asset would make of a sound one.
    """
    try:
        yield
    except UnsoundInput:
        raise
    except Exception:
        state = _state(node, _data_versions(context.instance, node.deps))
        context.instance.add_run_tags(context.run.run_id, {_FAILED + name(node.key): state})
        raise


def failed(instance: dg.DagsterInstance, node: Node, records: Mapping[Key, Record]) -> bool:
    """Return whether the last run that was to make the asset failed at it, from just what there is
    now.
    """
    planned = instance.get_latest_planned_materialization_info(dg.AssetKey(list(node.key)))
    run = instance.get_run_by_id(planned.run_id) if planned else None
    if run is None:
        return False
    now = {dep: records[dep].data_version for dep in node.deps if dep in records}
    return bool(run.tags.get(_FAILED + name(node.key)) == _state(node, now))


def told(run: dg.DagsterRun, key: Key) -> str:
    """Return what an asset was to be made from when a run failed at it; empty where it is not
    noted.
    """
    return run.tags.get(_FAILED + name(key), "")


def _state(node: Node, inputs: Mapping[Key, str]) -> str:
    """Return a hash of what an asset is to be made from."""
    text = json.dumps([node.code_version, sorted((name(key), v) for key, v in inputs.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _data_versions(instance: dg.DagsterInstance, keys: Iterable[Key]) -> dict[Key, str]:
    """Return the inputs' data versions as recorded, of those that were ever materialized."""
    found = {}
    for entry in instance.get_asset_records([dg.AssetKey(list(key)) for key in keys]):
        materialized = entry.asset_entry.last_materialization
        event = materialized.asset_materialization if materialized else None
        if event is not None:
            key = tuple(entry.asset_entry.asset_key.path)
            found[key] = (event.tags or {}).get("dagster/data_version", "")
    return found
