"""What a table looks like: pictures for the web UI, declared per table.

Each is a pure function of a table and gives Markdown. The UI renders an image only as Markdown's
own ``![...](data:...)``, and shows Markdown in place only below 1,000 characters: so bars with
names are a Markdown table of block characters, histograms are SVG kept small, and what is larger
opens from a link.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spanbench_pipeline.config.experiment import CONTEXT
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.metrics.failure_labels import EVERY_LABEL
from spanbench_pipeline.metrics.forensic_labels import LABELS as FORENSIC
from spanbench_pipeline.metrics.stages import STAGES
from spanbench_pipeline.reports import facts
from spanbench_pipeline.reports.inputs import rows_of
from spanbench_pipeline.reports.render import svg
from spanbench_pipeline.reports.render.blocks import Bar, Panel, write
from spanbench_pipeline.reports.render.markdown import escape
from spanbench_pipeline.reports.sections import losses
from spanbench_pipeline.reports.sections.shared import metric_names
from spanbench_pipeline.storage import parquet

HEADLINE = "complete_grounding"
"""The metric that stands for a configuration, at the context, where there is room for one."""
EACH_RANK = 5
"""Ranks of the first relevant chunk that have a bar each; those below share bars."""

_BAR_CELLS = 16
_COLUMNS = 24
# What may stand in an image's address as it is: everything else would end it, or start markup.
_PLAIN = " !$'()*+,-./:;=?@_~"


@dataclass(frozen=True)
class Seen:
    """What a picture is drawn from: a table, and the corpus's baseline and context."""

    table: pa.Table
    baseline: str = ""
    context: int = CONTEXT


@dataclass(frozen=True)
class Picture:
    """A picture of a table: its title in the UI, and how it is drawn; "" for nothing to draw."""

    title: str
    draw: Callable[[Seen], str]


def drawn(name: str, seen: Seen) -> dict[str, str]:
    """Title -> Markdown of every picture that is declared for the table ``name``."""
    made = {picture.title: picture.draw(seen) for picture in PICTURES.get(name, ())}
    return {title: text for title, text in made.items() if text}


def read_all(paths: Iterable[Path]) -> pa.Table:
    """Return what several files hold together, at least one, whatever version wrote each.

    Raises InputError where one cannot be read.
    """
    read = []
    for path in paths:
        try:
            read.append(pq.read_table(path, partitioning=None))
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path}: this file is damaged; remove it") from error
    return pa.concat_tables(read, promote_options="default")


def image(picture: str, alt: str) -> str:
    """Return an SVG as a Markdown image that needs no file."""
    return f"![{escape(alt)}](<data:image/svg+xml,{quote(picture, safe=_PLAIN)}>)"


def bar_table(panel: Panel) -> str:
    """Return bars as a Markdown table: name, bar from where it starts, value; the marked one in
    bold.
    """
    lines = [f"| {escape(panel.title)} | | |", "| --- | --- | ---: |"]
    for bar in panel.bars:
        left = round(_BAR_CELLS * bar.start / panel.maximum)
        full = round(_BAR_CELLS * (bar.start + (bar.value or 0.0)) / panel.maximum) - left
        name, value = escape(bar.name), escape(write(bar.value, panel.format))
        if bar.marked:
            name, value = f"**{name}**", f"**{value}**"
        drawn = f"{'░' * left}{'█' * full}{'░' * (_BAR_CELLS - left - full)}"
        lines.append(f"| {name} | {drawn} | {value} |")
    return "\n".join(lines)


