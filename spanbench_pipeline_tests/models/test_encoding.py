from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spanbench_pipeline.config import experiment
from spanbench_pipeline.config.experiment import Encoder
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.models import encoding, inference, weights
from spanbench_pipeline_tests.support import tiny_models

ROOT = Path(__file__).parents[2]
(MINILM,) = experiment.load(ROOT / "data" / "experiments" / "sample.toml").encoders.values()
TINY_TEXTS = [
    "governing law",
    "payment term of the notice",
    "audit",
    "",
    "the law is the law of delaware " * 9,
    "governing law",
    "unheard",
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    folder = tiny_models.encoder(tmp_path_factory.mktemp("models") / "tiny")
    return Encoder("tiny", model=folder, max_length=16)


@pytest.fixture
def encode(tmp_path: Path):
    """``encode`` with a cache of the test's own, and names t0, t1, ..."""

    def call(texts, settings, *, cache="cache.sqlite", **options):
        return encoding.encode(
            texts,
            settings,
            models=tmp_path / "models",
            cache=tmp_path / cache,
            names=[f"t{i}" for i in range(len(texts))],
            **options,
        )

    return call


class TestMiniLM:
    """The default encoder with its real weights."""

    def test_vectors_are_those_of_one_text_at_a_time(self, encode, tmp_path):
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(weights.locate(MINILM, tmp_path)), device="cpu")
        model.max_seq_length = 256
        clause = "This Agreement shall be governed by the laws of the State of Delaware. "
        texts = [clause * n for n in (1, 2, 7, 30)] + ["Termination", "§ 3 “Fees” – 5 € 😀"]
        found = encode(texts, MINILM)
        alone = [model.encode([text], normalize_embeddings=True)[0] for text in texts]
        assert found.vectors.shape == (6, 384)
        assert found.vectors.dtype == np.float32
        assert np.allclose(found.vectors, alone, atol=1e-6)
        assert np.allclose(np.linalg.norm(found.vectors, axis=1), 1, atol=1e-6)
        # And they are the same bits whatever is encoded beside them.
        backwards = encode(texts[::-1], MINILM, cache="backwards.sqlite")
        assert np.array_equal(backwards.vectors[::-1], found.vectors)
        single = encode(texts[2:3], MINILM, cache="single.sqlite")
        assert np.array_equal(single.vectors[0], found.vectors[2])

    def test_is_cut_at_256_word_pieces_and_not_before(self, encode):
        """Of 300 words the first 254 count: two of the 256 are [CLS] and [SEP]."""

        def with_other_word(position: int) -> str:
            words = ["law"] * 300
            words[position] = "court"
            return " ".join(words)

        texts = [" ".join(["law"] * 300), *map(with_other_word, (0, 127, 253, 254, 299))]
        found = encode(texts, MINILM)
        same = [np.array_equal(v, found.vectors[0]) for v in found.vectors[1:]]
        assert same == [False, False, False, True, True]
        assert found.n_tokens.tolist() == [302] * 6

    def test_declared_weights_are_checked(self, encode, tmp_path):
        with pytest.raises(InputError, match=r"model\.safetensors has sha256 53aa51"):
            encode(["a"], replace(MINILM, sha256="00" * 32))
        assert not (tmp_path / "cache.sqlite").exists()


class TestVectors:
    def test_by_transformers_alone(self, encode, tiny):
        """Mean of the last layer over the pieces that are not cut, to unit length."""
        import torch
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tiny.model)
        network = AutoModel.from_pretrained(tiny.model).eval()
        found = encode(TINY_TEXTS, tiny)
        for text, vector, usable in zip(TINY_TEXTS, found.vectors, found.usable, strict=True):
            inputs = tokenizer([text], truncation=True, max_length=16, return_tensors="pt")
            with torch.no_grad():
                mean = network(**inputs).last_hidden_state[0].mean(dim=0).numpy()
            expected = mean / np.linalg.norm(mean) if usable else np.zeros(32)
            assert vector == pytest.approx(expected, abs=1e-5)

    def test_not_normalised(self, encode, tiny):
        unit, raw = (encode(TINY_TEXTS, s) for s in (tiny, replace(tiny, normalize=False)))
        lengths = np.linalg.norm(raw.vectors, axis=1, keepdims=True)
        assert (lengths[unit.usable] > 1.5).all()
        assert np.allclose(
            raw.vectors[unit.usable] / lengths[unit.usable], unit.vectors[unit.usable]
        )

    @pytest.mark.parametrize("cores", [1, 3])
    def test_do_not_depend_on_cores_or_torchs_threads(self, encode, tiny, monkeypatch, cores):
        import torch

        before = encode(TINY_TEXTS, tiny)
        threads = torch.get_num_threads()
        monkeypatch.setattr(inference, "_cores", lambda: cores)
        torch.set_num_threads(2)
        after = encode(TINY_TEXTS, tiny, cache="other.sqlite")
        assert torch.get_num_threads() == 2
        torch.set_num_threads(threads)
        assert np.array_equal(before.vectors, after.vectors)

    def test_a_models_own_prompt(self, encode, tiny, tmp_path):
        """What the library puts before every text is there, and counts as word pieces."""
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(
            tiny.model, prompts={"all": "notice of "}, default_prompt_name="all", device="cpu"
        )
        model.save(str(tmp_path / "prompted"))
        found = encode(["audit", ""], replace(tiny, model=str(tmp_path / "prompted")))
        expected = encode(["notice of audit"], tiny, cache="plain.sqlite")
        assert np.allclose(found.vectors[0], expected.vectors[0], atol=1e-6)
        assert found.n_tokens.tolist() == [5, 4]
        assert found.usable.tolist() == [True, False]


