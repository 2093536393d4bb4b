"""The words of a text, as BM25 counts them: which characters make one, and when two are the same.

- ``ascii``: runs of ``[a-z0-9]`` of the lower-cased text. The rule of the published figures. A
  letter outside of it parts words and is in none: ``výpověď`` gives ``v``, ``pov``.
- ``unicode``: words of any script by the default word boundaries of Unicode Standard Annex #29,
  each folded (``fold``) so that what reads alike is alike. Tailored in one thing: an underscore
  parts words, since forms are full of blanks made of them. Scripts that write no spaces between
  words are segmented by ICU's dictionaries, which come with the extra ``cjk``.

What letters no word holds is counted, never silently lost: see :meth:`Tokenizer.letters`.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import metadata, util
from pathlib import Path
from typing import Any

from spanbench_pipeline.core.errors import NotMeasured

TOKENIZERS = ("ascii", "unicode")
EXTRA = "spanbench[cjk]"
"""What has to be installed for scripts that write no spaces between words."""

_ASCII = re.compile("[a-z0-9]+")
_NO_LETTER = re.compile(r"[\W_]+")
_LONG = 64
"""A piece of text without white space that is longer is worked out anew each time it occurs: it is
hardly the same twice, and where no spaces are written it would be most of the corpus."""

# Unicode's names of what may stand in a word: letters, digits, what may join them, and the marks
# that belong to the character before them.
_LETTER = r"\p{WB=ALetter}\p{WB=Hebrew_Letter}"
_MARKS = r"\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{WB=Katakana}\p{LB=SA}"
_JOINS_LETTERS = r"[\p{WB=MidLetter}\p{WB=MidNumLet}']"
_JOINS_DIGITS = r"[\p{WB=MidNum}\p{WB=MidNumLet}']"
_BEHIND_HEBREW = rf"(?<=\p{{WB=Hebrew_Letter}}[{_MARKS}]*)"
_OF_LETTERS = (
    rf"[{_LETTER}][{_LETTER}{_MARKS}]*+"
    rf"(?:(?:{_JOINS_LETTERS}|{_BEHIND_HEBREW}\"[{_MARKS}]*+(?=\p{{WB=Hebrew_Letter}}))"
    rf"[{_MARKS}]*+[{_LETTER}][{_LETTER}{_MARKS}]*+)*+"
)
_OF_DIGITS = (
    rf"\p{{WB=Numeric}}[\p{{WB=Numeric}}{_MARKS}]*+"
    rf"(?:{_JOINS_DIGITS}[{_MARKS}]*+\p{{WB=Numeric}}[\p{{WB=Numeric}}{_MARKS}]*+)*+"
)


class Tokenizer:
    """Finds a text's words. Make one for each index: it remembers what it has seen."""

    def __init__(self, tokenizer: str = "ascii", stemming: str | None = None) -> None:
        self._words, self._outside = {
            "ascii": (_ascii, _outside_ascii),
            "unicode": (self._unicode, _outside_unicode),
        }[tokenizer]
        self._folded = _Known(_folded)
        self._stems = _Known(_stemmer(stemming)) if stemming else None

    def __call__(self, text: str) -> list[str]:
        """Return the words in order, each as often as it occurs.

        Raises NotMeasured where the text has to be segmented and ICU is not installed.
        """
        words = self._words(text)
        return words if self._stems is None else [self._stems[word] for word in words]

    def letters(self, text: str) -> tuple[int, int]:
        """Return how many letters and digits a text has, and how many of them no word holds."""
        n_letters = len(_NO_LETTER.sub("", text))
        return n_letters, 0 if text.isascii() else self._outside(text)

    def _unicode(self, text: str) -> list[str]:
        # White space is in no word, so that each piece between it is looked at once.
        return " ".join([self._folded[piece] for piece in text.split()]).split()


