"""Damaged model files and checkpoints by the thousand: each is refused, or answers as it should.

Worker processes damage intact files of every kind in many ways, read them and use those that can be
read. The main process watches them. Findings are: a worker that dies or does not answer in time; an
error that is no `ModelFileError`; a file that can be read though its probabilities do not add up to
one; and one that takes more memory than it should. Every case is made of the seed and its number
alone; one in twenty is wide, which is read under a tracer of memory.

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
import tracemalloc
import warnings
import zipfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from intact_files import CHECKPOINTS, SEARCHES, make_files
from using import use, use_mixture, use_states

import exchangeable
from damaged_files import damage
from exchangeable import ModelFileError
from exchangeable.fitting.checkpoint import load_states
from exchangeable.fitting.search.kept_fits import load_fits
from exchangeable.storage import archive
from killed_writers import JOBS

MEMORY = 6 << 30
"""Bytes of address space of a worker."""
PATIENCE = 40.0
"""Seconds after which a case hangs; reading may take 20, see `storage.limits`."""
START_UP = 600.0
"""Seconds after which a worker must have imported, compiled and tried what it needs."""
IN_USE = (ValueError, TypeError, OverflowError)
"""What using a model may raise if a parameter in the header makes no sense."""
FINDINGS = ("crash", "hang", "wrong error", "not normalised", "too much memory")
ONE_WIDE_IN = 20
TIMES_ITS_SIZE, SPARE = 2, 4 << 20
"""Reading a wide file takes at most this many times its size, and this many bytes beside."""
GROWTH = 64 << 20
"""Reading and using a small file makes its process at most this many bytes larger."""


def choose(case, small, wide):
    """Return the number of the intact file of a case."""
    if wide and (not small or case % ONE_WIDE_IN == ONE_WIDE_IN - 1):
        return len(small) + case // ONE_WIDE_IN % len(wide)
    return case % len(small)


def read(path, name, purpose):
    """Return what a file holds; `purpose` is that of a checkpoint or a search."""
    if name in CHECKPOINTS:
        return load_states(path, 2, purpose)
    if name in SEARCHES:
        return load_fits(path, purpose)
    return exchangeable.load(path)


def use_all(name, found):
    """Use what was read; return what is wrong with it, None if nothing is."""
    if name in CHECKPOINTS:
        return use_states(found)
    if name in SEARCHES:
        wrong = [use_mixture(fit.mixture) for fit in found.values()]
        return next(filter(None, wrong), None)
    return use(found)


def try_file(path, name, purpose):
    """Return what happened to one file, and a detail."""
    try:
        found = read(path, name, purpose)
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
        wrong = None if name.startswith("wide ") else use_all(name, found)
    except IN_USE as error:
        return "refused in use", repr(error)
    except Exception:
        return "wrong error", traceback.format_exc()
    return ("not normalised", wrong) if wrong else ("loaded", "")


def resident(which):
    """Return the memory of this process in bytes: ``"VmRSS"`` now, ``"VmHWM"`` at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) << 10
    return 0


def watched(path, name, purpose):
    """Do as `try_file` does, and look at the memory that it takes."""
    size = path.stat().st_size
    if name.startswith("wide "):
        tracemalloc.start()
        outcome = try_file(path, name, purpose)
        taken, most = tracemalloc.get_traced_memory()[1], TIMES_ITS_SIZE * size + SPARE
        tracemalloc.stop()
    else:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = resident("VmRSS")
        outcome = try_file(path, name, purpose)
        taken, most = resident("VmHWM") - before, GROWTH
    if taken > most and outcome[0] not in FINDINGS:
        return "too much memory", f"{taken:,} bytes for a file of {size:,}; {outcome[0]}"
    return outcome


