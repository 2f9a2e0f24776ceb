"""Queries about fitted items: abilities, curves, tests and differences."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.items import Answered, items_of
from exchangeable.rasch import curves
from exchangeable.rasch.andersen import AndersenTest, andersen_test
from exchangeable.rasch.answers import Answers, read_answers, sort_answers
from exchangeable.rasch.differences import ItemDifferences, compare_classes
from exchangeable.rasch.parameters import ItemParameters, to_credits
from exchangeable.rasch.persons import Abilities, Population, estimate_abilities, fit_population


class RaschQuestions:
    """Mixin for estimators with `item_parameters_`, classes, and the scores of the training set."""

    item_parameters_: ItemParameters
    weights_: FloatArray
    n_jobs: int | None
    _answered: list[Answered]

    def predict(self, X: Any) -> IntArray:
        """Return the most probable class of every person."""
        raise NotImplementedError

    @property
    def populations_(self) -> list[Population]:
        """Normal distribution of abilities in each class, by maximum likelihood."""
        check_is_fitted(self, "item_parameters_")
        classes = range(self.weights_.size)
        return [fit_population(*self._items(y)[:2], self._answered[y]) for y in classes]

    def abilities(
        self,
        X: Any = None,
        method: str = "wle",
        component: int | None = None,
        population: Population | None = None,
    ) -> Abilities:
        """Estimate the abilities of persons, or for each raw score.

        Parameters
        ----------
        X : array-like of shape (n_persons, n_items), optional
            Answers, NaN if missing; by default there is an estimate for each score of persons who
            answered all items.
        method : {"wle", "eap", "ml"}
            Warm's weighted likelihood estimate; the mean ability of persons with this score in a
            normal population; or maximum likelihood, which is NaN for extreme scores.
        component : int, optional
            The class whose items to use; by default each person's most probable one, and 0 if X is
            not given.
        population : Population, optional
            For ``"eap"``: by default the class's own, fitted to the training set.
        """
        check_is_fitted(self, "item_parameters_")
        if X is None:
            highest, _, used = self._items(component or 0)
            scores = np.arange(int(highest.sum()) + 1)
            known = np.ones((scores.size, highest.size), dtype=bool)
            return self._estimated(component or 0, known, scores, method, population)
        values = self._answers(X).values
        best = np.zeros(len(values), dtype=np.int64)
        if component is not None:
            best[:] = component
        elif self.weights_.size > 1:
            best = self.predict(X)
        scores = np.zeros(len(values), dtype=np.int64)
        estimate, error = np.full(len(values), np.nan), np.full(len(values), np.nan)
        for y in np.unique(best):
            chosen, used = best == y, self._items(int(y))[2]
            own = values[chosen][:, used]
            scores[chosen] = np.maximum(own, 0).sum(axis=1)
            found = self._estimated(int(y), own >= 0, scores[chosen], method, population)
            estimate[chosen], error[chosen] = found.estimate, found.standard_error
        return Abilities(scores, estimate, error, method)

    def characteristic_curves(self, abilities: Any, component: int = 0) -> FloatArray:
        """Return the mean answer to each item at given abilities, shape (n_abilities, n_items).

        For a binary item it is the probability of solving it.

        Parameters
        ----------
        abilities : array-like of shape (n_abilities,)
            The abilities.
        component : int
            The class.
        """
        return self._curves(curves.expected_answers, abilities, component)

    def information(self, abilities: Any, component: int = 0) -> FloatArray:
        """Return the information of each item at given abilities, shape (n_abilities, n_items).

        The sum over items is the information of the test; the inverse of its square root is the
        standard error of an ability.

        Parameters
        ----------
        abilities : array-like of shape (n_abilities,)
            The abilities.
        component : int
            The class.
        """
        return self._curves(curves.item_information, abilities, component)

    def andersen(self, X: Any, split: Any = "median", sample_weight: Any = None) -> AndersenTest:
        """Test whether items have the same parameters in groups of persons, by Andersen's test.

        Parameters
        ----------
        X : array-like of shape (n_persons, n_items)
            Answers, NaN if missing.
        split : {"median", "mean", "ability"} or array-like of shape (n_persons,)
            The groups: low and high scores, split at the median or mean score of those who answered
            the same items; low and high abilities, if few persons answered the same items; or a
            group for each person.
        sample_weight : array-like of shape (n_persons,), optional
            Weight of each person.
        """
        answers = self._answers(X, sample_weight)
        if isinstance(split, str) and split == "ability":
            found = self.abilities(X).estimate
            split = np.where(found > np.nanmedian(found), "high", "low")
        return andersen_test(answers, split, self.n_jobs)

    def differences(self, first: int = 0, second: int = 1) -> ItemDifferences:
        """Return the differences of items between two classes, with standard errors.

        Parameters
        ----------
        first, second : int
            The classes.
        """
        check_is_fitted(self, "item_parameters_")
        return compare_classes(self.item_parameters_, first, second)

    def _answers(self, X: Any, sample_weight: Any = None) -> Answers:
        """Return checked answers to the fitted items."""
        check_is_fitted(self, "item_parameters_")
        validate_data(self, X, reset=False, skip_check_array=True)
        items = self.item_parameters_
        return read_answers(X, items.names, sample_weight, items.highest)

    def _items(self, y: int) -> tuple[IntArray, FloatArray, Any]:
        """Return highest answers and log ε of the items of a class, and which have estimates."""
        if not 0 <= y < self.weights_.size:
            raise ValueError(f"there is no class {y}; expected 0 to {self.weights_.size - 1}")
        items = self.item_parameters_
        used = ~np.isnan(items.locations[:, y])
        if not used.any():
            raise ValueError(f"class {y} has no item parameters: it holds too few persons")
        own = items.thresholds[used[items_of(items.highest)], y]
        return items.highest[used], to_credits(items.highest[used], own), used

    def _sorted(self, answers: Answers, y: int, weights: FloatArray) -> Answered:
        """Return persons grouped by score on the items that have estimates in a class."""
        used = ~np.isnan(self.item_parameters_.locations[:, y])
        inside = answers.only(items=used)
        return sort_answers(Answers(inside.names, inside.values, weights, inside.highest))

    def _estimated(
        self, y: int, known: Any, scores: IntArray, method: str, population: Population | None
    ) -> Abilities:
        highest, log_credits, _ = self._items(y)
        if method == "eap" and population is None:
            population = fit_population(highest, log_credits, self._answered[y])
        return estimate_abilities(highest, log_credits, known, scores, method, population)

    def _curves(self, function: Any, abilities: Any, y: int) -> FloatArray:
        """Return curves of all items, NaN for those without estimates."""
        check_is_fitted(self, "item_parameters_")
        highest, log_credits, used = self._items(y)
        found = function(highest, log_credits, abilities)
        out = np.full((len(found), used.size), np.nan)
        out[:, used] = found
        return out
