"""The names of LegalBench-RAG's files, on which its copies do not agree.

Some copies keep ``|`` and ``:``, some have ``_`` in their place; some are percent-encoded, on top
of what is encoded in the published names already. ``canonical`` takes each of them to one name.
"""

from __future__ import annotations

import re
import unicodedata

BENCHMARKS = ("contractnli", "cuad", "maud", "privacy_qa")
SUFFIX = ".txt"
LONGEST_NAME = 255
"""Bytes that a file's name may have on common file systems."""

_NOT_CANONICAL = """\
contractnli/12032018_NDA_The%20Munt_EN.txt
contractnli/CBP%20Non-Disclosure%20Form_October2018.txt
contractnli/DBT%20Mutual%20NDA.txt
contractnli/Eskom%20Template%20Confidentiality%20and%20Non-disclosure%20Agreement%20Rev%204%20Effective%20August%202017_11.txt
contractnli/Evelozcity%20OESA%20NDA.txt
contractnli/GreenStorm%20NDCSC.txt
contractnli/Grindrod%20SA%20Confidentiality%20and%20Non-Disclosure%20Undertaking.txt
contractnli/INFOMAGNET%20NDA.txt
contractnli/LiiON%20NDA%202-27-2015%20v1.0.txt
contractnli/Model%20NDA%20(recommended%20by%20SWA).txt
contractnli/NU%20Confidentiality%20Non-Disclosure%20%20Information%20Security%20Agreement%20Final%20....txt
contractnli/SAMED%20confidentiality%20non%20disclosure%20and%20conflict%20of%20interest%20agreement%20for%20board%20and%20committee%20members%20ver%201.txt
contractnli/Sony%20Pictures%20Television%20NDA%20(Executed).txt
contractnli/Standard%20NDA%20by%20Axial.txt
contractnli/VELCO%20NDA%20rev0%20Dec%2014%202015.txt
contractnli/helpjuice_production%2Fuploads%2Fupload%2Fimage%2F2329%2Fdirect%2F1526996160411-FullStory+Mutual+Non-Disclosure+Agreement+2018.txt
maud/Aegion Corporation_New Mountain Capital, L.L.C..pdf||Aegion Corporation_New Mountain Capital, L.L.C. Amendments No.1 & 2.txt
maud/Cadence Bancorporation_BancorpSouth Bank.pdf||Cadence_Bancorporation_BancorpSouth_Bank_Amendment No.1.txt
maud/Cantel Medical Corp._STERIS plc.pdf||Cantel Medical Corp._STERIS plc. Amendment No. 1.txt
maud/Capstead_Mortgage_Corp_Benefit_Street_Partners.pdf||Capstead_Mortgage_Corp_Benefit_Street_Partners_Amendment No.1.txt
maud/Cimarex Energy Co._Cabot Oil & Gas Corporation.pdf||Cimarex_Energy_Co_Cabot_Oil_Gas_Corporation_Amendment No.1.txt
maud/Cubic Corporation_Investment Group.pdf||Cubic_Corporation_Investment_Group_Amendment No.1.txt
maud/Extended Stay America, Inc._Investment Group.pdf||Extended Stay America, Inc._Investment Group Amendment No. 1.txt
maud/Extraction Oil _ Gas, Inc._Bonanza Creek Energy, Inc..pdf||Extraction Oil Gas, Inc. Bonanza Creek Energy Amendment No.1.txt
maud/Front Yard Residential Corporation_Investment Group.pdf||Front Yard Residential Corporation Investment Group Amendment No. 1.txt
maud/Grubhub Inc._Just Eat Takeaway.com N.V..pdf||Grubhub Inc._Just Eat Takeaway.com N.V..Amendment No. 1&2.txt
maud/HighPoint Resources Corporation_Bonanza Creek Energy, Inc..pdf||HighPoint Resources Corporation_Bonanza Creek Energy, Inc. Amendment No. 1.txt
maud/Kindred Biosciences, Inc._Elanco Animal Health Incorporated.pdf||Kindred_Biosciences_Inc_Elanco_Animal_Health_Incorporated Amendment No.1.txt
maud/Meredith Corporation_Gray Television, Inc..pdf||Meredith Corporation_Gray Television, Inc. Amendment No.1.txt
maud/SEACOR Holdings Inc._American Industrial Partners.pdf||SEACOR_Holdings_Inc_American_Industrial_Partners Amendment No.1.txt
maud/Telenav, Inc._Management Led Buyout.pdf||Telenav, Inc._Management Led Buyout Amendment No. 1.txt
maud/VEREIT_Realty_Income_Corporation.pdf||VEREIT_Realty_Income_Corporation Amendment No.1.txt
privacy_qa/TickTick: To Do List with Reminder, Day Planner.txt
"""  # noqa: E501
"""The published paths whose canonical form is another, one a line."""


def canonical(path: str) -> str:
    """Return a path ``<benchmark>/<name>`` in the one form that all copies share.

    Percent-encoding is undone as often as it was done (where it encodes no UTF-8 it stays), accents
    are composed (NFC), and each ``|``, ``:`` and further ``/`` becomes ``_``. The canonical form of
    a canonical path is itself.
    """
    benchmark, slash, name = _decoded(path).partition("/")
    return benchmark + slash + re.sub("[|:/]", "_", name)


def published(path: str) -> str:
    """Return the path as the data set was published, whichever copy ``path`` is of.

    The mini set is drawn by it. A path that was published in canonical form, or not at all, is
    what it is once decoded.
    """
    return _PUBLISHED.get(canonical(path)) or _decoded(path)


def document_id(path: str) -> str:
    """Return the doc_id of a canonical path: without ``.txt``."""
    return path.removesuffix(SUFFIX)


def can_be_stored(path: str) -> bool:
    """Return whether a canonical path is ``<benchmark>/<name>.txt`` with a name that a file can
    have.
    """
    benchmark, _, name = path.partition("/")
    return (
        benchmark in BENCHMARKS
        and name.endswith(SUFFIX)
        and not name.startswith(".")
        and name.isprintable()
        and len(name.encode("utf-8", "surrogatepass")) <= LONGEST_NAME
    )


def _decoded(path: str) -> str:
    """Return the path composed, and every percent-encoded character decoded, until there is none.

    Composed first, so that the letter of a decomposed accent is never taken for a digit.
    """
    path = _composed(path)
    while (plain := _composed(_ENCODED.sub(_plain, path))) != path:
        path = plain
    return path


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _plain(encoded: re.Match[str]) -> str:
    """Return encoded bytes as text; one that is no UTF-8 stays encoded."""
    text = bytes.fromhex(encoded[0].replace("%", "")).decode("utf-8", "surrogateescape")
    return "".join(f"%{ord(c) - 0xDC00:02X}" if "\udc80" <= c <= "\udcff" else c for c in text)


_ENCODED = re.compile("(?:%[0-9a-fA-F]{2})+")
_PUBLISHED = {canonical(path): path for path in _NOT_CANONICAL.splitlines()}
