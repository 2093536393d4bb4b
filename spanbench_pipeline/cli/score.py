"""``spanbench score``: anybody's rankings, with the measures that our own configurations get."""

from __future__ import annotations

import argparse
import json
import logging
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanbench_pipeline import chunkers
from spanbench_pipeline.analysis.fingerprints import table_hash
from spanbench_pipeline.cli import terminal
from spanbench_pipeline.cli.commands import path_argument
from spanbench_pipeline.cli.places import near
from spanbench_pipeline.cli.stored import open_results
from spanbench_pipeline.config.experiment import MAX_DEPTH, Experiment
from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core import keys as names
from spanbench_pipeline.core.codepoints import without_halves
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.evalset import EvalSet
from spanbench_pipeline.core.suggestions import nearest
from spanbench_pipeline.corpora import source
from spanbench_pipeline.formats import FORMATS, READABLE, chunk_file, rankings_file
from spanbench_pipeline.formats.given_file import given as given_file
from spanbench_pipeline.formats.rankings_file import RankingsFile
from spanbench_pipeline.metrics import registry
from spanbench_pipeline.pipeline.dagster.home_state import HomeState
from spanbench_pipeline.scoring import files as results
from spanbench_pipeline.scoring import ranked_lists, text
from spanbench_pipeline.scoring.depths import depth_of
from spanbench_pipeline.scoring.folder import folder_of
from spanbench_pipeline.scoring.measured import measure
from spanbench_pipeline.scoring.report import Scored, notes
from spanbench_pipeline.scoring.validated_run import of_part, take
from spanbench_pipeline.storage import disk, folders, locks
from spanbench_pipeline.storage.results import EVAL_SET, ResultsStore

log = logging.getLogger("spanbench")
SCORED, WRONG = 0, 2
CUT = "chunks from"


@dataclass(frozen=True)
class Asked:
    """What a person asks to be scored, and how."""

    rankings: Path
    corpus: str
    chunks: Path | None = None
    chunker: str | None = None
    name: str | None = None
    subsets: Sequence[str] = ()
    order: str | None = None
    kind: str | None = None
    depth: int | None = None
    context: int | None = None


def score(project: Project, asked: Asked, shape: str) -> tuple[str, int]:
    """Return what to print, and the exit code: 0, or 2 for wrong input, which JSON says as well.

    Tables, reports and a line a query go to ``scored/<corpus>/<name>/`` of the home, in the place
    of what an earlier call left there. Raises InputError, with nothing written, for wrong input.
    """
    try:
        scored = _score(project, asked)
    except InputError as error:
        if shape != "json":
            raise
        found = {"corpus": asked.corpus, "result": "error", "exit_code": WRONG}
        return json.dumps(found | {"message": str(error)}, ensure_ascii=False, indent=1), WRONG
    with _alone(project, scored):
        folder = folder_of(project.home / "scored" / scored.corpus, scored.config)
        folders.replace(folder, results.files(scored))
    return (_json if shape == "json" else _text)(scored, folder), SCORED


def lock_name(corpus: str) -> str:
    """Return the lock under which scores of a corpus are written; no corpus has such a name."""
    return f"_scored_{corpus}"


def _alone(project: Project, scored: Scored) -> AbstractContextManager[None]:
    """No other scores of the corpus are written meanwhile: two names would take one folder."""
    return locks.hold(
        project.locks,
        [lock_name(scored.corpus)],
        group=uuid.uuid4().hex,
        what="spanbench score",
        waiting=lambda _, holder: log.info("waiting for %s to write its scores", holder),
    )


def _default_name(rankings: Path) -> str:
    """Return the file's name without its ending; a shell's pipe has a mere number for one."""
    stem = without_halves(rankings.stem)
    return "rankings" if stem.isdigit() and rankings.parent.name == "fd" else stem


