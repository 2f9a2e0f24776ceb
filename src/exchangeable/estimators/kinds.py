"""`Kinds`, by which users declare what columns hold, and how estimators read such tables."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d

from exchangeable.data.columns.column import Column
from exchangeable.data.columns.kinds import decide
from exchangeable.data.columns.raw import raw_columns
from exchangeable.data.columns.schema import UNSEEN, Schema
from exchangeable.data.observed import Observed
from exchangeable.data.stream.raw_tables import RawTable, decide_table
from exchangeable.estimators.names import check_columns
from exchangeable.families import family_named
from exchangeable.families.contract import FamilySpec
from exchangeable.fitting.hybrid.settings import Hybrid
from exchangeable.fitting.tasks import check_choice, check_method
from exchangeable.fitting.trainings import as_training

TRANSFORMS = ("auto", "none")
COLUMNS = "columns_"
"""The attribute of a fitted estimator that holds the schema of the columns."""
_SCHEMAS: WeakKeyDictionary[Any, tuple[Any, Schema]] = WeakKeyDictionary()
"""The class that the column descriptions kept by estimators represent."""


class Kinds(BaseEstimator):
    """Kinds of the columns of a table, with settings.

    Wherever an estimator has the parameter `kinds`, a name or a dict is short for
    ``Kinds(columns=…)``.

    Parameters
    ----------
    columns : {"binary", "nominal", "ordinal", "count", "continuous"}, dict or None
        A kind for all columns, or a dict from column (name or number) to kind. Other kinds are
        inferred from the types of the table: booleans are binary; categories are nominal, or
        ordinal if ordered; text is nominal. Numbers are binary if all are 0 or 1, and continuous
        unless all are whole and not negative; whole numbers from 1 to at most 10 are ordinal,
        others are counts if they go up to at most 1,000 and their variance is at least half their
        mean. Columns of arrays are binary.
    unseen : {"hole", "error"}, default="hole"
        How to treat a value of a later row that is not a level of its column.
    groups : lists of columns, or a dict of such lists, optional
        One-hot columns: those of a list are the levels of one nominal column, named by its key, or
        ``"group 0"``, ``"group 1"``, …. At most one of them is on in a row; if none is, the level
        is missing. Columns are given by number or name. Rows are returned in the form in which they
        were given.
    transform : {"auto", "none"}, default="auto"
        Whether continuous columns with a skewness above 1 are transformed by the Yeo-Johnson
        transform that maximises their likelihood under a normal distribution. Densities are always
        per unit of the original measurements.

    Examples
    --------
    >>> from exchangeable import ExchangeableMixture, Kinds
    >>> ExchangeableMixture(3, kinds=Kinds({"age": "continuous"}, unseen="error")).kinds
    Kinds(columns={'age': 'continuous'}, unseen='error')

    Five columns of a sparse matrix encode a variable with three levels and one with two:

    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> X = sp.csr_array(np.eye(5)[np.arange(40) % 3] + np.eye(5)[3 + np.arange(40) % 2])
    >>> kinds = Kinds(groups={"city": [0, 1, 2], "size": [3, 4]})
    >>> model = ExchangeableMixture(2, kinds=kinds, random_state=0).fit(X)
    >>> sum(model.conditional("city", {"size": 3}).values())
    1.0
    >>> model.sample(4, random_state=0)[0].sum(axis=1).tolist()
    [2.0, 2.0, 2.0, 2.0]
    """

    def __init__(
        self,
        columns: Any = None,
        *,
        groups: Any = None,
        unseen: str = "hole",
        transform: str = "auto",
    ) -> None:
        self.columns = columns
        self.groups = groups
        self.unseen = unseen
        self.transform = transform


def decide_kinds(estimator: Any, spec: FamilySpec, X: Any) -> tuple[FamilySpec, Schema | None]:
    """Return the family that suits the columns of X, and their schema.

    The schema is None if all columns are binary numbers, which need none. A threshold other than
    the default means that numbers are to be binarized.
    """
    blocks = getattr(estimator, "blocks", "auto")
    (chosen,), schema = decide_families(estimator, [spec], X, blocks, stacklevel=5)
    return chosen, schema


def decide_families(
    estimator: Any, specs: Sequence[FamilySpec], X: Any, blocks: Any = "auto", stacklevel: int = 4
) -> tuple[list[FamilySpec], Schema | None]:
    """Return the families that suit the columns of X, and their schema, as `decide_kinds`."""
    schema, told = decide_schema(estimator, X)
    if schema is None:
        return list(specs), None

    def distinct() -> str:
        values = [np.unique(c.values[~c.holes]) for c in raw_columns(X)]
        return f", of {np.unique(np.concatenate(values)).size:,} distinct values"

    chosen = _chosen(estimator, specs, schema, blocks, told, stacklevel + 1, distinct)
    return (list(specs), None) if chosen is None else (chosen, schema)


def decide_kinds_of_table(
    estimator: Any, spec: FamilySpec, table: RawTable
) -> tuple[FamilySpec, Schema | None]:
    """Do the same as `decide_kinds` for a table in chunks or on a cluster, by passes over it."""
    settings, told = settings_of(estimator)
    if settings is None:
        return spec, None
    bend = settings.transform == "auto"
    schema = decide_table(table, settings.columns, settings.unseen, bend, settings.groups)
    if schema is None:
        return spec, None
    blocks = getattr(estimator, "blocks", "auto")
    chosen = _chosen(estimator, [spec], schema, blocks, told, stacklevel=6)
    return (spec, None) if chosen is None else (chosen[0], schema)


def kinds_of_batch(
    estimator: Any, spec: FamilySpec, X: Any, first: bool
) -> tuple[FamilySpec, Schema | None]:
    """Return the family for a batch, and the schema that the first batch decided."""
    schema = None if first else schema_of(estimator)
    if schema is not None:
        chosen = spec_for(spec, schema, estimator.blocks)
    else:
        chosen, schema = decide_kinds(estimator, spec, X)
    if schema is not None:
        chosen.check("partial_fit", "partial_fit")
    if schema is not None and not first and schema_of(estimator) is None:
        raise ValueError(
            "the columns of the first batch were all 0 and 1, those of this one are not; say by "
            "kinds what they are, or fit to all rows at once"
        )
    return chosen, schema


def _chosen(
    estimator: Any,
    specs: Sequence[FamilySpec],
    schema: Schema,
    blocks: Any,
    told: bool,
    stacklevel: int,
    distinct: Callable[[], str] = lambda: "",
) -> list[FamilySpec] | None:
    """Return the families for the kinds of the columns; None if numbers are to be binarized."""
    training = getattr(estimator, "training", "generative")
    try:
        chosen = specs_for(specs, schema, blocks)
        if isinstance(as_training(training), Hybrid):
            for spec in chosen:
                spec.check("hybrid", f"training={training!r}")
        return chosen
    except ValueError as error:
        if told or any(column.levels for column in schema.columns if not _is_number(column)):
            raise
        warnings.warn(
            f"numbers greater than binarize={estimator.binarize} are on{distinct()}: {error}",
            stacklevel=stacklevel,
        )
        return None


def _example(column: Column) -> str:
    return f", such as {column.levels[0]!r}" if column.levels else ""


def decide_schema(estimator: Any, X: Any) -> tuple[Schema | None, bool]:
    """Return the schema of X, None if all columns are bits, and whether kinds were given."""
    settings, told = settings_of(estimator)
    if settings is None:
        return None, told
    bend = settings.transform == "auto"
    return decide(X, settings.columns, settings.unseen, bend, settings.groups), told


def settings_of(estimator: Any) -> tuple[Kinds | None, bool]:
    """Return the user's kinds, and whether any are given; None if numbers are binarized."""
    kinds = getattr(estimator, "kinds", None)
    settings = kinds if isinstance(kinds, Kinds) else Kinds(kinds)
    check_choice(settings.unseen, "unseen", UNSEEN)
    check_choice(settings.transform, "transform", TRANSFORMS)
    told = settings.columns is not None or settings.groups is not None
    if not told and (kinds is None and estimator.binarize != 0.0):
        return None, told
    return settings, told


