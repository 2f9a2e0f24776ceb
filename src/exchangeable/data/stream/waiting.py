"""Waiting for the results of a Dask cluster, or for an error that says what happened to it."""

import time
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

LOOK = 0.5
"""Seconds between checks that the client is still running."""
WITHOUT_WORKERS = 60.0
"""Seconds that a pass waits for a worker if there is none."""
GO_ON = "with checkpoint= to go on where a mixture was"


class ClusterError(RuntimeError):
    """A cluster that cannot finish a fit, for reasons unrelated to the rows."""


def result_of(client: Any, graph: Any) -> Any:
    """Return the results of a graph on a cluster, as long as there is a client and a worker."""
    from distributed import wait

    future, seen = client.compute(graph), time.monotonic()
    while not future.done():
        with suppress(TimeoutError):
            wait(future, timeout=LOOK)
        if client.status != "running":
            raise ConnectionError(f"the client is {client.status}")
        if time.monotonic() > seen + WITHOUT_WORKERS:
            _wait_for_a_worker(client)
            seen = time.monotonic()
    return future.result()


def _wait_for_a_worker(client: Any) -> None:
    """Return as soon as there is a worker; without one a pass would wait for ever."""
    try:
        client.wait_for_workers(1, timeout=WITHOUT_WORKERS)
    except TimeoutError as error:
        raise ClusterError(
            f"the Dask cluster has had no workers for {WITHOUT_WORKERS:.0f} s; start some and fit "
            f"again, {GO_ON}"
        ) from error


def cluster_error(client: Any, error: BaseException) -> ClusterError | None:
    """Return what happened to the cluster, None if an error has other reasons."""
    from distributed.scheduler import KilledWorker

    if isinstance(error, ClusterError):
        return error
    if client.status != "running":
        return ClusterError(
            f"the Dask client was closed during the fit (it is {client.status}); connect a new one "
            f"and fit again, {GO_ON}"
        )
    if isinstance(error, CancelledError):
        return ClusterError(
            "the connection to the Dask scheduler was lost during the fit, and with it the rows on "
            f"its workers; fit again, {GO_ON}"
        )
    if isinstance(error, KilledWorker):
        return ClusterError(
            "Dask workers died again and again during the fit, perhaps for want of memory; cut X "
            f"into smaller partitions or give them more: {error}"
        )
    return None
