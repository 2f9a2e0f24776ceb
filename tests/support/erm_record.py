"""What R's eRm says of some answers: ``python tests/support/erm_record.py`` writes it anew.

The figures are kept in ``tests/rasch/erm.json`` with the answers that they are of, so that they can
be compared where there is no R. It needs R with the package eRm.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rasch_data import draw_answers, with_holes

RECORD = Path(__file__).parents[1] / "rasch" / "erm.json"
SPLIT = [1, 1, 2, 2]
SCRIPT = """
suppressMessages(library(eRm))
say <- function(name, values) {{
  cat(name, format(unname(values), digits = 10), '\\n')
}}
x <- as.matrix(read.csv('{path}', header = FALSE, na.strings = 'nan'))
m <- {model}(x)
say('log_likelihood', m$loglik)
say('easiness', m$betapar)
say('standard_errors', m$se.beta)
groups <- rep(c(1, 1, 2, 2), length.out = nrow(x))
l <- LRtest(m, splitcr = groups)
say('given_split', c(l$LR, l$df, l$pvalue))
l <- LRtest(m, splitcr = 'median')
say('median_split', c(l$LR, l$df, l$pvalue))
say('wald', Waldtest(m, splitcr = groups)$coef.table[, 1])
p <- person.parameter(m)$theta.table
say('abilities', ifelse(p[, 3], NaN, p[, 1]))
"""


def cases() -> dict[str, tuple[str, np.ndarray]]:
    """Return models and answers."""
    rng = np.random.default_rng(3)
    ability = rng.normal(size=250)
    binary = draw_answers(list(np.linspace(-1.5, 1.5, 7)), ability, rng)
    graded = draw_answers(
        [[-1.0, 0.5], [-0.5, 0.0, 1.0], [0.3], [0.0, 0.4], [-1.2, 1.2]], ability, rng
    )
    three = draw_answers([[-1.0, 0.5], [-0.5, 0.0], [0.3, 0.6], [0.0, 0.4]], ability, rng)
    booklets = binary.copy()  # two, with three items in common
    booklets[::2, :2] = np.nan
    booklets[1::2, 5:] = np.nan
    return {
        "Rasch": ("RM", binary),
        "Rasch, holes": ("RM", with_holes(binary, 0.15, rng)),
        "Rasch, booklets": ("RM", booklets),
        "partial credit": ("PCM", graded),
        # With missing answers eRm 1.0-2 mixes up items whose numbers of answers differ.
        "partial credit, holes": ("PCM", with_holes(three, 0.1, rng)),
    }


def ask_erm(model: str, X: np.ndarray) -> dict[str, list[float]]:
    """Return what eRm says."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        np.savetxt(path, X, delimiter=",", fmt="%g")
        code = SCRIPT.format(path=path, model=model)
        done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=False)
    said = [line.split() for line in done.stdout.splitlines()]
    if len(said) < 7:
        raise RuntimeError(done.stderr)
    return {name: [float(value) for value in values] for name, *values in said}


def main() -> None:
    """Write the record."""
    record: dict[str, Any] = {}
    for name, (model, X) in cases().items():
        answers = [[None if np.isnan(v) else int(v) for v in row] for row in X]
        record[name] = {"answers": answers, **ask_erm(model, X)}
    text = json.dumps(record, separators=(",", ":")).replace('},"', '},\n"')
    RECORD.write_text(text.replace("NaN", "null") + "\n")


if __name__ == "__main__":
    main()
