"""Small fits find what they found when golden.json was recorded; see golden_record.py."""

import json
from typing import Any

import pytest

from golden_cases import CASES, Case
from golden_record import GOLDEN, environment, summary

RELATIVE, FLOOR = 1e-10, 1e-12
RECORDED: dict[str, Any] = json.loads(GOLDEN.read_text())
SAME_MACHINE = RECORDED["environment"] == environment()


def differences(name: str, array: Any, golden: dict[str, Any], exact: bool) -> list[str]:
    """Return how an array differs from the one recorded, in words."""
    found = summary(name, array)
    if found["sha256"] == golden["sha256"] and all(
        found[key] == golden[key] for key in ("dtype", "shape")
    ):
        return []
    told = [
        f"{key} is {found[key]}, was {golden[key]}"
        for key in ("dtype", "shape", "nan", "inf", "-inf")
        if found[key] != golden[key]
    ]
    size = golden["sum of sizes"]
    n_values = max(array.size, 1)
    pairs = [(key, found[key], golden[key], FLOOR * size) for key in ("sum", "sum of sizes")]
    pairs += [
        (f"projection {i}", *pair, FLOOR * size)
        for i, pair in enumerate(zip(found["projections"], golden["projections"], strict=True))
    ]
    pairs += [
        (f"finite value {i}", *pair, FLOOR * max(1.0, size / n_values))
        for i, pair in enumerate(zip(found["first"], golden["first"], strict=False))
    ]
    whole = array.dtype.kind in "iub"
    for key, now, then, floor in pairs:
        if abs(now - then) > (0.0 if whole else RELATIVE * abs(then) + floor):
            told.append(f"{key} is {now!r}, was {then!r} (a difference of {now - then:.2g})")
    if not told and (whole or exact):
        told.append("the bytes differ" + ("" if whole else ", though by no more than rounding"))
    return told


@pytest.mark.filterwarnings("ignore:numbers greater than binarize:UserWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fit_finds_what_it_found(case: Case) -> None:
    golden = RECORDED["cases"][case.name]
    arrays = case.run()
    told = [f"{name}: is missing" for name in golden.keys() - arrays.keys()]
    for name in golden.keys() & arrays.keys():
        exact = case.exact and SAME_MACHINE and name != "log_likelihood_"
        told += [f"{name}: {how}" for how in differences(name, arrays[name], golden[name], exact)]
    assert not told, "\n".join([f"{case.name}:", *sorted(told)])


def test_every_case_is_recorded_and_no_other() -> None:
    assert {case.name for case in CASES} == RECORDED["cases"].keys()
