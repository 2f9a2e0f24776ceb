"""Every script of the gallery runs, and draws."""

import runpy
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    try:
        runpy.run_path(str(path))
        assert plt.get_fignums()
    finally:
        plt.close("all")
