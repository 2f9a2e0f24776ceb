"""Fitting classes to rows in chunks or on a cluster: the same fit, from sums of passes."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.stream.passes import Passes
from exchangeable.families.blocks import chunk_sums
from exchangeable.families.blocks.chunk_sums import Labelled
from exchangeable.families.blocks.model import BlockModel
from exchangeable.fitting.labels import unique_labels
from exchangeable.structure.intervals import ClassSums, Intervals
from exchangeable.structure.learner import Structure
from exchangeable.structure.rounds import check_learner, learn_from_sums


def class_statistics(data: Passes, moments: bool) -> tuple[npt.NDArray[Any], list[ClassSums]]:
    """Return the classes and the sums over the rows of each: the first pass.

    Without `moments` there are the classes' weights alone.
    """
    if moments:
        by_label = data.total(partial(chunk_sums.class_sums, n_jobs=data.n_jobs))
    else:
        weights = data.total(chunk_sums.class_weights)
        by_label = {label: (w, np.empty(0), 0.0, 0.0) for label, w in weights.items()}
    classes = unique_labels(list(by_label), "y")
    return classes, [by_label[label] for label in classes.tolist()]


def fit_classes(
    data: Passes,
    classes: npt.NDArray[Any],
    sums: Sequence[ClassSums],
    structure: Structure,
    n_variables: int,
    alpha: float,
) -> BlockModel:
    """Return the blocks and parameters of each class; the histograms take a second pass.

    Evidence merging takes a few more between the two: see `structure.rounds`.
    """
    if isinstance(structure, list):
        partitions = structure
    else:
        check_learner(structure)

        def count(wanted: list[Intervals]) -> list[FloatArray]:
            found: list[FloatArray] = data.total(
                partial(
                    chunk_sums.interval_histograms,
                    recipe=Labelled(classes),
                    wanted=wanted,
                    n_jobs=data.n_jobs,
                )
            )
            return found

        partitions = learn_from_sums(structure, sums, n_variables, count)
    histograms = data.total(
        partial(
            chunk_sums.class_histograms,
            classes=classes,
            partitions=partitions,
            n_jobs=data.n_jobs,
        )
    )
    model = BlockModel(partitions, histograms, np.array([total for total, *_ in sums]))
    model.set_tables(alpha, data.n_jobs)
    return model
