"""From the options of `fit` to an estimator: which one, and which options it accepts."""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from exchangeable import (
    EVM,
    Count,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableImputer,
    ExchangeableMixture,
    FirstAndLast,
    LongestRun,
    Runs,
    Transitions,
)
from exchangeable.classes.selection import Selection
from exchangeable.families import REGISTRY

ESTIMATORS: Mapping[str, type[Any]] = {
    "classifier": ExchangeableClassifier,
    "mixture": ExchangeableMixture,
    "density": ExchangeableDensity,
    "imputer": ExchangeableImputer,
    "evm": EVM,
}
STATISTICS: Mapping[str, type[Any]] = {
    "count": Count,
    "first-and-last": FirstAndLast,
    "longest-run": LongestRun,
    "runs": Runs,
    "transitions": Transitions,
}
PARAMETERS = {
    "blocks": "blocks",
    "training": "training",
    "class_weight": "class_weight",
    "alpha": "alpha",
    "components": "n_components",
    "n_init": "n_init",
    "time_budget": "time_budget",
    "seed": "random_state",
}
"""The parameter that each option sets; options that were not given set nothing."""
AUTO = "auto"
TRIED = (1, 2, 3, 5, 8, 12, 20, 30, 50)
"""Numbers of components that are compared."""


def as_components(context: click.Context, option: click.Parameter, value: str | None) -> Any:
    """Return a number of components, or the word that requests a choice."""
    if value is None or value == AUTO:
        return value
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is neither a number of at least 1 nor {AUTO!r}")
    return int(value)


class Plan(NamedTuple):
    """An estimator to be created.

    Attributes
    ----------
    name : str
        One of `ESTIMATORS`.
    options : dict
        Its parameters.
    components : int or "auto" or None
        The number of components of a mixture.
    statistic : str or None
        The statistic of an `EVM`.
    """

    name: str
    options: dict[str, Any]
    components: Any = None
    statistic: str | None = None

    @property
    def takes_kinds(self) -> bool:
        """Whether columns of any kind are accepted as they are."""
        inner = "mixture" if self.name == "imputer" else self.name
        if "kinds" not in ESTIMATORS[inner]._get_param_names():
            return False
        if "family" not in ESTIMATORS[inner]._get_param_names():
            return True
        spec = REGISTRY[self.options.get("family", next(iter(REGISTRY)))]
        return spec.other_kinds is not None or len(spec.kinds) > 1

    def fit(self, rows: Any, y: Any, weights: Any, kinds: Any) -> tuple[Any, Selection | None]:
        """Return the fitted estimator, and the models compared if the number was to be chosen.

        Parameters
        ----------
        rows, y, weights
            Arguments of the estimator's `fit`.
        kinds : dict or None
            Kinds of the columns.
        """
        options = self.options if kinds is None else self.options | {"kinds": kinds}
        if self.name == "evm":
            evm = EVM(STATISTICS[self.statistic or "count"](rows.shape[1]))
            return evm.fit(rows, sample_weight=weights, alpha=options.get("alpha", 0.1)), None
        if self.name in ("mixture", "imputer"):
            if self.components == AUTO:
                sizes = [k for k in TRIED if k <= rows.shape[0]]
                with warnings.catch_warnings():  # sizes that are too large are tried, too
                    warnings.simplefilter("ignore", UserWarning)
                    found = ExchangeableMixture.select(
                        rows, n_components=sizes, sample_weight=weights, **options
                    )
                return found.best, found
            model: Any = ExchangeableMixture(self.components, **options)
            if self.name == "imputer":
                model = ExchangeableImputer(model, random_state=options.get("random_state"))
            return model.fit(rows, sample_weight=weights), None
        if self.name == "classifier":
            return ExchangeableClassifier(**options).fit(rows, y, sample_weight=weights), None
        return ExchangeableDensity(**options).fit(rows, sample_weight=weights), None


def plan_of(asked: Mapping[str, Any], supervised: bool) -> Plan:
    """Return the requested estimator, rejecting options that it does not have.

    Parameters
    ----------
    asked : mapping
        The options of `fit`, None for those that were not given.
    supervised : bool
        Whether classes are given.
    """
    name = asked["estimator"] or ("classifier" if supervised else "mixture")
    if supervised != (name == "classifier"):
        hint = "give them by --target or --labels" if not supervised else "leave out --target"
        raise click.UsageError(f"--estimator {name} {_needs(supervised)} classes; {hint}")
    known = set(ESTIMATORS[name]._get_param_names())
    if name == "imputer":
        known |= set(ExchangeableMixture._get_param_names())
    if name == "evm":
        known.add("alpha")
    options = {}
    for option, parameter in PARAMETERS.items():
        if asked[option] is None:
            continue
        if parameter not in known:
            raise click.UsageError(_refused(option, name))
        options[parameter] = asked[option]
    components = options.pop("n_components", None)
    if components == AUTO and name == "imputer":
        raise click.UsageError(
            "--components auto does not go with --estimator imputer; fit a mixture instead, which "
            "fills holes too"
        )
    families = asked["family"]
    if "families" in known and families:
        options["families"] = list(families)
    elif len(families) > 1 or (families and "family" not in known):
        raise click.UsageError(
            f"--family is given {len(families)} times; several go with --estimator density"
            if "family" in known
            else _refused("family", name)
        )
    elif families:
        options["family"] = families[0]
    if asked["unlabelled"] == "learn":
        options["semi_supervised"] = True
    if asked["named_blocks"] and "blocks" not in known:
        raise click.UsageError(_refused("blocks", name).replace("--blocks", "--block", 1))
    if asked["statistic"] is not None and name != "evm":
        raise click.UsageError(_refused("statistic", name))
    return Plan(name, options, components, asked["statistic"])


def _needs(supervised: bool) -> str:
    return "does not predict" if supervised else "predicts"


def _refused(option: str, name: str) -> str:
    """Return why an option cannot be used with an estimator, and what it can be used with."""
    parameter = PARAMETERS.get(option, option)
    takers = [other for other, kind in ESTIMATORS.items() if parameter in kind._get_param_names()]
    flag = f"--{option.replace('_', '-')}"
    chosen = "a classifier" if name == "classifier" else f"--estimator {name}"
    return f"{flag} does not go with {chosen}, but with {', '.join(takers)}; leave it out"
