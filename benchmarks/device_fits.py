"""Whole fits on an accelerator: searches, restarts together, and settings of neural mixtures.

``python benchmarks/device_fits.py PART`` with the package installed, its data in
``EXCHANGEABLE_DATA``, does one of

- *warm*: compile the kernels of all families ahead, each in a process of its own;
- *plants*: `ExchangeableDensity` on a data set (``--set``) within a time budget;
- *bnetflix*: one fit of ``"neural independent"`` as users make it, JAX imported within its time;
- *restarts*: eight restarts of EM on bnetflix, their passes made together and one after the other,
  of all families or of one (``--family tree``);
- *settings*: neural mixtures with other settings than the defaults, judged by validation rows, on
  all data sets, several processes side by side; test rows are not read.
"""

import argparse
import itertools
import multiprocessing
import subprocess
import sys
import time
import traceback
import warnings

import numpy as np

EM_FAMILIES = ("blocks", "urns", "tree", "weighted tree", "count tree", "hidden tree")
RESTARTED = (("blocks", 50), ("urns", 50), ("tree", 50), ("hidden tree", 64))
RATES = (2e-3, 4e-3, 8e-3)
SHAPES = (
    {}, {"latent": 12}, {"latent": 48}, {"layers": (64, 128, 256)}, {"layers": (256, 512)},
    {"points": 2048}, {"points": 4096}, {"batch_size": 256}, {"batch_size": 1024}, {"trees": 2},
    {"patience": 6, "cuts": 3}, {"warm_up": 400},
)  # fmt: skip
"""Of neural trees on plants; the other sets have the default shape."""
DIVERSE = {
    "seeds": ({},) * 4,
    "latents": ({}, {"latent": 16}, {"latent": 32}, {"latent": 48}),
    "layers": (
        {}, {"layers": (64, 128, 256)}, {"layers": (256, 256)}, {"layers": (128, 512)}
    ),
    "both": (
        {}, {"latent": 16, "layers": (64, 128, 256)}, {"latent": 32, "layers": (256, 256)},
        {"latent": 48, "layers": (128, 512)},
    ),
}  # fmt: skip
"""Decoders to be averaged."""
SETS = (
    "plants", "nltcs", "dna", "accidents", "jester", "baudio", "bnetflix", "msnbc", "kdd",
    "tretail", "msweb", "book", "cwebkb", "cr52", "c20ng", "bbc",
)  # fmt: skip


def rows_of(name):
    """Return the training and the validation rows of a data set."""
    from exchangeable.datasets import fetch_density

    return fetch_density(name)


def warm(options):
    """Compile the kernels of every family, side by side."""
    if options.family:
        from exchangeable import ExchangeableDensity, ExchangeableMixture

        data = rows_of("plants")
        some, held = data.train[:400], data.valid[:200]
        began = time.perf_counter()
        model = ExchangeableMixture(3, family=options.family, max_iter=4, n_init=2)
        model.fit(some, X_valid=held)
        ExchangeableDensity([options.family], n_init=2, time_budget=20, max_components=3).fit(
            some, X_valid=held
        ).score(held)
        print(f"kernels of {options.family}: {time.perf_counter() - began:.0f} s", flush=True)
        return
    this = [sys.executable, __file__, "warm", "--device", "cpu", "--family"]
    for process in [subprocess.Popen([*this, family]) for family in EM_FAMILIES]:
        process.wait()


def plants(options):
    """Search within a time budget."""
    from exchangeable import ExchangeableDensity

    data = rows_of(options.set)
    began, worked = time.perf_counter(), time.process_time()
    model = ExchangeableDensity(time_budget=options.budget, random_state=0, device=options.device)
    model.fit(data.train, X_valid=data.valid)
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    print(
        f"ExchangeableDensity(time_budget={options.budget:g}, device={options.device!r}) on "
        f"{options.set}: {seconds:.1f} s (processor {worked:.0f} s), valid "
        f"{model.valid_score_:.4f}, {model.n_fits_} fits joined",
        flush=True,
    )
    for row in model.table_:
        told = {key: row[key] for key in ("family", "n_components", "valid", "n_fits", "share")}
        told["seconds"] = round(row["seconds"], 1)
        if row["share"] > 0.01 or row["seconds"] > 5:
            print(f"  {told}")
    print(f"  rounds {model.rounds_}\n  left out {model.left_out_}", flush=True)
    began = time.perf_counter()
    score = model.score(data.test)
    print(f"  test {score:.4f}, scored in {time.perf_counter() - began:.1f} s", flush=True)


