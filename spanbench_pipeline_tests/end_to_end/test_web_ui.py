"""The web UI as a person meets it, in a real browser: look, launch, see what failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spanbench_pipeline.config.project import Project
from spanbench_pipeline.pipeline.dagster.instance import open_instance
from spanbench_pipeline.storage import parquet
from spanbench_pipeline_tests.end_to_end import web
from spanbench_pipeline_tests.end_to_end.conftest import CHECKOUT
from spanbench_pipeline_tests.end_to_end.web import Ui

pytestmark = pytest.mark.integration

CORPUS = "web"
EXPERIMENT = f"""
corpus = "{CORPUS}"
description = "the bundled contracts, without a model"
owners = ["team:contracts", "reader@example.org"]
baseline = "naive + bm25"
[source]
kind = "directory"
documents = "{CHECKOUT}/data/sample/documents"
queries = "{CHECKOUT}/data/sample/queries.jsonl"
metadata = "{CHECKOUT}/data/sample/metadata.json"
[chunkers]
naive = {{ size = 1000, step = 850 }}
clause = {{ min_chars = 200, max_chars = 2000 }}
[rerankers.absent]
model = "cross-encoder/nobody-has-this"
[[configurations]]
name = "naive + bm25"
chunker = "naive"
retriever = "bm25"
[[configurations]]
name = "clause + bm25"
chunker = "clause"
retriever = "bm25"
[[configurations]]
name = "clause + bm25 + rerank"
chunker = "clause"
retriever = "bm25"
reranker = "absent"
"""
STEPS = ("source", "chunks", "rankings", "query_metrics", "summary")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web")
    (folder / "experiments").mkdir()
    (folder / "experiments" / f"{CORPUS}.toml").write_text(EXPERIMENT)
    return folder


@pytest.fixture(scope="module")
def ui(home: Path) -> Iterator[Ui]:
    """A page on a UI in which the corpus's job was launched by clicking, and has succeeded."""
    output = web.output_folder()
    web.browser_path()
    with web.serve(home, output / "spanbench-ui.log") as address, web.open_page() as page:
        opened = Ui(page, address, output)
        try:
            _launch(opened)
        except Exception:
            opened.keep("00-not-launched")
            raise
        yield opened


def _launch(ui: Ui) -> None:
    ui.open("/jobs")
    ui.page.locator(f"a[href$='/jobs/run_{CORPUS}']").click()
    ui.see(f"Every asset of corpus {CORPUS}")
    ui.keep("01-job")
    ui.press("Materialize all")
    # The warehouse reads all corpora, and Dagster asks about those that have never run.
    ui.press("Confirm")
    ui.see("Launched run")
    ui.succeeds(1)
    ui.keep("02-runs")


def stored(home: Path, *key: str) -> Path:
    return home / "parquet" / parquet.relative_path((CORPUS, *key))


def test_the_graph_shows_one_corpus_from_source_to_summary(ui: Ui):
    ui.open("/asset-groups")
    ui.page.locator(".CodeMirror").first.click()
    ui.page.keyboard.type(f'tag:"corpus"="{CORPUS}"')
    ui.page.keyboard.press("Enter")
    ui.page.wait_for_url(f"**{CORPUS}**")
    graph = ui.page.locator("foreignObject")
    graph.get_by_text(f"{CORPUS}_summary", exact=True).locator("visible=true").first.wait_for()
    ui.keep("03-graph")
    lefts = [
        box["x"]
        for step in STEPS
        for node in [graph.get_by_text(f"{CORPUS}_{step}", exact=True).locator("visible=true")]
        if (box := node.first.bounding_box())
    ]
    assert len(lefts) == len(STEPS)
    assert lefts == sorted(lefts), "a group stands left of one that it is made from"


def test_an_asset_shows_its_rows_columns_owners_and_picture(ui: Ui, home: Path):
    table = pq.read_table(stored(home, "chunks", "clause"), partitioning=None)
    ui.asset(CORPUS, "chunks", "clause")
    ui.see(f"{table.num_rows:,}", exact=True)
    ui.see("A row is one piece of one document")
    ui.see("number of the chunk within its document, from 0")
    for owner in ("contracts", "reader@example.org"):
        ui.see(owner, exact=True)
    ui.see("corpus: web")
    row = ui.metadata("lengths")
    assert f"{table.num_rows:,} chunks" in row.inner_text()
    assert ui.drawn_width(row) == 440
    first = table["chunk_id"][0].as_py()
    assert first in ui.metadata("preview").inner_text()
    row.scroll_into_view_if_needed()
    ui.keep("04-chunks")


