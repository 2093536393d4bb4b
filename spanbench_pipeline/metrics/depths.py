"""How far down a list a value looks, and what a depth does not reach.

Lists are cut at a depth. A value at k looks at the first k chunks: with k past the depth it would
be the value at the depth under another name, so it is absent, and named with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable

from spanbench_pipeline.config.experiment import Experiment
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.core.suggestions import nearest
from spanbench_pipeline.metrics import CHAR_METRICS, METRICS, Metric


def unreached(k: int | None, depth: int | None) -> str:
    """Why there is no value at ``k`` of lists cut at ``depth`` (None: uncut); "" where there is."""
    if k is None or depth is None or k <= depth:
        return ""
    return f"depth = {depth} does not reach {k}"


def require_reached(k: int, depth: int | None) -> None:
    """Raises NotMeasured where lists cut at ``depth`` do not reach ``k``."""
    if why := unreached(k, depth):
        raise NotMeasured(why)


def reached(depth: int | None, metrics: Iterable[Metric] = METRICS) -> tuple[Metric, ...]:
    """Those of ``metrics`` that lists cut at ``depth`` have, in their order."""
    return tuple((metric, k) for metric, k in metrics if not unreached(k, depth))


def absent(depth: int | None, metrics: Iterable[Metric] = METRICS) -> dict[str, str]:
    """``metric@k`` -> why it is not measured, for those of ``metrics`` past the depth."""
    return {
        f"{metric}@{k}": f"not measured: {why}"
        for metric, k in metrics
        if (why := unreached(k, depth))
    }


def require_known(experiment: Experiment) -> None:
    """Raise InputError where the experiment asks for a metric that there is not, or takes no k."""
    known = [name for name, k in METRICS if k is not None] + list(CHAR_METRICS)
    for name, k in experiment.further:
        if name not in known:
            asked = f"{name}@{k}"
            hint = nearest(name, known)
            raise InputError(f"{experiment.path}: metrics: no metric {asked!r} at a k{hint}")
