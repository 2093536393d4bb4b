"""Text as whole code points: UTF-16 surrogates are joined in pairs, and refused alone."""

from __future__ import annotations

from spanbench_pipeline.errors import InputError


def join_surrogates(text: str, where: str) -> str:
    """Return ``text`` with each UTF-16 surrogate pair joined into the character it stands for.

    JSON escapes, font maps and file names can hold surrogates one by one; UTF-8 cannot, so a lone
    one would fail wherever the text is first stored. Raises InputError, opening with ``where``, for
    a surrogate without its partner, naming its offset in the joined text.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _joined(text, where)
    return text


def _joined(text: str, where: str) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    try:
        return units.decode("utf-16-le")
    except UnicodeDecodeError as error:
        before = units[: error.start].decode("utf-16-le")
        lone = int.from_bytes(units[error.start : error.start + 2], "little")
        raise InputError(
            f"{where}: character {len(before)} is U+{lone:04X}, half of a UTF-16 surrogate pair "
            f"(after {before[-20:]!r}); it stands for no character, so remove it or restore its "
            "other half"
        ) from error
