"""Write down what the golden fits find, before a refactoring.

``python tests/support/golden_record.py`` records all cases; names of cases after it record those
alone, which is for behaviour that was changed on purpose.

Of every array there are a digest of its bytes, and a few numbers that tell whether another array is
equal to it up to rounding.
"""

import hashlib
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import numpy.typing as npt
import scipy

from golden_cases import CASES, growing

GOLDEN = Path(__file__).parents[1] / "golden" / "golden.json"
N_FIRST = 6


def environment() -> dict[str, str]:
    """Return what the last bits of a result depend on besides the code."""
    features = llvm.get_host_cpu_features().flatten()
    return {
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scipy": scipy.__version__,
        "cpu": llvm.get_host_cpu_name(),
        "features": hashlib.sha256(features.encode()).hexdigest(),
    }


def summary(name: str, array: npt.NDArray[Any]) -> dict[str, Any]:
    """Return the digest of an array, and what comparing it needs.

    The projections are sums with weights between 1/2 and 3/2 that depend on the name alone, so
    that a sum of numbers of one sign does not cancel.
    """
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    raw = array.astype(array.dtype.newbyteorder("<"), copy=False)
    values = array.astype(np.float64).ravel()
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0)
    weights = 0.5 + np.random.default_rng(zlib.crc32(name.encode())).random((2, values.size))
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "sha256": hashlib.sha256(raw.tobytes()).hexdigest(),
        "nan": int(np.isnan(values).sum()),
        "inf": int(np.isposinf(values).sum()),
        "-inf": int(np.isneginf(values).sum()),
        "sum": float(known.sum()),
        "sum of sizes": float(np.abs(known).sum()),
        "projections": (weights @ known).tolist(),
        "first": values[finite][:N_FIRST].tolist(),
    }


def lines(value: dict[str, Any], depth: int = 3) -> str:
    """Return nested dicts as JSON, those at some depth in a line each."""
    if depth == 0 or not isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    entries = [f"{json.dumps(key)}:{lines(entry, depth - 1)}" for key, entry in value.items()]
    return "{\n" + ",\n".join(entries) + "\n}"


def main() -> None:
    """Record all cases, or those named."""
    names = sys.argv[1:]
    recorded: dict[str, Any] = json.loads(GOLDEN.read_text())["cases"] if names else {}
    for case in CASES:
        if names and case.name not in names:
            continue
        arrays = case.run()
        if not (names or case.loose or growing(arrays)):
            raise ValueError(f"{case.name!r}: EM has settled; take fewer iterations or other rows")
        recorded[case.name] = {name: summary(name, array) for name, array in arrays.items()}
    kept = {case.name: recorded[case.name] for case in CASES}
    GOLDEN.write_text(lines({"environment": environment(), "cases": kept}) + "\n")


if __name__ == "__main__":
    main()
