"""Read tables of a TOML file into dataclasses, and name every problem of a file at once.

A dataclass declares what its table may hold: names, types, defaults, bounds
(``Annotated[int, Interval(ge=1)]``) and rules (``Annotated[str, one_of(NAMES)]``). Where it has a
method ``conflict``, that returns what contradicts between its fields, or "".
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_type_hints

from spanbench_pipeline.core.errors import InputError, refuse_all
from spanbench_pipeline.core.open_files import is_read_once
from spanbench_pipeline.core.suggestions import nearest

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
TOP = "top level"


@dataclass(frozen=True)
class Rule:
    """A condition on a value: ``problem`` returns what is wrong with it, or ""."""

    problem: Callable[[Any], str]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the schema of the annotated type with this rule after it."""
        from pydantic_core import PydanticCustomError, core_schema

        def checked(value: Any) -> Any:
            if problem := self.problem(value):
                raise PydanticCustomError("rule", "{problem}", {"problem": problem})
            return value

        return core_schema.no_info_after_validator_function(checked, handler(source))


def matching(pattern: str, problem: str) -> Rule:
    """Return the rule that a text matches a regular expression as a whole."""
    found = re.compile(pattern)
    return Rule(lambda text: "" if found.fullmatch(text) else problem)


def one_of(names: Iterable[str]) -> Rule:
    """Return the rule that a text is one of ``names``."""
    return Rule(lambda text: "" if text in names else unknown(text, names))


def unknown(name: str, valid: Iterable[str]) -> str:
    """Return what is said of a value that is not one of ``valid``."""
    return f"is unknown{nearest(name, valid)}"


def parse(path: Path) -> dict[str, Any]:
    """Return a TOML file as dictionaries; raise InputError where it cannot be read or is not TOML.

    A byte order mark at its start is not part of its content, as TOML has it.
    """
    if is_read_once(path) and not path.is_dir():  # opened, it would wait for a writer
        raise InputError(f"{path}: cannot be read: a pipe, and every command reads it again")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise InputError(f"{path}: not valid TOML: nested too deeply") from error


def keys_of(kind: Any, *absent: str) -> set[str]:
    """Return the fields of a dataclass, which are the keys of its table, without ``absent``."""
    return {f.name for f in fields(kind)} - set(absent)


@functools.cache
def _validator(annotation: Any) -> TypeAdapter[Any]:
    """Return what validates a field, strictly: no text becomes a number."""
    from pydantic import TypeAdapter  # late: who reads no file does not wait for it

    return TypeAdapter(annotation, config={"strict": True, "allow_inf_nan": False})


@dataclass(frozen=True)
class TableReader:
    """Reads the tables of one file. ``where`` is the table, as messages name it."""

    path: Path
    problems: list[str] = field(default_factory=list)

    def add(self, where: str, problem: str) -> None:
        """Record a problem."""
        self.problems.append(f"{self.path}: {where}: {problem}")

    def require(self, where: str, holds: bool, problem: str) -> None:
        """Record a problem unless a condition holds."""
        if not holds:
            self.add(where, problem)

    def done(self, value: T | None) -> T:
        """Return what was read; raise one InputError where there is any problem."""
        refuse_all(self.problems, str(self.path))
        return cast(T, value)

    def assigned(self, where: str, key: str, value: object) -> str:
        """Return how a message names a key with its value; a reader of secrets omits the value."""
        return f"{key} = {value!r}"

    def known(self, where: str, table: Mapping[str, Any], valid: Collection[str]) -> None:
        """Record each key that is not in ``valid``."""
        for key in table:
            if key not in valid:
                self.add(where, f"unknown key {key!r}{nearest(key, sorted(valid))}")

    def read(
        self,
        where: str,
        table: object,
        kind: type[T],
        others: Collection[str] = (),
        **fixed: Any,
    ) -> T | None:
        """Return the dataclass ``kind`` filled from a table; None where problems were recorded.

        ``others`` are valid keys of the table that are read elsewhere; ``fixed`` are the fields
        that are not keys of the table.
        """
        if not isinstance(table, dict):
            self.add(where, "must be a table, such as { }")
            return None
        self.known(where, table, keys_of(kind, *fixed) | set(others))
        return self.filled(where, table, kind, **fixed)

    def filled(self, where: str, table: Mapping[str, Any], kind: type[T], **fixed: Any) -> T | None:
        """Do what ``read`` does with a table whose keys are known to be valid."""
        values = dict(fixed)
        before = len(self.problems)
        for key, annotation in get_type_hints(kind, include_extras=True).items():
            if key in table and key not in fixed:
                values[key] = self._value(where, key, table[key], annotation)
        for f in fields(cast(Any, kind)):
            needed = f.default is MISSING and f.default_factory is MISSING
            self.require(where, f.name in values or not needed, f"key {f.name!r} is missing")
        if len(self.problems) > before:
            return None
        made = kind(**values)
        conflict = getattr(made, "conflict", str)()
        self.require(where, not conflict, conflict)
        return made

    def _value(self, where: str, key: str, value: Any, annotation: Any) -> Any:
        """Return a field's value; a field that holds a dataclass is a table of its own."""
        for kind in (annotation, *get_args(annotation)):
            if isinstance(kind, type) and is_dataclass(kind):
                return self.read(key if where == TOP else f"{where}.{key}", value, kind)
        return self._validated(where, key, value, annotation)

    def _validated(self, where: str, key: str, value: Any, annotation: Any) -> Any:
        from pydantic import ValidationError

        # Strict validation takes no list for a tuple, and TOML has lists alone.
        given = tuple(value) if isinstance(value, list) else value
        try:
            return _validator(annotation).validate_python(given)
        except ValidationError as error:
            for problem in error.errors(include_url=False):
                rule = problem["msg"].replace("Input should", "must").replace("tuple", "list")
                name = key + "".join(f"[{part}]" for part in problem["loc"])
                self.add(where, f"{self.assigned(where, name, problem['input'])} {rule}")
