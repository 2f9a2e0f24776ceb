"""Hidden Chow-Liu trees by pyjuice on the density benchmark, as a peer whose rows are kept.

``python benchmarks/peer_hclt.py fit --folder FOLDER [SET ...]`` needs what ``peer_pyjuice.py``
does, and the data in ``EXCHANGEABLE_DATA``. All sets are fitted side by side, one process each, and
have ``--seconds`` each, so that effort is the same. To every set trees of several numbers of states
are fitted by pyjuice's mini-batch EM in its tutorial's way: the step falls from 0.9 to 0.1 and then
to 0.05 (here at last to 0.01, for small sets), pseudo-count 0.1. How far it has fallen goes by
epochs or by time, whichever is further. Validation rows are scored after every epoch; the best
parameters are kept, and go on with what the schedule has next when they are stale. The best number
of states is then fitted again with a schedule that ends after its best epoch, and by Anemone,
pyjuice's EM with momentum. Validation rows choose; test rows are scored once, by what was chosen.
The folder gets ``hclt.csv``, and ``hclt_rows.npz`` with log-probabilities of the test rows, by set.

``python benchmarks/peer_hclt.py add --folder FOLDER [--results results/beyond.csv]`` adds both to
the density benchmark, as the column "HCLT (pyjuice)".
"""

import argparse
import csv
import os
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from peer_pyjuice import Circuit, import_peer, read_rows, version

SETS = (
    "msnbc", "kdd", "c20ng", "msweb", "cr52", "book", "tretail", "cwebkb", "bbc", "plants",
    "baudio", "bnetflix", "accidents", "jester", "dna", "nltcs",
)  # fmt: skip
"""The largest first."""
STATES = {32: 1.0, 64: 1.2, 128: 1.6, 256: 2.4}
"""Numbers of hidden states, and which part of the time each has."""
AGAIN = 1.6
"""The part of each further fit of the best."""
EPOCHS, PATIENCE = 100, 6
STEPS = ((0.0, 0.9), (0.3, 0.1), (0.8, 0.05), (1.0, 0.01))
ANEMONE_STEPS = ((0.0, 0.4), (0.8, 0.1), (1.0, 0.02))
PSEUDOCOUNT = 0.1
FEWEST_STEPS, BATCHES = 24, (64, 2048)
"""Steps of an epoch at least, and sizes of batches, powers of two."""
TREE_ROWS = 20_000
"""Rows whose mutual information the tree is found by."""
COLUMNS = (
    "dataset",
    "states",
    "optimizer",
    "epochs",
    "fits",
    "valid",
    "test",
    "seconds",
    "version",
)
NAME = "HCLT (pyjuice)"


class Fitted:
    """A fit: a circuit, its best parameters, and what validation rows gave to these."""

    def __init__(self, circuit, states, optimizer):
        self.circuit, self.states, self.optimizer = circuit, states, optimizer
        self.worth, self.epoch, self.kept = -np.inf, 0, None

    def parameters(self):
        """Return what EM changes."""
        inputs = [layer.params for layer in self.circuit.circuit.input_layer_group]
        return [self.circuit.circuit.params, *inputs]

    def keep(self, worth, epoch):
        """Keep the parameters as they are."""
        self.worth, self.epoch = worth, epoch
        self.kept = [each.detach().clone() for each in self.parameters()]

    def restore(self, torch):
        """Go back to the best parameters."""
        with torch.no_grad():
            for each, kept in zip(self.parameters(), self.kept, strict=True):
                each.copy_(kept)