def work(folder, seed):
    """Read numbers of cases from the standard input, and answer each with a line of JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    small, wide = json.loads((folder / "names.json").read_text())
    names = [*small, *wide]
    intact = [(folder / f"{number}.file").read_bytes() for number in range(len(names))]
    purposes = [
        archive.read(folder / f"{number}.file")[0].get("purpose") for number in range(len(names))
    ]
    path = folder / f"{os.getpid()}.damaged"
    for number, name in enumerate(names):  # compiles, and imports, what later ones need
        path.write_bytes(intact[number])
        outcome = try_file(path, name, purposes[number])
        if outcome[0] != "loaded":
            raise RuntimeError(f"the intact file of {name} is {outcome}")
    sys.stdout.write("null\n")
    sys.stdout.flush()
    for line in sys.stdin:
        case = int(line)
        dice = random.Random(f"{seed} {case}")
        chosen = choose(case, small, wide)
        path.write_bytes(damage(intact[chosen], dice))
        outcome, detail = watched(path, names[chosen], purposes[chosen])
        sys.stdout.write(json.dumps([case, names[chosen], outcome, detail]) + "\n")
        sys.stdout.flush()


class Worker:
    """A process that tries one case after another, once it has said that it is ready."""

    def __init__(self, folder, seed):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", str(folder), "--seed", str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.case, self.began = None, time.monotonic()

    @property
    def late(self):
        """Whether it should have answered by now."""
        patience = START_UP if self.case is None else PATIENCE
        return time.monotonic() - self.began > patience

    def give(self, case):
        """Hand over the next case."""
        self.case, self.began = case, time.monotonic()
        self.process.stdin.write(f"{case}\n".encode())
        self.process.stdin.flush()


def fuzz(folder, seconds, seed, n_workers, name_of):
    """Try cases for some time; return how often each outcome was, by kind, and the findings."""
    outcomes, findings, cases = Counter(), [], itertools.count()
    with selectors.DefaultSelector() as ready:

        def start():
            worker = Worker(folder, seed)
            ready.register(worker.process.stdout, selectors.EVENT_READ, worker)

        def end(worker, outcome):
            ready.unregister(worker.process.stdout)
            worker.process.kill()
            code = worker.process.wait()
            if worker.case is None:
                raise RuntimeError(f"a worker cannot use the intact files: exit status {code}")
            name = name_of(worker.case)
            outcomes[name, outcome] += 1
            findings.append([worker.case, name, outcome, f"exit status {code}"])

        for _ in range(n_workers):
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
                if result:
                    outcomes[result[1], result[2]] += 1
                    if result[2] in FINDINGS or result[2] == "refused by surprise":
                        findings.append(result)
                worker.give(next(cases))
            for key in list(ready.get_map().values()):
                if key.data.late:
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


def report(outcomes, findings, names, seconds):
    """Return lines that say what became of the files."""
    by_kind, in_all = Counter(), Counter()
    for (name, outcome), count in outcomes.items():
        by_kind[name] += count
        in_all[outcome] += count
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = [
        f"{sum(in_all.values()):,} damaged files of {len(names)} kinds in {seconds:.0f} seconds, "
        f"{cpu.ru_utime + cpu.ru_stime:.0f} of them of a processor",
        f"at least {min(by_kind[name] for name in names):,} of each kind",
    ]
    known = ("loaded", "refused", "refused in use", "refused by surprise", *FINDINGS)
    lines += [f"{in_all[outcome]:8,} {outcome}" for outcome in known]
    kinds = {}
    for case, name, outcome, detail in findings:
        last = detail.strip().splitlines()[-1] if detail.strip() else ""
        kinds.setdefault((outcome, last[:60]), []).append(f"case {case} ({name}): {detail.strip()}")
    for (outcome, _), each in kinds.items():
        lines.append(f"\n{len(each)} × {outcome}, for instance {each[0]}")
    return lines


def main():
    """Fuzz, print a summary, and end with status 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to try files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes that try files")
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
        small, wide = make_files(folder, options.families)
        names = [*small, *wide]
        if options.case is not None:
            intact = (folder / f"{choose(options.case, small, wide)}.file").read_bytes()
            dice = random.Random(f"{options.seed} {options.case}")
            sys.stdout.buffer.write(damage(intact, dice))
            return 0
        began = time.monotonic()
        outcomes, findings = fuzz(
            folder,
            options.seconds,
            options.seed,
            options.workers,
            lambda case: names[choose(case, small, wide)],
        )
        lines = report(outcomes, findings, names, time.monotonic() - began)
        told, well = kill(folder, options.kills, options.seed) if options.kills else ([], True)
    sys.stdout.write("\n".join([*lines, *told]) + "\n")
    found = any(outcome in FINDINGS for _, outcome in outcomes)
    return 0 if well and not found else 1


if __name__ == "__main__":
    sys.exit(main())
