"""The values of a PDF's form: what was filled in, which stands on no page's text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spanbench_pipeline.core.codepoints import NO_CHARACTER, is_blank, join_surrogates
from spanbench_pipeline.core.errors import InputError

if TYPE_CHECKING:
    from pypdf import PdfReader

DEEPEST = 32
"""How many levels of fields below fields are followed."""
UNTICKED = "/Off"
INHERITED = ("/FT", "/Ff", "/V", "/Opt")
"""What a field has from the one above where it says nothing of its own."""
PASSWORD = 1 << 13
PUSHBUTTON = 1 << 16
"""Flags of a field."""


@dataclass(frozen=True)
class Form:
    """A form's values, one line each, and what of it could not be read, one sentence each."""

    lines: tuple[str, ...]
    notes: tuple[str, ...]


def read(reader: PdfReader, where: str) -> Form:
    """Return the values of a PDF's form as lines ``name: value``, in the order of its fields.

    A field's name is its full one, ``parent.child``; without one the value stands alone. A choice
    is what the page shows of it; several are joined by a comma. A line break in a value is one
    newline. Fields of pages that the form does not list follow. Fields without a value, boxes that
    are not ticked, buttons and signatures give no line, and passwords a note alone; what is given
    twice stands once. Raises InputError, opening with ``where``, for half a surrogate pair, naming
    the field.
    """
    lines: dict[str, None] = {}
    notes: list[str] = []
    try:
        form = _object(_object(reader.root_object).get("/AcroForm")) or {}
        for name, field in _all(form, reader.pages):
            value = _value(field)
            if isinstance(value, bytes):
                notes.append(f"form field {name!r}: its value is no text, and is left out")
            elif _flags(field) & PASSWORD and field.get("/FT") in ("/Tx", None):
                if _text(value):
                    notes.append(f"form field {name!r}: a password, which is left out")
            elif text := _text(value):
                line = f"{name}: {text}" if name else text
                line = join_surrogates(line, f"{where}, form field {name!r}")
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


def _all(form: Any, pages: Iterable[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the fields of the form, then those whose place is on a page alone: see ``_fields``."""
    seen: set[int] = set()
    yield from _fields(form, "", {}, (), seen)
    for page in pages:
        for annotation in _object(page.get("/Annots")) or ():
            found = _object(annotation)
            if not found or found.get("/Subtype") != "/Widget":
                continue
            line = [found]
            while (above := _object(line[-1].get("/Parent"))) and len(line) < DEEPEST:
                line.append(above)
            if seen.isdisjoint(map(id, line)):
                yield from _fields({"/Fields": [line[-1]]}, "", {}, (), seen)


def _fields(
    field: Any,
    parent: str,
    inherited: Mapping[str, Any],
    above: tuple[int, ...],
    seen: set[int],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Full name of each field that has no fields below it, and what it has or inherits; the form
    is the first.
    """
    if id(field) in above or len(above) >= DEEPEST:
        raise ValueError("fields within themselves, or too deep")
    if id(field) in seen:  # a field has one place; many ways to each would take for ever
        return
    seen.add(id(field))
    own = {key: _object(field.get(key)) for key in INHERITED}
    given = {**inherited, **{key: value for key, value in own.items() if value is not None}}
    listed = _object(field.get("/Kids" if above else "/Fields")) or ()
    kids = [kid for kid in map(_object, listed) if kid]
    below = [kid for kid in kids if not above or "/T" in kid or "/Kids" in kid]
    if above and not below:
        yield parent, {**given, "/AS": [_object(one.get("/AS")) for one in (field, *kids)]}
    for kid in below:
        name = " ".join(str(_object(kid.get("/T", ""))).split())
        full = ".".join(filter(None, (parent, name)))
        yield from _fields(kid, full, given, (*above, id(field)), seen)


def _value(field: Mapping[str, Any]) -> Any:
    """Return a field's value as its page shows it."""
    from pypdf.generic import NameObject

    value, kind = field.get("/V"), field.get("/FT")
    options = _items(field.get("/Opt"))
    if kind == "/Btn":
        if value is None and not _flags(field) & PUSHBUTTON:
            value = next((state for state in field["/AS"] if state not in (None, UNTICKED)), None)
        # With options, a button's states are their numbers.
        number = value[1:] if isinstance(value, NameObject) else ""
        named = number.isdecimal() and len(number) < 9 and int(number) < len(options)
        return options[int(number)] if named else value
    if kind == "/Ch":
        pairs = [pair for pair in map(_items, options) if len(pair) == 2]
        shown = {str(exported): text for exported, text in reversed(pairs)}
        if isinstance(value, list):
            return [shown.get(one, one) if isinstance(one, str) else one for one in _items(value)]
        return shown.get(value, value) if isinstance(value, str) else value
    return value


def _items(value: Any) -> list[Any]:
    """Return what an array holds; nothing where it is none."""
    return [_object(one) for one in value] if isinstance(value, list) else []


def _flags(field: Mapping[str, Any]) -> int:
    flags = field.get("/Ff")
    return flags if isinstance(flags, int) else 0


def _text(value: Any) -> str | None:
    """Return a value as a person reads it; None where there is none."""
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
    """Return what an indirect object stands for; null is None, and anything else is itself."""
    from pypdf.generic import IndirectObject, NullObject

    found = value.get_object() if isinstance(value, IndirectObject) else value
    return None if isinstance(found, NullObject) else found
