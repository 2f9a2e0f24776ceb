"""Beyond the paper: the density benchmark with every family, settings chosen by validation.

For each data set and family the settings are searched on the training and validation rows. Then the
family is fitted with them from several seeds, and each fit is scored once on the test rows. Which
families take part is read from the registry: those that `ExchangeableDensity` searches, and naive
Bayes, which is the paper's family with every variable a block of its own.
"""

import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.datasets import fetch_density
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.experiments.density import N_COMPONENTS, PAPER_TOL
from exchangeable.experiments.store import Row, Store
from exchangeable.families import REGISTRY
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.em import EMState, StopRule
from exchangeable.fitting.search import Search, Settings
from exchangeable.runtime.threads import n_threads, run

SETS = (
    "nltcs",
    "plants",
    "jester",
    "baudio",
    "bnetflix",
    "dna",
    "tretail",
    "accidents",
    "msnbc",
    "kdd",
    "book",
    "msweb",
    "cwebkb",
    "bbc",
    "cr52",
    "c20ng",
    "pumsb_star",
    "kosarek",
    "tmovie",
    "ad",
)
"""The data sets, the quicker ones first."""
NAIVE_BAYES = "naive Bayes"
SEARCHED = [spec.name for spec in REGISTRY.values() if spec.search and spec.search.unasked]
FAMILIES = {name: (name, "auto") for name in SEARCHED}
FAMILIES[NAIVE_BAYES] = ("blocks", "independent")
"""The family and the blocks that each name stands for."""
PAPERS = "paper's MEVM"
AVERAGE, JOINED = "average", "joined families"
MODELS = (*FAMILIES, AVERAGE, JOINED, PAPERS)
KEY = ("dataset", "model", "seed")
FINE = StopRule(tol=5e-4, patience=4)
COARSE = StopRule(tol=1e-3, patience=3)


