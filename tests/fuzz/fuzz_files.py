"""Damaged model files and checkpoints by the thousand: each is refused, or answers as it should.

Worker processes damage one small file per family and estimator in many ways, read it and, if it can
be read, use it. The main process watches them: a worker that dies or does not answer in time is a
finding, and so is an error that is no `ModelFileError`, or a file that can be read though its
probabilities do not add up to one. Every case is made of the seed and its number alone.

Run ``make fuzz``, or ``python tests/fuzz/fuzz_files.py --seconds 300 --seed 1 --families urns``.
"""

import argparse
import itertools
import json
import os
import random
import resource
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import numpy as np
import pandas as pd
from scipy.special import logsumexp

import exchangeable
from damaged_files import damage
from exchangeable import (
    EVM,
    ExchangeableImputer,
    ExchangeableMixture,
    ModelFileError,
    RaschModel,
)
from exchangeable.data.observed import Observed
from exchangeable.fitting.checkpoint import load_states
from exchangeable.storage import archive
from exchangeable.structure.blocks import Blocks
from killed_writers import JOBS
from saved_models import HOLES, MODELS, TABLE, TABLE_MODELS, X

MEMORY = 6 << 30
"""Bytes of address space of a worker."""
PATIENCE = 40.0
"""Seconds after which a case hangs; reading may take 20, see `storage.limits`."""
N_WORKERS = 2
CLOSE = 1e-5
"""How far the probabilities of all rows may be from adding up to one."""
IN_USE = (ValueError, TypeError, OverflowError)
"""What using a model may raise if a parameter in the header makes no sense."""
CHECKPOINTS = {
    f"checkpoint {family}": {"family": family}
    for family in ("blocks", "urns", "tree", "weighted tree", "count tree", "hidden tree")
}
FINDINGS = ("crash", "hang", "wrong error", "not normalised")


def make_files(folder, families):
    """Write one intact file per model and checkpoint; return their names."""
    chosen = [
        name
        for name in (*MODELS, *TABLE_MODELS, *CHECKPOINTS)
        if not families or any(part in name for part in families)
    ]
    for number, name in enumerate(chosen):
        path = folder / f"{number}.file"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name not in CHECKPOINTS:
                exchangeable.save({**MODELS, **TABLE_MODELS}[name](), path)
            else:
                options = {"n_init": 2, "max_iter": 4, "tol": 0, "random_state": 0, "n_jobs": 1}
                mixture = ExchangeableMixture(2, **options, **CHECKPOINTS[name], checkpoint=path)
                mixture.fit(X)
    (folder / "names.json").write_text(json.dumps(chosen))
    return chosen


def use(model):
    """Ask a model everything; return what is wrong with its answers, None if nothing is."""
    if isinstance(model, Blocks):
        return None
    if isinstance(model, ExchangeableImputer):
        filled = model.transform(HOLES)
        return None if np.isin(filled, (0, 1)).all() else "imputed neither 0 nor 1"
    if isinstance(model, RaschModel):
        return _rasch_answers(model)
    if getattr(model, "kinds_", None) and set(model.kinds_.values()) != {"binary"}:
        return _typed_answers(model)
    if isinstance(getattr(model, "binarize", None), int | float):
        model.binarize = 0.0  # another limit would make other rows of those below
    n = model.n_features_in_
    symbols = model.statistic.n_symbols if isinstance(model, EVM) else 2
    if symbols**n <= 20_000:
        rows = np.array(list(itertools.product(range(symbols), repeat=n)))
        total = logsumexp(model.score_samples(named(model, rows)))
        if not abs(total) < CLOSE:
            return f"all rows together have log-probability {total}"
    if symbols > 2:
        return None
    return _answers(model, n)


def _rasch_answers(model):
    for y in range(model.weights_.size):
        if np.isinf(model.abilities(component=y).estimate).any():
            return "an ability is infinite"
        total = model.score_distribution_[:, y].sum()
        if not abs(total - 1) < CLOSE:
            return f"scores have probabilities that add up to {total}"
    return None


def named(model, rows):
    """Return rows as a frame where the model has names."""
    if not hasattr(model, "feature_names_in_"):
        return rows
    return pd.DataFrame(rows, columns=model.feature_names_in_)


