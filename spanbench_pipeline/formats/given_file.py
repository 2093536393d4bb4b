"""A file or pipe that a person gives, read once: what is hashed is what is parsed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.formats import filetypes, json_file, strict_json


@dataclass(frozen=True)
class Given:
    """An input with all its bytes."""

    path: Path
    data: bytes

    @property
    def where(self) -> str:
        """Return the file as messages name it."""
        return str(self.path)

    @property
    def is_parquet(self) -> bool:
        """Return whether it opens as Parquet does, whatever its name."""
        return self.data.startswith(filetypes.PARQUET)

    @cached_property
    def sha256(self) -> str:
        """Return the hash of the bytes that were read, as hexadecimal digits."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def json_values(self) -> list[json_file.Value]:
        """Return the JSON values of the text with their places; InputError where it is not JSON."""
        return json_file.values(self.text(), self.where)

    @property
    def is_json(self) -> bool:
        """Return whether the text opens as JSON does."""
        return self.text().lstrip().startswith(("{", "["))

    def text(self) -> str:
        """Return the bytes as text without a byte order mark.

        Raises InputError, saying what the file seems to be, for what is no text in UTF-8.
        """
        if filetypes.is_markup(self.data):
            raise InputError(
                f"{self.where}: no text. It seems to be a web page. Download the file itself."
            )
        for opening, what, to_do in filetypes.DATA:
            if self.data.startswith(opening):
                raise InputError(f"{self.where}: no text. It seems to be {what}. {to_do}")
        return strict_json.decode(self.data, self.where).removeprefix(strict_json.BOM)


def given(path: Path) -> Given:
    """Return the file or pipe at ``path``, read to its end; InputError where it cannot be read."""
    try:
        return Given(path, path.read_bytes())
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read: {reason}") from error
