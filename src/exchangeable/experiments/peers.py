"""Models of other packages, run where those are installed."""

from typing import Any

import numpy as np

from exchangeable.experiments.store import Row


def learn_spn(data: Any) -> Row:
    """Learn a sum-product network by SPFlow's LearnSPN and return its average log-likelihoods.

    This uses SPFlow's 0.0 series (the package ``spn``) with its own settings: independence by the
    RDC test, rows clustered by k-means.
    """
    from spn.algorithms.Inference import log_likelihood
    from spn.algorithms.LearningWrappers import learn_parametric
    from spn.structure.Base import Context, get_nodes_by_type
    from spn.structure.leaves.parametric.Parametric import Bernoulli

    n_variables = data.train.shape[1]
    context = Context(parametric_types=[Bernoulli] * n_variables)
    context.add_domains(data.train.astype(np.float64))
    network = learn_parametric(data.train.astype(np.float64), context, min_instances_slice=200)
    row: Row = {"n_nodes": len(get_nodes_by_type(network))}
    for split in ("train", "valid", "test"):
        scores = log_likelihood(network, data[split].astype(np.float64))
        row[split] = f"{float(np.mean(scores)):.5f}"
    return row
