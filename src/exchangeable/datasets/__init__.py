"""Data sets by name: the density benchmark, the paper's collections and its Boolean functions.

As in scikit-learn, `fetch_density` and `fetch_classification` download what is missing,
check it and return a `Bunch`; `make_boolean` draws labelled examples.
"""

from exchangeable.datasets._boolean import iter_boolean, make_boolean
from exchangeable.datasets._catalogue import DatasetInfo, list_datasets
from exchangeable.datasets._classification import fetch_classification
from exchangeable.datasets._density import fetch_density
from exchangeable.datasets._files import AlteredFileError, DownloadError, get_data_home

__all__ = [
    "AlteredFileError",
    "DatasetInfo",
    "DownloadError",
    "fetch_classification",
    "fetch_density",
    "get_data_home",
    "iter_boolean",
    "list_datasets",
    "make_boolean",
]
