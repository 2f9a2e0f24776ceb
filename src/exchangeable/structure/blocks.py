"""`Blocks`: the settings for grouping variables into blocks."""

from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.base import BaseEstimator

from exchangeable.structure.learner import (
    METHODS,
    BlockSettings,
    Structure,
    check_structure,
    is_method,
)

AUTO, GIVEN = "auto", "given"


class Blocks(BaseEstimator):
    """How the variables of each class or component are grouped into blocks.

    For the parameter `blocks` of an estimator, a name such as ``"welch"`` is short for
    ``Blocks(method="welch")``. The settings can be searched, as in ``GridSearchCV(model,
    {"blocks__significance": [0.01, 0.1]})``. A setting that the method does not use raises an
    error.

    Parameters
    ----------
    method : {"auto", "evidence", "welch", "independent", "full"}, list or dict, default="auto"
        ``"welch"`` is the paper's sweep: sort by mean, cut where Welch's t-test rejects equal
        means. ``"evidence"`` merges neighbouring blocks of a sweep while the evidence increases.
        ``"independent"`` makes every variable a block, ``"full"`` makes one block of all.
        ``"auto"`` is the family's default. Lists of variables specify the blocks, which then have
        no settings except `shrinkage`.
    significance : float, default=0.1
        Significance level of the sweep, and of conditions 2 and 3. For evidence merging in classes,
        whose sweep has the level `start`, it only applies to conditions 2 and 3.
    start : float, optional
        Significance level of the sweep from which evidence merging starts; by default 0.5 for
        classes, whose rows are known, and 0.1 for components.
    prior : float, default=0.1
        Dirichlet parameter of the evidence.
    conditions : tuple of int, default=(1,)
        Which of the necessary conditions of Proposition 3.3 a learned block must pass: 1 (equal
        means) always; with 2 or 3, blocks are split if variances or covariances differ.
    accept : {"all", "component"}, default="all"
        Whether EM accepts new blocks for all components together if they raise the likelihood, as
        in the paper, or for each component separately.
    relearn : bool, optional
        Whether EM continues to learn blocks, or keeps the initial ones. By default the paper's
        family continues and weighted urns do not.
    shrinkage : float, optional
        Pseudo-rows that shrink each edge of a tree, or each free parameter of an edge between
        blocks, towards independence, for families with trees; the default depends on the family.

    Examples
    --------
    >>> from exchangeable import Blocks, ExchangeableClassifier
    >>> model = ExchangeableClassifier(blocks=Blocks("welch", significance=0.05))
    >>> model.set_params(blocks__significance=0.01).blocks
    Blocks(method='welch', significance=0.01)
    >>> ExchangeableClassifier("tree", blocks=Blocks(shrinkage=50.0)).blocks
    Blocks(shrinkage=50.0)
    """

    def __init__(
        self,
        method: Any = AUTO,
        *,
        significance: float = 0.1,
        start: float | None = None,
        prior: float = 0.1,
        conditions: Sequence[int] = (1,),
        accept: str = "all",
        relearn: bool | None = None,
        shrinkage: float | None = None,
    ) -> None:
        self.method = method
        self.significance = significance
        self.start = start
        self.prior = prior
        self.conditions = conditions
        self.accept = accept
        self.relearn = relearn
        self.shrinkage = shrinkage


def as_blocks(blocks: Any) -> tuple[Blocks, Any]:
    """Return the settings that `blocks` stands for, and its method or the given blocks."""
    settings = blocks if isinstance(blocks, Blocks) else Blocks(blocks)
    method = settings.method
    if isinstance(method, str) and method not in (AUTO, *METHODS):
        inside = settings is blocks
        raise ValueError(
            f"{f'Blocks(method={method!r})' if inside else f'blocks={method!r}'} is unknown; "
            f"expected one of {', '.join((AUTO, *METHODS))}, "
            f"{'' if inside else 'a Blocks object, '}or a partition given as lists of variables"
        )
    if isinstance(method, Iterator):
        raise TypeError("blocks is an iterator, which can be read only once; pass a list")
    return settings, method


def structure_of(
    settings: Blocks,
    method: Any,
    labelled: bool,
    n_variables: int,
    classes: Sequence[Any],
    names: Sequence[str] | None = None,
) -> Structure:
    """Return where blocks come from, given the settings and a method or given blocks."""
    if not isinstance(settings.accept, str) or settings.accept not in ("all", "component"):
        raise ValueError(f"accept={settings.accept!r} is unknown; expected one of all, component")
    if settings.relearn is not None and not isinstance(settings.relearn, bool):
        raise ValueError(f"relearn must be True, False or None, got {settings.relearn!r}")
    start = (0.5 if labelled else 0.1) if settings.start is None else settings.start
    checked = BlockSettings(settings.significance, start, settings.prior, settings.conditions)
    structure = check_structure(method, checked, n_variables, classes, names)
    _refuse_unused(settings, kind_of(method), labelled)
    return structure


def _refuse_unused(settings: Blocks, method: str, labelled: bool) -> None:
    """Raise an error for settings that were changed but have no effect, whatever the rows are."""
    asked = "blocks given as lists" if method == GIVEN else f"blocks={method!r}"
    learned, merged = method in ("welch", "evidence"), method == "evidence"
    further = set(settings.conditions) != {1}
    table = (
        ("start", merged, settings.start is not None, "only evidence merging starts from a sweep"),
        ("prior", merged, settings.prior != 0.1, "only evidence merging has a prior"),
        ("conditions", learned, further, "these blocks are not learned"),
        ("relearn", learned, settings.relearn is not None, "these blocks are not learned"),
        (
            "accept",
            learned and settings.relearn is not False,
            settings.accept != "all",
            "with relearn=False blocks stay" if learned else "these blocks are not learned",
        ),
        (
            "significance",
            learned and not (merged and labelled and not further),
            settings.significance != 0.1,
            "for classes it is the level of conditions 2 and 3; start is that of the sweep"
            if learned
            else "these blocks are not learned",
        ),
    )
    for name, used, changed, reason in table:
        if changed and not used:
            raise ValueError(
                f"{name}={getattr(settings, name)!r} does not go with {asked}: {reason}; leave it "
                "away"
            )


def kind_of(method: Any) -> str:
    """Return the method's name, ``"given"`` for given blocks."""
    return method if is_method(method) else GIVEN
