"""What classifier and mixture share: the blocks they were told to use, and those they have."""

from collections.abc import Sequence
from html import escape
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from exchangeable.arrays import FloatArray, IntArray, missing_as_nan
from exchangeable.data.observed import Observed, as_observed
from exchangeable.estimators.rows import as_checked, by_chunks
from exchangeable.estimators.summary import summary_html
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.joined import JoinedModel
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.fitting.options import resolved_structure
from exchangeable.queries.methods import Queries
from exchangeable.structure.learner import BlockSettings, Structure, check_structure

FittedModel: TypeAlias = (
    BlockModel | UrnModel | TreeModel | CountTreeModel | HiddenModel | JoinedModel
)


class FittedBlocks(Queries):
    """Mixin for estimators that keep a model with one partition a class or component."""

    structure: Any
    significance: float
    start: float
    prior: float
    conditions: Sequence[int]
    binarize: float | None
    _model: FittedModel

    @property
    def n_blocks_(self) -> IntArray:
        """Number of blocks of each class or component."""
        return np.array([partition.n_blocks for partition in self._fitted().partitions])

    @property
    def partitions_(self) -> list[list[IntArray]]:
        """The variables of each block of each class or component."""
        return [partition.blocks for partition in self._fitted().partitions]

    @property
    def count_probabilities_(self) -> list[list[FloatArray]]:
        """For each class or component and block the probabilities of each number of ones."""
        return self._fitted().count_probabilities()

    @property
    def urn_weights_(self) -> FloatArray:
        """Weight θ of each variable in each class or component, of weighted urns and trees."""
        model = self._fitted()
        if isinstance(model, BlockModel | HiddenModel):
            return np.ones((model.n_classes, model.n_variables))
        return np.exp(model.slope.T)

    @property
    def edges_(self) -> list[IntArray]:
        """For each class or component its tree's edges, one row (variable, parent) each.

        In a tree over counts, and in hidden trees, these are the numbers of blocks, as they stand
        in `partitions_`.
        """
        model = self._fitted()
        if isinstance(model, TreeModel | CountTreeModel | HiddenModel | JoinedModel):
            return model.edges()
        return [np.empty((0, 2), dtype=np.int64)] * model.n_classes

    def _fitted(self) -> FittedModel:
        """Return the model, or say that there is none yet."""
        check_is_fitted(self, "_model")
        return self._model

    _class_model = _fitted
    score_samples = by_chunks(Queries.score_samples)

    def _repr_html_(self) -> str:
        """Return the essentials of a fitted model, as a notebook shows them."""
        if hasattr(self, "_model"):
            return summary_html(self)
        return f"<pre>{escape(repr(self))}</pre>"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _observed(self, X: Any, reset: bool = False) -> Observed:
        """Return checked rows, a NaN being an entry that is not known."""
        checked = None if reset else as_checked(self, X)
        if checked is not None:
            return checked
        X = validate_data(
            self,
            missing_as_nan(X),
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite="allow-nan",
            reset=reset,
        )
        return as_observed(X, self.binarize, self.n_jobs)

    def _check_structure(self, n_variables: int, classes: Sequence[Any]) -> Structure:
        """Return what the `structure` parameter stands for."""
        return check_structure(
            resolved_structure(self),
            BlockSettings(self.significance, self.start, self.prior, self.conditions),
            n_variables,
            classes,
            getattr(self, "feature_names_in_", None),
        )