def _lengths(what: str, unit: str, measure: Callable[[pa.Table], Any]) -> Callable[[Seen], str]:
    """Return a histogram of one whole number a row, its upper median marked."""

    def draw(seen: Seen) -> str:
        values = np.sort(np.asarray(measure(seen.table)))
        if not len(values):
            return ""
        median = int(values[len(values) // 2])
        said = f"{len(values):,} {what}, {values[0]:,} to {values[-1]:,} {unit}, median {median:,}."
        return f"{said}\n\n{image(svg.histogram(_histogram(values, median)), 'lengths')}"

    return draw


def _histogram(values: npt.NDArray[Any], median: int) -> svg.Histogram:
    """From 0 to nearly the longest; the one in a hundred beyond that is in the last column."""
    top = int(np.percentile(values, 99, method="higher"))
    high = f"{top:,}" if top == values[-1] else f"{top:,} and more"
    top = max(top, 1)
    counts, _ = np.histogram(np.minimum(values, top), bins=_COLUMNS, range=(0, top))
    return svg.Histogram(
        tuple(int(c) for c in counts), "0", high, median / top, f"median {median:,}"
    )


def _first_ranks(seen: Seen) -> str:
    """Return where the first relevant chunk stands: 1 / mrr, query by query."""
    values = [v for r in rows_of(seen.table, metric="mrr") if (v := r["value"]) is not None]
    if not values:
        return ""
    counts = Counter(_place(round(1 / v)) if v else _NOWHERE for v in values)
    # Nothing is measured at a k past the depth: a place that no list reaches is no empty place.
    of_ranks = seen.table.filter(
        pc.invert(pc.is_in(seen.table["metric"], pa.array(registry.of_documents())))
    )
    deepest = pc.max(of_ranks["k"]).as_py() or 11
    reached = [rank for rank in (*range(1, EACH_RANK + 1), 6, 11) if rank <= deepest]
    listed = [p for p in _PLACES if p in {*map(_place, reached), *counts} - {_NOWHERE}]
    bars = tuple(Bar(place, counts[place]) for place in (*listed, _NOWHERE))
    title = "rank of the first relevant chunk"
    return bar_table(Panel(title, bars, maximum=max(counts.values()), format="count"))


def _place(rank: int) -> str:
    if rank <= EACH_RANK:
        return str(rank)
    return "6 to 10" if rank <= 10 else "11 and below"


_PLACES = tuple(_place(rank) for rank in (*range(1, EACH_RANK + 1), 6, 11))
_NOWHERE = "not in the list"


def _covered(seen: Seen) -> str:
    """Return how much of each gold span the chunks hold that a reader is given."""
    table = seen.table.filter(pc.equal(seen.table["k"], seen.context))
    if not table.num_rows:
        return ""
    covered = np.asarray(table["covered_chars"])
    length = np.asarray(table["end_char"]) - np.asarray(table["start_char"])
    found, whole = int((2 * covered >= length).sum()), int((covered == length).sum())
    counts, _ = np.histogram(covered / length, bins=20, range=(0, 1))
    said = (
        f"Of {len(covered):,} gold spans, {found:,} have at least half of their characters in "
        f"the top {seen.context}, {whole:,} all of them, {int((covered == 0).sum()):,} none."
    )
    bins = tuple(int(c) for c in counts)
    picture = svg.Histogram(bins, "nothing covered", "all covered", 0.5, "counts as found")
    return f"{said}\n\n{image(svg.histogram(picture), 'covered share')}"


def _labels(seen: Seen) -> str:
    """Return failing queries by label, most frequent first, equal ones in the order they are
    tried.
    """
    counts = facts.total(facts.failure_labels(seen.table).values())
    if not counts:
        return "No query fails."
    bars = tuple(
        Bar(f"{label} ({EVERY_LABEL[label] or 'nothing to change'})", n)
        for label, n in counts.items()
    )
    title = "failing queries by label (and lever)"
    return bar_table(Panel(title, bars, maximum=max(counts.values()), format="count"))


def _lost(seen: Seen) -> str:
    """Return gold spans that are not covered, by the stage that lost them, in the order of the
    stages.
    """
    k = facts.deepest(seen.table)
    if k is None:
        return ""
    counts = facts.total(facts.lost_spans(seen.table, k).values())
    if not counts:
        return f"The top {k} cover every gold span."
    order = [stage for stage in (*STAGES, None) if counts[stage]]
    bars = tuple(Bar(s or facts.NO_CHUNKS, counts[s]) for s in order)
    title = f"gold spans lost at k = {k}, by stage"
    return bar_table(Panel(title, bars, maximum=max(counts.values()), format="count"))


def _forensic(seen: Seen) -> str:
    """Return queries by forensic label at the usual depth, in the order in which labels are
    tried.
    """
    k = facts.deepest(seen.table)
    if k is None:
        return ""
    counts = facts.total(facts.forensic_labels(seen.table, k).values())
    names = {label: f"{label} ({name})" for label, name in FORENSIC.items()}
    bars = [Bar(name, counts[label]) for label, name in names.items()]
    bars += [Bar(facts.NO_CHUNKS, counts[None])] * (counts[None] > 0)
    title = f"queries by label at k = {k}"
    return bar_table(Panel(title, tuple(bars), maximum=counts.total(), format="count"))


def _forensic_by_k(seen: Seen) -> str:
    """Return how many queries have each label at each depth: a row a label, a column a depth."""
    counts = facts.forensic_labels_by_depth(seen.table)
    ks = sorted({k for _, k in counts})
    if not ks:
        return ""
    labels = [*FORENSIC, *([None] if any(label is None for label, _ in counts) else [])]
    head = "| queries with the label, at k = |" + "".join(f" {k} |" for k in ks)
    lines = [head, "| --- |" + " ---: |" * len(ks)]
    for label in labels:
        cells = "".join(f" {counts[label, k]:,} |" for k in ks)
        lines.append(f"| {label or 'not measured'} |{cells}")
    return "\n".join(lines)


def _waterfall(seen: Seen) -> str:
    """From what is grounded up to 1, at the usual depth, over the whole corpus."""
    k = facts.deepest(seen.table)
    if k is None:
        return ""
    title = f"complete grounding at k = {k}"
    bounds = facts.bounds(seen.table, k)
    return "\n\n".join(bar_table(losses.waterfall_panel(title, b)) for b in bounds.values())


def _waterfalls(seen: Seen) -> str:
    """Return a waterfall for each depth, and for each part of the corpus at the usual one."""
    k = facts.deepest(seen.table)
    if k is None:
        return ""
    subsets = facts.parts_of(seen.table)
    ks = sorted(pc.unique(seen.table["k"]).to_pylist())
    named: list[tuple[str, int, str | None]] = [(f"k = {n}", n, None) for n in ks]
    named += [(f"{subset}, k = {k}", k, subset) for subset in subsets]
    panels = [
        losses.waterfall_panel(title, bounds)
        for title, n, subset in named
        for bounds in facts.bounds(seen.table, n, subset).values()
    ]
    said = "Complete grounding, from what is grounded up to 1, at each depth."
    return f"{said}\n\n{image(svg.panels(panels), said)}"


def _headline(seen: Seen) -> str:
    """Return every configuration's headline metric, best first, the baseline in bold."""
    means = facts.means(seen.table)
    headline = f"{HEADLINE}@{seen.context}"
    values = {c: of[headline] for c, of in means.items() if headline in of}
    if not values:
        return ""
    order = sorted(values, key=lambda config: (-(values[config] or 0.0), config))
    bars = tuple(
        Bar(c + " (baseline)" * (c == seen.baseline), values[c], c == seen.baseline) for c in order
    )
    return bar_table(Panel(f"{HEADLINE}@{seen.context}", bars, maximum=1.0))


def _all_metrics(seen: Seen) -> str:
    """Return a panel a metric, a bar a configuration, the baseline marked: the report's own
    picture.
    """
    means = facts.means(seen.table)
    names = metric_names(means.values(), seen.context)
    if not names:
        return ""
    panels = [
        Panel(
            name,
            tuple(Bar(c, of[name], c == seen.baseline) for c, of in means.items() if name in of),
            maximum=1.0,
        )
        for name in names
    ]
    said = f"Each metric from 0 to 1, the baseline ({seen.baseline}) marked."
    return f"{escape(said)}\n\n{image(svg.panels(panels), said)}"


def _over_time(seen: Seen) -> str:
    """Return the headline metric of every configuration over the recorded runs."""
    runs: dict[tuple[Any, Any], dict[str, float | None]] = defaultdict(dict)
    for row in rows_of(seen.table, subset=None):
        if (row["metric"], row["k"]) == (HEADLINE, seen.context):
            runs[row["run_at"], row["run_id"]][row["config"]] = row["value"]
    return _chart(
        [(f"{at:%Y-%m-%d %H:%M}", runs[at, run]) for at, run in sorted(runs)],
        f"{HEADLINE}@{seen.context}",
        seen.baseline,
    )


def _chart(
    runs: Sequence[tuple[str, Mapping[str, float | None]]], metric: str, baseline: str
) -> str:
    if not runs:
        return ""
    configs = sorted({c for _, values in runs for c in values}, key=lambda c: (c != baseline, c))
    lines = [svg.Line(c, tuple(values.get(c) for _, values in runs)) for c in configs]
    title = f"{metric} over {len(runs):,} recorded runs"
    return image(svg.lines(title, lines, (runs[0][0], runs[-1][0])), title)


def _states(seen: Seen) -> str:
    """Return how many configurations were measured, and why the others were not."""
    rows = seen.table.to_pylist()
    absent = [row for row in rows if row["state"] != parquet.MEASURED]
    said = f"{len(rows) - len(absent):,} of {len(rows):,} configurations were measured."
    lines = [f"- **{escape(row['config'])}**: {escape(row['state'])}" for row in absent]
    return "\n".join([said, *([""] if lines else []), *lines])


def _span(table: pa.Table) -> Any:
    return pc.subtract(table["end_char"], table["start_char"])


PICTURES: dict[str, tuple[Picture, ...]] = {
    "documents": (Picture("lengths", _lengths("documents", "characters", lambda t: t["n_chars"])),),
    "gold_spans": (Picture("lengths", _lengths("gold spans", "characters", _span)),),
    "chunks": (Picture("lengths", _lengths("chunks", "characters", _span)),),
    "embeddings": (Picture("lengths", _lengths("chunks", "word pieces", lambda t: t["n_tokens"])),),
    "query_metrics": (Picture("first relevant chunk", _first_ranks),),
    "span_outcomes": (Picture("covered share", _covered),),
    "failure_labels": (Picture("labels", _labels),),
    "span_states": (Picture("lost stages", _lost),),
    "forensic_labels": (Picture("labels", _forensic), Picture("labels by k", _forensic_by_k)),
    "headroom": (Picture("waterfall", _waterfall), Picture("waterfalls", _waterfalls)),
    "configs": (Picture("states", _states),),
    "config_metrics": (
        Picture("compared", _headline),
        Picture("all metrics", _all_metrics),
    ),
    "metric_history": (Picture("over time", _over_time),),
}
"""Table -> its pictures, in the order in which the UI lists them."""