def test_metrics_are_compared_with_the_baseline_and_drawn(ui: Ui, home: Path):
    stored_rows = pq.read_table(stored(home, "config_metrics"), partitioning=None).to_pylist()
    value = {r["config"]: r["value"] for r in stored_rows if r["metric"] == "complete_grounding"}
    ui.asset(CORPUS, "config_metrics")
    row = ui.metadata("compared")
    assert row.locator("strong").all_inner_texts() == [
        "naive + bm25 (baseline)",
        f"{value['naive + bm25']:.3f}",
    ]
    assert f"{value['clause + bm25']:.3f}" in row.inner_text()
    row.scroll_into_view_if_needed()
    ui.keep("05-config-metrics")
    dialog = ui.dialog("all metrics")
    assert ui.drawn_width(dialog) == 2 * 320 + 24
    ui.keep("06-all-metrics")


@pytest.mark.parametrize(
    ("key", "title", "said"),
    [
        (("span_outcomes", "clause_bm25"), "covered share", "gold spans"),
        (("query_metrics", "clause_bm25"), "first relevant chunk", "not in the list"),
        (("failure_labels", "clause_bm25"), "labels", "failing queries by label"),
        (("configs",), "states", "2 of 3 configurations were measured"),
    ],
)
def test_each_stage_has_its_picture(ui: Ui, key: tuple[str, ...], title: str, said: str):
    ui.asset(CORPUS, *key)
    row = ui.metadata(title)
    assert said in row.inner_text()
    row.scroll_into_view_if_needed()
    ui.keep(f"07-{'-'.join(key)}")


def test_what_was_not_measured_says_so(ui: Ui):
    ui.asset(CORPUS, "query_metrics", "clause_bm25_rerank")
    reason = "the weights of cross-encoder/nobody-has-this are absent"
    ui.see(f"Not measured: {reason}")
    assert f"not measured: {reason}" in ui.metadata("state").inner_text()
    ui.keep("08-not-measured")


def test_reports_are_read_and_made_anew_for_another_baseline(ui: Ui):
    ui.asset(CORPUS, "reports")
    ui.see("Allowed: naive + bm25, clause + bm25, clause + bm25 + rerank.")
    dialog = ui.dialog("client report")
    assert "Measured with the configuration naive + bm25." in dialog.inner_text()
    ui.keep("09-client-report")
    ui.page.keyboard.press("Escape")
    ui.launchpad(
        f"ops:\n  {CORPUS}__reports:\n    config:\n      baseline: clause + bm25\n", "10-launchpad"
    )
    ui.succeeds(2)
    ui.asset(CORPUS, "reports")
    dialog = ui.dialog("client report")
    assert "Measured with the configuration clause + bm25." in dialog.inner_text()


def test_a_planted_fault_is_seen_with_its_rows(ui: Ui, home: Path):
    key = ("rankings", "clause_bm25")
    chunk = _shift_one(stored(home, *key))
    ui.asset(CORPUS, *key, view="checks")
    ui.press("Execute all")
    ui.see("Failed", exact=True)
    ui.see("offsets_of_the_chunk_table").click()
    ui.see("This is a blocking asset check.")
    ui.see("1 row violates this; the first are listed.")
    shown = ui.page.locator("table", has_text="chunk_start_char").first
    shown.wait_for()
    for cell in (chunk["chunk_id"], str(chunk["start_char"]), str(chunk["start_char"] + 1)):
        assert cell in shown.inner_text()
    ui.keep("11-failed-check")


def _shift_one(path: Path) -> dict[str, Any]:
    """Moves the start of one ranked chunk by a character; returns the row as it was."""
    whole = pq.read_table(path, partitioning=None)
    rows = whole.to_pylist()
    before = dict(rows[0])
    rows[0]["start_char"] += 1
    pq.write_table(pa.Table.from_pylist(rows, schema=whole.schema), path)
    return before


