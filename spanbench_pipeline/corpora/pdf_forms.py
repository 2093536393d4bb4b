"""The values of a PDF's form: what was filled in, which stands on no page's text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spanbench_pipeline.codepoints import NO_CHARACTER, is_blank, join_surrogates
from spanbench_pipeline.errors import InputError

if TYPE_CHECKING:
    from pypdf import PdfReader

DEEPEST = 32
"""How many levels of fields below fields are followed."""
UNTICKED = "/Off"


@dataclass(frozen=True)
class Form:
    """A form's values, one line each, and what of it could not be read, one sentence each."""

    lines: tuple[str, ...]
    notes: tuple[str, ...]


def read(reader: PdfReader, where: str) -> Form:
    """Return the values of a PDF's form as lines ``name: value``, in the order of its fields.

    A field's name is its full one, ``parent.child``; several chosen values are joined by a comma. A
    line break in a value is one newline. Fields without a value, boxes that are not ticked,
    buttons and signatures give no line; a line that is given twice stands once. Raises InputError,
    opening with ``where``, for half a surrogate pair, naming the field.
    """
    lines: dict[str, None] = {}
    notes: list[str] = []
    try:
        form = _object(_object(reader.root_object).get("/AcroForm"))
        if not form:
            return Form((), ())
        for name, value in _fields(form, "", None, (), set()):
            if isinstance(value, bytes):
                notes.append(f"form field {name!r}: its value is no text, and is left out")
            elif text := _text(value):
                line = join_surrogates(f"{name}: {text}", f"{where}, form field {name!r}")
                lines[line] = None
                if NO_CHARACTER.search(line):
                    notes.append(f"form field {name!r}: characters that no text holds, such as NUL")
        if not lines and "/XFA" in form:
            notes.append(
                "the form's text is in XML (XFA), which is not read: print it to a new PDF"
            )
    except InputError:
        raise
    except Exception as error:  # a damaged form, as a damaged file, makes pypdf raise anything
        notes.append(
            f"not all of the form's fields can be read ({str(error) or type(error).__name__})"
        )
    return Form(tuple(lines), tuple(notes))


def _fields(
    field: Any, parent: str, inherited: Any, above: tuple[int, ...], seen: set[int]
) -> Iterator[tuple[str, Any]]:
    """Full name and value of each field that has no fields below it; the form is the first."""
    if id(field) in above or len(above) >= DEEPEST:
        raise ValueError("fields within themselves, or too deep")
    if id(field) in seen:  # a field has one place; many ways to each would take for ever
        return
    seen.add(id(field))
    value = _object(field.get("/V", inherited))
    kids = _object(field.get("/Kids" if above else "/Fields")) or ()
    below = [kid for kid in map(_object, kids) if kid and "/T" in kid]
    if above and not below:
        yield parent, value
    for kid in below:
        name = " ".join(str(kid["/T"]).split())
        full = f"{parent}.{name}" if parent else name
        yield from _fields(kid, full, value, (*above, id(field)), seen)


def _text(value: Any) -> str | None:
    """A value as a person reads it; None where there is none."""
    from pypdf.generic import NameObject, StreamObject, create_string_object

    if isinstance(value, StreamObject):
        value = create_string_object(value.get_data())
    if isinstance(value, NameObject):
        return None if value == UNTICKED else value[1:]
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, map(_object, value))))
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str) or is_blank(value):
        return None
    return value.replace("\r\n", "\n").replace("\r", "\n")


def _object(value: Any) -> Any:
    """What an indirect object stands for; anything else is itself."""
    from pypdf.generic import IndirectObject

    return value.get_object() if isinstance(value, IndirectObject) else value
