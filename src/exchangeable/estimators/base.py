"""What all estimators share: their parameters, the rows they accept, and the model they hold."""

from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.classes.profiles import Profiles, profiles_of
from exchangeable.data.columns.schema import Schema
from exchangeable.data.observed import Observed, observe_numbers
from exchangeable.estimators.kinds import (
    COLUMNS,
    decide_kinds,
    observe_typed,
    schema_of,
)
from exchangeable.estimators.names import give_names
from exchangeable.estimators.rows import as_checked, by_chunks, validated, warn_if_cut
from exchangeable.estimators.summary import summary_html
from exchangeable.families.contract import FamilySpec, Model
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.trainings import as_object
from exchangeable.queries.typed import TypedQueries
from exchangeable.runtime.text import printable_lines
from exchangeable.structure.blocks import Blocks

if TYPE_CHECKING:
    from exchangeable.rasch.parameters import ItemParameters


class MixtureEstimator(TypedQueries):
    """Mixin for estimators that hold a model and the probabilities of its classes."""

    binarize: float | None
    _model: Model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _log_prior(self) -> FloatArray:
        """Log-probabilities of the classes or components."""
        raise NotImplementedError

    def profiles(self) -> Profiles:
        """Return the profile of each class or component: its size, and its answers to each column.

        `to_frame` converts it to a table. For mixtures, `exchangeable.classes.standard_errors` adds
        standard errors and intervals; `exchangeable.plotting.ProfileDisplay` draws profiles.

        Examples
        --------
        >>> from exchangeable import ExchangeableClassifier
        >>> model = ExchangeableClassifier(blocks="independent", alpha=0.0)
        >>> print(model.fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"]).profiles())
        item        answer  class a  class b
        class size            0.667    0.333
        x0          1         1.000    0.000
        x1          1         0.500    1.000
        """
        return profiles_of(self)

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
        """The probability of each number of ones, for each class or component and block."""
        return self._fitted().count_probabilities()

    @property
    def urn_weights_(self) -> FloatArray:
        """Weight θ of each variable in each class or component, if the family has weights."""
        return np.exp(self._fitted().log_urn_weights().T)

    @property
    def item_parameters_(self) -> "ItemParameters":
        """Difficulties of items in each class or component, if these are Rasch models.

        That is, a single block of binary columns with weights, or of ordinal columns. Standard
        errors need the rows: see `exchangeable.rasch.item_parameters`.
        """
        from exchangeable.rasch.errors import class_parameters
        from exchangeable.rasch.fitted import item_names, scale_of

        scale = scale_of(self)
        return class_parameters(scale, item_names(self, scale))

    @property
    def edges_(self) -> list[IntArray]:
        """Edges of the tree of each class or component, one row (node, parent) each.

        A node is a variable, or the number of a block in `partitions_` if the family's trees are
        over blocks.
        """
        return self._fitted().edges()

    @property
    def kinds_(self) -> dict[Any, str]:
        """What each column is: binary, nominal, ordinal, count or continuous."""
        schema = self._schema()
        if schema is not None:
            return {column.name: column.kind for column in schema.columns}
        names = getattr(self, "feature_names_in_", range(self._fitted().n_variables))
        return dict.fromkeys(names, "binary")

    def _schema(self) -> Schema | None:
        """Return the schema of the columns, or None if all are binary numbers."""
        self._fitted()
        return schema_of(self)

    def _rows_to_fit(
        self, spec: FamilySpec, X: Any, feature_names: Any
    ) -> tuple[FamilySpec, Observed]:
        """Return the rows of `fit`, and the family that suits their columns."""
        spec, schema = decide_kinds(self, spec, X)
        observed = self._rows_of(X, schema)
        give_names(self, feature_names)
        return spec, observed

    def _rows_of(self, X: Any, schema: Schema | None) -> Observed:
        """Return the rows of `fit`, and store the schema of their columns."""
        if schema is None:
            self.__dict__.pop(COLUMNS, None)
            return self._observed(X, reset=True)
        return observe_typed(self, X, schema, reset=True)

    def _fitted(self) -> Model:
        """Return the fitted model, or raise an error if there is none yet."""
        check_is_fitted(self, "_model")
        return self._model

    def _mixture(self) -> Mixture:
        return Mixture(self._fitted(), self._log_prior)

    score_samples = by_chunks(TypedQueries.score_samples)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``blocks__start`` or ``training__penalty`` replaces a name by its object.

        Parameters
        ----------
        **params
            Parameters by name.
        """
        nested = any(name.startswith("blocks__") for name in params)
        blocks = params.get("blocks", getattr(self, "blocks", None))
        if nested and isinstance(blocks, str | list | tuple | dict):
            params["blocks"] = Blocks(blocks)
        training = params.get("training", getattr(self, "training", None))
        if isinstance(training, str) and any(name.startswith("training__") for name in params):
            params["training"] = as_object(training)
        updated: Self = super().set_params(**params)  # type: ignore[misc]
        return updated

    def _repr_html_(self) -> str:
        """Return a summary of a fitted model, as shown in a notebook."""
        if hasattr(self, "_model"):
            return summary_html(self)
        return f"<pre>{escape(printable_lines(repr(self)))}</pre>"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _observed(self, X: Any, reset: bool = False) -> Observed:
        """Return checked rows, with NaN for missing entries."""
        checked = None if reset else as_checked(self, X)
        if checked is not None:
            return checked
        schema = None if reset else schema_of(self)
        if schema is not None:
            return observe_typed(self, X, schema, reset=False)
        matrix = validated(self, X, reset)
        observed, zero_one = observe_numbers(matrix, self.binarize, self.n_jobs, looks=reset)
        if reset and not zero_one:
            warn_if_cut(matrix, self.binarize, X, self.n_jobs)
        return observed
