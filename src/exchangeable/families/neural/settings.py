"""`Neural`: the settings of neural mixtures."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import BaseEstimator

from exchangeable.arrays import check_count, check_number
from exchangeable.devices.networks.head import Settings

COMPONENTS = ("independent", "urns", "tree")
MOST_LATENT = 1000


class Neural(BaseEstimator):
    """A mixture whose components are decoded by a small network from points of a latent space.

    It can be used wherever a family is named: ``family=Neural("tree", latent=16)``. A name alone,
    such as ``family="neural tree"``, is short for ``Neural("tree")``. The settings can be searched,
    as in ``GridSearchCV(model, {"family__latent": [8, 24]})``.

    Parameters
    ----------
    component : {"independent", "urns", "tree"}, default="independent"
        What each component is made of: independent variables, weighted urns, or trees.
    latent : int, default=24
        Dimension of the latent space.
    layers : sequence of int, default=(128, 256)
        Units of the hidden layers.
    points : int, default=1024
        Number of latent points in a step of training. With no more components than this, the points
        are those of the components; otherwise they are shifted at random before each step, and the
        components are decoded after training.
    batch_size : int, default=512
        Batch size; smaller if an epoch would have less than 16 steps.
    learning_rate : float, default=4e-3
        Initial learning rate of Adam, after the warm-up.
    warm_up : int, default=50
        Number of warm-up steps, during which the learning rate rises.
    patience : int, default=3
        Number of iterations without progress on held-out rows after which the learning rate is
        reduced.
    cuts : int, default=2
        How often it is reduced, to three tenths each time, before training ends.
    trees : int, default=1
        For trees: their number; components share them.
    settle : int, default=512
        Maximum number of steps, after training, in which the components leave the latent space: the
        input of the last layer and the share become parameters of each component, trained as long
        as the held-out likelihood increases.

    Examples
    --------
    >>> from exchangeable import ExchangeableMixture, Neural
    >>> model = ExchangeableMixture(family=Neural("tree", latent=16))
    >>> model.set_params(family__latent=8).family
    Neural(component='tree', latent=8)
    """

    def __init__(
        self,
        component: str = "independent",
        *,
        latent: int = 24,
        layers: Sequence[int] = (128, 256),
        points: int = 1024,
        batch_size: int = 512,
        learning_rate: float = 4e-3,
        warm_up: int = 50,
        patience: int = 3,
        cuts: int = 2,
        trees: int = 1,
        settle: int = 512,
    ) -> None:
        self.component = component
        self.latent = latent
        self.layers = layers
        self.points = points
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.warm_up = warm_up
        self.patience = patience
        self.cuts = cuts
        self.trees = trees
        self.settle = settle

    @property
    def family(self) -> str:
        """The name of the family."""
        return f"neural {self.component}"


def checked(neural: Neural) -> Settings:
    """Return the settings of a network, or raise an error about an invalid one."""
    rate = check_number(neural.learning_rate, "learning_rate")
    if not 0 < rate < 1:
        raise ValueError(f"learning_rate must lie between 0 and 1, got {rate}")
    latent = check_count(neural.latent, "latent")
    if latent > MOST_LATENT:
        raise ValueError(f"latent must be at most {MOST_LATENT:,}, got {latent:,}")
    return Settings(
        latent,
        _layers(neural.layers),
        check_count(neural.points, "points"),
        check_count(neural.batch_size, "batch_size"),
        rate,
        check_count(neural.warm_up, "warm_up", 0),
        check_count(neural.patience, "patience"),
        check_count(neural.cuts, "cuts", 0),
        check_count(neural.trees, "trees"),
        check_count(neural.settle, "settle", 0),
    )


def _layers(layers: Any) -> tuple[int, ...]:
    if isinstance(layers, str) or not isinstance(layers, Sequence):
        raise TypeError(f"layers must be a sequence of integers, got {layers!r}")
    return tuple(check_count(width, "layers") for width in layers)
