"""Storing the fits of a search, in memory or in a file, so that a later search can reuse them.

The same settings, start, rows and seed give the same fit. A search that finds it stored need not
repeat it, and so continues where an earlier search stopped.
"""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from exchangeable.fitting.checkpoint import decode_mixture, encode_mixture
from exchangeable.fitting.search.trials import Fit, Settings
from exchangeable.storage import archive
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import numbers

FORMAT = "exchangeable search"
VERSION = 1
SECONDS_APART = 10.0
"""Minimum number of seconds between two writes of a file with all fits."""
Key = tuple[Settings, int]


class KeptFits:
    """Fits by their settings and the number of their start; closed after the block.

    Parameters
    ----------
    purpose : dict
        A description of the search: rows, seed and priors.
    path : Path, optional
        The file, which is read if it exists; without one, fits are stored in memory only.
    shape : pair of int, optional
        Numbers of distinct held-out rows and of columns, which fits in the file must match.
    """

    def __init__(
        self,
        purpose: dict[str, Any],
        path: Path | None = None,
        shape: tuple[int, int] | None = None,
    ) -> None:
        self.purpose, self._path, self._lock = purpose, path, threading.Lock()
        self.fits: dict[Key, Fit] = {}
        self._unsaved, self._next, self._closed = False, -np.inf, False
        if path is not None and path.exists():
            self.fits = load_fits(path, purpose)
            for fit in self.fits.values():
                found = fit.each.size, fit.mixture.model.n_variables
                if shape is not None and found != shape:
                    raise ValueError(
                        f"the checkpoint {path} holds a fit to rows of another shape: {found} "
                        f"held-out rows and columns, expected {shape}; remove it"
                    )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._closed = True
            if self._unsaved:
                self._save()

    def get(self, settings: Settings, number: int) -> Fit | None:
        """Return a fit, None if it is not stored."""
        with self._lock:
            return self.fits.get((settings, number))

    def put(self, settings: Settings, number: int, fit: Fit) -> None:
        """Store a fit that was not cut short."""
        with self._lock:
            if self._closed:
                return
            self.fits[settings, number], self._unsaved = fit, self._path is not None
            if self._unsaved and time.monotonic() >= self._next:
                self._save()

    def best_settings(self) -> dict[str, Settings]:
        """Return the settings of each family with the highest held-out likelihood."""
        best: dict[str, tuple[float, Settings]] = {}
        for (settings, number), fit in self.fits.items():
            if number == 0 and fit.valid > best.get(settings.family, (-np.inf,))[0]:
                best[settings.family] = fit.valid, settings
        return {family: settings for family, (_, settings) in best.items()}

    def _save(self) -> None:
        assert self._path is not None
        save_fits(self._path, self.fits, self.purpose)
        self._unsaved, self._next = False, time.monotonic() + SECONDS_APART


def save_fits(path: Path, fits: Mapping[Key, Fit], purpose: dict[str, Any]) -> None:
    """Write fits to a file, replacing it atomically."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    listed = []
    for position, ((settings, number), fit) in enumerate(fits.items()):
        arrays[f"{position}.each"] = fit.each
        arrays[f"{position}.worth"] = np.array([fit.valid, fit.train, fit.seconds])
        listed.append(
            {
                "settings": {**vars(settings), "own": [list(pair) for pair in settings.own]},
                "number": number,
                "n_iter": int(fit.n_iter),
                "mixture": encode_mixture(fit.mixture, f"{position}.", arrays),
            }
        )
    header = {"format": FORMAT, "version": VERSION, "purpose": purpose, "fits": listed}
    archive.write(path, header, arrays)


def load_fits(path: Path, purpose: dict[str, Any]) -> dict[Key, Fit]:
    """Return the fits in a file, rejecting one that belongs to a different search."""
    try:
        header, arrays = archive.read(path)
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            raise ModelFileError("does not hold a search of this version of the library")
        kept, listed = header.get("purpose"), header.get("fits")
        if not isinstance(kept, dict) or not isinstance(listed, list):
            raise ModelFileError("does not hold fits")
        differing = sorted(key for key in purpose if kept.get(key) != purpose[key])
        if differing:
            was = ", ".join(f"{key} was {kept.get(key)}, is {purpose[key]}" for key in differing)
            raise ValueError(f"the checkpoint {path} belongs to another search: {was}; remove it")
        with archive.refusing(path):
            return dict(_decode(one, f"{n}.", arrays) for n, one in enumerate(listed))
    except (ModelFileError, OSError) as error:
        raise ValueError(f"{path} is not a checkpoint of this library: {error}") from error


def _decode(one: Any, prefix: str, arrays: Any) -> tuple[Key, Fit]:
    settings = one.get("settings") if isinstance(one, dict) else None
    if not isinstance(settings, dict) or not all(
        type(one.get(name)) is int and 0 <= one[name] < 1 << 31 for name in ("number", "n_iter")
    ):
        raise ModelFileError("holds a fit without settings")
    try:
        own = tuple((str(name), value) for name, value in settings["own"])
        made = Settings(**{**settings, "own": own})
        made.parameters()
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"holds settings that cannot be used: {error}") from None
    mixture = decode_mixture(one.get("mixture"), prefix, arrays)
    each, worth = (arrays.get(f"{prefix}{name}") for name in ("each", "worth"))
    if each is None or worth is None or each.ndim != 1:
        raise ModelFileError("holds a fit without what it is worth")
    each = numbers(each, "each", each.shape, low=-np.inf, high=np.inf)
    valid, train, seconds = numbers(worth, "worth", (3,), low=-np.inf, high=np.inf)
    fit = Fit(mixture, each, float(valid), float(train), one["n_iter"], float(seconds), True)
    return (made, one["number"]), fit
