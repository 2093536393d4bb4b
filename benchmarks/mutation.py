"""What became of every mutant that ``mutmut run`` made: the share killed, and who survived.

    python benchmarks/mutation.py        after mutmut run; make mutate does both

Writes the tables of docs/mutation.md. Ends with 1 where fewer than 90 % are killed, a survivor is
not in benchmarks/mutation.toml, one named there is killed by now, or a mutant was not run.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from pathlib import Path

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import orig_function_and_class_names_from_key

LEAST = 0.90
"""The share of mutants that must be killed."""

KNOWN, PAGE = Path("benchmarks/mutation.toml"), Path("docs/mutation.md")
MARK = "<!-- what follows is written by make mutate -->\n"

KILLED, INVALID, NOT_RUN = ("killed", "timeout"), "caught by type check", "not checked"
"""What mutmut calls a mutant that is killed, not counted, not run; any other survived."""

Mutant = tuple[str, str, str, str]
"""Module, function, the line before and after: what still holds when mutants are numbered anew."""


def main() -> int:
    """Print and write the figures; return 1 where something is amiss."""
    status = _status()
    counts = {_module(source): Counter(became.values()) for source, became in status.items()}
    survivors = sorted(
        _mutant(source, name)
        for source, became in status.items()
        for name, what in became.items()
        if what not in (*KILLED, INVALID, NOT_RUN)
    )
    why = _known()
    table, share = _table(counts)
    listed = [*table, "", *_listed(survivors, why)]
    text = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(text + MARK + "\n" + "\n".join(listed) + "\n", encoding="utf-8")
    amiss = [f"survived, and not known: {json.dumps(m)}" for m in survivors if m not in why]
    amiss += [
        f"known to survive, and does not: {json.dumps(m)}"
        for m in sorted(why.keys() - set(survivors))
        if not counts.get(m[0], Counter())[NOT_RUN]
    ]
    amiss += [
        f"not run: {counted[NOT_RUN]} of {m}" for m, counted in counts.items() if counted[NOT_RUN]
    ]
    if share < LEAST:
        amiss.append(f"killed {share:.1%}, at least {LEAST:.0%} are asked for")
    sys.stdout.write("\n".join([*listed, "", *amiss]) + "\n")
    return 1 if amiss else 0


def _status() -> dict[Path, dict[str, str]]:
    """Source file -> mutant -> what became of it."""
    found = {}
    for path in sorted(Path("mutants").rglob("*.py.meta")):
        codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        if codes:
            source = path.relative_to("mutants").with_suffix("")
            found[source] = {name: status_by_exit_code[code] for name, code in codes.items()}
    return found


def _module(source: Path) -> str:
    """Return a source file's name with its room: two rooms may have a module of one name."""
    return ".".join(source.with_suffix("").parts[1:])


def _mutant(source: Path, name: str) -> Mutant:
    function, of_class = orig_function_and_class_names_from_key(name)
    diff = get_diff_for_mutant(name, path=source).splitlines()[2:]
    before, after = (
        " ".join(line[1:].strip() for line in diff if line.startswith(sign)) for sign in "-+"
    )
    return _module(source), f"{of_class}.{function}" if of_class else function, before, after


def _known() -> dict[Mutant, str]:
    """Return each known survivor, and why it survives."""
    groups = tomllib.loads(KNOWN.read_text(encoding="utf-8"))["known"]
    return {tuple(mutant): group["why"] for group in groups for mutant in group["mutants"]}


def _table(counts: dict[str, Counter[str]]) -> tuple[list[str], float]:
    """Return a row a module and one for all, and the share of all that is killed."""
    rows = ["| module | killed | of these by timeout | survived | not counted | share killed |"]
    rows.append("|---|---|---|---|---|---|")
    share = 0.0
    total = sum(counts.values(), Counter())
    for module, counted in {**counts, "all": total}.items():
        killed, invalid = sum(counted[k] for k in KILLED), counted[INVALID]
        survived = counted.total() - killed - invalid - counted[NOT_RUN]
        share = killed / max(killed + survived, 1)
        shown = f"{share:.1%}" if killed + survived else "not measured"
        if counted[NOT_RUN] and killed + survived:
            shown += f", {counted[NOT_RUN]} not run"
        rows.append(
            f"| `{module}` | {killed} | {counted['timeout']} | {survived} | {invalid} | {shown} |"
        )
    return rows, share


def _listed(survivors: list[Mutant], why: dict[Mutant, str]) -> list[str]:
    """Return a table of the survivors by reason; of each line what differs, with the words beside
    it.
    """
    becomes: dict[tuple[str, str, str], list[str]] = {}
    for mutant in sorted(survivors, key=lambda m: (why.get(m, "not known"), m)):
        module, function, before, after = mutant
        was, is_now = _differing(before, after)
        key = (why.get(mutant, "not known"), f"{module}.{function}", was)
        becomes.setdefault(key, []).append(is_now)
    rows = ["| why it survives | where | as it is | as it may be |", "|---|---|---|---|"]
    last = ""
    for (reason, where, was), now in becomes.items():
        shown = (f"`{text}`".replace("|", "\\|") for text in dict.fromkeys(now))
        was = was.replace("|", "\\|")
        rows.append(
            f"| {'' if reason == last else reason} | `{where}` | `{was}` | {', '.join(shown)} |"
        )
        last = reason
    return rows


def _differing(before: str, after: str, beside: int = 2) -> tuple[str, str]:
    """Return both without the words that they begin and end with alike, but for ``beside`` of
    each.
    """
    was, becomes = before.split(), after.split()
    least = min(len(was), len(becomes))
    head = next((i for i in range(least) if was[i] != becomes[i]), least)
    tail = next((i for i in range(least - head) if was[-1 - i] != becomes[-1 - i]), least - head)
    first, last = max(0, head - beside), max(0, tail - beside)
    return " ".join(was[first : len(was) - last]), " ".join(becomes[first : len(becomes) - last])


if __name__ == "__main__":
    raise SystemExit(main())