class _Known(dict[str, str]):
    """What a function makes of a text, worked out once for each that is short."""

    def __init__(self, make: Callable[[str], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, text: str) -> str:
        made = self._make(text)
        if len(text) <= _LONG:
            self[text] = made
        return made


@lru_cache(maxsize=1 << 16)
def fold(word: str) -> str:
    """Return a word as it is compared: NFKC, full case folding, without what Unicode calls
    ignorable.

    So composed and decomposed letters, both sigmas, ``ß`` and ``ss``, full-width and other digits
    of one form, and a word with and without a soft hyphen are the same. A curly apostrophe is a
    straight one. Turkish has no rule of its own: ``İ`` and ``I`` are ``i``, ``ı`` is itself.
    """
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    folded = _ignorable().sub("", folded).replace("i\u0307", "i")
    return unicodedata.normalize("NFKC", folded.replace("\u2019", "'").replace("\u2018", "'"))


def unspaced(text: str) -> bool:
    """Return whether a text has characters of a script that writes no spaces between words."""
    return not text.isascii() and _unspaced().search(text) is not None


def versions(tokenizer: str, stemming: str | None) -> dict[str, str]:
    """Return what decides the words beside the project's own code, by name; nothing where all is
    here.
    """
    found: dict[str, str] = {}
    if tokenizer == "unicode":
        found["unicode"] = f"{unicodedata.unidata_version}, regex {metadata.version('regex')}"
        found["segmentation"] = _segmentation()
    if stemming:
        found["snowballstemmer"] = metadata.version("snowballstemmer")
    return found


@cache
def languages() -> tuple[str, ...]:
    """Return the languages that words can be stemmed in: those of Snowball."""
    # Its own list is another package's where that happens to be installed, and so are its stemmers.
    spec = util.find_spec("snowballstemmer")
    folders = (spec.submodule_search_locations if spec else None) or []
    files = (path for folder in folders for path in Path(folder).glob("*_stemmer.py"))
    return tuple(sorted(path.stem.removesuffix("_stemmer") for path in files))


def _stemmer(language: str) -> Callable[[str], str]:
    module = importlib.import_module(f"snowballstemmer.{language}_stemmer")
    name = "".join(part.capitalize() for part in language.split("_"))
    stem: Callable[[str], str] = getattr(module, f"{name}Stemmer")().stemWord
    # It may leave nothing of a word, such as an article.
    return lambda word: stem(word) or word


def _ascii(text: str) -> list[str]:
    return _ASCII.findall(text.lower())


def _outside_ascii(text: str) -> int:
    """Return how many letters and digits are in no word of ``ascii``."""
    return len(_NO_LETTER.sub("", _ASCII.sub("", text.lower())))


def _folded(piece: str) -> str:
    """Return the words of ``unicode`` in a text without white space, folded, a space between each
    two.
    """
    return " ".join([fold(word) for run in _word().findall(piece) for word in _parts(run)])


def _outside_unicode(text: str) -> int:
    """Return how many letters and digits are in no word of ``unicode``."""
    rest = "".join(_word().sub(" ", piece) for piece in text.split() if not piece.isascii())
    return len(_NO_LETTER.sub("", rest))


def _segmentation() -> str:
    try:
        return f"icu4py {metadata.version('icu4py')}"
    except metadata.PackageNotFoundError:
        return "absent"


def _parts(run: str) -> list[str]:
    """Return the words of what the pattern found: itself, or its parts where no spaces are
    written.
    """
    if not unspaced(run):
        return [run] if _has_letter(run) else []
    breaker = _breaker()
    if breaker is None:
        raise NotMeasured(
            f"BM25 with tokenizer = 'unicode' has to find the words in {run[:12]!r}, of a script "
            f"that writes no spaces between them: pip install '{EXTRA}'"
        )
    # Read as texts: its offsets count UTF-16 units.
    parts = breaker(unicodedata.normalize("NFC", run), "root")
    return [part for part in parts if _has_letter(part)]


def _has_letter(part: str) -> bool:
    """Return whether there is a letter or digit: accents that stand alone are no word."""
    return part.isalnum() or any(map(str.isalnum, part))


@cache
def _breaker() -> Any:
    """Return ICU's word breaker; None where it is not installed."""
    try:
        return importlib.import_module("icu4py.breakers").WordBreaker
    except ImportError:
        return None


@cache
def _word() -> Any:
    """Return what is one word, or a run of a script without spaces; a letter of no class is one
    itself.
    """
    spaced = rf"(?:{_OF_LETTERS}|{_OF_DIGITS})++(?:{_BEHIND_HEBREW}'[{_MARKS}]*+)?+"
    unspaced = rf"[{_UNSPACED}][{_UNSPACED}{_MARKS}]*+"
    return _compiled(rf"{spaced}|{unspaced}|[\p{{L}}\p{{Nd}}][{_MARKS}]*+")


@cache
def _unspaced() -> Any:
    return _compiled(rf"[{_UNSPACED}]")


@cache
def _ignorable() -> Any:
    return _compiled(r"\p{Default_Ignorable_Code_Point}+")


def _compiled(pattern: str) -> Any:
    # Only who asks for Unicode's words waits for this import.
    return importlib.import_module("regex").compile(pattern)
