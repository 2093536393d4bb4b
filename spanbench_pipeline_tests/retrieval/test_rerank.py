from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spanbench_pipeline.config.experiment import Reranker
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.models import inference
from spanbench_pipeline.retrieval import rerank
from spanbench_pipeline_tests.support import tiny_models

QUERY = "the governing law"
TEXTS = [
    "governing law is delaware",
    "payment term",
    "",
    "the term of the audit is the notice of the payment of the law of delaware " * 3,
    "notice of audit",
    "payment term",
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Reranker:
    folder = tiny_models.cross_encoder(tmp_path_factory.mktemp("models") / "ranker")
    return Reranker("tiny", model=folder, max_length=tiny_models.MAX_LENGTH)


@pytest.fixture(scope="module")
def model(settings: Reranker) -> inference.Model:
    return rerank.load(settings, Path("none"))


def by_hand(folder: str, query: str, text: str, max_length: int) -> float:
    """The logit by transformers alone."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    cut = {"truncation": True, "max_length": max_length}
    inputs = tokenizer([query], [text], return_tensors="pt", **cut)
    with torch.no_grad():
        return network(**inputs).logits.item()


class TestScores:
    def test_are_the_models_logits(self, settings, model):
        scores = rerank.score_pairs(QUERY, TEXTS, model)
        expected = [by_hand(settings.model, QUERY, text, tiny_models.MAX_LENGTH) for text in TEXTS]
        assert scores.dtype == np.float64
        assert scores == pytest.approx(expected, abs=1e-5)
        assert len(set(scores.tolist())) == len(set(TEXTS))

    def test_do_not_depend_on_neighbours_or_cores(self, model, monkeypatch):
        together = rerank.score_pairs(QUERY, TEXTS, model)
        assert together[1] == together[5]
        for cores in (1, 3):
            monkeypatch.setattr(inference, "_cores", lambda cores=cores: cores)
            assert np.array_equal(rerank.score_pairs(QUERY, TEXTS, model), together)
        alone = [rerank.score_pairs(QUERY, [text], model)[0] for text in TEXTS]
        assert np.array_equal(alone, together)
        assert np.array_equal(rerank.score_pairs(QUERY, TEXTS[::-1], model), together[::-1])

    def test_depend_on_the_query(self, model):
        one, other = (rerank.score_pairs(q, TEXTS, model) for q in (QUERY, "audit notice"))
        assert not np.isclose(one, other).any()

    def test_cut_at_the_declared_length(self, settings):
        short = rerank.load(replace(settings, max_length=8), Path("none"))
        # [CLS] governing law [SEP] and [SEP] leave room for three words of the text.
        texts = ["the term of law", "the term of audit", "the term law of"]
        same, also, other = rerank.score_pairs("governing law", texts, short)
        assert same == also != other
        assert same == pytest.approx(
            by_hand(settings.model, "governing law", texts[0], 8), abs=1e-5
        )

    def test_large_ones_stay_apart(self, tmp_path):
        """Past 17 a sigmoid is 1 in float32, and ties would order the list."""
        folder = tiny_models.cross_encoder(tmp_path / "large", fill=40.0)
        large = rerank.load(Reranker("r", model=folder, max_length=32), tmp_path)
        scores = rerank.score_pairs(QUERY, TEXTS[:5], large)
        assert (np.abs(scores) > 17).sum() >= 2
        assert len(set(scores.tolist())) == 5

    def test_none(self, model):
        assert rerank.score_pairs(QUERY, [], model).shape == (0,)

    def test_not_finite(self, tmp_path):
        folder = tiny_models.cross_encoder(tmp_path / "broken", fill=float("nan"))
        broken = rerank.load(Reranker("r", model=folder, max_length=32), tmp_path)
        with pytest.raises(InputError, match="query 'the law' and the chunk that begins 'audit'"):
            rerank.score_pairs("the law", ["audit", "payment"], broken)


class TestLoad:
    def test_absent(self, tmp_path):
        with pytest.raises(NotMeasured, match="weights of someone/ranker are absent"):
            rerank.load(Reranker("r", model="someone/ranker"), tmp_path)

    def test_fetched(self, tmp_path, model):
        tiny_models.cross_encoder(tmp_path / "someone--ranker")
        fetched = rerank.load(Reranker("r", model="someone/ranker", max_length=32), tmp_path)
        one, other = (rerank.score_pairs(QUERY, TEXTS, m) for m in (model, fetched))
        assert np.array_equal(one, other)

    def test_wrong_hash(self, settings, tmp_path):
        with pytest.raises(InputError, match="declares 00"):
            rerank.load(replace(settings, sha256="00" * 32), tmp_path)

    @pytest.mark.parametrize("length", [0, 3, 33])
    def test_a_length_that_the_model_does_not_take(self, settings, tmp_path, length):
        with pytest.raises(InputError, match=f"max_length = {length}, but the model takes from"):
            rerank.load(replace(settings, max_length=length), tmp_path)

    def test_an_encoder_is_refused(self, tmp_path):
        """It has no head that scores; the library would make one up of random numbers."""
        folder = tiny_models.encoder(tmp_path / "encoder")
        with pytest.raises(InputError, match="lacks weights that a CrossEncoder needs"):
            rerank.load(Reranker("r", model=folder, max_length=32), tmp_path)

    def test_a_head_without_weights_is_refused(self, tmp_path):
        """The same, where the configuration declares a head that the weights do not have."""
        folder = Path(tiny_models.encoder(tmp_path / "encoder"))
        config = json.loads((folder / "config.json").read_text())
        config |= {"architectures": ["BertForSequenceClassification"], "num_labels": 1}
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(InputError, match="lacks weights"):
            rerank.load(Reranker("r", model=str(folder), max_length=32), tmp_path)

    def test_a_classifier_of_three_classes_is_refused(self, tmp_path):
        folder = tiny_models.cross_encoder(tmp_path / "three", labels=3)
        with pytest.raises(InputError, match="gives 3 scores a pair"):
            rerank.load(Reranker("r", model=folder, max_length=32), tmp_path)

    def test_damaged_weights(self, tmp_path):
        folder = tiny_models.cross_encoder(tmp_path / "damaged")
        weights = Path(folder) / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:1000])
        with pytest.raises(InputError, match=r"r: .*damaged cannot be loaded: "):
            rerank.load(Reranker("r", model=folder, max_length=32), tmp_path)
