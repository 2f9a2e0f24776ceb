"""Queries about columns of any kind, in the user's values: labels, levels and numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import (
    FloatArray,
    RandomState,
    as_generator,
    check_count,
    is_assignment,
    is_sparse,
    named_evidence,
)
from exchangeable.data.columns.raw import library_of
from exchangeable.data.columns.schema import Schema, typed_rows
from exchangeable.data.observed import Observed
from exchangeable.queries import answers
from exchangeable.queries.distributions import Continuous
from exchangeable.queries.framed import (
    completion,
    completions,
    draws,
    matrix,
    plain,
    recommendations,
    states,
)
from exchangeable.queries.frames import Output, in_frames
from exchangeable.queries.information import information, target_information
from exchangeable.queries.methods import METHODS, MostProbable, Queries
from exchangeable.queries.typed_answers import (
    Distribution,
    best,
    distributions,
    drawn,
    joint,
    predictives,
)


class TypedQueries(Output, Queries):
    """Mixin with queries in the user's values, for models whose columns are not all binary.

    Every query accepts `names`, the names of the variables or a transformer that has them, if the
    model knows none; the answers are then pandas tables.
    """

    def _schema(self) -> Schema | None:
        """Return the schema of the columns, None if all are binary numbers."""
        return None

    @in_frames(matrix)
    def marginals(self, given: Any = None, *, given_class: Any = None) -> Any:
        """Return the marginal distribution of each variable, given the evidence.

        Parameters
        ----------
        given : {array-like, sparse matrix} of shape (n_samples, n_features), table, dict or None
            The evidence; it must be possible.
        given_class : label, optional
            A class or component, if known.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_features,) for a single query
            The probability of each variable being on; known variables have probability 0 or 1. If
            there are columns of other kinds, a dict for every query, from each unknown column to
            its distribution: see `conditional`.
        """
        schema = self._schema()
        if schema is None:
            return super().marginals(given, given_class=given_class)
        observed, single = self._typed_evidence(schema, given)
        mixture = self._of_class(given_class)
        posterior = answers.class_posterior(mixture, observed, self.n_jobs)
        open_columns = observed.hole_flags()
        told: list[dict[Any, Distribution]] = [{} for _ in range(observed.n_rows)]
        for j, column in enumerate(schema.columns):
            rows = np.flatnonzero(open_columns[:, j])
            if rows.size:
                found = distributions(mixture, observed.take(rows), posterior[rows], j, column)
                for row, answer in zip(rows, found, strict=True):
                    told[row][column.name] = answer
        return told[0] if single else told

    @in_frames(states)
    def conditional(self, query: Any, given: Any = None) -> Any:
        """Return the joint distribution of a few variables, given the evidence.

        Parameters
        ----------
        query : sequence of int or str, or one of them
            The query variables, none of which may be part of the evidence.
        given : {array-like, sparse matrix} of shape (n_samples, n_features), table, dict or None
            The evidence; it must be possible.

        Returns
        -------
        ndarray of shape (n_samples, 2, 2, …), or (2, 2, …) for a single query
            One axis per query variable, in the given order: entry [1, 0] is the probability that
            the first is on and the second off. If there are columns of other kinds, an object for
            every query: `Discrete`, a mapping from values, or tuples of them, to probabilities; or,
            for a continuous column, `Continuous` with mean, quantiles and density.
        """
        schema = self._schema()
        if schema is None:
            return super().conditional(query, given)
        observed, single = self._typed_evidence(schema, given)
        variables = self._query(query, observed)
        if variables.size == 1:
            posterior = answers.class_posterior(self._mixture(), observed, self.n_jobs)
            column = schema.columns[variables[0]]
            found = distributions(self._mixture(), observed, posterior, int(variables[0]), column)
        else:
            found = [*joint(self._mixture(), schema, observed, variables)]
        return found[0] if single else found

    @in_frames(completion)
    def most_probable(self, given: Any = None, *, label: Any = None) -> MostProbable:
        """Return the most probable completion of the evidence together with its class.

        The class or component is completed too: P(x, y) is maximised jointly. The most probable
        completion summed over the classes is intractable in every mixture. For measurements, the
        density on their transformed scale is maximised. In hidden trees the maximum is found by a
        search: see `exact` and `gap`.

        Parameters
        ----------
        given : {array-like, sparse matrix} of shape (n_samples, n_features), table, dict or None
            The evidence; it must be possible.
        label : label, optional
            A class or component, if known.
        """
        schema = self._schema()
        if schema is None:
            return super().most_probable(given, label=label)
        observed, single = self._typed_evidence(schema, given)
        labels = self._labels()
        classes = self._classes_of(label)
        rows, chosen, gap = best(self._mixture(), observed, classes)
        table = schema.table(rows)
        scores = self._mixture().joint(schema.observed(table), self.n_jobs)
        log_prob = scores[np.arange(len(rows)), chosen]
        if single:
            return MostProbable(table, labels[chosen][0], float(log_prob[0]), float(gap[0]))
        return MostProbable(table, labels[chosen], log_prob, gap)

    @in_frames(recommendations)
    def recommend(self, X: Any, n: int = 5, *, by: str = "probability") -> Any:
        """Return the variables that are most likely to be on in addition to those that are.

        All columns must be binary; see `Queries.recommend` for the parameters.
        """
        schema = self._schema()
        if schema is not None:
            odd = next(column for column in schema.columns if column.kind != "binary")
            raise ValueError(
                f"recommend is for columns that are on or off; {odd.name!r} is {odd.kind}: use "
                "marginals or conditional"
            )
        return super().recommend(X, n, by=by)

    @in_frames(draws)
    def sample(
        self, n_samples: int = 1, given: Any = None, random_state: RandomState = None
    ) -> tuple[Any, npt.NDArray[Any]]:
        """Draw rows given the evidence, and return them with the classes they came from.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        given : array-like of shape (n_features,), dict or None
            Evidence common to all rows; it must be possible.
        random_state : int, RandomState, Generator or None
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples, n_features), and ndarray of shape (n_samples,)
            Rows; if a column is not a binary number, as a table like the one that was fitted.
        """
        schema = self._schema()
        if schema is None:
            return super().sample(n_samples, given, random_state)
        n_samples = check_count(n_samples, "n_samples", minimum=0)
        observed, single = self._typed_evidence(schema, given)
        if not single:
            raise ValueError(
                "sample takes a single row of evidence; for draws from many rows see impute"
            )
        rng = as_generator(random_state)
        copies = observed.take(np.zeros(n_samples, dtype=np.int64))
        rows, classes = drawn(self._mixture(), copies, rng)
        order = np.argsort(classes, kind="stable")
        return schema.table(rows[order]), self._labels()[classes[order]]

    @in_frames(completions)
    def impute(
        self,
        X: Any,
        method: str = "most_probable",
        n_draws: int | None = None,
        random_state: RandomState = None,
    ) -> Any:
        """Fill in the missing entries of X; known entries stay as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or table
            Examples with NaN for missing entries.
        method : {"most_probable", "marginal", "draw"}, default="most_probable"
            ``"most_probable"``: the jointly most probable completion and class or component.
            ``"marginal"``: the probability that each missing entry is on; for other kinds of
            columns, the most probable level or the mean. ``"draw"``: a random completion, drawn
            from the distribution given the known entries.
        n_draws : int, optional
            With ``"draw"``, the number of completed copies to return (multiple imputation).
        random_state : int, RandomState, Generator or None
            Seed of the draws.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features), or table
            Completed rows, sparse if X is, a table if X is one; or with `n_draws` an array of shape
            (n_draws, n_samples, n_features), or a list of tables.
        """
        schema = self._schema()
        if schema is None:
            return super().impute(X, method, n_draws, random_state)
        if method not in METHODS:
            raise ValueError(f"method={method!r} is unknown; expected one of {', '.join(METHODS)}")
        if n_draws is not None and method != "draw":
            raise ValueError(f"n_draws={n_draws!r} goes with method='draw', not {method!r}")
        rng, observed = as_generator(random_state), self._observed(X)
        times = 1 if n_draws is None else check_count(n_draws, "n_draws")
        tables = [self._filled_table(schema, observed, X, method, rng) for _ in range(times)]
        return tables[0] if n_draws is None else tables

    @in_frames(matrix)
    def information_gain(self, given: Any = None, *, target: Any = None) -> FloatArray:
        """Return the information gain of each open variable, in nats: which one to ask next.

        It is the expected decrease in entropy of the class or component, or of a target variable,
        when the variable becomes known. Known variables and the target have gain 0.

        Parameters
        ----------
        given : {array-like, sparse matrix} of shape (n_samples, n_features), dict or None
            The evidence; it must be possible.
        target : int or str, optional
            A variable; by default the target is the class or component.
        """
        schema = self._schema()
        if schema is None:
            return super().information_gain(given, target=target)
        observed, single = self._typed_evidence(schema, given)
        if target is not None:
            wanted = self._variable(target)
            gain = target_information(self._mixture(), observed, wanted, schema.types)
            return gain[0] if single else gain
        posterior = answers.class_posterior(self._mixture(), observed, self.n_jobs)
        gain = np.zeros((observed.n_rows, len(schema.columns)))
        for j in range(len(schema.columns)):
            rows = np.flatnonzero(observed.hole_flags()[:, j])
            if rows.size:
                each = predictives(self._mixture(), observed.take(rows), j)
                gain[rows, j] = information(posterior[rows], each)
        return gain[0] if single else gain

    @in_frames(plain)
    def score_samples(self, X: Any) -> Any:
        """Return the log-probability of the known entries of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), table or dict
            Examples; NaN marks unknown entries, which are summed out exactly. A dict from variable
            to value is a single query, and its answer a number.
        """
        return super().score_samples(X)

    def _evidence(self, given: Any) -> tuple[Observed, bool]:
        """Return the evidence, in any of its forms, as rows, and whether it is a single query."""
        schema = self._schema()
        return super()._evidence(given) if schema is None else self._typed_evidence(schema, given)

    def _variable(self, name: Any) -> int:
        """Return the number of a column given by number or name."""
        schema = self._schema()
        if schema is None or schema.one_hot is None:
            return super()._variable(name)
        names = [column.name for column in schema.columns]
        if name not in names:
            raise ValueError(f"{name!r} is not a column; they are {', '.join(map(repr, names))}")
        return names.index(name)

    def _typed_evidence(self, schema: Schema, given: Any) -> tuple[Observed, bool]:
        """Return the evidence, in any of its forms, as rows, and whether it is a single query."""
        if library_of(given) is not None or is_sparse(given) or np.ndim(given) > 1:
            return self._observed(given), False
        if given is None or is_assignment(given):
            named: Any = given
            if schema.one_hot is None:
                named = named_evidence(given, [column.name for column in schema.columns])
            numbered = {self._variable(key): value for key, value in (named or {}).items()}
            return schema.evidence(numbered), True
        values = list(given)
        if len(values) != len(schema.columns):
            raise ValueError(f"evidence has {len(values)} values, expected {len(schema.columns)}")
        return schema.evidence(dict(enumerate(values))), True

    def _filled_table(
        self, schema: Schema, observed: Observed, X: Any, method: str, rng: np.random.Generator
    ) -> Any:
        """Return X with its missing entries filled in once."""
        if method == "draw":
            rows = drawn(self._mixture(), observed, rng)[0]
        elif method == "most_probable":
            rows = best(self._mixture(), observed, np.arange(self._mixture().log_prior.size))[0]
        else:
            rows = self._expected(schema, observed)
        return schema.completed(rows, X, means=method == "marginal")

    def _expected(self, schema: Schema, observed: Observed) -> FloatArray:
        """Return rows with missing entries replaced by the most probable level, or the mean."""
        posterior = answers.class_posterior(self._mixture(), observed, self.n_jobs)
        values = typed_rows(observed).values
        filled = np.array(values)
        for j, column in enumerate(schema.columns):
            rows = np.flatnonzero(np.isnan(values[:, j]))
            if not rows.size:
                continue
            found = distributions(self._mixture(), observed.take(rows), posterior[rows], j, column)
            for row, answer in zip(rows, found, strict=True):
                if isinstance(answer, Continuous) or not column.levels:
                    filled[row, j] = column.transform.apply(np.array(answer.mean))
                else:
                    filled[row, j] = answer.probabilities.argmax()
        return filled
