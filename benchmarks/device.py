"""EM and training on an accelerator, by themselves.

``python benchmarks/device.py [hidden] [mixture] [neural]`` times on the best device that JAX finds

- *hidden*: a pass of EM over a tree of 100 variables with 160 hidden states, 60,000 rows;
- *mixture*: an iteration of EM of 100 components over 10^7 rows of 1,000 bits, which stay on the
  device, and which share of its bandwidth and arithmetic that reaches;
- *neural*: a fit of ``"neural independent"`` to bnetflix, from ``EXCHANGEABLE_DATA``, or to made
  rows of that shape.

Each part first compares what it computes with plain numpy on few rows. It needs numpy and JAX and
no other dependency of the package: modules are read from ``src/exchangeable/devices`` alone. Sizes
are options, see ``--help``; parts that fail say so, and the next goes on.
"""

import argparse
import gzip
import os
import platform
import sys
import time
import traceback
import types
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
package = types.ModuleType("exchangeable")  # so that its other dependencies are not imported
package.__path__ = [str(ROOT / "src" / "exchangeable")]
sys.modules["exchangeable"] = package

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from exchangeable.devices.networks.batches import Symbols  # noqa: E402
from exchangeable.devices.networks.head import Head, Settings  # noqa: E402
from exchangeable.devices.networks.training import Task, Training  # noqa: E402
from exchangeable.devices.passes import chunks, hidden, linear  # noqa: E402
from exchangeable.runtime.clock import Clock, Pace  # noqa: E402

PARTS = ("hidden", "mixture", "neural")


def timed(function, repeats):
    """Return the median and the least of the seconds that some calls take, after one more."""
    jax.block_until_ready(function())
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(function())
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds)), min(seconds)


# --- a tree of hidden states --------------------------------------------------------------------


def random_tree(n_nodes, n_states, rng):
    """Return the shape of a random tree over binary variables, and its parameters."""
    parent = [n_nodes] + [int(rng.integers(max(0, v - 8), v)) for v in range(1, n_nodes)]
    shape = hidden.Shape(tuple(range(n_nodes)), tuple(parent), tuple(range(0, 2 * n_nodes + 1, 2)))
    on = rng.uniform(0.05, 0.95, (n_nodes, n_states))
    evidence = np.stack([1 - on, on], axis=1).reshape(2 * n_nodes, n_states)
    edges = rng.dirichlet(np.full(n_states, 0.5), size=(n_nodes, n_states))
    return shape, evidence, edges, np.log(rng.dirichlet(np.ones(n_states)))


def plain_log_likelihood(shape, evidence, edges, log_prior, codes):
    """Return log P of each row by messages in double precision."""
    up = [evidence[codes[:, v]] for v in range(len(shape.order))]
    scale = np.zeros(len(codes))
    for v in reversed(shape.order[1:]):
        product = up[shape.parent[v]] * (up[v] @ edges[v].T)
        top = product.max(axis=1)
        up[shape.parent[v]], scale = product / top[:, None], scale + np.log(top)
    return np.log(up[shape.order[0]] @ np.exp(log_prior)) + scale


@jax.jit
def next_hidden(sums, edges, evidence):
    """Return the parameters of the next iteration, made of sums on the device."""
    pairs = sums.pairs * edges + 0.1 / edges.shape[1]
    by_symbol = sums.by_symbol.reshape(-1, 2, evidence.shape[1]) + 0.1
    shares = sums.totals + 0.1
    return (
        pairs / pairs.sum(axis=2, keepdims=True),
        (by_symbol / by_symbol.sum(axis=1, keepdims=True)).reshape(evidence.shape),
        jnp.log(shares / shares.sum()),
    )


