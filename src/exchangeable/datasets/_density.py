"""The twenty data sets of the binary density-estimation benchmark."""

import gzip
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from exchangeable.datasets._fast import fast_form
from exchangeable.datasets._files import Progress, get_data_home, obtain
from exchangeable.datasets._registry import DENSITY_ADDRESS, REGISTRY, mirror_address

Binary = NDArray[np.uint8]
SPLITS = {"train": "ts", "valid": "valid", "test": "test"}


@dataclass(frozen=True)
class DensitySet:
    """One data set: its name, its size, and what its rows and variables mean."""

    name: str
    n_variables: int
    n_rows: tuple[int, int, int]
    title: str

    @property
    def paths(self) -> tuple[str, str, str]:
        """The files of the training, validation and test rows, in the data folder."""
        train, valid, test = (f"density/{self.name}.{s}.data.gz" for s in SPLITS.values())
        return train, valid, test


_SETS = (
    DensitySet("nltcs", 16, (16181, 2157, 3236), "disabilities of people, by daily activity"),
    DensitySet("msnbc", 17, (291326, 38843, 58265), "visits to a news site, by page category"),
    DensitySet("kdd", 64, (180092, 19907, 34955), "visits to a shop (KDD Cup 2000), by feature"),
    DensitySet("plants", 69, (17412, 2321, 3482), "plants, by state or province they grow in"),
    DensitySet("baudio", 100, (15000, 2000, 3000), "listeners (Audioscrobbler), by artist"),
    DensitySet("jester", 100, (9000, 1000, 4116), "raters of jokes, by joke"),
    DensitySet("bnetflix", 100, (15000, 2000, 3000), "raters of films (Netflix), by film"),
    DensitySet("accidents", 111, (12758, 1700, 2551), "traffic accidents, by circumstance"),
    DensitySet("tretail", 135, (22041, 2938, 4408), "shopping baskets, by article"),
    DensitySet("pumsb_star", 163, (12262, 1635, 2452), "census records, by answer"),
    DensitySet("dna", 180, (1600, 400, 1186), "pieces of DNA around splice points, by base"),
    DensitySet("kosarek", 190, (33375, 4450, 6675), "visits to a news portal, by page"),
    DensitySet("msweb", 294, (29441, 3270, 5000), "visits to a company's site, by area"),
    DensitySet("book", 500, (8700, 1159, 1739), "readers (Book-Crossing), by book"),
    DensitySet("tmovie", 500, (4524, 1002, 591), "raters of films (EachMovie), by film"),
    DensitySet("cwebkb", 839, (2803, 558, 838), "university web pages (WebKB), by word"),
    DensitySet("cr52", 889, (6532, 1028, 1540), "news wires (Reuters-52), by word"),
    DensitySet("c20ng", 910, (11293, 3764, 3764), "postings (20 Newsgroups), by word"),
    DensitySet("bbc", 1058, (1670, 225, 330), "news articles (BBC), by word"),
    DensitySet("ad", 1556, (2461, 327, 491), "images on web pages (Internet Ads), by feature"),
)
DENSITY_SETS = {record.name: record for record in _SETS}


def density_address(path: str) -> str:
    """Return where a file of the benchmark is downloaded from."""
    return mirror_address(path) or DENSITY_ADDRESS + path.rpartition("/")[2]


def fetch_density(
    name: str,
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    progress: Progress | None = None,
) -> Bunch:
    """Load one of the twenty sets of the binary density-estimation benchmark.

    The files are downloaded once, checked against their registered sha256 on every use, and
    unpacked once into a fast form.

    Parameters
    ----------
    name : str
        A name from `list_datasets`, such as "nltcs".
    data_home : path-like, optional
        The data folder; by default as in `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise an OSError when the files are not in the data folder.
    progress : callable, optional
        Makes a progress bar (an object like tqdm's) from a file name, for each download.

    Returns
    -------
    data : Bunch
        With `train`, `valid` and `test`, uint8 arrays of zeros and ones with one row per example,
        and `DESCR`, a description.

    Examples
    --------
    >>> from exchangeable.datasets import fetch_density
    >>> data = fetch_density("nltcs")  # doctest: +SKIP
    >>> data.train.shape, data.valid.shape, data.test.shape  # doctest: +SKIP
    ((16181, 16), (2157, 16), (3236, 16))
    """
    if name not in list(DENSITY_SETS):
        raise ValueError(f"unknown data set {name!r}; expected one of {', '.join(DENSITY_SETS)}")
    record = DENSITY_SETS[name]
    home = get_data_home(data_home)
    files = [REGISTRY[path] for path in record.paths]
    paths = [
        obtain(
            file,
            density_address(file.path),
            home,
            download_if_missing=download_if_missing,
            progress=progress,
        )
        for file in files
    ]

    def unpack() -> dict[str, Binary]:
        tables = zip(SPLITS, paths, record.n_rows, strict=True)
        return {
            split: np.packbits(parse_rows(path, n_rows, record.n_variables), axis=1)
            for split, path, n_rows in tables
        }

    packed = fast_form(name, ("density 1", *(file.sha256 for file in files)), home, unpack)
    tables = {
        split: np.unpackbits(packed[split], axis=1, count=record.n_variables) for split in SPLITS
    }
    return Bunch(**tables, DESCR=describe(record))


def parse_rows(path: Path, n_rows: int, n_variables: int) -> Binary:
    """Read rows of the form "0,1,...", in which every value and separator is one byte."""
    text = np.frombuffer(gzip.decompress(path.read_bytes()), dtype=np.uint8)
    if text.size != n_rows * n_variables * 2:
        raise ValueError(
            f"{path} must hold {n_rows} rows of {n_variables} binary values, "
            f"{n_rows * n_variables * 2:,} bytes, found {text.size:,}; delete it to fetch it again"
        )
    values: Binary = text.reshape(n_rows, 2 * n_variables)[:, ::2] - np.uint8(ord("0"))
    if values.max(initial=0) > 1:
        raise ValueError(f"{path} holds values other than 0 and 1; delete it to fetch it again")
    return values


def describe(record: DensitySet) -> str:
    """Return a description of a data set."""
    train, valid, test = record.n_rows
    return (
        f"{record.name}: {record.title}.\n\n"
        "One of the twenty data sets of the binary density-estimation benchmark: "
        f"{record.n_variables:,} binary variables, {train:,} rows for training, {valid:,} for "
        f"validation, {test:,} for test.\nSource: {DENSITY_ADDRESS}\n"
    )