@pytest.mark.parametrize(("name", "width"), [("desktop", 1280), ("phone", 390)])
@pytest.mark.parametrize("report", ["developer", "client"])
def test_a_report_fits_its_screen(ui: Ui, home: Path, report: str, name: str, width: int):
    browser = ui.page.context.browser
    assert browser is not None
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((home / "reports" / CORPUS / f"{report}.html").as_uri())
    page.screenshot(path=ui.output / f"12-{report}-{name}.png", full_page=True)
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert wide <= width, "the page itself must not scroll sideways; its tables may"


WIPE = (
    f'mutation{{wipeAssets(assetPartitionRanges:[{{assetKey:{{path:["{CORPUS}","config_pairs"]}}}}])'
    "{__typename}}"
)
ATTACKS = """<!doctype html><title>at work</title><script>
const url = UI + "/graphql", query = "?query=" + encodeURIComponent(WIPE);
const body = JSON.stringify({query: WIPE});
const made = (kind, set) => Object.assign(document.createElement(kind), set);
const put = (kind, set) => document.body.appendChild(made(kind, set));
const post = (type, mode) => fetch(
  url, {method: "POST", mode, body, headers: {"Content-Type": type}}
).then(() => "answered", () => "blocked");
const opened = () => new Promise(done => {
  const socket = new WebSocket(url.replace("http", "ws"), "graphql-ws");
  socket.onopen = () => done("open");
  socket.onerror = () => done("blocked");
});
const form = (action, name, value) => {
  const sink = put("iframe", {name: name || "bare"});
  const sent = put("form", {method: "post", enctype: name ? "text/plain" : "", action,
    target: sink.name});
  if (name) sent.appendChild(made("input", {name, value}));
  sent.submit();
  return new Promise(done => { sink.onload = done; });
};
onload = async () => {
  await new Promise(done => put("img", {src: url + query, onerror: done, onload: done}));
  await form(url + query);
  await form(url, body.slice(0, -1) + ',"x":"', '"}');
  put("iframe", {sandbox: "allow-scripts", srcdoc: `<script>fetch(${JSON.stringify(url)}, {
    method: "POST", mode: "no-cors", body: ${JSON.stringify(body)}})</scr` + "ipt>"});
  await post("text/plain", "no-cors");
  await post("text/plain; application/json", "no-cors");
  await fetch(url + query, {mode: "no-cors"}).catch(() => 0);
  await new Promise(done => setTimeout(done, 1000));
  document.title = [await post("application/json", "cors"), await opened()].join(" ");
};
</script><body></body>"""


def test_another_page_of_the_browser_can_do_nothing(ui: Ui, home: Path):
    project = Project(CHECKOUT, home)
    key = dg.AssetKey([CORPUS, "config_pairs"])

    def recorded() -> bool:
        with open_instance(project) as instance:
            return instance.get_latest_materialization_event(key) is not None

    assert recorded()
    browser = ui.page.context.browser
    assert browser is not None
    page = browser.new_page()
    html = ATTACKS.replace("UI +", f"{json.dumps(ui.address)} +").replace("WIPE", json.dumps(WIPE))
    with web.another_page(html) as address:
        for host in ("127.0.0.1", web.FOREIGN):
            page.goto(address.replace("127.0.0.1", host))
            page.wait_for_function("document.title != 'at work'")
            assert page.title() == "blocked blocked"
        # A link is followed.
        page.evaluate("ui => { location = ui + '/runs'; }", ui.address)
        page.get_by_text("Runs", exact=True).locator("visible=true").first.wait_for()
    rebound = page.goto(ui.address.replace("127.0.0.1", web.FOREIGN))
    assert rebound is not None
    assert rebound.status == 421
    assert recorded()
    # The same from the UI's own page, which may.
    page.goto(ui.address)
    answer = page.evaluate(
        """query => fetch("/graphql", {method: "POST", body: JSON.stringify({query}),
        headers: {"Content-Type": "application/json"}}).then(answer => answer.text())""",
        WIPE,
    )
    page.close()
    assert "AssetWipeSuccess" in answer
    assert not recorded()