def time_hidden(options, device):
    """Time passes of EM over a tree of hidden states."""
    rng = np.random.default_rng(0)
    n_nodes, n_states, n_rows = options.nodes, options.states, options.tree_rows
    shape, evidence, edges, log_prior = random_tree(n_nodes, n_states, rng)
    codes = (rng.random((n_rows, n_nodes)) < 0.4).astype(np.int32) + 2 * np.arange(n_nodes)
    codes = codes.astype(np.int32)
    tile = -(-n_rows // -(-n_rows // hidden.tile_size(n_rows, n_nodes, n_states)))
    rows = hidden.put_rows(codes, np.ones(n_rows), tile, device)
    began = time.perf_counter()
    given = hidden.single(evidence, edges, log_prior)
    (found,) = hidden.expect_hidden(shape, rows, [given], device)
    compiled = time.perf_counter() - began
    few = plain_log_likelihood(shape, evidence, edges, log_prior, codes[:200])
    error = float(abs(found.each[:200] - few).mean())
    state = [
        [
            jax.device_put(jnp.asarray(each, dtype=jnp.float32), device)
            for each in (edges, evidence, log_prior)
        ]
    ]

    tree = jax.device_put(hidden.Shape(*map(np.asarray, shape)), device)

    def iterate():
        edges, evidence, log_prior = state[0]
        total = None
        for tile_codes, weights in zip(rows.codes, rows.weights, strict=True):
            given = tile_codes, weights, evidence, edges, log_prior
            part = hidden.expect_tile(tree, *given, shape.widest)
            total = part if total is None else jax.tree.map(jnp.add, total, part)
        state[0] = next_hidden(total, edges, evidence)
        return state[0]

    median, least = timed(iterate, options.repeats)
    work = 6.0 * (n_nodes - 1) * n_states**2 * n_rows
    print(
        f"hidden tree: {n_nodes} variables x {n_states} states "
        f"({n_nodes * n_states**2:,} edge parameters), {n_rows:,} rows, {len(rows.codes)} tiles\n"
        f"  an iteration of EM: {median:.4f} s (least {least:.4f}), "
        f"{work / median / 1e12:.1f} TFLOP/s in products; first pass with compiling "
        f"{compiled:.1f} s; mean error of log P against double precision {error:.1e}"
    )


# --- a mixture of independent variables ---------------------------------------------------------


@jax.jit
def next_mixture(sums, n_rows):
    """Return the parameters of the next iteration."""
    means = (sums.ones + 0.1) / (sums.totals + 0.2)
    slope = jnp.log(means) - jnp.log1p(-means)
    shares = (sums.totals + 1.0) / (n_rows + sums.totals.size)
    return jnp.log1p(-means).sum(axis=0) + jnp.log(shares), slope


def time_mixture(options, device):
    """Time iterations of EM of a mixture over rows that stay on the device."""
    n_rows, n, k = options.rows, options.variables, options.components
    tile = chunks.layout(n_rows, n, k, float("inf")).tile
    n_tiles, width = -(-n_rows // tile), -(-n // 8)
    halved = device.platform != "cpu"
    with jax.default_device(device):
        make = jax.jit(
            lambda key: (
                jax.random.bits(key, (n_tiles, tile, width), jnp.uint8)
                & jax.random.bits(jax.random.fold_in(key, 1), (n_tiles, tile, width), jnp.uint8)
            )
        )
        bits = make(jax.random.key(0))
        used = (jnp.arange(n_tiles * tile) < n_rows).astype(jnp.float32).reshape(n_tiles, tile)
        rows = linear.Rows(bits, used)
        means = np.random.default_rng(0).uniform(0.1, 0.4, (n, k))
        slope = np.log(means) - np.log1p(-means)
        base = np.log1p(-means).sum(axis=0) - np.log(k)
        state = [linear.single(base, slope)]
        first = linear.expect_linear(rows, state[0], halved=halved)
        few = np.unpackbits(np.asarray(bits[0, :200]), axis=1, bitorder="little")[:, :n]
        scores = few @ slope + base
        top = scores.max(axis=1)
        exact = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        error = float(abs(np.asarray(first.each)[0, : len(exact)] - exact).mean())
        del first

        def iterate():
            sums = linear.expect_linear(rows, state[0], halved=halved)
            base, slope = next_mixture(sums, n_rows)
            state[0] = state[0]._replace(base=base, slope=slope)
            return base

        median, least = timed(iterate, options.repeats)
    arithmetic = 4.0 * n_rows * n * k
    parts = linear.PARTS if halved else 1
    print(
        f"mixture: {k} components, {n_rows:,} rows x {n:,} bits resident, tiles of {tile:,}\n"
        f"  an iteration of EM: {median:.4f} s (least {least:.4f}); "
        f"{arithmetic / median / 1e12:.1f} TFLOP/s of needed products, "
        f"{parts * arithmetic / median / 1e12:.1f} made "
        f"({parts * arithmetic / median / 1e12 / options.peak_tflops:.0%} of "
        f"{options.peak_tflops:g}); rows read at "
        f"{n_rows * width / median / 1e9:.1f} GB/s as bits, "
        f"{n_rows * n * (2 if halved else 4) * 3 / median / 1e12:.2f} TB/s unpacked, written once "
        f"and read twice (of {options.peak_bandwidth:g}); mean error of log P {error:.1e}"
    )


# --- a neural mixture ---------------------------------------------------------------------------


def read_rows(name, part):
    """Return the rows of a data set as bytes, None where it is not at hand."""
    folder = os.environ.get("EXCHANGEABLE_DATA")
    path = Path(folder or ".") / "density" / f"{name}.{part}.data.gz"
    if folder is None or not path.exists():
        return None
    with gzip.open(path, "rb") as file:
        lines = file.read().split()
    digits = np.frombuffer(b"".join(lines).replace(b",", b""), dtype=np.uint8) - ord("0")
    return digits.reshape(len(lines), -1).astype(np.int8)


def made_rows(n_rows, n_variables, rng):
    """Return rows of a few factors."""
    factors = rng.normal(size=(n_rows, 6))
    loads = np.random.default_rng(9).normal(size=(6, n_variables))
    return (rng.random((n_rows, n_variables)) < 1 / (1 + np.exp(-factors @ loads))).astype(np.int8)


def spread_points(n_points, dimension):
    """Return evenly spread points of the unit cube: multiples of an irrational vector."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (dimension + 1))
    steps = ratio ** -np.arange(1, dimension + 1)
    return ((0.5 + np.outer(np.arange(n_points), steps)) % 1.0).astype(np.float32)


def time_neural(options, device):
    """Time fits of a neural mixture of independent variables."""
    rng = np.random.default_rng(0)
    sets = [read_rows("bnetflix", part) for part in ("ts", "valid", "test")]
    name = "bnetflix"
    if any(rows is None for rows in sets):
        name = "made rows of bnetflix' shape"
        sets = [made_rows(n_rows, 100, rng) for n_rows in options.neural_rows]
    train, valid, test = [Symbols(rows, np.ones(len(rows))) for rows in sets]
    means = (train.symbols.sum(axis=0) + 0.1) / (len(train.symbols) + 0.2)
    n = means.size
    settings = Settings(24, (128, 256), options.points, 512, 4e-3, 50, 3, 2, 1, 512)
    task = Task(
        Head("odds", n, False),
        {"real": np.ones(n, dtype=np.float32)},
        (np.log(means) - np.log1p(-means))[None],
        train,
        valid,
        spread_points(options.points, settings.latent),
        spread_points(options.neural_components, settings.latent),
    )
    for attempt in ("with compiling", "compiled"):
        began, cpu = time.perf_counter(), time.process_time()
        training = Training(task, settings, np.random.default_rng(0), device, Pace(Clock()))
        count = sum(1 for _ in training.iterations(1e-4, options.iterations))
        outputs, shares = training.components()
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        slope = np.clip(outputs, -12, 12)
        base = -np.logaddexp(0, slope).sum(axis=1) + np.log(np.maximum(shares, 1e-30))
        scores = test.symbols.astype(np.float64) @ slope.T + base
        top = scores.max(axis=1)
        worth = float((top + np.log(np.exp(scores - top[:, None]).sum(axis=1))).mean())
        print(
            f"neural independent on {name}, {len(shares):,} components, {attempt}: "
            f"{seconds:.1f} s (processor {cpu:.1f} s), {count} iterations, test {worth:.3f}",
            flush=True,
        )


def main():
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    for name, value in {
        "nodes": 100, "states": 160, "tree-rows": 60_000, "rows": 10_000_000, "variables": 1_000,
        "components": 100, "repeats": 5, "points": 1024, "neural-components": 8192,
        "iterations": 500,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--neural-rows", type=int, nargs=3, default=(15_000, 2_000, 3_000))
    parser.add_argument("--peak-tflops", type=float, default=989.0, help="half precision, dense")
    parser.add_argument("--peak-bandwidth", type=float, default=4.8, help="TB/s")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {min(unknown)!r}; expected some of {', '.join(PARTS)}")
    device = jax.devices()[0]
    print(
        f"{device.device_kind} ({device.platform}), JAX {jax.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}",
        flush=True,
    )
    failed = False
    for part in options.parts or PARTS:
        try:
            {"hidden": time_hidden, "mixture": time_mixture, "neural": time_neural}[part](
                options, device
            )
        except Exception:
            failed = True
            print(f"{part} failed:\n{traceback.format_exc()}")
        sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
