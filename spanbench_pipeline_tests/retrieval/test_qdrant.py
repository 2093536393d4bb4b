from __future__ import annotations

import re
import socket
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.retrieval import dense, qdrant
from spanbench_pipeline.retrieval.exact import ExactEngine
from spanbench_pipeline.retrieval.scope import Scope, ScopedRows
from spanbench_pipeline_tests.retrieval import builders, qdrant_server

DOCS = ("A", "B", "7")
METADATA = {"A": {"effective date": "2020", "v-1": "x"}, "B": {"effective date": "2021"}}
DOCUMENTS = builders.documents(dict.fromkeys(DOCS, "x" * 700), METADATA)
SCOPES = [
    Scope(),
    Scope("B"),
    Scope("7"),
    Scope(None, (("effective date", "2020"), ("v-1", "x"))),
    Scope(None, (("effective date", "2021"),)),
    Scope("A", (("effective date", "2021"),)),
]


def small(n: int = 600, seed: int = 0):
    """Chunks and their vectors: 25 distinct ones, one chunk without any."""
    chunks = builders.chunks([(DOCS[i % 3], i, i + 1) for i in range(n)])
    random = np.random.default_rng(seed)
    rows = random.normal(size=(25, 16))[random.integers(0, 25, size=n)].tolist()
    rows[n // 2] = None
    return chunks, builders.vectors(rows)


CHUNKS, VECTORS = small()
ASKED = builders.vectors(np.random.default_rng(1).normal(size=(6, 16)).tolist())


def open_engine(location, vectors=VECTORS, chunks=CHUNKS, chunker="lines"):
    return qdrant.open_engine(
        str(location),
        corpus="small",
        chunker=chunker,
        encoder="unit",
        vectors=vectors,
        chunks=chunks,
        documents=DOCUMENTS,
    )


@pytest.fixture
def server():
    with qdrant_server.running() as running:
        yield running


def test_a_server_gives_the_lists_of_the_exact_engine(server):
    exact = ExactEngine(VECTORS, ScopedRows(DOCUMENTS, CHUNKS))
    expected = dense.search(exact, VECTORS, ASKED, SCOPES, 30)
    with open_engine(server.url) as engine:
        found = dense.search(engine, VECTORS, ASKED, SCOPES, 30)
    for name in ("query", "rank", "row", "score"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert set(found.query.tolist()) == {0, 1, 2, 3, 4}
    searches = [body for _, what, body in server.asked if what == "points/query"]
    assert all(body["params"]["exact"] for body in searches)


def test_searches_fetch_past_the_depth_until_the_score_falls(server):
    # 300 chunks of one vector: 60, 120 and 240 are all tied, 480 reaches the others.
    chunks = builders.chunks([("A", i, i + 1) for i in range(600)])
    vectors = builders.vectors([(1, 0)] * 300 + [(0, 1)] * 300)
    with open_engine(server.url, vectors, chunks) as engine:
        found = dense.search(engine, vectors, builders.vectors([(1, 0)]), [Scope()], 30)
    limits = [body["limit"] for _, what, body in server.asked if what == "points/query"]
    assert limits == [60, 120, 240, 480]
    assert found.row.tolist() == list(range(30))


def test_a_server_indexes_what_searches_filter_by(server):
    with open_engine(server.url):
        pass
    indexed = [
        (body["field_name"], body["field_schema"])
        for _, what, body in server.asked
        if what == "index"
    ]
    assert indexed == [
        ("doc_id", "keyword"),
        ("metadata_effective-20date", "keyword"),
        ("metadata_v-2d1", "keyword"),
    ]
    (points,) = server.collections.values()
    assert len(points) == 599
    assert points[0][1] == {"doc_id": "7", "chunk_id": "7:lines:0"}
    assert points[599][1] == {
        "doc_id": "B",
        "chunk_id": "B:lines:199",
        "metadata_effective-20date": "2021",
    }


def test_an_equal_collection_is_used_again(server):
    for _ in range(2):
        with open_engine(server.url) as engine:
            dense.search(engine, VECTORS, ASKED, SCOPES, 30)
    assert server.count("PUT ") == 1
    assert server.count("PUT points") == 3  # 599 points, 256 at a time
    assert server.count("DELETE ") == 0


def test_an_outdated_collection_is_removed_and_no_other(server):
    foreign = {"spanbench-small-lines-unit-notours": {}, "customers": {}}
    server.collections.update(foreign)
    with open_engine(server.url), open_engine(server.url, chunker="pages"):
        old = set(server.collections)
    chunks, vectors = small(seed=2)
    with open_engine(server.url, vectors, chunks):
        new = set(server.collections)
    prefix = re.compile("spanbench-small-lines-unit-[0-9a-f]{16}")
    assert len(old) == len(new) == 4
    assert len([name for name in old - new if prefix.fullmatch(name)]) == 1
    assert len([name for name in new - old if prefix.fullmatch(name)]) == 1
    assert set(foreign) < new


def test_new_metadata_makes_a_new_collection(server):
    with open_engine(server.url):
        old = set(server.collections)
    changed = builders.documents(dict.fromkeys(DOCS, "x" * 700), METADATA | {"7": {"v-1": "y"}})
    with qdrant.open_engine(
        server.url,
        corpus="small",
        chunker="lines",
        encoder="unit",
        vectors=VECTORS,
        chunks=CHUNKS,
        documents=changed,
    ) as engine:
        found = dense.search(engine, VECTORS, ASKED, [Scope(None, (("v-1", "y"),))] * 6, 300)
    assert set(server.collections).isdisjoint(old)
    assert set(CHUNKS["doc_id"].take(found.row).to_pylist()) == {"7"}


def test_an_upload_that_was_broken_off_is_made_anew(server):
    with open_engine(server.url):
        (points,) = server.collections.values()
        points.popitem()
    with open_engine(server.url):
        assert [len(points) for points in server.collections.values()] == [599]


def refused(location, **given) -> str:
    """The message with which an engine there is refused, opening it or searching."""
    with pytest.raises(InputError) as error, open_engine(location, **given) as engine:
        dense.search(engine, VECTORS, ASKED, SCOPES, 30)
    message = str(error.value)
    assert str(location) in message
    assert "\n" not in message
    return message


def test_a_server_that_loses_points_is_refused(server):
    server.lose_points = True
    assert "holds 596 points of 599 uploaded" in refused(server.url)


def test_a_server_that_is_not_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    message = refused(f"http://127.0.0.1:{port}")
    assert "Connection refused" in message
    assert 'dense_engine = "exact"' in message


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((200, "text/html", b"<html>hello</html>"), ""),
        ((200, "application/json", b'{"hello": 1}'), ""),
        ((200, "application/json", b'{"result": null}'), ""),
        ((404, "text/plain", b"nothing here"), "404"),
        ((500, "application/json", b'{"status": {"error": "out of disk"}}'), "out of disk"),
        ((401, "text/plain", b"Must provide an API key"), "Must provide an API key"),
    ],
)
def test_a_server_that_answers_nonsense(server, answer, expected):
    server.answer = answer
    assert expected in refused(server.url)