def _score(project: Project, asked: Asked) -> Scored:
    given = _default_name(asked.rankings) if asked.name is None else asked.name
    if problem := names.problem(given):
        raise InputError(f"score: {problem}; give one with --name")
    name = names.tidy(given)
    if asked.chunks is not None and asked.chunker is not None:
        raise InputError("score: give --chunks FILE or --chunker NAME, one of the two")
    disk.require_writable(project.home / "scored" / asked.corpus)  # before the work, not after it
    home = HomeState(project)
    experiment = home.experiment(asked.corpus)
    store = open_results(home, asked.corpus)
    file = given_file(asked.rankings)
    found = rankings_file.read(file, asked.kind, asked.name, asked.corpus)
    whole, origin = _eval_set(store, experiment)
    evalset = _part(whole, asked.subsets, asked.corpus)
    ranked_lists.require_corpus(found.stamp, whole, where=file.where)
    chunks, cut = _chunks(store, experiment, whole.documents, asked, found)
    ranked_lists.require_chunks(found.stamp, chunks, where=file.where, cut=cut.get(CUT, ""))
    all_lists = found.lists(whole, chunks)
    lists = of_part(all_lists, whole, evalset)
    context = experiment.context if asked.context is None else asked.context
    if not 1 <= context <= MAX_DEPTH:
        raise InputError(f"score: --context {context} is not within 1 and {MAX_DEPTH}")
    named = {"corpus": asked.corpus, "config": name}
    taken = take(lists, evalset, chunks, where=file.where, order=asked.order, **named)
    depth = depth_of(
        taken.rankings,
        evalset,
        chunks,
        corpus_depth=experiment.depth,
        metrics=registry.of_results(context, experiment.further),
        stated=asked.depth,
        in_file=None if found.stamp is None else found.stamp.depth,
    )
    measured = measure(
        taken.rankings,
        evalset,
        chunks,
        corpus=asked.corpus,
        config=name,
        depth=depth.value,
        label_depth=depth.labels,
        context=context,
        further=experiment.further,
    )
    provenance = {
        "file": without_halves(asked.rankings.name),
        "format": found.kind,
        "sha256 of the file": file.sha256,
        "ranked, as the file says": ranked_lists.said(found.stamp),
        "order": asked.order or "as given, which scores and ranks must not contradict",
        "eval set": origin,
        **(_parts(asked, len(all_lists) - len(lists)) if asked.subsets else {}),
        **cut,
        **{f"hash of {t}": table_hash(t, getattr(evalset, t)) for t in EVAL_SET},
        **({"hash of chunks": table_hash("chunks", chunks)} if chunks is not None else {}),
    }
    n_chunks = None if chunks is None else chunks.num_rows
    return Scored(
        asked.corpus,
        name,
        depth.value,
        evalset,
        taken,
        measured,
        n_chunks,
        provenance,
        tuple(ranked_lists.notes(found.stamp, whole, found.kind, asked.chunker)),
        depth.said_by,
        depth.note,
        context,
    )


def _eval_set(store: ResultsStore, experiment: Experiment) -> tuple[EvalSet, str]:
    """Return the eval set as the corpus's run stored it, else read from its source; and which."""
    if not all(store.has(table) for table in EVAL_SET):
        read = source.load(experiment, store.project)
        return read, "read from its source: the corpus was never run"
    if store.project.dagster.is_dir():
        store.snapshot([(store.corpus, table) for table in EVAL_SET], "score")
    return store.evalset, "as the corpus's last run stored it"


def _part(evalset: EvalSet, subsets: Sequence[str], corpus: str) -> EvalSet:
    """Return the queries of the named parts, over all documents; no name: all."""
    if not subsets:
        return evalset
    parts = sorted({s for s in evalset.queries["subset"].to_pylist() if s is not None})
    for subset in subsets:
        if subset not in parts:
            raise InputError(f"corpus {corpus} has no part {subset!r}{nearest(subset, parts)}")
    kept = evalset.queries.filter(pc.is_in(evalset.queries["subset"], pa.array(subsets)))
    of_kept = pc.is_in(evalset.gold_spans["query_id"], kept["query_id"].combine_chunks())
    return EvalSet(evalset.documents, kept, evalset.gold_spans.filter(of_kept))


def _parts(asked: Asked, n_left_out: int) -> dict[str, str]:
    """Return what the report says of a score of some parts alone."""
    return {"parts": ", ".join(asked.subsets), "lists of other parts, left out": str(n_left_out)}


def _chunks(
    store: ResultsStore,
    experiment: Experiment,
    documents: pa.Table,
    asked: Asked,
    found: RankingsFile,
) -> tuple[pa.Table | None, dict[str, str]]:
    """Return the chunk table, if any is known, and where it is from."""
    corpus = experiment.corpus
    if asked.chunks is not None:
        given = given_file(asked.chunks)
        said = {CUT: without_halves(asked.chunks.name), "sha256 of the chunks' file": given.sha256}
        ranked_by = None if found.stamp is None else found.stamp.chunker
        return chunk_file.read(given, documents, corpus=corpus, chunker=ranked_by), said
    if asked.chunker is None:
        return None, {}
    if asked.chunker not in experiment.chunkers:
        hint = nearest(asked.chunker, experiment.chunkers)
        raise InputError(f"corpus {corpus} has no chunker {asked.chunker!r}{hint}")
    chunker = chunkers.load(experiment.chunkers[asked.chunker], experiment.path)
    made = chunkers.chunk_documents(corpus, documents, chunker)
    if found.stamp is None and store.has("chunks", asked.chunker):
        ranked_lists.require_stored(
            made,
            store.table("chunks", asked.chunker),
            where=found.where,
            chunker=asked.chunker,
            file=near(store.path("chunks", asked.chunker)),
        )
    return made, {CUT: f"the chunker {asked.chunker} as it cuts now"}


def _text(scored: Scored, folder: Path) -> str:
    parts = [
        _table(scored),
        _characters(scored),
        _labels(scored),
        *(f"note: {note}" for note in notes(scored)),
    ]
    if scored.measured.not_measured:
        reasons: dict[str, list[str]] = {}
        for what, why in scored.measured.not_measured.items():
            reasons.setdefault(why, []).append(what)
        parts.append("\n".join(f"{why}: {', '.join(what)}" for why, what in reasons.items()))
    parts.append(f"report  {near(folder / 'report.html')}\ntables  {near(folder)}")
    return "\n\n".join(parts)


def _table(scored: Scored) -> str:
    """Return the results table that ``run`` prints, with a row a part where the corpus has
    parts.
    """
    names = text.printed(scored.context)
    chunks = "" if scored.n_chunks is None else f"{scored.n_chunks:,}"
    rows = []
    for part, values in text.means(scored.measured).items():
        label = scored.config if part is None else f"  {part}"
        cells = [_cell(values, name) for name in names]
        rows.append([label, chunks, *cells])
    head = ["configuration", "chunks", *names]
    title = f"corpus {scored.corpus}: {scored.provenance['file']}, rankings from elsewhere"
    return f"{title}\n{terminal.table(head, rows, right=range(1, len(head)))}"


def _cell(values: dict[str, Any], name: str) -> str:
    if name not in values:
        return "not measured"
    return "undefined" if values[name] is None else f"{values[name]:.3f}"


def _characters(scored: Scored) -> str:
    rows = [
        [str(k), f"{values[0]:,.0f}", *(f"{value:.3f}" for value in values[1:])]
        for k, values in text.characters(scored.measured)
    ]
    head = ["k", *registry.characters()]
    table = terminal.table(head, rows, right=range(len(head)))
    return "\n".join(filter(None, [table, text.ks_past_said(scored.depth)]))


