"""Docstrings of estimators list the families of the registry."""

import subprocess
import sys

from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.families import REGISTRY


def test_docstrings_list_the_families_that_can_be_asked_for() -> None:
    for name, spec in REGISTRY.items():
        for estimator, possible in (
            (ExchangeableMixture, True),
            (ExchangeableClassifier, "classes" not in spec.cannot),
        ):
            assert (f'* ``"{name}"``: ' in (estimator.__doc__ or "")) == possible


def test_estimators_work_where_python_leaves_docstrings_out() -> None:
    code = "from exchangeable import ExchangeableMixture as M; print(M.__doc__)"
    printed = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, check=True)
    assert printed.stdout.decode().strip() == "None"
