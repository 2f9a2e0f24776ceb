"""Compiled steps of training: gradients of the log-likelihood, Adam, and averaged weights."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from exchangeable.devices.networks.decoder import Layers, decode, hidden_layer, latent_points
from exchangeable.devices.networks.head import Head
from exchangeable.devices.networks.scores import SCORES
from exchangeable.devices.programs import program

LARGEST_GRADIENT = 10.0
"""Longer gradients are clipped to this norm."""
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8
"""Adam's decay rates, and its ε."""


class Settled(NamedTuple):
    """Components that have left the latent space: the input of the last layer is learned for each.

    Attributes
    ----------
    hidden : array of shape (n_components, width)
        The last hidden layer.
    log_shares : array of shape (n_components,)
        Logarithms of the shares, which need not sum to one.
    """

    hidden: Any
    log_shares: Any


class Network(NamedTuple):
    """Parameters while they are trained: the layers of a decoder, or `Settled`.

    Attributes
    ----------
    parameters : tree of arrays
        The latest.
    mean, square : trees of arrays
        Moving averages of their gradients and of the squares of these.
    n_steps : number
        Number of steps so far.
    average : tree of arrays
        The moving average of the parameters, which is better than the latest.
    """

    parameters: Any
    mean: Any
    square: Any
    n_steps: Any
    average: Any


class Batches(NamedTuple):
    """Rows and learning rates of some steps.

    Attributes
    ----------
    rows : array of shape (n_steps, batch_size, n_variables)
        The rows; −1 for missing entries.
    weights : array of shape (n_steps, batch_size)
        How much each row counts.
    rates : array of shape (n_steps,)
        Learning rates.
    decays : array of shape (n_steps,)
        Decay of the average.
    shifts : array of shape (n_steps, latent)
        Random shifts of the points.
    """

    rows: Any
    weights: Any
    rates: Any
    decays: Any
    shifts: Any


def new_network(parameters: Any) -> Network:
    """Return initial training state."""
    nothing = jax.tree.map(lambda each: np.zeros(each.shape, dtype=np.float32), parameters)
    return Network(parameters, nothing, nothing, np.float32(0.0), parameters)


def log_likelihoods(head: Head, constants: Any, outputs: Any, log_shares: Any, rows: Any) -> Any:
    """Return log P of each row under the mixture of the components of some outputs."""
    scores = SCORES[head.kind](head, constants, outputs, rows)
    return jax.nn.logsumexp(scores + log_shares, axis=1)


def moved(network: Network, gradient: Any, rates: Any, decay: Any) -> Network:
    """Return the network after a step of Adam against a gradient, with a rate per parameter."""
    length = jnp.sqrt(sum(jnp.sum(each**2) for each in jax.tree.leaves(gradient)))
    scale = jnp.minimum(1.0, LARGEST_GRADIENT / jnp.maximum(length, EPSILON))
    gradient = jax.tree.map(lambda g: g * scale, gradient)
    n_steps = network.n_steps + 1
    mean = _moving(network.mean, gradient, FIRST_DECAY)
    square = _moving(network.square, jax.tree.map(jnp.square, gradient), SECOND_DECAY)
    first, second = 1 - FIRST_DECAY**n_steps, 1 - SECOND_DECAY**n_steps

    def change(parameter: Any, mean: Any, square: Any, rate: Any) -> Any:
        return parameter - rate * (mean / first) / (jnp.sqrt(square / second) + EPSILON)

    changed = jax.tree.map(change, network.parameters, mean, square, rates)
    return Network(changed, mean, square, n_steps, _moving(network.average, changed, decay))


def _moving(average: Any, latest: Any, decay: Any) -> Any:
    """Return a moving average that has seen one more."""
    return jax.tree.map(lambda a, b: decay * a + (1 - decay) * b, average, latest)


