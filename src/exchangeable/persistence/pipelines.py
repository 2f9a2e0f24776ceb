"""scikit-learn `Pipeline`s in model files: saved step by step, or refused with the reason."""

from collections.abc import Callable, Mapping
from typing import Any

from exchangeable.persistence.transformers import (
    NOTHING,
    PIPELINE,
    TRANSFORMERS,
    encode_step,
)
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.values import Writer

MOST_STEPS = 100
PLAIN = {"memory": None, "verbose": False}
"""Parameters of a pipeline that must have their default values."""


def is_pipeline(model: Any) -> bool:
    """Whether a model is a scikit-learn pipeline itself (not of a subclass)."""
    kind = type(model)
    return kind.__name__ == PIPELINE and kind.__module__.startswith("sklearn.")


def encode_pipeline(
    pipeline: Any,
    writer: Writer,
    known: Mapping[str, type[Any]],
    encode: Callable[[Any, Writer, str], dict[str, Any]],
) -> dict[str, Any]:
    """Return a pipeline as JSON, its steps in order.

    Parameters
    ----------
    pipeline : Pipeline
        A pipeline of estimators of this library and transformers whose state is plain data.
    writer : Writer
        Collects the arrays.
    known : mapping from name to class
        The estimators of this library.
    encode : callable
        Encodes one of these estimators.
    """
    for name, usual in PLAIN.items():
        if getattr(pipeline, name) != usual:
            raise TypeError(
                f"Pipeline({name}={getattr(pipeline, name)!r}) cannot be saved; set it to {usual}"
            )
    steps = []
    for name, step in pipeline.steps:
        where = f"step {name!r} ({type(step).__name__})"
        encoded: Any = step
        if not (step is None or step == "passthrough"):
            prefix = f"{name}."
            own = known.get(type(step).__name__) is type(step)
            try:
                encoded = encode(step, writer, prefix) if own else encode_step(step, writer, prefix)
            except TypeError as error:
                raise TypeError(f"{where} of the pipeline cannot be saved: {error}") from None
            if encoded is None:
                raise TypeError(
                    f"{where} of the pipeline cannot be saved: a file holds estimators of this "
                    f"library and {', '.join(TRANSFORMERS)}; save the last step alone, or keep the "
                    "pipeline with pickle or joblib, whose files run what they contain"
                )
        steps.append([name, encoded])
    return {"class": PIPELINE, "steps": steps}


def decode_pipeline(value: Mapping[str, Any], decode: Callable[[Any, str], Any]) -> Any:
    """Return the pipeline encoded by JSON.

    Parameters
    ----------
    value : mapping
        What `encode_pipeline` returned.
    decode : callable
        Decodes a step: an estimator of this library or a listed transformer.
    """
    from sklearn.pipeline import Pipeline

    steps = value.get("steps")
    if not isinstance(steps, list) or not 0 < len(steps) <= MOST_STEPS:
        raise ModelFileError("is a pipeline without steps, or with too many")
    made = []
    for entry in steps:
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)):
            raise ModelFileError("is a pipeline with a step that has no name")
        name, step = entry
        if step not in NOTHING:
            if isinstance(step, dict) and step.get("class") == PIPELINE:
                raise ModelFileError("is a pipeline within a pipeline")
            step = decode(step, name)
        made.append((name, step))
    if len({name for name, _ in made}) < len(made):
        raise ModelFileError("is a pipeline with two steps of the same name")
    return Pipeline(made)