def _answers(model, n):
    holes = np.full((4, n), np.nan)
    holes[1, ::2], holes[2, 1::2], holes[3] = 1, 0, np.arange(n) % 2
    scores = model.score_samples(named(model, holes))
    if not abs(scores[0]) < CLOSE or np.isnan(scores).any():
        return f"rows with holes score {scores}"
    chances = model.marginals()
    if not ((chances >= -CLOSE) & (chances <= 1 + CLOSE)).all():
        return f"marginals {chances}"
    if not np.isin(model.most_probable().X, (0, 1)).all():
        return "completed by neither 0 nor 1"
    drawn = model.sample(5, random_state=0)
    if not np.isin(drawn if isinstance(model, EVM) else drawn[0], (0, 1)).all():
        return "drew neither 0 nor 1"
    if hasattr(model, "predict_proba") and not isinstance(model, EVM):
        posterior = model.predict_proba(named(model, holes))
        if not np.allclose(posterior.sum(axis=1), 1, atol=CLOSE):
            return f"posteriors add up to {posterior.sum(axis=1)}"
    return None


def _typed_answers(model):
    rows = TABLE.iloc[:6, -model.n_features_in_ :].set_axis(model.feature_names_in_, axis=1)
    hidden = np.zeros(rows.shape, dtype=bool)
    hidden[0], hidden[1, ::2] = True, True
    rows = rows.astype(object).mask(hidden)
    scores = model.score_samples(rows)
    if not abs(scores[0]) < CLOSE or np.isnan(scores).any():
        return f"rows with holes score {scores}"
    posterior = model.predict_proba(rows)
    if not np.allclose(posterior.sum(axis=1), 1, atol=CLOSE):
        return f"posteriors add up to {posterior.sum(axis=1)}"
    filled, drawn = model.impute(rows), model.sample(5, random_state=0)[0]
    if pd.isna(np.asarray(filled, dtype=object)).any():
        return "left holes when imputing"
    if pd.isna(np.asarray(drawn, dtype=object)).any():
        return "drew holes"
    return _levels_answers(model)


def _levels_answers(model):
    """Return what is wrong with the probabilities of levels."""
    for name, answer in model.marginals().items():
        chances = getattr(answer, "probabilities", None)
        if chances is not None and not abs(np.sum(list(chances)) - 1) < CLOSE:
            return f"levels of {name} have probabilities {chances}"
    return None


def use_states(states):
    """Score all rows by every mixture of a checkpoint."""
    rows = Observed.from_symbols(np.array(list(itertools.product((0, 1), repeat=X.shape[1]))))
    for state in filter(None, states):
        for mixture in filter(None, (state.mixture, state.best, state.before)):
            total = logsumexp(mixture.model.score(rows) + mixture.log_prior)
            if not abs(total) < CLOSE:
                return f"all rows together have log-probability {total}"
    return None


def try_file(path, purpose):
    """Return what happened to one file, and a detail; `purpose` is that of a checkpoint."""
    try:
        model = exchangeable.load(path) if purpose is None else load_states(path, 2, purpose)
    except ModelFileError as error:
        if isinstance(error.__cause__, zipfile.BadZipFile | None):
            return "refused", ""
        return "refused by surprise", repr(error.__cause__)[:200]
    except ValueError as error:
        if purpose is not None and isinstance(error.__cause__, ModelFileError | None):
            return "refused", ""
        return "wrong error", traceback.format_exc()
    except Exception:
        return "wrong error", traceback.format_exc()
    try:
        wrong = use(model) if purpose is None else use_states(model)
    except IN_USE as error:
        return "refused in use", repr(error)
    except Exception:
        return "wrong error", traceback.format_exc()
    return ("not normalised", wrong) if wrong else ("loaded", "")


