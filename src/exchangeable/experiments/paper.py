"""The paper's published figures."""

import csv
from importlib.resources import files

from exchangeable.experiments.store import Row

TABLES = {
    "properties": "classification_properties",
    "two-class": "two_class_accuracy",
    "multi-class": "multi_class_accuracy",
    "density": "density_loglik",
}


def paper_figures(table: str) -> dict[str, Row]:
    """Return the figures of one of the paper's tables, by data set.

    >>> paper_figures("two-class")["parity"]["mevm"]
    '0.958'
    """
    path = files("exchangeable.experiments").joinpath("published", f"{TABLES[table]}.csv")
    return {row["dataset"]: row for row in csv.DictReader(path.read_text().splitlines())}


def paper_figure(table: str, dataset: str, column: str | None) -> float | None:
    """Return one published figure, None if the paper does not report it."""
    text = paper_figures(table).get(dataset, {}).get(column) if column else None
    return float(text) if text else None
