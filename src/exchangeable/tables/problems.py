"""All problems of a table, in one message."""

from collections.abc import Iterator
from contextlib import contextmanager


class TableError(ValueError):
    """A table has one or several problems.

    Parameters
    ----------
    name : str
        The table.
    problems : list of str
        The problems, each described such that it can be corrected.

    Examples
    --------
    >>> print(TableError("t.csv", ["no column 'x'", "column 'y' is empty"]))
    t.csv: 2 problems:
      - no column 'x'
      - column 'y' is empty
    """

    def __init__(self, name: str, problems: list[str]) -> None:
        self.problems = problems
        if len(problems) == 1:
            super().__init__(f"{name}: {problems[0]}")
        else:
            listed = "".join(f"\n  - {problem}" for problem in problems)
            super().__init__(f"{name}: {len(problems)} problems:{listed}")


class Problems:
    """Collects the problems of a table, to be reported together.

    Examples
    --------
    >>> problems = Problems("t.csv")
    >>> with problems.noted():
    ...     raise ValueError("no column 'x'")
    >>> problems.found
    ["no column 'x'"]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        """Note a problem."""
        self.found.append(problem)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note an exception raised inside the block as a problem, and continue."""
        try:
            yield
        except TableError as error:
            self.found += error.problems
        except ValueError as error:
            self.found.append(str(error).removeprefix(f"{self.name}: "))

    def report(self) -> None:
        """Raise an error with all noted problems, if there are any."""
        if self.found:
            raise TableError(self.name, list(dict.fromkeys(self.found)))