def search_starts() -> dict[tuple[str, str], Settings]:
    """Return settings from which searches begin, by data set and model.

    They were found by earlier searches on the validation rows, and are kept in
    ``search_starts.csv``.
    """
    text = files("exchangeable.experiments").joinpath("search_starts.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    return {(row["dataset"], row["model"]): _stored(row) for row in rows}


class Fit(NamedTuple):
    """A fitted mixture, and what its cell says besides its scores."""

    mixture: Mixture
    row: Row


@dataclass
class Beyond:
    """The experiment on some sets.

    Attributes
    ----------
    store : Store
        Where finished cells are kept.
    search_seconds : float
        Time for the search of one family's settings.
    n_averaged : int
        Number of fits in the average of a family.
    average_seconds : float
        Time after which no more fits are added to it.
    tell : callable
        Called with a line of text when something begins or ends.
    n_jobs : int, optional
        Number of threads.
    """

    store: Store
    search_seconds: float = 240.0
    n_averaged: int = 10
    average_seconds: float = 240.0
    tell: Callable[[str], None] = lambda text: None
    n_jobs: int | None = None

    def run(
        self,
        sets: Sequence[str],
        models: Sequence[str] = MODELS,
        seeds: Sequence[int] = range(5),
        download: bool = False,
    ) -> None:
        """Run all cells that are not finished, the first seed of every data set before the next.

        A data set that is not in the data folder is left out, unless it may be downloaded.
        """
        for seed in seeds:
            for name in sets:
                wanted = [
                    model
                    for model in models
                    if not self.store.find(dataset=name, model=model, seed=seed)
                    and not (model in (AVERAGE, JOINED) and seed > 0)
                ]
                if not wanted:
                    continue
                try:
                    data = fetch_density(name, download_if_missing=download)
                except OSError:
                    self.tell(f"{name} is not in the data folder")
                    continue
                for model in wanted:
                    self._cell(name, model, seed, data)

    def _cell(self, name: str, model: str, seed: int, data: Any) -> None:
        train, valid, test = (_examples(rows) for rows in (data.train, data.valid, data.test))
        self.tell(f"{name}, {model}, seed {seed}")
        began = time.monotonic()
        if model == PAPERS:
            row = self._papers(seed, data)
        else:
            search = Search(train, valid, rule=COARSE, n_jobs=self.n_jobs)
            mixture, row = self._fitted(name, model, seed, search)
            row["valid"] = mixture.log_likelihood(valid, self.n_jobs) / valid.total
            row["test"] = mixture.log_likelihood(test, self.n_jobs) / test.total
            row["n_parameters"] = mixture.n_parameters
        row["seconds"] = round(time.monotonic() - began - row.get("search_seconds", 0.0), 2)
        self.store.add({"dataset": name, "model": model, "seed": seed, **row})
        self.tell(f"{name}, {model}, seed {seed}: valid {row['valid']:.4f}, test {row['test']:.4f}")

    def _fitted(self, name: str, model: str, seed: int, search: Search) -> Fit:
        if model in (AVERAGE, JOINED) and not self._finished(name):
            raise ValueError(
                f"{model!r} on {name} is made of families that are finished, and there are none; "
                "run at least one family on it first"
            )
        if model == AVERAGE:
            return self._average(name, search)
        if model == JOINED:
            return self._joined(name, search)
        return self._family(name, model, seed, search)

    def _settings(self, name: str, model: str, search: Search) -> tuple[Settings, Row]:
        """Return a family's settings, from an earlier cell or searched for."""
        known = self.store.find(dataset=name, model=model)
        if known:
            return _stored(known[0]), {}
        near = [_stored(row) for row in self._finished(name)]
        starts = search_starts()
        if (name, model) in starts:
            near.append(starts[name, model])
        began = time.monotonic()
        search.deadline = began + self.search_seconds
        family, blocks = FAMILIES[model]
        best = search.climb(family, near=near, blocks=blocks)
        if best is None:
            raise RuntimeError(
                f"the search for {model!r} on {name} ended without a trial; give it more time"
            )
        costs = {
            "search_seconds": round(time.monotonic() - began, 2),
            "n_trials": len(search.trials),
        }
        return best.settings, costs

    def _family(self, name: str, model: str, seed: int, search: Search) -> Fit:
        settings, costs = self._settings(name, model, search)
        state = search.fit(settings, 100 + seed, FINE)
        return Fit(state.best, {**_as_row(settings), "n_iter": state.best_iter, **costs})

    def _average(self, name: str, search: Search) -> Fit:
        """Average fits of the family that does best on the validation rows."""
        best = self._finished(name)[0]
        settings = _stored(best)
        states = self._fits(settings, search)
        row = {**_as_row(settings), "family": best["model"], "n_averaged": len(states)}
        return Fit(_averaged(states), row)

    def _joined(self, name: str, search: Search) -> Fit:
        """Join averages of all families, with the shares that suit the validation rows best."""
        families = self._finished(name)
        fits = [self._fits(_stored(row), search) for row in families]
        averages = [_averaged(states) for states in fits]
        mixture, shares = Mixture.join(averages, search.valid, self.n_jobs)
        members = [
            f"{len(states)} of {row['model']} ({share:.2f})"
            for states, row, share in zip(fits, families, shares, strict=True)
            if share > 0
        ]
        return Fit(mixture, {"family": ", ".join(members)})

    def _finished(self, name: str) -> list[Row]:
        """Return, for each family, the finished cell that is best on the validation rows.

        The best family comes first.
        """
        known = [row for row in self.store.find(dataset=name) if row["model"] in FAMILIES]
        best: dict[str, Row] = {}
        for row in sorted(known, key=lambda row: -float(row["valid"])):
            best.setdefault(row["model"], row)
        return list(best.values())

    def _fits(self, settings: Settings, search: Search) -> list[EMState]:
        """Fit some settings from several starts, as many as there is time for."""
        search.n_jobs = 1  # fits side by side make better use of the cores than threads in a fit
        side_by_side, states = n_threads(self.n_jobs), list[EMState]()
        end = time.monotonic() + self.average_seconds
        while len(states) < self.n_averaged and (not states or time.monotonic() < end):
            numbers = range(len(states), min(len(states) + side_by_side, self.n_averaged))
            states += run(
                lambda number: search.fit(settings, 200 + number, FINE, varied=number > 0),
                numbers,
                self.n_jobs,
            )
        return states

    def _papers(self, seed: int, data: Any) -> Row:
        model = ExchangeableMixture(
            N_COMPONENTS,
            blocks="welch",
            init="rows",
            tol=PAPER_TOL,
            random_state=seed,
            n_jobs=self.n_jobs,
        ).fit(data.train)
        return {
            "n_components": N_COMPONENTS,
            "n_iter": model.n_iter_,
            "valid": model.score(data.valid),
            "test": model.score(data.test),
            "n_parameters": model.n_parameters_,
        }


def _examples(rows: Any) -> Examples:
    return merge_equal_rows(Observed(as_rows(rows, None)), np.ones(len(rows)))[0]


def _averaged(states: Sequence[EMState]) -> Mixture:
    return Mixture.average([state.best for state in states])


def _as_row(settings: Settings) -> Row:
    return {
        "n_components": settings.n_components,
        "pooling": settings.pooling,
        "shrinkage": settings.shrinkage,
    }


def _stored(row: Row) -> Settings:
    """Return the settings of a finished cell."""
    family, blocks = FAMILIES[row.get("family") or row["model"]]
    numbers = (float(row["pooling"]), float(row["shrinkage"]))
    return Settings(family, int(row["n_components"]), *numbers, blocks)
