"""Mixtures updated in batches: the implementation of the mixture's `partial_fit`."""

from typing import Any

from exchangeable.arrays import FloatArray
from exchangeable.data.observed import Observed
from exchangeable.families.contract import FamilySpec
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.batches import parts_of
from exchangeable.fitting.streams import Stream
from exchangeable.fitting.tasks import problem_of, rule_of


def add_batch(
    estimator: Any, spec: FamilySpec, observed: Observed, weight: FloatArray, first: bool
) -> tuple[Mixture, Any]:
    """Return the mixture after one more batch, and the state that the next batch needs.

    For the first batch, to which the mixture has just been fitted, only the state is new.
    """
    mixture: Mixture = estimator._mixture()
    if not isinstance(mixture.model, spec.model):
        raise ValueError(
            f"partial_fit cannot go on from a fit of another family than {spec.name!r}; use fit"
        )
    k, n_jobs = mixture.log_prior.size, estimator.n_jobs
    problem = problem_of(estimator, spec, observed.n_variables, range(k), labelled=False)
    parts = parts_of(observed, weight, estimator.random_state)
    if spec.stream is None or problem.pooling is not None:
        stream = Stream(spec, problem, rule_of(estimator), n_jobs)
        if first:
            return mixture, stream.begin(mixture, parts)
        kept = getattr(estimator, "_kept", None)
        if kept is None:
            kept = stream.imagine(mixture, estimator.weights_ * estimator.n_samples_weight_)
        return stream.add(mixture, kept, parts)
    for rows in parts:
        if first:
            mixture = spec.stream.keep(mixture, rows)
        else:
            mixture = spec.stream.add(problem, mixture, rows, n_jobs)
    return mixture, None
