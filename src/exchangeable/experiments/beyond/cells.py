"""The density benchmark: results of the default estimator by data set, time budget and seed.

The protocol, fixed before test rows are read: `ExchangeableDensity` with its defaults, a budget and
a seed is fitted to the training rows, with the validation rows held out, in the same way for every
set. Test rows are scored once, at the end. Peers are run live on the same files, so that
differences have standard errors over pairs of test rows. ``python -m
exchangeable.experiments.beyond`` needs neither pooch nor a terminal if the files are in the data
folder.
"""

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import exchangeable
from exchangeable.arrays import FloatArray
from exchangeable.datasets import fetch_density
from exchangeable.datasets._density import DENSITY_SETS
from exchangeable.estimators.density import ExchangeableDensity
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.experiments.store import Row, Store
from exchangeable.families import Neural
from exchangeable.persistence import save
from exchangeable.runtime.threads import n_threads

SETS = tuple(sorted(DENSITY_SETS, key=lambda name: DENSITY_SETS[name].n_variables))
"""The data sets, those with few variables first."""
DEFAULT = "default"
PAPERS = "paper's MEVM"
CONTINUOUS = "continuous mixture"
PEERS = (PAPERS, CONTINUOUS)
"""Models run live beside the default: the paper's, and that of Correia et al. (2023)."""
MODELS = (DEFAULT, *PEERS)
KEY = ("dataset", "model", "budget", "seed")
PAIRED_KEY = (*KEY, "peer")
PAPER: dict[str, Any] = {
    "n_components": 20,
    "n_init": 10,
    "blocks": "welch",
    "init": "random",
    "tol": 1e-3,
}
"""The paper's mixture: ten starts, the best by training rows; validation rows are not used."""
CONTINUOUS_SETTINGS: dict[str, Any] = {
    "latent": 4,
    "points": 1024,
    "batch_size": 128,
    "learning_rate": 1e-3,
    "settle": 0,
}
"""Their latent dimension, points per step, batch size and learning rate, as far as known."""
CONTINUOUS_POINTS = 8192


