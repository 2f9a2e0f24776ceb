"""What Numba takes to compile single constructs: ``python benchmarks/compile_costs.py``.

Each is compiled twice, in one process: the first time Numba's own functions come with it, the
second time they are there. Seconds are those of the processor.
"""

import time

import numpy as np
from numba import njit

LINE, TABLE, WHOLE = np.zeros(10), np.zeros((4, 10)), np.zeros(10, dtype=np.int64)
CONSTRUCTS = {
    "a loop": "for i in range(a.size):\n  a[i] += 1.0",
    "np.empty": "x = np.empty(a.size)\n for i in range(a.size):\n  x[i] = a[i]\n a[0] = x[1]",
    "np.zeros": "x = np.zeros(a.size)\n for i in range(a.size):\n  x[i] = a[i]\n a[0] = x[1]",
    "np.arange": "x = np.arange(a.size)\n a[0] = x[1]",
    "target[:] = 0.0": "a[:] = 0.0",
    "target[:] = source": "a[:] = b[0]",
    "target += source": "a += b[0]",
    "max": "a[0] = a.max()",
    "sum": "a[0] = a.sum()",
    "array[indices]": "a[0] = a[i][0]",
    "np.argmax": "i[0] = np.argmax(a)",
    "np.argsort": "i[0] = np.argsort(a)[0]",
}


def seconds(source: str) -> float:
    """Return the processor seconds of compiling a function with this body."""
    names = {"np": np}
    exec(f"def function(a, b, i):\n {source}", names)
    function = njit(nogil=True, error_model="numpy")(names["function"])
    began = time.process_time()
    function(LINE, TABLE, WHOLE)
    return time.process_time() - began


def main() -> None:
    """Print the seconds of each construct."""
    seconds("a[0] = b[0, 0] + i[0]")  # Numba sets itself up
    for name, source in CONSTRUCTS.items():
        print(f"{name:20} first {seconds(source):5.2f} s   again {seconds(source):5.2f} s")


if __name__ == "__main__":
    main()