def bnetflix(options):
    """Fit once, from the import of JAX on."""
    data = rows_of("bnetflix")
    from exchangeable import ExchangeableMixture

    for attempt in ("first", "second"):
        began, worked = time.perf_counter(), time.process_time()
        model = ExchangeableMixture(
            family="neural independent", random_state=0, device=options.device
        ).fit(data.train, X_valid=data.valid)
        seconds, worked = time.perf_counter() - began, time.process_time() - worked
        print(
            f"neural independent on bnetflix, {attempt} fit: {seconds:.1f} s (processor "
            f"{worked:.1f} s), {model.n_iter_} iterations, {model.weights_.size:,} components",
            flush=True,
        )
    print(f"  test {model.score(data.test):.4f}", flush=True)


def restarts(options):
    """Time restarts together and one after the other, and compare what they end in."""
    from exchangeable import ExchangeableMixture
    from exchangeable.fitting import runs

    data, most = rows_of("bnetflix"), runs.MOST_TOGETHER
    for family, k in RESTARTED:
        if options.family not in (None, family):
            continue
        found, seconds = {}, {}
        for how, attempt in itertools.product(("together", "one by one"), ("first", "second")):
            runs.MOST_TOGETHER = most if how == "together" else 1
            blocks = "independent" if family == "blocks" else "auto"
            model = ExchangeableMixture(
                k, family=family, blocks=blocks, n_init=8, max_iter=10, random_state=0,
                device=options.device, n_jobs=1 if how == "one by one" else None,
            )  # fmt: skip
            began = time.perf_counter()
            found[how] = model.fit(data.train[: options.rows])
            seconds[how, attempt] = time.perf_counter() - began
        both = zip(found["together"].history_, found["one by one"].history_, strict=True)
        apart = max(abs(one[-1] - other[-1]) for one, other in both)
        told = ", ".join(f"{how} {a}: {value:.1f} s" for (how, a), value in seconds.items())
        print(f"8 restarts of {family}, {k} components: {told}; apart by {apart:.1e}", flush=True)


def examples_of(name):
    """Return the distinct rows of the training and the validation set."""
    from exchangeable.data.examples import merge_equal_rows
    from exchangeable.data.observed import as_observed

    data = rows_of(name)
    return [
        merge_equal_rows(as_observed(rows, None), np.ones(rows.shape[0]))[0]
        for rows in (data.train, data.valid)
    ]


def try_average(task):
    """Fit several decoders; return what validation rows give to each and to their average."""
    name, label, owns, device = task
    from exchangeable.fitting.search.trials import Fitter, Settings

    train, valid = examples_of(name)
    each = np.stack(
        [
            Fitter(train, valid, seed=seed, device=device)
            .fit(Settings("neural independent", 8192, 1.0, own=tuple(own.items())), n_jobs=4)
            .each
            for seed, own in enumerate(owns)
        ]
    )
    shares = valid.weights / valid.weights.sum()
    alone, average = each @ shares, np.logaddexp.reduce(each, axis=0) @ shares - np.log(len(each))
    told = ", ".join(f"{one:.4f}" for one in alone)
    return f"average {name}, {label}: {average:.4f} of {told}; gain {average - alone[0]:.4f}"


def try_settings(task):
    """Fit one shape of settings with several learning rates; return lines to print."""
    name, component, shape, device = task
    warnings.simplefilter("ignore")
    from exchangeable.fitting.search.trials import Fitter, Settings

    try:
        if isinstance(shape, tuple):
            return try_average((name, component, shape, device))
        examples = examples_of(name)
        lines = []
        for rate in RATES:
            own = tuple(sorted((shape | {"learning_rate": rate}).items()))
            began = time.perf_counter()
            fit = Fitter(*examples, device=device).fit(
                Settings(f"neural {component}", 8192, 1.0, own=own), n_jobs=4
            )
            took = time.perf_counter() - began
            lines.append(f"{rate:g}: {fit.valid:.4f} ({fit.n_iter} it, {took:.1f} s)")
        return f"settings {name} {component} {shape}: " + "; ".join(lines)
    except Exception:
        return f"settings {name} {component} {shape} failed: {traceback.format_exc(limit=2)}"


def settings(options):
    """Try settings of neural mixtures on all sets."""
    names = options.sets or SETS
    tasks = [("plants", "tree", shape, options.device) for shape in SHAPES if "plants" in names]
    tasks += [
        (name, label, owns, options.device)
        for name, (label, owns) in itertools.product(("baudio", "jester"), DIVERSE.items())
        if name in names
    ]
    tasks += [
        (name, component, {}, options.device)
        for name, component in itertools.product(names, ("tree", "independent"))
        if (name, component) != ("plants", "tree")
    ]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for line in pool.imap_unordered(try_settings, tasks):
            print(line, flush=True)


def main():
    """Do the part that is asked for."""
    parts = {each.__name__: each for each in (warm, plants, bnetflix, restarts, settings)}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=parts)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--set", default="plants")
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--family")
    parser.add_argument("--rows", type=int, default=1 << 30)
    parser.add_argument("--processes", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    parts[options.part](options)


if __name__ == "__main__":
    main()
