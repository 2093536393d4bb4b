"""Where things lie: the checkout's root, and the home that holds all that runs write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from spanbench_pipeline.core.errors import InputError


@dataclass(frozen=True)
class Project:
    """The folders of one working installation.

    ``root`` holds workspace.yaml. ``home`` holds Parquet files, the DuckDB file, the vector cache,
    Dagster's state and experiments registered by ``adapt``; it is the root's ``warehouse/``
    unless ``--home`` or SPANBENCH_HOME says otherwise, and then downloads lie in it too, so that
    two homes never share what they were given.
    """

    root: Path
    home: Path

    @property
    def downloads(self) -> Path:
        """Return where ``fetch`` keeps archives' members."""
        own = self.home == self.root / "warehouse"
        return self.root / "data" / "downloads" if own else self.home / "downloads"

    @property
    def parquet(self) -> Path:
        """Return one Parquet file per asset: ``<corpus>/<stage>/<name>.parquet``."""
        return self.home / "parquet"

    @property
    def database(self) -> Path:
        """Return the DuckDB file, nothing but views over the Parquet files."""
        return self.home / "spanbench.duckdb"

    @property
    def reports(self) -> Path:
        """Return ``<corpus>/developer.md`` and its like."""
        return self.home / "reports"

    @property
    def vectors(self) -> Path:
        """Return the vector cache."""
        return self.home / "cache" / "vectors.sqlite"

    @property
    def models(self) -> Path:
        """Weights that ``fetch models`` brought."""
        return self.downloads / "models"

    @property
    def dagster(self) -> Path:
        """Dagster's state."""
        return self.home / "dagster"

    @property
    def locks(self) -> Path:
        """Return one file a corpus: who runs it now."""
        return self.home / "locks"

    @property
    def registered(self) -> Path:
        """Experiments registered by ``adapt``."""
        return self.home / "experiments"

    def experiment_files(self) -> list[Path]:
        """Return the experiment files, the project's own first, each group by name."""
        folders = (self.root / "data" / "experiments", self.registered)
        return [path for folder in folders for path in sorted(folder.glob("*.toml"))]


def find(home: str | Path | None = None) -> Project:
    """Return the project of this checkout, with ``home`` or SPANBENCH_HOME or the root's
    warehouse/.

    Raises InputError where no folder above the package or the working directory holds
    workspace.yaml, and for a home whose path the databases in it cannot take.
    """
    if home is not None and not str(home):
        raise InputError("--home '': the name is empty; name a folder, or leave --home out")
    here = Path(__file__).resolve().parents[1]
    for folder in (here, *here.parents, Path.cwd(), *Path.cwd().parents):
        if (folder / "workspace.yaml").is_file():
            chosen = home or os.environ.get("SPANBENCH_HOME") or folder / "warehouse"
            return Project(folder, _usable(Path(chosen)))
    raise InputError(
        f"no workspace.yaml above {here} or {Path.cwd()}: run spanbench from its checkout "
        "(git clone, then pip install -e .)"
    )


def _usable(home: Path) -> Path:
    """Return the whole path of a home; InputError for one that no system or database can take.

    DuckDB would read some characters as a pattern, SQLite others as a part of an address.
    """
    try:
        home = home.expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"--home {home}: no folder can be there: {error}") from error
    if str(home) != os.fsencode(home).decode("utf-8", "replace"):
        raise InputError(
            f"{home}: the home's path is not UTF-8, which the databases in it cannot take; choose "
            "another with --home DIR"
        )
    wrong = sorted(set(str(home)) & set("*?[]%"))
    if wrong:
        raise InputError(
            f"{home}: the home's path holds {' '.join(wrong)}, which the databases in it cannot "
            "take; choose another with --home DIR"
        )
    return home
