"""A chunker as a plug-in: one file, and ``strategy = "paragraph"`` in an experiment."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.pipeline import code_version
from spanbench_pipeline.pipeline import graph as graphs
from spanbench_pipeline_tests.end_to_end.conftest import CONTRACTS, names, run
from spanbench_pipeline_tests.pipeline.test_code_version import rewrite
from spanbench_pipeline_tests.plugins.conftest import forget
from spanbench_pipeline_tests.reports.test_docs import DEVELOPING, module_of

GROUP = {"spanbench.chunkers": {"paragraph": "acme_paragraph"}}
SETTINGS = """
[chunkers]
own = { strategy = "paragraph", min_chars = 20 }
naive = { size = 200, step = 150 }
[[configurations]]
name = "own"
chunker = "own"
retriever = "bm25"
[[configurations]]
name = "naive"
chunker = "naive"
retriever = "bm25"
"""


def chunks(project: Project) -> list[tuple[str, str]]:
    table = pq.read_table(project.parquet / "small" / "chunks" / "own.parquet", partitioning=None)
    return [
        (r["doc_id"], CONTRACTS[r["doc_id"]][r["start_char"] : r["end_char"]])
        for r in table.to_pylist()
    ]


def test_it_cuts_is_measured_and_its_change_runs_what_uses_it(acme, corpus):
    code = module_of(DEVELOPING, "One piece a paragraph")
    folder = acme({"acme_paragraph.py": code}, GROUP)
    project = corpus(SETTINGS)
    assert "small/query_metrics/own" in names(run(project))
    # No line of the contracts is blank, so each of them is one paragraph.
    assert chunks(project) == list(CONTRACTS.items())

    module = folder / "acme_paragraph.py"
    rewrite(module, code.replace("\\n?)+", "\\n?)"))  # a piece a line
    forget()
    made = names(run(project))
    assert "small/chunks/own" in made
    assert not {"small/chunks/naive", "small/rankings/naive"} & made
    long_lines = [
        (doc_id, line)
        for doc_id, text in CONTRACTS.items()
        for line in text.splitlines(keepends=True)
        if len(line) >= 20
    ]
    assert chunks(project) == long_lines


def test_another_module_of_its_package_and_its_version_count_as_its_code(acme):
    modules = {
        "acme_own/__init__.py": "",
        "acme_own/cut.py": "from acme_own.helper import SIZE\n",
        "acme_own/helper.py": "SIZE = 1\n",
        "acme_own/other.py": "",
    }
    folder = acme(modules, {"spanbench.chunkers": {"own": "acme_own.cut"}})
    before = code_version.parts(["acme_own.cut"], {})
    assert before["modules"].keys() == {"acme_own.cut", "acme_own.helper"}
    assert before["libraries"] == {"acme": "1.0"}
    rewrite(folder / "acme_own" / "helper.py", "SIZE = 2\n")
    now = code_version.parts(["acme_own.cut"], {})
    assert code_version.differences(before, now) == ["module acme_own.helper changed"]
    assert code_version.parts(["spanbench_pipeline.core.spans"], {})["libraries"] == {}


@pytest.mark.parametrize(
    ("code", "told"),
    [("import no_such_module", "no_such_module"), ("TILES = True", "OVERLAPS")],
)
def test_a_broken_one_breaks_the_experiments_that_name_it(acme, corpus, code: str, told: str):
    acme({"acme_paragraph.py": code}, GROUP)
    project = corpus(SETTINGS)
    broken = graphs.build(project).broken["small"]
    assert isinstance(broken, InputError)
    for part in ("small.toml", "chunkers.own", "acme_paragraph", told):
        assert part in str(broken)
    experiment = project.root / "data" / "experiments" / "small.toml"
    experiment.write_text(
        experiment.read_text().replace('"paragraph", min_chars', '"naive", step = 9, size')
    )
    assert not graphs.build(project).broken


def test_an_unknown_strategy_names_plug_ins_too(acme, corpus):
    acme({"acme_paragraph.py": ""}, GROUP)
    project = corpus(SETTINGS.replace('"paragraph"', '"paragraf"'))
    assert "'paragraph'" in str(graphs.build(project).broken["small"])
