"""Parameters of fitted models as arrays, for every family in the registry."""

from typing import Any

import numpy as np

from exchangeable.families import model_kinds
from exchangeable.families.contract import Model
from exchangeable.families.grouped import GroupedModel
from exchangeable.families.joined import JoinedModel
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import CLOSE, numbers, probabilities
from exchangeable.storage.values import Reader, Writer


def encode_model(model: Any, writer: Writer, name: str) -> dict[str, Any]:
    """Return the parameters of a model as JSON with references to arrays."""
    if not isinstance(model, Model):
        raise TypeError(f"a model of type {type(model).__name__} cannot be saved")
    writer.budget.spend(model.n_steps, f"reading this model of {model.kind}")
    if isinstance(model, JoinedModel):
        parts = [
            encode_model(part, writer, f"{name}.{number}")
            for number, part in enumerate(model.parts)
        ]
        return {"kind": model.kind, "parts": parts}
    arrays = {key: writer.store(array, f"{name}.{key}") for key, array in model.encode().items()}
    encoded = {"kind": model.kind, "arrays": arrays}
    if isinstance(model, GroupedModel):
        encoded["inner"] = encode_model(model.inner, writer, f"{name}.inner")
    return encoded


def decode_model(value: Any, reader: Reader, name: str) -> Model:
    """Return the model with these parameters."""
    kind = _kind(value)
    if kind == JoinedModel.kind:
        return _joined(value.get("parts"), reader, name)
    if kind == GroupedModel.kind:
        return _grouped(value, reader, name)
    known, arrays = model_kinds(), value.get("arrays") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in known or not isinstance(arrays, dict):
        raise ModelFileError(f"{name} is not a model that is known here")
    read = {key: reader.array(entry, key) for key, entry in arrays.items()}
    return known[kind].read(read, reader.budget)


def _grouped(value: Any, reader: Reader, name: str) -> GroupedModel:
    """Return classes with several components, after checking everything."""
    arrays = value.get("arrays")
    if not isinstance(arrays, dict) or set(arrays) != {"group", "log_shares"}:
        raise ModelFileError(f"{name} lacks its groups")
    # Checked before decoding, so that nothing can be nested without end.
    if _kind(value.get("inner")) in (GroupedModel.kind, JoinedModel.kind):
        raise ModelFileError(f"{name} has components that cannot be grouped")
    inner = decode_model(value.get("inner"), reader, f"{name}.inner")
    group = reader.array(arrays["group"], "group")
    shape = (inner.n_classes,)
    if group.dtype != np.int64 or group.shape != shape or group[0] != 0:
        raise ModelFileError(f"group is {group.dtype} of shape {group.shape}, expected {shape}")
    if not np.isin(np.diff(group), (0, 1)).all():
        raise ModelFileError("group does not list the classes in order")
    shares = reader.array(arrays["log_shares"], "log_shares")
    shares = numbers(shares, "log_shares", shape, low=-np.inf, high=CLOSE)
    for y in range(int(group[-1]) + 1):
        probabilities(shares[group == y], "log_shares")
    return GroupedModel(inner, group, shares)


def _kind(value: Any) -> Any:
    return value.get("kind") if isinstance(value, dict) else None


def _joined(parts: Any, reader: Reader, name: str) -> JoinedModel:
    if not isinstance(parts, list) or not parts:
        raise ModelFileError(f"{name} has no parts")
    models: list[Model] = []
    for part in parts:
        # Checked before decoding, so that nothing can be nested without end.
        if _kind(part) == JoinedModel.kind:
            raise ModelFileError(f"{name} has a part that cannot be joined")
        models.append(decode_model(part, reader, name))
    if len({model.n_variables for model in models}) > 1:
        raise ModelFileError(f"{name} has parts of different variables")
    return JoinedModel(models)
