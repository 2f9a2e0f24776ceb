"""All that is wrong with a table, in one message."""

from collections.abc import Iterator
from contextlib import contextmanager


class TableError(ValueError):
    """Something is wrong with a table, or several things.

    Parameters
    ----------
    name : str
        The table.
    problems : list of str
        What is wrong, each said so that it can be corrected.

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
    """Collects what is wrong with a table, to be reported together.

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
        """Note what is raised within as a problem, and go on."""
        try:
            yield
        except TableError as error:
            self.found += error.problems
        except ValueError as error:
            self.found.append(str(error).removeprefix(f"{self.name}: "))

    def report(self) -> None:
        """Raise all that was noted, if anything was."""
        if self.found:
            raise TableError(self.name, list(dict.fromkeys(self.found)))
