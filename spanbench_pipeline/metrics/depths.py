"""How far down a list a value looks, and what a depth does not reach.

Lists are cut at a depth. A value at k looks at the first k chunks: with k past the depth it would
be the value at the depth under another name, so it is absent, and named with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable

from spanbench_pipeline.core.errors import NotMeasured
from spanbench_pipeline.metrics.metric import MetricAt, metric_label


def unreached(k: int | None, depth: int | None) -> str:
    """Why there is no value at ``k`` of lists cut at ``depth`` (None: uncut); "" where there is."""
    if k is None or depth is None or k <= depth:
        return ""
    return f"depth = {depth} does not reach {k}"


def require_reached(k: int, depth: int | None) -> None:
    """Raises NotMeasured where lists cut at ``depth`` do not reach ``k``."""
    if why := unreached(k, depth):
        raise NotMeasured(why)


def reached(depth: int | None, metrics: Iterable[MetricAt]) -> tuple[MetricAt, ...]:
    """Return those of ``metrics`` that lists cut at ``depth`` have, in their order."""
    return tuple((metric, k) for metric, k in metrics if not unreached(k, depth))


def absent(depth: int | None, metrics: Iterable[MetricAt]) -> dict[str, str]:
    """Return ``metric@k`` -> why it is not measured, for those of ``metrics`` past the depth."""
    return {
        metric_label(metric, k): f"not measured: {why}"
        for metric, k in metrics
        if (why := unreached(k, depth))
    }
