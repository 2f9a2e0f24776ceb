"""`Generative` and `Chosen`: the settings of these kinds of training."""

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator

from exchangeable.fitting.hybrid.settings import Hybrid

GENERATIVE = "generative"
TRAINING = (GENERATIVE, "hybrid", "discriminative", "chosen")


class Generative(BaseEstimator):
    """Classes that are mixtures, fitted by EM to the rows of each class.

    For the parameter `training` of `ExchangeableClassifier`, ``"generative"`` is short for
    ``Generative()``.

    Parameters
    ----------
    n_components : int, default=1
        Number of components per class; a class with fewer distinct rows has one for each of them.
    n_init : int, default=3
        Number of starts of EM, of which the best is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableClassifier, Generative
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(size=200), rng.normal(4, 1, 100), rng.normal(-4, 1, 100)])
    >>> y = np.repeat(["inside", "outside"], 200)
    >>> model = ExchangeableClassifier(kinds="continuous", training=Generative(n_components=2))
    >>> model.fit(x[:, None], y).predict([[-4.0], [0.0], [4.0]]).tolist()
    ['outside', 'inside', 'outside']
    """

    def __init__(self, n_components: int = 1, *, n_init: int = 3) -> None:
        self.n_components = n_components
        self.n_init = n_init


class Chosen(BaseEstimator):
    """Candidate settings of a classifier, chosen by how well they predict held-out rows.

    For the parameter `training` of `ExchangeableClassifier`, ``"chosen"`` is short for
    ``Chosen()``.

    Parameters
    ----------
    candidates : sequence of dict, optional
        Parameters of the classifier to try, each a dict by name; training is generative unless it
        is given. The default depends on the family: for columns of several kinds, independent and
        dependent columns, several components per class, and hybrid training.
    n_folds : int, default=5
        Number of folds of the cross-validation. The candidate with the smallest log-loss is fitted
        to all rows; the first one if there are fewer than two rows per fold.

    Examples
    --------
    >>> from exchangeable import Chosen, ExchangeableClassifier
    >>> tried = [{"blocks": "independent"}, {"blocks": "full"}]
    >>> X = [[0, 0], [1, 1], [0, 1], [1, 0]] * 10
    >>> model = ExchangeableClassifier(training=Chosen(tried))
    >>> model.fit(X, [row[0] ^ row[1] for row in X]).chosen_
    {'training': 'generative', 'blocks': 'full'}
    """

    def __init__(
        self, candidates: Sequence[Mapping[str, Any]] | None = None, *, n_folds: int = 5
    ) -> None:
        self.candidates = candidates
        self.n_folds = n_folds


def as_training(training: Any) -> Hybrid | Generative | Chosen | None:
    """Return the settings that `training` stands for, None for one component per class."""
    if isinstance(training, Generative):
        return None if training.n_components == 1 else training
    if isinstance(training, Hybrid | Chosen):
        return training
    if not isinstance(training, str) or training not in TRAINING:
        raise ValueError(
            f"training={training!r} is unknown; expected one of {', '.join(TRAINING)}, or "
            "Generative(), Hybrid() or Chosen()"
        )
    if training == GENERATIVE:
        return None
    if training == "chosen":
        return Chosen()
    return Hybrid() if training == "hybrid" else Hybrid(scores=())


def as_object(training: Any) -> Any:
    """Return the object that a name stands for, so that its settings can be changed."""
    found = as_training(training)
    if found is not None:
        return found
    return training if isinstance(training, Generative) else Generative()
