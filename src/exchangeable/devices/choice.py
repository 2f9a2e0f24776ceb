"""Access to JAX and its devices, with clear errors if one is missing.

Importing this module does not import JAX; only a fit that needs it does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

DEVICES = ("auto", "cpu", "gpu")
USABLE = 0.8
"""Fraction of a device's memory for rows and intermediate results."""


def check_device(device: Any) -> str:
    """Return the name of a device, or raise an error."""
    if not isinstance(device, str) or device not in DEVICES:
        raise ValueError(f"device={device!r} is unknown; expected one of {', '.join(DEVICES)}")
    return device


def import_jax(purpose: str, *names: str) -> list[Any]:
    """Return JAX, or other modules that need it; an error says what to install.

    Parameters
    ----------
    purpose : str
        What needs it, as the beginning of the message.
    *names : str
        The modules to import; JAX itself by default.
    """
    try:
        return [import_module(name) for name in names or ("jax",)]
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("jax", "jaxlib"):
            raise
        raise ModuleNotFoundError(
            f"{purpose} needs {error.name}, which is not installed; "
            "pip install 'exchangeable[neural]'",
            name=error.name,
        ) from None


def find_device(device: str, purpose: str) -> Any:
    """Return the JAX device with a name: ``"auto"`` is the best one available."""
    (jax,) = import_jax(purpose)
    if check_device(device) == "auto":
        return jax.devices()[0]
    try:
        return jax.devices(device)[0]
    except RuntimeError:
        raise RuntimeError(
            f"device={device!r}: JAX finds none on this machine (it sees "
            f"{', '.join(sorted({each.platform for each in jax.devices()}))}); install JAX for "
            "your accelerator, or leave device='auto'"
        ) from None


def check_room(device: Any, n_bytes: float, what: str) -> None:
    """Raise an error if work needs more memory than a device has."""
    room = room_on(device)
    if n_bytes > room:
        raise MemoryError(
            f"{what} needs about {n_bytes / 1e9:,.1f} GB on the device, which has "
            f"{room / 1e9:,.1f} GB left; give device='cpu', fewer rows or fewer components"
        )


@contextmanager
def out_of_memory_told(what: str) -> Iterator[None]:
    """Explain what to do if a device runs out of memory during some work."""
    try:
        yield
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise MemoryError(
            f"{what} has run out of the device's memory, which other work may share; give "
            "device='cpu', fewer rows or fewer components"
        ) from error


def room_on(device: Any) -> float:
    """Return the available bytes of a device, infinite if it does not report them."""
    known = device.memory_stats() if hasattr(device, "memory_stats") else None
    if not known or "bytes_limit" not in known:
        return float("inf")
    return float(known["bytes_limit"] - known.get("bytes_in_use", 0))


def usable_on(device: Any) -> float:
    """Return the bytes that rows and intermediate results may use on a device."""
    return USABLE * room_on(device)