def batch_size(n_rows):
    """Return how many rows a step takes.

    >>> batch_size(15_000), batch_size(300_000), batch_size(1_600)
    (512, 2048, 64)
    """
    low, high = BATCHES
    return min(high, max(low, 1 << ((n_rows // FEWEST_STEPS).bit_length() - 1)))


def step_at(steps, progress):
    """Return the step after a part of the schedule.

    >>> step_at(STEPS, 0.15), step_at(STEPS, 2.0)
    (0.5, 0.01)
    """
    return float(np.interp(progress, *zip(*steps, strict=True)))


def train(torch, fitted, optimizer, rows, valid, seconds, epochs, steps):
    """Train until the schedule ends; return the number of epochs.

    It goes on by epochs or by seconds, whichever is further. Where validation rows are stale, the
    best parameters go on with what the schedule has next.
    """
    began, batch = time.perf_counter(), fitted.circuit.batch
    count = len(rows) // batch
    skipped, epoch, stale = 0.0, 0, 0

    def progress(number=0):
        passed = (time.perf_counter() - began) / seconds
        return skipped + max((epoch + number / count) / epochs, passed)

    while progress() < 1.0:
        order = torch.randperm(len(rows), device=rows.device)
        for number in range(count):
            fitted.circuit.flow(rows[order[number * batch : (number + 1) * batch]])
            optimizer.step(step_at(steps, progress(number)))
            if progress(number) >= 1.0:
                break
        epoch, stale = epoch + 1, stale + 1
        worth = float(fitted.circuit.score_each(valid).double().mean())
        if worth > fitted.worth:
            fitted.keep(worth, epoch)
            stale = 0
        elif not np.isfinite(worth) and fitted.kept is None:
            break
        if stale >= PATIENCE or not np.isfinite(worth):
            fitted.restore(torch)
            now, stale = progress(), 0
            skipped += min((begin for begin, _ in steps if begin > now), default=1.0) - now
    return epoch


def fit_set(name, seconds, folder):
    """Fit trees to a data set, and write what validation rows choose."""
    began = time.perf_counter()
    torch, juice = import_peer()
    import networkx as nx
    from pyjuice.structures.compilation import BayesianTreeToHiddenRegionGraph
    from pyjuice.structures.hclt import chow_liu_tree, mutual_information_chunked

    rows, valid = [torch.tensor(read_rows(name, part), device="cuda:0") for part in ("ts", "valid")]
    some = rows[:TREE_ROWS].float()
    information = mutual_information_chunked(some, some, 2, 0.5 / 32, 64).cpu().numpy()
    tree = chow_liu_tree(information)
    root = nx.center(tree)[0]
    best, made = None, 0

    def fit(states, kind, share, epochs=EPOCHS):
        nonlocal best, made
        left = began + seconds - time.perf_counter()
        own = share * left
        if own < 0.02 * seconds:
            return
        started = time.perf_counter()
        try:
            torch.manual_seed(made)
            nodes = BayesianTreeToHiddenRegionGraph(
                tree, root, states, juice.distributions.Categorical, {"num_cats": 2}
            )
            circuit = Circuit(torch, juice, nodes, rows, batch_size(len(rows)))
            if kind == "Anemone":
                optimizer = juice.optim.Anemone(circuit.circuit, pseudocount=0.5 / len(rows))
            else:
                optimizer = juice.optim.MiniBatchEM(circuit.circuit, pseudocount=PSEUDOCOUNT)
            fitted = Fitted(circuit, states, kind)
            ready = time.perf_counter()
            length = max(own - (ready - started), 0.5 * own)
            steps = ANEMONE_STEPS if kind == "Anemone" else STEPS
            count = train(torch, fitted, optimizer, rows, valid, length, epochs, steps)
        except Exception:
            print(f"{name}, {states} states, {kind}:\n{traceback.format_exc(limit=3)}", flush=True)
            return
        made += 1
        ended = time.perf_counter()
        print(
            f"  {name}, {states} states, {kind}: valid {fitted.worth:.4f} at epoch {fitted.epoch} "
            f"of {count} of {epochs}, {ready - started:.0f} s to compile, {ended - ready:.0f} s",
            flush=True,
        )
        if fitted.kept is not None and (best is None or fitted.worth > best.worth):
            best = fitted
        del fitted, circuit, optimizer
        torch.cuda.empty_cache()

    parts = list(STATES.items())
    for number, (states, part) in enumerate(parts):
        rest = sum(other for _, other in parts[number:]) + 2 * AGAIN
        fit(states, "EM", part / rest)
    if best is None:
        print(f"{name}: no fit", flush=True)
        return
    fit(best.states, "EM", 0.5, max(6, best.epoch))
    fit(best.states, "Anemone", 0.85)
    best.restore(torch)
    test = torch.tensor(read_rows(name, "test"), device="cuda:0")
    each = best.circuit.score_each(test).float().cpu().numpy()
    row = (
        name, best.states, best.optimizer, best.epoch, made, f"{best.worth:.5f}",
        f"{each.astype(np.float64).mean():.5f}", f"{time.perf_counter() - began:.1f}", version(),
    )  # fmt: skip
    np.save(folder / f"{name}.npy", each)
    with (folder / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file).writerow(row)
    print("HCLT " + ", ".join(f"{k} {v}" for k, v in zip(COLUMNS, row, strict=True)), flush=True)


def fit(options):
    """Fit every set in a process of its own, and put together what they leave."""
    folder = options.folder.resolve()
    parts = folder.with_name(f"{folder.name}_parts")
    if options.one:
        fit_set(options.sets[0], options.seconds, parts)
        return
    for each in (folder, parts):
        each.mkdir(parents=True, exist_ok=True)
    import_peer()  # wheels are unpacked once
    this = [sys.executable, __file__, "fit", "--one", "--seconds", str(options.seconds)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYJUICE_DISABLE_CUDA_KERNELS": "1"}
    ends = time.monotonic() + options.seconds + options.grace
    running = [
        subprocess.Popen([*this, "--folder", str(folder), name], env=environment)
        for name in options.sets or SETS
    ]
    for process in running:
        try:
            process.wait(max(0.1, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
    found = sorted(parts.glob("*.csv"))
    with (folder / "hclt.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(row for path in found for row in csv.reader(path.open()))
    rows = {path.stem: np.load(path.with_suffix(".npy")) for path in found}
    np.savez_compressed(folder / "hclt_rows.npz", **rows)
    print(f"{len(found)} sets in {folder}", flush=True)


def add(options):
    """Add what was fitted to the density benchmark."""
    from exchangeable.experiments.beyond.cells import KEY, Beyond
    from exchangeable.experiments.store import Store

    experiment = Beyond(Store(options.results, KEY))
    with (options.folder / "hclt.csv").open() as file:
        cells = {row["dataset"]: row for row in csv.DictReader(file)}
    with np.load(options.folder / "hclt_rows.npz") as rows:
        for name, cell in cells.items():
            experiment.add(
                name,
                NAME,
                rows[name].astype(np.float64),
                valid=cell["valid"],
                seconds=cell["seconds"],
                members=f"{cell['states']} states",
                n_fits=cell["fits"],
                device=options.device,
                versions=f"pyjuice {cell['version']}",
            )


def main():
    """Fit, or add what was fitted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("fit", "add"))
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=195.0, help="per set")
    parser.add_argument("--grace", type=float, default=28.0, help="after which processes are ended")
    parser.add_argument("--results", type=Path, default=Path("results/beyond.csv"))
    parser.add_argument("--device", default="NVIDIA H200")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    {"fit": fit, "add": add}[options.part](options)


if __name__ == "__main__":
    main()
