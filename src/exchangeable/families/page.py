"""The data and the script by which a model answers queries on a report's page, in the browser.

`Model.on_page` returns parameters (`OnPage`), and `page.js` in the family's folder adds a class to
the page's table `EVALUATORS`. An instance is created from these parameters and answers ``ofClass(y,
row)`` with a score, the distribution of every unknown column, and a completion. In `report`,
`arithmetic.js` has what evaluators share, `states.js` trees with hidden states, and `answers.js`
combines the classes. `tests/report/test_live.py` compares all answers with Python's in a browser.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from exchangeable.partitions import Labels, Partition


class OnPage(NamedTuple):
    """The parameters of a model, and the script that computes with them.

    A family puts its script, ``page.js``, into its own folder. It adds a class to the page's table
    of evaluators, which is created from `data` and answers as `Model` does.

    Attributes
    ----------
    evaluator : str
        The name under which the script registers itself.
    package : str
        The package whose folder contains ``page.js``.
    data : dict
        Arrays, numbers and names, lists and dicts of these, and other models' `OnPage`.
    steps : float
        Approximate number of logarithms or exponentials per answer.
    normals : int
        Number of normal distributions in the mixture that describes a measurement in each class.
    """

    evaluator: str
    package: str
    data: dict[str, Any]
    steps: float
    normals: int = 1


def stacked_labels(partitions: Sequence[Partition]) -> Labels:
    """Return the block of each variable, one line per class."""
    return np.stack([partition.labels for partition in partitions])
