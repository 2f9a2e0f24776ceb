"""Labels that are partly missing: structural EM over the posteriors of the unlabelled rows."""

from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, normalize_log
from exchangeable.engines.cpu import Group
from exchangeable.engines.rows import Rows
from exchangeable.models.blocks import BlockModel, fit_blocks, learn_partitions
from exchangeable.structure.learner import Structure


@dataclass
class PartlyLabelled:
    """Rows of which some have a class (`label` 0..k − 1) and some do not (−1).

    Each EM iteration fits the labelled rows, and the unlabelled ones by their posteriors, under the
    blocks it has and under blocks learned anew, and keeps what makes the training rows likelier.
    """

    rows: Rows
    label: IntArray
    weight: FloatArray
    n_classes: int
    alpha: float
    n_jobs: int | None

    def groups(self, posterior: FloatArray | None) -> list[Group]:
        """Return each class's labelled rows, and the unlabelled ones by their posteriors."""
        unlabelled = np.flatnonzero(self.label < 0)
        groups = []
        for y in range(self.n_classes):
            members = np.flatnonzero(self.label == y)
            weights = self.weight[members]
            if posterior is not None:
                members = np.concatenate([members, unlabelled])
                weights = np.concatenate([weights, self.weight[unlabelled] * posterior[:, y]])
            groups.append(Group(members, weights))
        return groups

    def expect(self, model: BlockModel, log_prior: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-likelihood of all rows, and the posteriors of the unlabelled ones."""
        joint = model.score(self.rows, self.n_jobs) + log_prior
        unlabelled = self.label < 0
        posterior, evidence = normalize_log(joint[unlabelled], log_prior)
        known = joint[~unlabelled, self.label[~unlabelled]]
        likelihood = np.concatenate([known, evidence])
        weight = np.concatenate([self.weight[~unlabelled], self.weight[unlabelled]])
        counted = weight > 0  # rows that do not count may be impossible
        return float(weight[counted] @ likelihood[counted]), np.exp(posterior)

    def fit(
        self,
        structure: Structure,
        log_prior: FloatArray | None,
        max_iter: int,
        tol: float,
    ) -> tuple[BlockModel, FloatArray, list[float], bool]:
        """Run EM from the labelled rows; return model, log-prior, history, whether it converged."""
        groups = self.groups(None)
        if not any(group.total > 0 for group in groups):
            raise ValueError("sample_weight is zero for every labelled row; one must count")
        candidates = [learn_partitions(self.rows, groups, structure, self.n_jobs)]
        history: list[float] = []
        best: tuple[float, BlockModel, FloatArray, FloatArray] | None = None
        total = self.weight.sum()
        for _ in range(max_iter):
            prior = _log_shares(groups) if log_prior is None else log_prior
            tried = []
            for candidate in candidates:
                model = fit_blocks(self.rows, groups, candidate, self.alpha, self.n_jobs)
                likelihood, posterior = self.expect(model, prior)
                tried.append((likelihood, model, prior, posterior))
            step = max(tried, key=lambda entry: entry[0])
            if best is not None and step[0] - best[0] < tol * total:
                best = max(best, step, key=lambda entry: entry[0])
                history.append(best[0] / total)
                return best[1], best[2], history, True
            best = step
            history.append(best[0] / total)
            groups = self.groups(best[3])
            candidates = [best[1].partitions]
            if not isinstance(structure, list) and structure.needs_moments:
                candidates.append(learn_partitions(self.rows, groups, structure, self.n_jobs))
        assert best is not None
        return best[1], best[2], history, False


def _log_shares(groups: list[Group]) -> FloatArray:
    totals = np.array([group.total for group in groups])
    with np.errstate(divide="ignore"):
        shares: FloatArray = np.log(totals / totals.sum())
    return shares
