"""A start imports the families that it uses, and no others."""

import subprocess
import sys

from exchangeable.families.contract import FamilySpec
from exchangeable.families.later import later

STARTED = """
import sys
from exchangeable import ExchangeableClassifier
from exchangeable.families import REGISTRY
names = [name for name in sys.modules if name.startswith("exchangeable.families.")]
ends = (".family", ".model", "kernels")
print(sum(name.endswith(ends) for name in names if name.count(".") == 3))
print(REGISTRY["urns"].model.__name__, "exchangeable.families.urns.model" in sys.modules)
print("exchangeable.families.hidden_trees.model" in sys.modules)
"""


def test_what_no_fit_has_asked_for_is_not_imported():
    done = subprocess.run(
        [sys.executable, "-c", STARTED], capture_output=True, text=True, check=True
    )
    n_kernels, *others = done.stdout.split()
    assert int(n_kernels) <= 4  # of `families.common`, which all share
    assert others == ["UrnModel", "True", "False"]


def test_parts_are_found_when_they_are_asked_for():
    spec = FamilySpec(
        name="any",
        summary="",
        model=later("collections", "OrderedDict"),
        family=later("collections", "Counter"),
        blocks=("full",),
        features=later("fractions", "Fraction.from_float"),
    )
    assert spec.model.__name__ == "OrderedDict"
    assert spec.model is spec.model
    assert spec.features(0.5).denominator == 2
