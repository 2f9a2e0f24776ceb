"""All that is measured on a machine with an accelerator, in one command with a time limit.

``python benchmarks/on_device.py [--total 390] [--data FOLDER] [--peers FOLDER] [PHASE ...]`` runs
the parts of ``device.py``, ``device_fits.py``, ``peer_pyjuice.py`` and ``peer_hclt.py``, each in
processes of its own with a limit, and prints what they print, line by line with the seconds since
the beginning. Parts of one phase run side by side; timings are taken in phases of one part. A part
that fails or takes too long ends by itself, and the next phase goes on.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
SHARED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
PLAIN = {"PYJUICE_DISABLE_CUDA_KERNELS": "1"}
PHASES = {
    "passes": [("passes", ["device.py"], {}, 60)],
    "bnetflix": [("bnetflix", ["device_fits.py", "bnetflix"], {}, 40)],
    "warm": [("warm", ["device_fits.py", "warm"], {}, 75)],
    "plants": [("plants", ["device_fits.py", "plants", "--device", "auto"], {}, 90)],
    "epoch": [("epoch", ["peer_pyjuice.py", "epoch"], PLAIN, 40)],
    "restarts": [("restarts", ["device_fits.py", "restarts"], {}, 45)],
    "hclt": [("hclt", ["peer_hclt.py", "fit", "--folder", "{out}"], {}, 250)],
    "settings": [("settings", ["device_fits.py", "settings", "--processes", "7"], SHARED, 150)],
    "kernels": [("kernels", ["peer_pyjuice.py", "kernels"], {}, 140)],
    "fastest": [("cutlass", ["peer_pyjuice.py", "epoch"], {}, 40)],
}
LEAST = 12.0
"""A phase is not begun with fewer seconds left."""


def tell(process, name, began):
    """Print what a process prints."""
    for line in process.stdout:
        print(f"[{time.monotonic() - began:5.0f} s, {name}] {line.rstrip()}", flush=True)


def run(part, limit, environment, began, out):
    """Run one part, and end it when its time is over."""
    name, command, more, own = part
    process = subprocess.Popen(
        [sys.executable, str(HERE / command[0]), *(each.format(out=out) for each in command[1:])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment | more,
        start_new_session=True,
    )
    reader = threading.Thread(target=tell, args=(process, name, began), daemon=True)
    reader.start()
    try:
        process.wait(min(own, limit))
    except subprocess.TimeoutExpired:
        print(f"[{time.monotonic() - began:5.0f} s, {name}] time is over", flush=True)
        os.killpg(process.pid, 9)
    process.wait()
    reader.join(5)


def main():
    """Run the phases in order, as long as there is time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("phases", nargs="*", metavar="PHASE", help=", ".join(PHASES))
    parser.add_argument("--total", type=float, default=390.0)
    parser.add_argument("--data", default=os.environ.get("EXCHANGEABLE_DATA", ""))
    parser.add_argument("--peers", default=os.environ.get("EXCHANGEABLE_PEERS", ""))
    parser.add_argument("--out", default=os.environ.get("OUT", "."), help="for files")
    options = parser.parse_args()
    began = time.monotonic()
    environment = os.environ | {
        "EXCHANGEABLE_DATA": str(Path(options.data).resolve()),
        "EXCHANGEABLE_PEERS": str(Path(options.peers).resolve()) if options.peers else "",
        "PYTHONPATH": os.pathsep.join(
            [str(HERE.parent / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
        "PYTHONUNBUFFERED": "1",
    }
    unknown = set(options.phases) - set(PHASES)
    if unknown:
        parser.error(f"unknown phase {min(unknown)!r}; expected some of {', '.join(PHASES)}")
    for phase in options.phases or PHASES:
        left = options.total - (time.monotonic() - began)
        if left < LEAST:
            print(f"no time left for {phase}", flush=True)
            continue
        print(f"--- {phase}, {left:.0f} s left", flush=True)
        threads = [
            threading.Thread(target=run, args=(part, left, environment, began, options.out))
            for part in PHASES[phase]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
