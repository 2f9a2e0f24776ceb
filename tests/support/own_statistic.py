"""A statistic as users would write one, in a module of its own."""

from exchangeable import FiniteState


class Alternations(FiniteState):
    """How often 0101 ends at a variable, times `points`."""

    def __init__(self, n_variables: int, points: int = 1) -> None:
        self.points = points

        def step(last, x):
            word = (*last, x)[-4:]
            return word[-3:], points * int(word == (0, 1, 0, 1))

        super().__init__(n_variables, step, start=())
