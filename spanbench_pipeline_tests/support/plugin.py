"""A distribution with plug-ins, as pip would have installed it, in a folder of a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(
    folder: Path,
    modules: Mapping[str, str],
    entry_points: Mapping[str, Mapping[str, str]],
    name: str = "acme",
    version: str = "1.0",
) -> Path:
    """Write modules (file name -> source) and the metadata that registers them; return the folder.

    ``entry_points`` are the targets by group and name. The folder is what belongs on sys.path.
    """
    for file, source in modules.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, targets in entry_points.items():
        lines += [f"[{group}]", *(f"{key} = {target}" for key, target in targets.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder
