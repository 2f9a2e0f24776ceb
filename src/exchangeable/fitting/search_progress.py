"""A line on the terminal that says how far a search for a density model is."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from exchangeable.fitting.search import Search


class SearchProgress:
    """A line on an interactive terminal that says how far a search is; nothing elsewhere."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        if sys.stderr is not None and sys.stderr.isatty():
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._bar.add_task("searching")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, search: Search) -> None:
        """Tell the number of trials and the best one."""
        best = search.best
        self.tell(
            f"{len(search.trials)} trials, best {best.valid:.4f}: {best.settings.family}, "
            f"{best.settings.n_components} components, pooling {best.settings.pooling:g}"
        )

    def tell(self, text: str) -> None:
        """Tell something."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=text)
