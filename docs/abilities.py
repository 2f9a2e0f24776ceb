"""Write docs/abilities.md, the table of what each family can do, from the registry.

Run ``python docs/abilities.py``, as ``make docs`` does; a test compares the page with the registry.
"""

from pathlib import Path

from exchangeable.families import REGISTRY, WITH_STATISTICS
from exchangeable.families.abilities import ABILITIES
from exchangeable.families.contract import FamilySpec

PAGE = Path(__file__).with_name("abilities.md")
HEAD = """# What each family can do

This page is written by `python docs/abilities.py` from the registry of families.
`tests/families/test_abilities.py` tries every cell: what is marked ✓ works; what has a number is
refused, or answered as well as can be, for the reason given below the table.
"""


def page() -> str:
    """Return the page."""
    columns = {
        **REGISTRY,
        **{f"{name}, statistics": spec for name, spec in WITH_STATISTICS.items()},
    }
    reasons: list[str] = []
    lines = [
        "| | how to ask | " + " | ".join(columns) + " |",
        "|---|---|" + ":-:|" * len(columns),
    ]
    for name, ability in ABILITIES.items():
        cells = [_cell(spec, name, reasons) for spec in columns.values()]
        lines.append(f"| {ability.title} | {ability.asked} | " + " | ".join(cells) + " |")
    notes = [f"{number}. {_sentence(reason)}" for number, reason in enumerate(reasons, 1)]
    names = [f"- `{spec.name}`: {spec.summary}." for spec in REGISTRY.values()]
    return "\n".join([HEAD, *lines, "", *notes, "", "The families:", "", *names, ""])


def _cell(spec: FamilySpec, ability: str, reasons: list[str]) -> str:
    """Return a mark, or the number of the reason why not, adding it to the reasons if new."""
    reason = spec.why_not(ability)
    if reason is None:
        return "✓"
    if reason not in reasons:
        reasons.append(reason)
    return f"({reasons.index(reason) + 1})"


def _sentence(reason: str) -> str:
    return reason[0].upper() + reason[1:] + "."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
