"""Hidden trees: one tree over blocks, each of which has a hidden state."""

from exchangeable.families.contract import NUMBER, FamilySpec, SearchSpace, least_memory
from exchangeable.families.later import later


def _memory(n_rows: int, n_variables: int, n_components: int) -> float:
    """Return the least memory of a fit: tables of states by states for every edge, and all pairs.

    There are old and new tables, as parameters and as sums.
    """
    tables = 4.0 * n_variables * n_components**2
    pairs = 4.0 * n_variables**2
    return least_memory(n_rows, n_variables, n_components) + NUMBER * (tables + pairs)


SPECS = (
    FamilySpec(
        name="hidden tree",
        summary="one tree over blocks with a hidden state each; n_components is the number of "
        "states",
        model=later(f"{__name__}.model", "HiddenModel"),
        family=later(f"{__name__}.family", "HiddenFamily"),
        blocks=("independent", "full", "given"),
        blocks_hint="all states share one set of blocks, which are not learned",
        shared_blocks=True,
        pooling=0.5,
        shrinkage=1.0,
        needs_smoothing=True,
        most_variables=4_000,
        memory=_memory,
        class_components=8,
        cannot={
            "hybrid": "its scores are logarithms of sums over hidden states, not log-linear in its "
            "parameters; choose another family",
            "accept": "its blocks are not learned",
            "relearn": "its blocks are not learned",
            "exact completion": "a maximum over rows of a sum over hidden states is hard; the "
            "answer is searched for up to a limit of work, and says whether it is certain",
        },
        other_kinds="mixed tree",
        search=SearchSpace(
            *(24, 128, (0.5, 0.5)), alone=True, nanoseconds=150.0, growth=1.3, most_on_device=256
        ),
    ),
)