def specs_for(
    specs: Sequence[FamilySpec], schema: Schema | None, blocks: Any = "auto"
) -> list[FamilySpec]:
    """Return the families that replace some for columns of the kinds of a schema."""
    if schema is None:
        return list(specs)
    found = [spec_for(spec, schema, blocks) for spec in specs]
    return list({spec.name: spec for spec in found}.values())


def _is_number(column: Column) -> bool:
    return not any(isinstance(level, str) for level in column.levels)


def spec_for(spec: FamilySpec, schema: Schema, blocks: Any) -> FamilySpec:
    """Return the family fitted to columns of these kinds, after checking its blocks."""
    if len(spec.kinds) > 1:
        return spec
    if spec.other_kinds is None:
        first = next((c for c in schema.columns if c.kind not in spec.kinds), schema.columns[0])
        raise ValueError(
            f"column {first.name!r} is {first.kind} (type {first.dtype}{_example(first)}), but "
            f"family={spec.name!r} is for columns of 0 and 1; leave family away, or say "
            "kinds='binary'"
        )
    stand_in = family_named(spec.other_kinds)
    check_method(stand_in, blocks)
    return stand_in


def observe_typed(estimator: Any, X: Any, schema: Schema, reset: bool) -> Observed:
    """Return rows with columns of any kind, after checking their number and names."""
    check_columns(estimator, X, len(schema.columns) if reset else _n_columns(X), reset)
    if reset:
        estimator.columns_ = schema.to_plain()
    observed = schema.observed(X)
    if not observed.n_rows:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
    return observed


def _n_columns(X: Any) -> int:
    return int(X.shape[1]) if hasattr(X, "shape") and len(X.shape) > 1 else len(raw_columns(X))


def labels_of(X: Any, y: Any) -> npt.NDArray[Any]:
    """Return the labels of the rows of a table."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity")
    return np.asarray(labels)


def schema_of(estimator: Any) -> Schema | None:
    """Return the schema of the columns, None if all are binary."""
    plain = vars(estimator).get(COLUMNS)
    if plain is None:
        return None
    known = _SCHEMAS.get(estimator)
    if known is None or known[0] is not plain:
        known = _SCHEMAS[estimator] = plain, Schema.from_plain(plain)
    return known[1]