class TestTexts:
    def test_word_pieces_are_counted_before_the_cut(self, encode, tiny):
        assert encode(TINY_TEXTS, tiny).n_tokens.tolist() == [4, 7, 3, 2, 65, 4, 3]

    def test_without_a_word_piece_is_not_usable(self, encode, tiny):
        found = encode(["law", "", " \n\t", "\x00", "☃"], tiny)
        # A character that the vocabulary lacks is a word piece, [UNK]; a control character none.
        assert found.usable.tolist() == [True, False, False, False, True]
        assert found.n_tokens.tolist() == [3, 2, 2, 2, 3]
        assert not found.vectors[1:4].any()
        again = encode(["law", "", " \n\t", "\x00", "☃"], tiny)
        assert again.n_new == 0
        assert np.array_equal(again.usable, found.usable)

    def test_none(self, encode, tiny):
        found = encode([], tiny)
        assert (len(found.vectors), len(found.n_tokens), len(found.usable)) == (0, 0, 0)
        assert found.n_new == 0

    def test_only_unusable_ones(self, encode, tiny):
        found = encode(["", " "], tiny)
        assert found.vectors.shape == (2, 32)
        assert found.usable.tolist() == [False, False]

    def test_names_must_be_as_many(self, tmp_path, tiny):
        with pytest.raises(ValueError, match="zip"):
            encoding.encode(["a"], tiny, models=tmp_path, cache=tmp_path / "c", names=[])


class TestCache:
    def test_no_text_is_encoded_twice(self, encode, tiny, monkeypatch):
        first = encode(TINY_TEXTS, tiny)
        assert first.n_new == 6  # "governing law" stands there twice
        assert np.array_equal(first.vectors[0], first.vectors[5])
        more = encode([*TINY_TEXTS, "delaware"], tiny)
        assert more.n_new == 1

        def load(*_: object) -> None:
            raise AssertionError("the model was loaded although nothing is new")

        monkeypatch.setattr(inference, "Model", load)
        again = encode(TINY_TEXTS[::-1], tiny)
        assert again.n_new == 0
        assert np.array_equal(again.vectors[::-1], first.vectors)
        assert np.array_equal(again.n_tokens[::-1], first.n_tokens)

    @pytest.mark.parametrize("change", [{"max_length": 8}, {"normalize": False}])
    def test_other_settings_have_other_vectors(self, encode, tiny, change):
        encode(TINY_TEXTS, tiny)
        assert encode(TINY_TEXTS, replace(tiny, **change)).n_new == 6

    def test_other_weights_have_other_vectors(self, encode, tiny, tmp_path):
        other = replace(tiny, model=tiny_models.encoder(tmp_path / "tiny", seed=1))
        one, two = encode(TINY_TEXTS, tiny), encode(TINY_TEXTS, other)
        assert two.n_new == 6
        assert not np.isclose(one.vectors[0], two.vectors[0]).all()

    def test_a_damaged_entry_is_encoded_again(self, encode, tiny, tmp_path):
        before = encode(TINY_TEXTS, tiny)
        with sqlite3.connect(tmp_path / "cache.sqlite") as connection:
            connection.execute(
                "UPDATE vectors SET vector = (SELECT vector FROM vectors ORDER BY key DESC)"
                " WHERE key = (SELECT key FROM vectors ORDER BY key)"
            )
        connection.close()
        after = encode(TINY_TEXTS, tiny)
        assert after.n_new == 1
        assert np.array_equal(after.vectors, before.vectors)
        assert encode(TINY_TEXTS, tiny).n_new == 0

    def test_a_damaged_file_is_begun_anew(self, encode, tiny, tmp_path):
        before = encode(TINY_TEXTS, tiny)
        (tmp_path / "cache.sqlite").write_bytes(b"no database" * 1000)
        with pytest.warns(UserWarning, match="cache is damaged"):
            after = encode(TINY_TEXTS, tiny)
        assert after.n_new == 6
        assert np.array_equal(after.vectors, before.vectors)


