"""Settings read from a TOML file, refused with messages that name file, key and the nearest name.

What the files mean is known to the modules that read them; this one knows types and keys alone.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from spanbench_pipeline.core.errors import InputError
from spanbench_pipeline.core.suggestions import nearest as nearest

_KINDS: dict[str, type] = {
    "str": str,
    "str | None": str,
    "int": int,
    "float": float,
    "bool": bool,
    "tuple[str, ...]": list,
}
"""A field's annotation -> the TOML type that fills it; a field of another kind is no setting."""


def parse(path: Path) -> dict[str, Any]:
    """A TOML file as dictionaries; InputError where it cannot be read or is not TOML.

    A byte order mark at its start is none of its content, as TOML has it.
    """
    if path.is_fifo():  # opened, it would wait for a writer
        raise InputError(f"{path}: cannot be read: a pipe, and every command reads it again")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise InputError(f"{path}: not valid TOML: nested too deeply") from error


@dataclass(frozen=True)
class Reader:
    """Turns parsed TOML into typed values. ``where`` is the table, as messages name it."""

    path: Path

    def error(self, where: str, problem: str) -> InputError:
        """The error to raise: file, table, problem."""
        return InputError(f"{self.path}: {where}: {problem}")

    def assigned(self, where: str, key: str, found: object) -> str:
        """How a message names a key with its value; a reader of secrets leaves the value out."""
        return f"{key} = {found!r}"

    def known(self, where: str, data: Mapping[str, Any], valid: set[str]) -> None:
        """Refuses keys that are not in ``valid``."""
        for key in data:
            if key not in valid:
                raise self.error(where, f"unknown key {key!r}{nearest(key, sorted(valid))}")

    def value(
        self, where: str, data: Mapping[str, Any], key: str, kind: type, *default: Any
    ) -> Any:
        """The value of ``key``, of type ``kind``; without a default it must be there."""
        if key not in data:
            if default:
                return default[0]
            raise self.error(where, f"key {key!r} is missing")
        found = data[key]
        if kind is float and type(found) is int:
            found = float(found)
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            raise self.error(
                where, f"{self.assigned(where, key, found)} must be of type {kind.__name__}"
            )
        if isinstance(found, float) and not math.isfinite(found):
            raise self.error(where, f"{self.assigned(where, key, found)} is no number")
        return found

    def choice(self, data: Mapping[str, Any], where: str, key: str, valid: tuple[str, ...]) -> str:
        """The value of ``key``, one of ``valid``; the first where it is not given."""
        found: str = self.value(where, data, key, str, valid[0])
        self.one_of(where, key, found, valid)
        return found

    def one_of(self, where: str, key: str, found: str, valid: Iterable[str]) -> None:
        """Refuses a value that is not one of ``valid``."""
        names = list(valid)
        if found not in names:
            raise self.error(
                where, f"{self.assigned(where, key, found)} is unknown{nearest(found, names)}"
            )

    def filled(self, where: str, settings: Mapping[str, Any], kind: Any, **given: Any) -> Any:
        """The dataclass ``kind`` from a table: keys known, values of the declared types.

        ``given`` are the fields that are no keys of the table.
        """
        types = {
            f.name: _KINDS[f.type] for f in fields(kind) if f.name not in given and f.type in _KINDS
        }
        self.known(where, settings, set(types))
        for f in fields(kind):
            if f.name in types and f.default is MISSING and f.default_factory is MISSING:
                self.value(where, settings, f.name, types[f.name])
        found = {key: self.value(where, settings, key, types[key]) for key in settings}
        return kind(**given, **{key: self._texts(where, key, v) for key, v in found.items()})

    def _texts(self, where: str, key: str, found: Any) -> Any:
        """A list as a tuple of texts; any other value as it is."""
        if not isinstance(found, list):
            return found
        if not all(isinstance(text, str) for text in found):
            raise self.error(where, f"{self.assigned(where, key, found)} must be a list of texts")
        return tuple(found)
