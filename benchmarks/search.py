"""How long a search takes: `ExchangeableDensity` on plants and baudio, with a time budget.

``python benchmarks/search.py [SECONDS [SET ...]]`` searches all families on the validation rows,
joins the best of each, and scores the test rows once. Results go to ``results/search.csv``, unless
sets are named.
"""

import csv
import sys
import time
from pathlib import Path

from exchangeable import ExchangeableDensity
from exchangeable.datasets import fetch_density

RESULTS = Path(__file__).parent / "results" / "search.csv"
COLUMNS = ("set", "budget", "seconds", "trials", "fits", "valid", "test", "members")


def main() -> None:
    """Search, and print one line per set."""
    budget = float(sys.argv[1]) if len(sys.argv) > 1 else 300.0
    lines = []
    for name in sys.argv[2:] or ("plants", "baudio"):
        data = fetch_density(name)
        began = time.perf_counter()
        model = ExchangeableDensity(time_budget=budget, random_state=0)
        model.fit(data.train, X_valid=data.valid)
        seconds = time.perf_counter() - began
        members = ", ".join(
            f"{member['n_fits']} of {member['family']}, {member['n_components']} components "
            f"({member['share']:.2f})"
            for member in model.members_
        )
        lines.append(
            (
                name,
                f"{budget:.0f}",
                f"{seconds:.0f}",
                len(model.table_),
                model.n_fits_,
                f"{model.valid_score_:.4f}",
                f"{model.score(data.test):.4f}",
                members,
            )
        )
        print("  ".join(str(cell) for cell in lines[-1]), flush=True)
    if not sys.argv[2:]:
        with RESULTS.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *lines])


if __name__ == "__main__":
    main()