def work(folder, seed):
    """Read numbers of cases from the standard input, and answer each with a line of JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    names = json.loads((folder / "names.json").read_text())
    intact = [(folder / f"{number}.file").read_bytes() for number in range(len(names))]
    purposes = [
        archive.read(folder / f"{number}.file")[0]["purpose"] if name in CHECKPOINTS else None
        for number, name in enumerate(names)
    ]
    path = folder / f"{os.getpid()}.damaged"
    for line in sys.stdin:
        case = int(line)
        dice = random.Random(f"{seed} {case}")
        chosen = case % len(names)
        path.write_bytes(damage(intact[chosen], dice))
        outcome, detail = try_file(path, purposes[chosen])
        sys.stdout.write(json.dumps([case, names[chosen], outcome, detail]) + "\n")
        sys.stdout.flush()


class Worker:
    """A process that tries one case after another."""

    def __init__(self, folder, seed):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", str(folder), "--seed", str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.case, self.began = None, 0.0

    def give(self, case):
        """Hand over the next case."""
        self.case, self.began = case, time.monotonic()
        self.process.stdin.write(f"{case}\n".encode())
        self.process.stdin.flush()


def fuzz(folder, seconds, seed, names):
    """Try cases for some time; return how often each outcome was, and the findings."""
    outcomes, findings, cases = Counter(), [], itertools.count()
    with selectors.DefaultSelector() as ready:

        def start():
            worker = Worker(folder, seed)
            ready.register(worker.process.stdout, selectors.EVENT_READ, worker)
            worker.give(next(cases))

        def end(worker, outcome):
            ready.unregister(worker.process.stdout)
            worker.process.kill()
            code = worker.process.wait()
            name = names[worker.case % len(names)]
            outcomes[outcome] += 1
            findings.append([worker.case, name, outcome, f"exit status {code}"])

        for _ in range(N_WORKERS):
            start()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for key, _ in ready.select(timeout=1.0):
                worker, line = key.data, key.fileobj.readline()
                if not line:
                    end(worker, "crash")
                    start()
                    continue
                result = json.loads(line)
                outcomes[result[2]] += 1
                if result[2] in FINDINGS or result[2] == "refused by surprise":
                    findings.append(result)
                worker.give(next(cases))
            for key in list(ready.get_map().values()):
                if time.monotonic() - key.data.began > PATIENCE:
                    end(key.data, "hang")
                    start()
        for key in list(ready.get_map().values()):
            key.data.process.kill()
            key.data.process.wait()
    return outcomes, findings


def kill(folder, kills, seed):
    """Kill processes that write files; return what the trials say, and whether all went well."""
    script = Path(__file__).parents[1] / "support" / "killed_writers.py"
    lines, well = [], True
    for job in JOBS:
        place = folder / job
        place.mkdir()
        done = subprocess.run(
            [sys.executable, str(script), job, str(place), str(kills), str(seed)],
            capture_output=True,
            text=True,
            check=False,
        )
        lines.append(done.stdout.strip() or done.stderr.strip()[-500:])
        well &= done.returncode == 0
    return lines, well


def main():
    """Fuzz, print a summary, and end with status 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to try files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", nargs="*", default=[], help="only files with these words")
    parser.add_argument("--kills", type=int, default=0, help="processes to kill per writing job")
    parser.add_argument("--case", type=int, help="write this case to the standard output, and stop")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.seed)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = make_files(folder, options.families)
        if options.case is not None:
            intact = (folder / f"{options.case % len(names)}.file").read_bytes()
            dice = random.Random(f"{options.seed} {options.case}")
            sys.stdout.buffer.write(damage(intact, dice))
            return 0
        outcomes, findings = fuzz(folder, options.seconds, options.seed, names)
        lines, well = kill(folder, options.kills, options.seed) if options.kills else ([], True)
    report = [f"{sum(outcomes.values()):,} damaged files of {len(names)} kinds"]
    known = ("loaded", "refused", "refused in use", "refused by surprise", *FINDINGS)
    report += [f"{outcomes[outcome]:8,} {outcome}" for outcome in known]
    kinds = {}
    for case, name, outcome, detail in findings:
        last = detail.strip().splitlines()[-1] if detail.strip() else ""
        kinds.setdefault((outcome, last[:60]), []).append(f"case {case} ({name}): {detail.strip()}")
    for (outcome, _), each in kinds.items():
        report.append(f"\n{len(each)} × {outcome}, for instance {each[0]}")
    sys.stdout.write("\n".join([*report, *lines]) + "\n")
    return 0 if well and not any(outcomes[outcome] for outcome in FINDINGS) else 1


if __name__ == "__main__":
    sys.exit(main())
