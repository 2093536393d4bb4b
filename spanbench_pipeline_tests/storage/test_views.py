"""Views read the files that they are given, and a query on them reaches nothing else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from spanbench_pipeline.core import tables
from spanbench_pipeline.storage import parquet, views
from spanbench_pipeline_tests.storage.test_parquet import table


def test_views_over_files_and_over_nothing(tmp_path: Path):
    quoted = tmp_path / "it's"
    parquet.write(quoted / "a.parquet", "query_metrics", table())
    files = {"query_metrics": [quoted / "a.parquet"]}
    connection = views.connect(files)
    assert connection.execute("SELECT config, k, value FROM query_metrics").fetchall() == [
        ("a", 10, None),
        ("b", None, 0.5),
    ]
    for name, spec in tables.TABLES.items():
        if spec.has_view and name != "query_metrics":
            found = connection.execute(f'SELECT * FROM "{name}"')
            assert [d[0] for d in found.description] == [c.name for c in spec.columns]
            assert found.fetchall() == []
    moved = tmp_path / "moved"
    quoted.rename(moved)
    elsewhere = {"query_metrics": [moved / "a.parquet"]}
    assert views.views_digest(files, quoted) == views.views_digest(elsewhere, moved)
    assert views.views_digest(files, quoted) != views.views_digest({}, quoted)


REACHES = [
    "SELECT * FROM read_parquet('{other}')",
    "SELECT * FROM '{other}'",
    "SELECT * FROM read_parquet('{link}')",
    "SELECT * FROM read_parquet('{folder}/../other.parquet')",
    "SELECT * FROM parquet_metadata('{other}')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('file:///etc/passwd')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM query('SELECT * FROM read_csv(''/etc/passwd'')')",
    "SELECT * FROM read_csv('https://example.com/x.csv')",
]


def beside(tmp_path: Path) -> tuple[dict[str, list[Path]], dict[str, Path]]:
    """A view's file, and others that no view reads: beside it, and linked into its folder."""
    folder = tmp_path / "it's"
    for path in (folder / "a.parquet", tmp_path / "other.parquet"):
        parquet.write(path, "query_metrics", table())
    (folder / "link.parquet").symlink_to(tmp_path / "other.parquet")
    places = {
        "other": tmp_path / "other.parquet",
        "link": folder / "link.parquet",
        "folder": folder,
    }
    return {"query_metrics": [folder / "a.parquet"]}, places


@pytest.mark.parametrize("query", REACHES)
def test_a_query_reads_the_files_behind_the_views_alone(tmp_path: Path, query: str):
    files, places = beside(tmp_path)
    quoted = {name: str(path).replace("'", "''") for name, path in places.items()}
    with views.connect(files) as connection:
        assert connection.execute("SELECT count(*) FROM query_metrics").fetchall() == [(2,)]
        with pytest.raises(duckdb.PermissionException):
            connection.execute(query.format(**quoted))


def test_files_are_read_where_that_is_asked_for_and_never_the_network(tmp_path: Path):
    files, places = beside(tmp_path)
    with views.connect(files, allow_files=True) as connection:
        found = connection.execute(f"SELECT count(*) FROM '{places['other']}'").fetchall()
        assert found == [(2,)]
        with pytest.raises(duckdb.Error, match="httpfs"):
            connection.execute(REACHES[-1])


@pytest.mark.parametrize("allow_files", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        "SET enable_external_access = true",
        "SET autoload_known_extensions = true",
        "SET allowed_directories = ['/']",
        "SET lock_configuration = false",
        "SELECT * FROM files",  # a variable of this function is no view
    ],
)
def test_no_query_opens_the_door(tmp_path: Path, query: str, allow_files: bool):
    files = table()
    assert files.num_rows
    with views.connect({}, allow_files=allow_files) as connection, pytest.raises(duckdb.Error):
        connection.execute(query)


def test_each_connection_spills_into_a_private_folder_that_goes_with_it() -> None:
    found = []
    for _ in range(2):
        connection = views.connect({})
        connection.execute("SELECT current_setting('temp_directory')")
        spill = Path(connection.fetchall()[0][0])
        assert spill.stat().st_mode & 0o777 == 0o700
        found.append(spill)
        del connection
        assert not spill.exists()
    assert found[0] != found[1]