class TestErrors:
    def test_absent_weights(self, encode, tmp_path):
        with pytest.raises(NotMeasured, match="spanbench fetch models"):
            encode(["a"], Encoder("e", model="someone/encoder"))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(("fill", "kind"), [(float("nan"), "not finite"), (0.0, "zero")])
    def test_a_vector_that_is_none(self, encode, tmp_path, fill, kind):
        """The text is named by the first name it has; a text without word pieces has no vector."""
        broken = tiny_models.encoder(tmp_path / "broken", fill=fill)
        settings = Encoder("e", model=broken, max_length=16, normalize=False)
        with pytest.raises(InputError, match=f"t1: its vector under encoder e is {kind}"):
            encode(["", "law", "term", "law"], settings)
        assert encode([""], settings).n_new == 1

    def test_damaged_weights(self, encode, tmp_path):
        folder = tiny_models.encoder(tmp_path / "damaged")
        (Path(folder) / "model.safetensors").write_bytes(b"damaged")
        with pytest.raises(InputError, match="damaged cannot be loaded: "):
            encode(["law"], Encoder("e", model=folder, max_length=16))

    def test_weights_of_another_model(self, encode, tmp_path):
        """The library would make up what is lacking, and vectors with it."""
        folder = Path(tiny_models.encoder(tmp_path / "mixed"))
        config = json.loads((folder / "config.json").read_text())
        config |= {"num_hidden_layers": 3}
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(InputError, match="lacks weights that a SentenceTransformer needs"):
            encode(["law"], Encoder("e", model=str(folder), max_length=16))

    @pytest.mark.parametrize("length", [-1, 2, 33])
    def test_a_length_that_the_model_does_not_take(self, encode, tiny, length):
        with pytest.raises(InputError, match=f"max_length = {length}, but .* from 3 to 32"):
            encode(["law"], replace(tiny, max_length=length))


WORDS = tiny_models.WORDS


def numbered(first: int, last: int) -> list[str]:
    """A text a number, a word a digit."""
    return [" ".join(WORDS[int(digit)] for digit in str(n)) for n in range(first, last)]


SCRIPT = """
import socket, sys

def refuse(*_):
    raise SystemExit("a connection was opened")

socket.socket.connect = socket.getaddrinfo = refuse
from pathlib import Path
from spanbench_pipeline.models import encoding
from spanbench_pipeline.config.experiment import Encoder

texts, cache = sys.stdin.read().splitlines(), Path(sys.argv[2])
settings = Encoder("tiny", model=sys.argv[1], max_length=16)
encoding.encode(texts, settings, models=cache.parent, cache=cache, names=texts)
"""


def started(settings: Encoder, cache: Path, texts: list[str]) -> subprocess.Popen[str]:
    """Another process that encodes ``texts``; any connection that it opens ends it."""
    command = [sys.executable, "-c", SCRIPT, str(settings.model), str(cache)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, **pipes, text=True)
    assert process.stdin is not None
    process.stdin.write("\n".join(texts))
    process.stdin.close()
    process.stdin = None
    return process


def n_kept(cache: Path) -> int:
    """Rows in the cache so far."""
    if not cache.exists():
        return 0
    connection = sqlite3.connect(cache)
    try:
        (count,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
    except sqlite3.OperationalError:  # Not even the table is there yet.
        return 0
    finally:
        connection.close()
    return int(count)


class TestProcesses:
    def test_two_at_once_without_noise_or_connections(self, encode, tiny, tmp_path):
        cache = tmp_path / "cache.sqlite"
        ranges = (numbered(100, 400), numbered(300, 600))
        both = [started(tiny, cache, texts) for texts in ranges]
        for process in both:
            assert process.communicate(timeout=300) == ("", "")
            assert process.returncode == 0
        assert n_kept(cache) == 500
        together = encode(numbered(100, 600), tiny)
        assert together.n_new == 0
        alone = encode(numbered(100, 600), tiny, cache="alone.sqlite")
        assert np.array_equal(together.vectors, alone.vectors)

    def test_killed_keeps_what_it_encoded(self, encode, tiny, tmp_path):
        cache = tmp_path / "cache.sqlite"
        process = started(tiny, cache, numbered(10_000, 60_000))
        deadline = time.monotonic() + 300
        while not n_kept(cache) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        kept = n_kept(cache)
        assert 0 < kept < 50_000
        assert kept % encoding.KEEP_EVERY == 0
        found = encode(numbered(10_000, 10_000 + kept + 10), tiny)
        assert found.n_new == 10
        alone = encode(numbered(10_000, 10_020), tiny, cache="alone.sqlite")
        assert np.array_equal(found.vectors[:20], alone.vectors)
