"""What all estimators share: their parameters, the rows they take, and the model they hold."""

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
        """Return what the classes or components are like: sizes, and answers to each column.

        `to_frame` makes a table of it. Of mixtures `exchangeable.classes.standard_errors` adds
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
        """For each class or component and block the probabilities of each number of ones."""
        return self._fitted().count_probabilities()

    @property
    def urn_weights_(self) -> FloatArray:
        """Weight θ of each variable in each class or component, where the family has weights."""
        return np.exp(self._fitted().log_urn_weights().T)

    @property
    def item_parameters_(self) -> "ItemParameters":
        """Difficulties of items in each class or component, where these are Rasch models.

        That is, one block of binary columns with weights, or of ordinal columns. Standard errors
        need the rows: `exchangeable.rasch.item_parameters` has them.
        """
        from exchangeable.rasch.errors import class_parameters
        from exchangeable.rasch.fitted import item_names, scale_of

        scale = scale_of(self)
        return class_parameters(scale, item_names(self, scale))

    @property
    def edges_(self) -> list[IntArray]:
        """For each class or component its tree's edges, one row (node, parent) each.

        A node is a variable, or the number of a block in `partitions_` where the family's trees are
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
        """Return what was decided about the columns, None where all are binary numbers."""
        self._fitted()
        return schema_of(self)

    def _rows_to_fit(
        self, spec: FamilySpec, X: Any, feature_names: Any
    ) -> tuple[FamilySpec, Observed]:
        """Return the rows of `fit`, and the family for what their columns are."""
        spec, schema = decide_kinds(self, spec, X)
        observed = self._rows_of(X, schema)
        give_names(self, feature_names)
        return spec, observed

    def _rows_of(self, X: Any, schema: Schema | None) -> Observed:
        """Return the rows of `fit`, and keep what was decided about their columns."""
        if schema is None:
            self.__dict__.pop(COLUMNS, None)
            return self._observed(X, reset=True)
        return observe_typed(self, X, schema, reset=True)

    def _fitted(self) -> Model:
        """Return the model, or say that there is none yet."""
        check_is_fitted(self, "_model")
        return self._model

    def _mixture(self) -> Mixture:
        return Mixture(self._fitted(), self._log_prior)

    score_samples = by_chunks(TypedQueries.score_samples)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``blocks__start`` or ``training__penalty`` turn a word into its object.

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
        """Return the essentials of a fitted model, as a notebook shows them."""
        if hasattr(self, "_model"):
            return summary_html(self)
        return f"<pre>{escape(printable_lines(repr(self)))}</pre>"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _observed(self, X: Any, reset: bool = False) -> Observed:
        """Return checked rows, a NaN being an entry that is not known."""
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
