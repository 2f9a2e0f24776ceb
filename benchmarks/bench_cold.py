"""Cold starts: processor seconds of fresh processes with an empty cache, and what they compile.

Writes ``results/cold.csv`` (the starts beside their targets) and ``results/cold_kernels.csv``
(every function that was compiled, how often, and the seconds without the functions it calls).
A question is measured in a process whose fit finds its kernels in the cache. Python's own bytecode
is compiled before, as installers do. Importing scikit-learn alone is measured too, before and after
all others: together with the load it says how busy the machine was.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cold_start import QUESTIONS

HERE = Path(__file__).parent
TARGETS = {"import": 0.4, "classifier": 4, "mixture": 12, "mixture with NaN": 14, "density": 30}
QUESTION_TARGET, HELP_TARGET = 3, 0.5


def child(folder: Path, *arguments: str) -> tuple[float, str]:
    """Run Python with the caches in a folder; return processor seconds of all, and the output."""
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    environment |= {
        "NUMBA_CACHE_DIR": str(folder / "kernels"),
        "PYTHONPYCACHEPREFIX": str(folder.parent / "bytecode"),
    }
    before = os.times()
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    after = os.times()
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system, done.stdout


def start(folder: Path, name: str) -> tuple[float, dict[str, tuple[int, float]]]:
    """Return the processor seconds of a start, and what was compiled."""
    answer = json.loads(child(folder, str(HERE / "cold_start.py"), name)[1])
    return answer["seconds"], answer["compiled"]


def yardstick(folder: Path) -> tuple[str, float, str]:
    """Return the seconds of importing scikit-learn alone, which have no target."""
    seconds, load = start(folder, "scikit-learn")[0], os.getloadavg()[0]
    print(f"{'scikit-learn alone':24} {seconds:6.2f} s   (load {load:.1f})", flush=True)
    return f"scikit-learn alone (load {load:.1f})", seconds, ""


def main() -> None:
    """Measure all starts, or those that are named, print them and write the files."""
    known = [*TARGETS, *QUESTIONS]
    wanted = [name for name in sys.argv[1:] if name in known] or known
    results, kernels = [], []
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary)
        fitted = whole / "fitted"
        for name in ("import", "mixture") if set(wanted) & set(QUESTIONS) else ("import",):
            start(fitted, name)  # bytecode, and the kernels of the fit before a question
        results.append(yardstick(fitted))
        seconds = child(fitted, "-c", "from exchangeable.cli import main; main(['--help'])")[0]
        results.append(("exchangeable --help", seconds, HELP_TARGET))
        print(f"{'exchangeable --help':24} {seconds:6.2f} s   (at most {HELP_TARGET})", flush=True)
        for name in wanted:
            folder = whole / name
            if name in QUESTIONS:
                shutil.copytree(fitted, folder)
            began = time.perf_counter()
            seconds, found = start(folder, name)
            passed = time.perf_counter() - began
            most = TARGETS.get(name, QUESTION_TARGET)
            results.append((name, seconds, most))
            n_compiled = sum(n for n, _ in found.values())
            spent = sum(own for _, own in found.values())
            print(
                f"{name:24} {seconds:6.2f} s   (at most {most})   {len(found):3} functions, "
                f"{n_compiled:3} times, {spent:5.2f} s; {passed:.1f} s passed",
                flush=True,
            )
            kernels += [(name, kernel, n, own) for kernel, (n, own) in found.items()]
        results.append(yardstick(fitted))
    with (HERE / "results" / "cold.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["start", "processor_seconds", "at_most"])
        writer.writerows((name, f"{seconds:.2f}", most) for name, seconds, most in results)
    with (HERE / "results" / "cold_kernels.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["start", "function", "times", "own_seconds"])
        order = {name: i for i, name in enumerate(wanted)}
        for name, kernel, n, own in sorted(kernels, key=lambda line: (order[line[0]], -line[3])):
            writer.writerow([name, kernel, n, f"{own:.3f}"])


if __name__ == "__main__":
    main()