def _labels(scored: Scored) -> str:
    k = text.label_k(scored.measured)
    counts = text.label_counts(scored.measured, k)
    lines = [f"labels at k = {k}: " + ", ".join(f"{n} {label}" for label, n in counts.items())]
    failures = text.failure_counts(scored.measured)
    if failures is not None:
        named = ", ".join(f"{n} {label}" for label, n in failures.items())
        lines.append(f"failing queries: {named or 'none'}")
    return "\n".join(lines)


def _json(scored: Scored, folder: Path) -> str:
    k = text.label_k(scored.measured)
    found = {
        "corpus": scored.corpus,
        "config": scored.config,
        "result": "scored",
        "exit_code": SCORED,
        "depth": scored.depth,
        "depth_from": scored.depth_from,
        "n_queries": scored.evalset.queries.num_rows,
        "n_lists": scored.taken.n_lists,
        "missing_queries": list(scored.taken.missing),
        "repeated_places": scored.taken.repeats,
        "notes": notes(scored),
        "context": scored.context,
        "not_measured": dict(scored.measured.not_measured),
        "k_not_measured": text.ks_past(scored.depth),
        "metrics": [
            {key: row[key] for key in ("subset", "metric", "k", "value", "n_queries")}
            for row in scored.measured.tables["config_metrics"].to_pylist()
        ],
        "labels": {"k": k, "queries": text.label_counts(scored.measured, k)},
        "states": {"k": k, "gold_spans": text.state_counts(scored.measured, k)},
        "failure_labels": text.failure_counts(scored.measured),
        "headroom": {"k": k, "bounds": text.bounds(scored.measured, k)},
        "provenance": dict(scored.provenance),
        "files": near(folder),
    }
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False)


EXAMPLES = """\
  spanbench score --rankings mine.jsonl --corpus cuad
  spanbench score --rankings mine.run --corpus cuad --chunker clause --name mine
  spanbench score --rankings results.json --corpus legalbench_mini --format json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``spanbench score``."""
    parser.add_argument(
        "--rankings",
        type=path_argument,
        required=True,
        metavar="FILE",
        help="the rankings; a pipe or /dev/stdin works too",
    )
    parser.add_argument(
        "--corpus", required=True, metavar="NAME", help="corpus whose gold passages are used"
    )
    parser.add_argument(
        "--chunks",
        type=path_argument,
        metavar="FILE",
        help="all chunks that could be ranked: JSON lines or Parquet",
    )
    parser.add_argument(
        "--chunker", metavar="NAME", help="or: the chunker of the corpus that made the chunks"
    )
    parser.add_argument(
        "--name", metavar="CONFIG", help="name of the results (default: the file's name)"
    )
    parser.add_argument(
        "--subset", nargs="+", metavar="PART", help="score only these parts of a pooled corpus"
    )
    parser.add_argument(
        "--depth",
        type=int,
        metavar="N",
        help="where the lists were cut, and so how deep they are looked at; a shorter list ended "
        "by itself (default: the corpus's depth, or where the file's lists end alike before it)",
    )
    parser.add_argument(
        "--context",
        type=int,
        metavar="N",
        help="how many chunks a reader is given (default: the corpus's); past the depth, "
        "what looks at them is named as not measured",
    )
    parser.add_argument(
        "--order",
        choices=("given", "score"),
        help="how to resolve a list whose scores increase down the list (default: reject it)",
    )
    parser.add_argument(
        "--rankings-format",
        choices=[*READABLE, *(name for name in FORMATS if name not in FORMATS.ours)],
        help="default: recognised by content",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")


def execute(project: Project, parsed: argparse.Namespace) -> int:
    """Run ``spanbench score``; return the exit code."""
    asked = Asked(
        rankings=parsed.rankings,
        corpus=parsed.corpus,
        chunks=parsed.chunks,
        chunker=parsed.chunker,
        name=parsed.name,
        subsets=parsed.subset or (),
        order=parsed.order,
        kind=parsed.rankings_format,
        depth=parsed.depth,
        context=parsed.context,
    )
    shown, code = score(project, asked, parsed.format)
    terminal.say(shown)
    return code
