"""Beyond the paper: density of the benchmark's sets by every family, settings chosen by validation.

For each set and family the settings are searched on the training and validation rows. Then the
family is fitted with them from several seeds, and each fit is scored on the test rows, once.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.datasets import fetch_density
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.experiments.density import N_COMPONENTS, PAPER_TOL
from exchangeable.experiments.store import Row, Store
from exchangeable.families.common.expectation import log_likelihood
from exchangeable.families.contract import ClassModel
from exchangeable.families.joined import JoinedModel, join
from exchangeable.families.urns.family import DensityModel
from exchangeable.fitting.density_em import Run, StopRule
from exchangeable.fitting.density_fit import average
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
"""The sets, the quicker ones first."""
HIDDEN = "hidden tree"
FAMILIES = {
    "weighted urn": "urns",
    "tree": "tree",
    "weighted tree": "weighted tree",
    "naive Bayes": "independent",
    HIDDEN: "hidden tree",
}
HIDDEN_STARTS = {
    "plants": (64, 0.3, 1.0),
    "accidents": (32, 0.3, 0.3),
    "tretail": (12, 2.0, 4.0),
    "dna": (12, 0.1, 0.3),
}
"""States, pooling and shrinkage from which a search for hidden trees begins, found by earlier
searches on the validation rows."""
PAPERS = "paper's MEVM"
AVERAGE, JOINED = "average", "joined families"
MODELS = (*FAMILIES, AVERAGE, JOINED, PAPERS)
KEY = ("dataset", "model", "seed")
FINE = StopRule(tol=5e-4, patience=4)
COARSE = StopRule(tol=1e-3, patience=3)
Fitted: TypeAlias = tuple[DensityModel | JoinedModel, FloatArray, Row]
"""Model, log-probability of its components, and what to tell about it."""


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
        Told what is being done.
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
        """Run all cells that are not finished, the first seed of every set before the next.

        A set that is not in the data folder is left out, unless it may be downloaded.
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
            fitted, log_prior, row = self._fitted(name, model, seed, search)
            row["valid"] = _mean(valid, fitted, log_prior, self.n_jobs)
            row["test"] = _mean(test, fitted, log_prior, self.n_jobs)
            row["n_parameters"] = fitted.n_parameters + log_prior.size - 1
        row["seconds"] = round(time.monotonic() - began - row.get("search_seconds", 0.0), 2)
        self.store.add({"dataset": name, "model": model, "seed": seed, **row})
        self.tell(f"{name}, {model}, seed {seed}: valid {row['valid']:.4f}, test {row['test']:.4f}")

    def _fitted(self, name: str, model: str, seed: int, search: Search) -> Fitted:
        if model in (AVERAGE, JOINED) and not self._finished(name):
            raise ValueError(f"the average on {name} needs a finished family to choose from")
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
        if model == HIDDEN and name in HIDDEN_STARTS:
            near.append(Settings(HIDDEN, *HIDDEN_STARTS[name]))
        began = time.monotonic()
        search.deadline = began + self.search_seconds
        best = search.climb(FAMILIES[model], near=near)
        if best is None:
            raise RuntimeError(f"the search for {model} on {name} tried nothing")
        told = {
            "search_seconds": round(time.monotonic() - began, 2),
            "n_trials": len(search.trials),
        }
        return best.settings, told

    def _family(self, name: str, model: str, seed: int, search: Search) -> Fitted:
        settings, told = self._settings(name, model, search)
        found = search.fit(settings, 100 + seed, FINE)
        return found.model, found.log_prior, {**_told(settings), "n_iter": found.best_iter, **told}

    def _average(self, name: str, search: Search) -> Fitted:
        """Average fits of the family that does best on the validation rows."""
        best = self._finished(name)[0]
        settings = _stored(best)
        runs = self._fits(settings, search)
        told = {**_told(settings), "family": best["model"], "n_averaged": len(runs)}
        return (*average(runs), told)

    def _joined(self, name: str, search: Search) -> Fitted:
        """Join averages of all families, with shares that suit the validation rows."""
        families = self._finished(name)
        fits = [self._fits(_stored(row), search) for row in families]
        model, log_prior, shares = join([average(runs) for runs in fits], search.valid, self.n_jobs)
        told = [
            f"{len(runs)} of {row['model']} ({share:.2f})"
            for runs, row, share in zip(fits, families, shares, strict=True)
            if share > 0
        ]
        return model, log_prior, {"family": ", ".join(told)}

    def _finished(self, name: str) -> list[Row]:
        """Return the finished cell of each family that does best on the validation rows.

        The best family comes first.
        """
        known = [row for row in self.store.find(dataset=name) if row["model"] in FAMILIES]
        best: dict[str, Row] = {}
        for row in sorted(known, key=lambda row: -float(row["valid"])):
            best.setdefault(row["model"], row)
        return list(best.values())

    def _fits(self, settings: Settings, search: Search) -> list[Run]:
        """Fit some settings from several starts, as many as there is time for."""
        search.n_jobs = 1  # fits side by side make better use of the cores than threads in a fit
        side_by_side, runs = n_threads(self.n_jobs), list[Run]()
        end = time.monotonic() + self.average_seconds
        while len(runs) < self.n_averaged and (not runs or time.monotonic() < end):
            numbers = range(len(runs), min(len(runs) + side_by_side, self.n_averaged))
            runs += run(
                lambda number: search.fit(settings, 200 + number, FINE, varied=number > 0),
                numbers,
                self.n_jobs,
            )
        return runs

    def _papers(self, seed: int, data: Any) -> Row:
        model = ExchangeableMixture(
            N_COMPONENTS,
            structure="welch",
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


def _mean(
    examples: Examples, model: ClassModel, log_prior: FloatArray, n_jobs: int | None
) -> float:
    return log_likelihood(model, examples, log_prior, n_jobs) / examples.total


def _told(settings: Settings) -> Row:
    return {
        "n_components": settings.n_components,
        "pooling": settings.pooling,
        "shrinkage": settings.shrinkage,
    }


def _stored(row: Row) -> Settings:
    family = FAMILIES[row.get("family") or row["model"]]
    numbers = (float(row["pooling"]), float(row["shrinkage"]))
    return Settings(family, int(row["n_components"]), *numbers)
