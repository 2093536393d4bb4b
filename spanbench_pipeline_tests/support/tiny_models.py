"""Models of the real architectures and file formats, small enough to be made in a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WORDS = ("governing", "law", "payment", "term", "notice", "delaware", "audit", "of", "the", "is")
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)
MAX_LENGTH = 32
"""Positions that the tiny models have."""


def cross_encoder(
    folder: Path, *, labels: int = 1, seed: int = 0, fill: float | None = None
) -> str:
    """A tiny cross-encoder's folder; ``fill`` replaces the weights of its head."""
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(seed)
    model = BertForSequenceClassification(_config(num_labels=labels))
    if fill is not None:
        torch.nn.init.constant_(model.classifier.weight, fill)
    return _save(model, folder)


def encoder(folder: Path, *, seed: int = 0, fill: float | None = None) -> str:
    """A tiny encoder's folder, which is pooled by the mean; ``fill`` replaces its last layer's."""
    import torch
    from transformers import BertModel

    torch.manual_seed(seed)
    model = BertModel(_config())
    if fill is not None:
        last = model.encoder.layer[-1].output.LayerNorm
        torch.nn.init.constant_(last.weight, fill)
        torch.nn.init.constant_(last.bias, fill)
    return _save(model, folder)


def _config(**settings: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=MAX_LENGTH,
        initializer_range=0.5,
        **settings,
    )


def _save(model: Any, folder: Path) -> str:
    from transformers import BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(VOCABULARY), encoding="utf-8")
    model.save_pretrained(folder)
    tokenizer = BertTokenizerFast(str(vocabulary), model_max_length=MAX_LENGTH)
    tokenizer.save_pretrained(folder)
    return str(folder)


def with_head(folder: Path, *, seed: int = 0) -> str:
    """A tiny encoder whose modules lie in folders without a number, one of them behind a link."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling

    encoder(folder)
    torch.manual_seed(seed)
    kept = folder / "heads" / "dense_head"
    for module, path in ((Pooling(32), folder / "pooling"), (Dense(32, 8), kept)):
        path.mkdir(parents=True)
        module.save(str(path))
    (folder / "linked_head").symlink_to(kept, target_is_directory=True)
    types = {"": "Transformer", "pooling": "Pooling", "linked_head": "Dense"}
    modules = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (path, kind) in enumerate(types.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    prompts = {"prompts": {"query": "law "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts), encoding="utf-8")
    return str(folder)
