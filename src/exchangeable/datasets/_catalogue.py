"""The list of data sets: size, shape, and whether they are in the data folder."""

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from exchangeable.datasets._collections import COLLECTIONS
from exchangeable.datasets._density import DENSITY_SETS, density_address
from exchangeable.datasets._files import get_data_home
from exchangeable.datasets._registry import REGISTRY


@dataclass(frozen=True)
class DatasetInfo:
    """One entry of `list_datasets`.

    Attributes
    ----------
    name : str
        Name to pass to `fetch_density` or `fetch_classification`.
    kind : {"density", "classification"}
        Which of the two loads it.
    variant : str
        "standard", or the variant to pass to `fetch_classification`.
    n_rows : tuple of int
        Number of rows for training, validation and test, or for training and test.
    n_variables : int
        Number of binary variables.
    n_classes : int or None
        Number of classes, None without labels.
    size : int or None
        Bytes of the files, None if they are missing and their size is not registered.
    present : bool
        Whether all its files are in the data folder.
    paths : tuple of Path
        Where its files are, or have to be put.
    address : str
        Where it is downloaded from.
    """

    name: str
    kind: str
    variant: str
    n_rows: tuple[int, ...]
    n_variables: int
    n_classes: int | None
    size: int | None
    present: bool
    paths: tuple[Path, ...]
    address: str


def list_datasets(data_home: str | PathLike[str] | None = None) -> list[DatasetInfo]:
    """List the data sets that can be fetched by name.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder; by default as in `get_data_home`.

    Returns
    -------
    datasets : list of DatasetInfo
        The sets of the density benchmark by number of variables, then the collections.

    Examples
    --------
    >>> from exchangeable.datasets import list_datasets
    >>> datasets = list_datasets()
    >>> len([d for d in datasets if d.kind == "density"])
    20
    >>> datasets[0].name, datasets[0].n_rows, datasets[0].n_variables
    ('nltcs', (16181, 2157, 3236), 16)
    """
    return list(_entries(get_data_home(data_home)))


def _entries(home: Path) -> Iterator[DatasetInfo]:
    for density in DENSITY_SETS.values():
        yield DatasetInfo(
            density.name,
            "density",
            "standard",
            density.n_rows,
            density.n_variables,
            None,
            *_presence(home, density.paths),
            density_address(density.paths[0]),
        )
    for collection in COLLECTIONS.values():
        yield DatasetInfo(
            collection.name,
            "classification",
            collection.variant,
            collection.n_rows,
            collection.n_variables,
            collection.n_classes,
            *_presence(home, (collection.path,)),
            collection.address,
        )


def _presence(home: Path, names: tuple[str, ...]) -> tuple[int | None, bool, tuple[Path, ...]]:
    """Return the size of the files, whether all exist, and their paths."""
    paths = tuple(home / name for name in names)
    if all(path.is_file() for path in paths):
        return sum(path.stat().st_size for path in paths), True, paths
    sizes = [REGISTRY[name].size for name in names]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None, False, paths
