"""Abilities that a family may have: the rows of the table of abilities.

A family declares in `FamilySpec.cannot` which of these it does not support, and why. The page in
the docs is generated from both, and `tests/families/test_abilities.py` tests every cell.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Ability:
    """Something that users may do with a model, whatever its family.

    Attributes
    ----------
    title : str
        Its name in the table.
    asked : str
        How users request it.
    needs : tuple of str
        Other abilities without which this one is meaningless.
    refused : bool
        Whether a family without it raises an error; otherwise it does the closest thing, or there
        is no way to request it.
    """

    title: str
    asked: str
    needs: tuple[str, ...] = ()
    refused: bool = True


ABILITIES: Mapping[str, Ability] = {
    "weights": Ability("weights of rows", "`fit(X, sample_weight=…)`"),
    "holes": Ability("missing entries", "NaN in `fit`"),
    "classes": Ability("classes", "`ExchangeableClassifier`"),
    "semi_supervised": Ability("missing labels", "`semi_supervised=True`", ("classes",)),
    "partial_fit": Ability("batches that are read once", "`partial_fit`"),
    "holes in batches": Ability(
        "missing entries in batches", "NaN in `partial_fit`", ("partial_fit", "holes")
    ),
    "warm_start": Ability("going on from a fit", "`warm_start=True`"),
    "checkpoint": Ability("going on after a stop", "`checkpoint=path`"),
    "accept": Ability("blocks per component", "`Blocks(accept='component')`"),
    "relearn": Ability("a say in when blocks are learned", "`Blocks(relearn=…)`"),
    "held-out rows": Ability("early stopping", "`X_valid`, `validation_fraction`"),
    "chunks": Ability("rows in chunks", "files, memory maps, `chunks()` in `fit`"),
    "classes in chunks": Ability(
        "classes in chunks", "the same of a classifier", ("classes", "chunks")
    ),
    "pooling in chunks": Ability(
        "pooled prior in chunks", "`pooling=…` and chunks", ("pooling", "chunks")
    ),
    "cluster": Ability("rows on a cluster", "Dask collections in `fit`", ("chunks",)),
    "holes in chunks": Ability("missing entries in chunks", "NaN and chunks in `fit`", ("chunks",)),
    "labels in chunks": Ability(
        "missing labels in chunks",
        "`semi_supervised=True` and chunks",
        ("semi_supervised", "classes in chunks"),
    ),
    "held-out rows in chunks": Ability(
        "early stopping in chunks", "`X_valid`, `validation_fraction` and chunks", ("chunks",)
    ),
    "device": Ability("passes on a device", "`device='gpu'`", refused=False),
    "averaging": Ability("averages of fits", "`combine='average'`"),
    "joining": Ability("joined with other families", "`ExchangeableDensity`"),
    "pooling": Ability("pooled prior", "`pooling=…`"),
    "hybrid": Ability("hybrid training", "`ExchangeableClassifier(training=…)`", ("classes",)),
    "exact completion": Ability("exact completions", "`most_probable`, `impute`", refused=False),
    "saving": Ability("files", "`save` and `load`"),
    "page": Ability("a page", "`write_report`, `exchangeable inspect`"),
    "plots": Ability("plots", "`exchangeable.plotting`"),
    "command line": Ability("command line", "`exchangeable fit --family …`", refused=False),
}
"""The abilities by the names that `FamilySpec.cannot` uses."""