@program("head")
def train_steps(
    head: Head, network: Network, constants: Any, points: tuple[Any, Any], batches: Batches
) -> tuple[Network, Any]:
    """Return the network after some steps, and the average log-likelihood of each batch.

    `points` are points of the unit cube, and the logarithms of their shares.
    """
    uniform, log_shares = points

    def step(network: Network, batch: Batches) -> tuple[Network, Any]:
        moved_points = latent_points(uniform, batch.shifts)

        def loss(layers: Layers) -> Any:
            outputs = decode(layers, moved_points, head.groups)
            each = log_likelihoods(head, constants, outputs, log_shares, batch.rows)
            return -(batch.weights @ each) / batch.weights.sum()

        value, gradient = jax.value_and_grad(loss)(network.parameters)
        rates = jax.tree.map(lambda _: batch.rates, gradient)
        return moved(network, gradient, rates, batch.decays), -value

    trained, values = jax.lax.scan(step, network, batches)
    return trained, values


@program("head")
def settle_steps(
    head: Head, network: Network, last: Layers, constants: Any, batches: Batches
) -> tuple[Network, Any]:
    """Return `Settled` components after some steps, and the log-likelihood of each batch."""

    def step(network: Network, batch: Batches) -> tuple[Network, Any]:
        def loss(settled: Settled) -> Any:
            outputs = decode(last, settled.hidden, head.groups)
            log_shares = jax.nn.log_softmax(settled.log_shares)
            each = log_likelihoods(head, constants, outputs, log_shares, batch.rows)
            return -(batch.weights @ each) / batch.weights.sum()

        value, gradient = jax.value_and_grad(loss)(network.parameters)
        rates = Settled(batch.rates, batch.rates)
        return moved(network, gradient, rates, batch.decays), -value

    settled, values = jax.lax.scan(step, network, batches)
    return settled, values


@program()
def hidden(layers: Layers, points: Any) -> Any:
    """Return what the last of the layers reads at some points."""
    return hidden_layer(layers, points)


@program()
def placed(uniform: Any) -> Any:
    """Return points of the unit cube as points of a normal distribution."""
    return latent_points(uniform, 0.0)


@program("head")
def held_out(
    head: Head, layers: Layers, constants: Any, points: tuple[Any, Any], batches: Any
) -> Any:
    """Return log P of each row of some batches, shape (n_batches, batch_size).

    `points` are what the first of the layers reads, and the logarithms of their shares.
    """
    outputs = decode(layers, points[0], head.groups)

    def one(rows: Any) -> Any:
        return log_likelihoods(head, constants, outputs, points[1], rows)

    return jax.lax.map(one, batches)


@program("head", "most")
def refitted(
    head: Head,
    layers: Layers,
    constants: Any,
    points: tuple[Any, Any],
    train: tuple[Any, Any],
    valid: tuple[Any, Any],
    most: int,
) -> tuple[Any, Any]:
    """Return the outputs at points, and shares refitted by EM with fixed components.

    At most `most` steps are made, as long as the held-out likelihood increases. `train` and `valid`
    are rows and their weights; `points` are the inputs of the first layer, and the initial shares.
    """
    outputs = decode(layers, points[0], head.groups)
    relative, _ = _likelihoods(head, constants, outputs, train[0])
    held, highest = _likelihoods(head, constants, outputs, valid[0])

    def worth(shares: Any) -> Any:
        return (valid[1] @ (jnp.log(held @ shares) + highest)) / valid[1].sum()

    def following(state: tuple[Any, ...]) -> tuple[Any, ...]:
        number, shares, before, _ = state
        changed = next_shares(relative, train[1], shares)
        after = worth(changed)
        better = after > before
        kept = jnp.where(better, changed, shares)
        return number + 1, kept, jnp.where(better, after, before), better

    def goes_on(state: tuple[Any, ...]) -> Any:
        return (state[0] < most) & state[3]

    begin = (jnp.int32(0), jnp.asarray(points[1]), worth(points[1]), jnp.bool_(True))
    return outputs, jax.lax.while_loop(goes_on, following, begin)[1]


def next_shares(relative: Any, weights: Any, shares: Any) -> Any:
    """Return the shares of the components after an EM step with fixed components."""
    masses = shares * ((weights / (relative @ shares)) @ relative)
    return masses / masses.sum()


def _likelihoods(head: Head, constants: Any, outputs: Any, rows: Any) -> tuple[Any, Any]:
    """Return P of each row in each component relative to its best one, and log P there."""
    scores = SCORES[head.kind](head, constants, outputs, rows)
    highest = scores.max(axis=1)
    return jnp.exp(scores - highest[:, None]), highest
