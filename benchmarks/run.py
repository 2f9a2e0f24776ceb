"""Run all ``bench_*.py`` of this folder, or some: ``python benchmarks/run.py statistics``."""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run ``bench_NAME.py`` for each NAME given, by default all of them."""
    wanted = sys.argv[1:] or sorted(p.stem.removeprefix("bench_") for p in HERE.glob("bench_*.py"))
    for name in wanted:
        path = str(HERE / f"bench_{name}.py")
        sys.argv = [path]  # names are not the benchmark's own arguments
        print(f"\n=== {name} " + "=" * (70 - len(name)), flush=True)
        runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main()