@dataclass
class Beyond:
    """The benchmark on some sets.

    Attributes
    ----------
    store : Store
        Where finished cells are stored, with `KEY`. Log-probabilities of the test rows are stored
        in a folder next to it, and differences between pairs of cells in a second file.
    tell : callable
        Called with a line of text when something starts or ends.
    n_jobs : int, optional
        Number of threads.
    device : {"auto", "cpu", "gpu"}
        Where networks are trained.
    loss : float, optional
        If given, the default is also compressed, with this loss on the validation rows.
    """

    store: Store
    tell: Callable[[str], None] = lambda text: None
    n_jobs: int | None = None
    device: str = "auto"
    loss: float | None = None

    @property
    def paired(self) -> Store:
        """Differences between cells, over pairs of test rows."""
        return Store(self.store.path.with_name(f"{self.store.path.stem}_paired.csv"), PAIRED_KEY)

    def run(
        self,
        sets: Sequence[str] = SETS,
        models: Sequence[str] = MODELS,
        budgets: Sequence[float] = (600.0,),
        seeds: Sequence[int] = (0,),
        download: bool = False,
    ) -> None:
        """Run all cells that are not finished; peers have no budget, and only the first seed.

        A data set that is not in the data folder is skipped, unless it may be downloaded.
        """
        for name in sets:
            wanted = [
                (model, budget, seed)
                for model in models
                for budget in (sorted(budgets) if model == DEFAULT else [0.0])
                for seed in (seeds if model == DEFAULT else seeds[:1])
                if not self.store.find(
                    dataset=name, model=model, budget=f"{budget:g}", seed=str(seed)
                )
            ]
            if not wanted:
                continue
            try:
                data = fetch_density(name, download_if_missing=download)
            except OSError:
                self.tell(f"{name} is not in the data folder")
                continue
            for model, budget, seed in wanted:
                self._cell(name, model, budget, seed, data)

    def _cell(self, name: str, model: str, budget: float, seed: int, data: Any) -> None:
        cell = {"dataset": name, "model": model, "budget": f"{budget:g}", "seed": str(seed)}
        said = f"{name}, {model}" + (f", {budget:g} s" if budget else "") + f", seed {seed}"
        self.tell(said)
        began, worked = time.monotonic(), time.process_time()
        estimator, more = self._fitted(model, budget, seed, data)
        seconds, worked = time.monotonic() - began, time.process_time() - worked
        began, estimator.n_jobs = time.monotonic(), None
        each = np.asarray(estimator.score_samples(data.test), dtype=np.float64)
        scoring = time.monotonic() - began
        valid = estimator.valid_score_ if model == DEFAULT else estimator.score(data.valid)
        measured = {
            "valid": f"{valid:.5f}",
            "test": f"{each.mean():.5f}",
            "error": f"{each.std(ddof=1) / np.sqrt(each.size):.5f}",
            "n_parameters": estimator.n_parameters_,
            "seconds": f"{seconds:.1f}",
            "processor_seconds": f"{worked:.1f}",
            "scoring_seconds": f"{scoring:.2f}",
        }
        found = {**cell, **measured, **more, **self.machine()}
        self.keep_rows(cell, each)
        self.store.add(found)
        self.compare(cell)
        self.tell(f"{said}: valid {measured['valid']}, test {measured['test']}, {seconds:.0f} s")
        if self.loss is not None and model == DEFAULT:
            self.store.add(found | smaller(estimator, data, self.loss))
            self.tell(f"{said}: made smaller")

    def add(self, name: str, model: str, each: FloatArray, **more: Any) -> None:
        """Add a cell of a peer that was run by other means, from log-probabilities of test rows.

        Parameters
        ----------
        name, model : str
            The data set, and the name of the peer.
        each : array of shape (n_rows,)
            Log-probabilities of the test rows, in their order.
        **more
            Further entries of its cell, such as ``seconds``.
        """
        if model in MODELS:
            raise ValueError(f"{model!r} is run by the benchmark itself; give another name")
        n_rows = DENSITY_SETS[name].n_rows[2]
        if each.shape != (n_rows,) or not np.isfinite(each).all():
            raise ValueError(
                f"{model} on {name}: expected {n_rows:,} log-probabilities, got an array of shape "
                f"{each.shape}, or numbers that are not finite"
            )
        cell = {"dataset": name, "model": model, "budget": "0", "seed": "0"}
        error = each.std(ddof=1) / np.sqrt(each.size)
        measured = {"valid": "", "test": f"{each.mean():.5f}", "error": f"{error:.5f}"}
        self.store.add({**cell, **measured, "seconds": "", **more})
        self.keep_rows(cell, each)
        self.compare(cell)

    def _fitted(self, model: str, budget: float, seed: int, data: Any) -> tuple[Any, Row]:
        """Return a model fitted to training rows, and the entries of its cell about the search."""
        options: dict[str, Any] = {"random_state": seed, "n_jobs": self.n_jobs}
        if model == PAPERS:
            return ExchangeableMixture(**PAPER, **options).fit(data.train), {}
        if model == CONTINUOUS:
            mixture = ExchangeableMixture(
                CONTINUOUS_POINTS,
                family=Neural(**CONTINUOUS_SETTINGS),
                device=self.device,
                **options,
            )
            return mixture.fit(data.train, X_valid=data.valid), {}
        density = ExchangeableDensity(time_budget=budget or None, device=self.device, **options)
        density.fit(data.train, X_valid=data.valid)
        members = [
            f"{row['n_fits']} of {row['family']} ({row['share']:.2f})" for row in density.members_
        ]
        return density, {
            "members": ", ".join(members),
            "n_fits": sum(row["n_fits"] for row in density.table_),
            "n_settings": len(density.table_),
            "n_rounds": len(density.rounds_),
            "left_out": ", ".join(density.left_out_),
        }

    def machine(self) -> Row:
        """Return where a cell was run, and with what software."""
        device = "cpu"
        if self.device != "cpu" and _version("jax"):
            import jax

            device = jax.devices()[0].device_kind
        return {
            "cores": n_threads(self.n_jobs),
            "device": device,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "code": code(),
            "versions": " ".join(
                f"{name} {_version(name)}" for name in ("numpy", "numba", "jax") if _version(name)
            )
            + f" python {platform.python_version()}",
        }

    def keep_rows(self, cell: Row, each: FloatArray) -> None:
        """Store the log-probabilities of the test rows, from which differences are computed."""
        path = self.rows_of(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, each)

    def compare(self, cell: Row) -> None:
        """Store the differences between a cell of the default and all peers of its set."""
        others = self.store.find(dataset=cell["dataset"])
        pairs = [(cell, other) for other in others if other["model"] != DEFAULT]
        if cell["model"] != DEFAULT:
            pairs = [(other, cell) for other in others if other["model"] == DEFAULT]
        for one, peer in pairs:
            if not (self.rows_of(one).exists() and self.rows_of(peer).exists()):
                continue
            gaps = np.load(self.rows_of(one)) - np.load(self.rows_of(peer))
            self.paired.add(
                {name: one[name] for name in KEY}
                | {
                    "peer": peer["model"],
                    "difference": f"{gaps.mean():.5f}",
                    "error": f"{gaps.std(ddof=1) / np.sqrt(gaps.size):.5f}",
                    "n_rows": gaps.size,
                }
            )

    def rows_of(self, cell: Row) -> Path:
        """Return the file with the log-probabilities of the test rows."""
        named = "-".join(str(cell[name]) for name in KEY)
        plain = "".join(c if c.isalnum() or c in "-." else "_" for c in named)
        return self.store.path.with_name(f"{self.store.path.stem}_rows") / f"{plain}.npy"


def smaller(density: Any, data: Any, loss: float) -> Row:
    """Return the entries of a cell about compression: size, file, speed and score."""
    small = density.compress(data.valid, loss=loss)
    began = time.monotonic()
    test = small.score(data.test)
    seconds = time.monotonic() - began
    with TemporaryDirectory() as folder:
        sizes = []
        for number, each in enumerate((density, small)):
            path = Path(folder) / str(number)
            save(each, path)
            sizes.append(path.stat().st_size)
    return {
        "file_bytes": sizes[0],
        "small_bytes": sizes[1],
        "small_parameters": small.n_parameters_,
        "small_loss": f"{small.compression_['loss']:.6f}",
        "small_test": f"{test:.5f}",
        "small_scoring_seconds": f"{seconds:.2f}",
    }


@cache
def code() -> str:
    """Return a short identifier of the present sources of this package."""
    digest = sha256()
    folder = Path(exchangeable.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