def test_a_server_that_fails_during_the_search(server):
    with open_engine(server.url) as engine:
        server.answer = (503, "text/plain", b"shutting down")
        with pytest.raises(InputError, match=f"Qdrant at {server.url}: .*shutting down"):
            dense.search(engine, VECTORS, ASKED, SCOPES, 30)


@pytest.mark.parametrize("location", ["localhost:6333", "10.0.0.7:6333", "grpc://localhost:6334"])
def test_a_server_without_http_is_not_taken_for_a_folder(location, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "must start with http(s)://" in refused(location)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_keeps_its_collection(tmp_path):
    chunks, vectors = small(40)
    found = []
    for _ in range(2):
        with open_engine(tmp_path / "q", vectors, chunks) as engine:
            found.append(dense.search(engine, vectors, ASKED, SCOPES, 30).row.tolist())
    assert found[0] == found[1] != []
    changed = small(40, seed=3)[1]
    with open_engine(tmp_path / "q", changed, chunks):
        kept = list((tmp_path / "q" / "collection").iterdir())
    assert len(kept) == 1


def test_a_folder_that_another_process_uses(tmp_path):
    hold = (
        "import sys; from qdrant_client import QdrantClient\n"
        "client = QdrantClient(path=sys.argv[1]); print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path / "q")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "ready\n"
        message = refused(tmp_path / "q")
        other.stdin.close()
    assert "already accessed" in message


def test_a_file_in_place_of_a_folder(tmp_path):
    (tmp_path / "q").write_text("no folder")
    refused(tmp_path / "q")


def test_errors_of_the_block_itself_pass_through():
    with pytest.raises(ValueError, match="mine"), open_engine(":memory:", *small(6)[::-1]):
        raise ValueError("mine")


@given(st.lists(st.text(max_size=5), unique=True, max_size=8))
def test_payload_keys_are_distinct_and_plain(fields):
    keys = [qdrant.metadata_key(field) for field in fields]
    assert len(set(keys)) == len(fields)
    assert all(re.fullmatch("metadata_[A-Za-z0-9_-]*", key) for key in keys)
