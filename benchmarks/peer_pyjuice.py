"""pyjuice beside the library: an epoch of EM of a hidden tree.

``python benchmarks/peer_pyjuice.py kernels | epoch`` needs an NVIDIA GPU, torch
and triton. pyjuice is a pure wheel: it is imported as it is installed, or from the wheels in the
folder that ``EXCHANGEABLE_PEERS`` names, where CUTLASS' headers may lie too, which its fastest
kernels are compiled with.

- *kernels* compiles these kernels ahead, side by side.
- *epoch* times an epoch of EM of a tree of 100 variables with 160 hidden states and 60,000 rows:
  the tree and the rows of ``benchmarks/device.py``, rooted at its centre, in batches of several
  sizes, with one update after all of them, and with one after each.

``peer_hclt.py`` fits pyjuice's hidden Chow-Liu trees to the density benchmark.
"""

import argparse
import gzip
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import types
import warnings
import zipfile
from pathlib import Path

import numpy as np

KERNELS = (
    ("pyjuice.layer.kernels.c", "is_available"),
    ("pyjuice.layer.kernels.c", "ele_is_available"),
    ("pyjuice.layer.kernels.c", "par_is_available"),
)
PSEUDOCOUNT = 0.1


def import_peer():
    """Return torch and pyjuice, which may come from wheels."""
    folder = os.environ.get("EXCHANGEABLE_PEERS")
    for wheel in sorted(Path(folder).glob("*.whl")) if folder else ():
        place = Path(tempfile.gettempdir()) / f"peer-{wheel.name.split('-')[0]}"
        if not place.exists():
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(place)
        sys.path.append(str(place))
    for name in ("matplotlib", "matplotlib.pyplot", "tqdm"):  # asked for, and not used here
        if importlib.util.find_spec(name.split(".")[0]) is None:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].tqdm = lambda some, **_: some
    import pyjuice
    import torch

    return torch, pyjuice


def read_rows(name, part):
    """Return the rows of a data set as a matrix."""
    path = Path(os.environ["EXCHANGEABLE_DATA"]) / "density" / f"{name}.{part}.data.gz"
    with gzip.open(path, "rb") as file:
        lines = file.read().split()
    digits = np.frombuffer(b"".join(lines).replace(b",", b""), dtype=np.uint8) - ord("0")
    return digits.reshape(len(lines), -1).astype(np.int64)


class Circuit:
    """A compiled circuit, asked in batches of one size, by recorded graphs if these agree."""

    def __init__(self, torch, juice, nodes, rows, batch):
        self.torch, self.batch = torch, batch
        self.circuit = juice.TensorCircuit(nodes, verbose=False)
        self.circuit.to(torch.device("cuda:0"))
        self.recorded = False
        with torch.no_grad():
            plain = self.circuit(rows[:batch]).ravel().clone()
        try:
            with torch.no_grad():
                first = self.circuit(rows[:batch], record_cudagraph=True).ravel().clone()
            self.recorded = bool(torch.allclose(plain, first, rtol=1e-3))
            self.flow(rows[:batch])
        except Exception as error:
            self.recorded = False
            print(f"  without recorded graphs: {type(error).__name__}: {error}", flush=True)

    def flow(self, rows):
        """Accumulate the flows of a batch; return the log-likelihoods."""
        scores = self.circuit(rows, record_cudagraph=self.recorded)
        scores.mean().backward()
        return scores

    def score_each(self, rows):
        """Return the log-likelihood of each row."""
        found = []
        with self.torch.no_grad():
            for begin in range(0, len(rows), self.batch):
                some = rows[begin : begin + self.batch]
                missing = self.batch - len(some)
                filled = self.torch.cat([some, rows[:1].repeat(missing, 1)]) if missing else some
                scores = self.circuit(filled, record_cudagraph=self.recorded)
                found.append(scores.ravel()[: len(some)].clone())
        return self.torch.cat(found)


def time_epoch(options):
    """Time epochs on the tree and the rows of ``benchmarks/device.py``."""
    torch, juice = import_peer()
    import networkx as nx
    from pyjuice.structures.compilation import BayesianTreeToHiddenRegionGraph

    rng = np.random.default_rng(0)
    n, states = options.nodes, options.states
    parent = [n] + [int(rng.integers(max(0, v - 8), v)) for v in range(1, n)]
    tree = nx.Graph([(v, parent[v]) for v in range(1, n)])
    root = nx.center(tree)[0]
    rows = torch.tensor(rng.random((options.rows, n)) < 0.4, dtype=torch.long, device="cuda:0")
    for batch in options.batches:
        nodes = BayesianTreeToHiddenRegionGraph(
            tree, root, states, juice.distributions.Categorical, {"num_cats": 2}
        )
        began = time.perf_counter()
        circuit = Circuit(torch, juice, nodes, rows, batch)
        once = juice.optim.FullBatchEM(circuit.circuit, pseudocount=PSEUDOCOUNT)
        often = juice.optim.MiniBatchEM(circuit.circuit, step_size=0.1, pseudocount=PSEUDOCOUNT)

        def epoch(optimizer, every, circuit=circuit, batch=batch):
            whole = range(0, len(rows) - batch + 1, batch)
            torch.cuda.synchronize()
            started = time.perf_counter()
            for begin in whole:
                circuit.flow(rows[begin : begin + batch])
                if every:
                    optimizer.step()
            if not every:
                optimizer.step()
            torch.cuda.synchronize()
            taken = time.perf_counter() - started
            return taken * len(rows) / (batch * len(whole))

        once.zero_flows()
        seconds = []
        for optimizer, every in ((once, False), (often, True)):
            first = epoch(optimizer, every)
            seconds.append(min(first, *(epoch(optimizer, every) for _ in range(2))))
        told = "recorded graphs" if circuit.recorded else "no recorded graphs"
        print(
            f"pyjuice {version()}, {n} variables x {states} states, {len(rows):,} rows, batches of "
            f"{batch:,}, {told}: an epoch {seconds[0]:.3f} s with one update, {seconds[1]:.3f} s "
            f"with an update per batch (compiled within {time.perf_counter() - began:.0f} s); "
            f"log-likelihood {float(circuit.score_each(rows[:4096]).double().mean()):.3f}",
            flush=True,
        )
        del circuit, once, often
        torch.cuda.empty_cache()


def version():
    """Return pyjuice's version, as its wheel or its installation says."""
    import pyjuice

    folder = Path(pyjuice.__file__).parents[1]
    return (
        next(iter(sorted(folder.glob("pyjuice-*.dist-info"))), Path("pyjuice-?."))
        .name.split("-")[1]
        .removesuffix(".dist")
    )


def compile_kernels(options):
    """Compile pyjuice's own kernels, each in a process of its own."""
    if options.number is not None:
        import_peer()
        module, name = KERNELS[int(options.number)]
        began = time.perf_counter()
        ready = getattr(importlib.import_module(module), name)()
        print(f"pyjuice kernel {name}: {ready}, {time.perf_counter() - began:.0f} s", flush=True)
        return
    import_peer()  # wheels are unpacked once
    this = [sys.executable, __file__, "kernels"]
    started = [subprocess.Popen([*this, str(number)]) for number in range(len(KERNELS))]
    for process in started:
        process.wait()


def main():
    """Run the part that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("kernels", "epoch"))
    parser.add_argument("number", nargs="?", help="of one kernel")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--states", type=int, default=160)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--batches", type=int, nargs="+", default=(1024, 4096))
    options = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)
    parts = {"kernels": compile_kernels, "epoch": time_epoch}
    parts[options.part](options)


if __name__ == "__main__":
    main()
