"""The assertion that input was refused, by the error's fields and not by its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from spanbench_pipeline.core.errors import Code, InputError


@contextmanager
def refused(code: Code, *named: str) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Pass where the block raises an InputError of that code whose text has every name given.

    The names are what a person needs to find the fault: the file, the line, the key, the document,
    the query, the value.
    """
    with pytest.raises(InputError) as raised:
        yield raised
    assert raised.value.code is code, f"{raised.value.code}: {raised.value}"
    missing = [name for name in named if name not in str(raised.value)]
    assert not missing, f"{missing} not in {raised.value}"
