"""Numba's contexts with caches for repeated questions.

Typing ``i + 1`` tries a dozen templates, most of them for strings, sets and dates, and does so
again for each occurrence and in each round of inference; the size of a type is found by parsing an
LLVM module; and before every look-up all registries are searched for new entries. All of this is
done once here.
"""

import copy
from typing import Any, ClassVar

from numba.core import types
from numba.core.cpu import CPUContext
from numba.core.typing.context import Context


def _n_registered(registries: Any) -> int:
    """Return how many definitions some registries hold."""
    return sum(
        len(entries)
        for registry in registries
        for entries in vars(registry).values()
        if isinstance(entries, list)
    )


class KernelTyping(Context):  # type: ignore[misc,unused-ignore]
    """The typing of a kernel's operations.

    It shares declarations with the context it was made from, and is equal to it, so that Numba's
    own functions are not compiled once for each.

    Only Numba's own answers are cached: functions that are compiled for a caller also depend on how
    the caller is compiled.
    """

    _known: dict[Any, Any]
    _origin: Context

    @classmethod
    def of(cls, context: Context) -> "KernelTyping":
        """Return the instance for a context, creating it if necessary."""
        if context not in _made:
            made: Any = copy.copy(context)
            made.__class__ = cls
            made._known, made._origin = {}, context
            _made[context] = made
        return _made[context]

    def __hash__(self) -> int:
        return hash(self._origin)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._origin

    def _resolve_user_function_type(
        self, func: Any, args: Any, kws: Any, literals: Any = None
    ) -> Any:
        declared = self._lookup_global(func)  # type: ignore[no-untyped-call]
        known = func if declared is None else declared
        if kws or type(known) is not types.Function:
            return super()._resolve_user_function_type(  # type: ignore[no-untyped-call]
                func, args, kws, literals
            )
        asked = known, tuple(args)
        signature = self._known.get(asked)
        if signature is None:
            signature = known.get_call_type(self, args, kws)
            if signature is not None and known.get_impl_key(signature) is known.typing_key:
                self._known[asked] = signature
        else:
            keys: Any = known._impl_keys  # type: ignore[attr-defined]
            keys[signature.args] = known.typing_key
        return signature


_made: dict[Context, KernelTyping] = {}


class KernelContext(CPUContext):  # type: ignore[misc,unused-ignore]
    """The lowering of a kernel's operations."""

    _sizes: ClassVar[dict[str, int]] = {}
    _seen: ClassVar[list[int]] = [0]

    @classmethod
    def turn(cls, context: CPUContext) -> None:
        """Make a context that was copied for one kernel one of this kind."""
        context.__class__ = cls

    def get_abi_sizeof(self, ty: Any) -> int:
        """Return the size of an LLVM type in bytes."""
        name = str(ty)
        if name not in self._sizes:
            self._sizes[name] = super().get_abi_sizeof(ty)  # type: ignore[no-untyped-call]
        return self._sizes[name]

    def refresh(self) -> None:
        """Look for new definitions, if there are any."""
        if self._n_definitions() != self._seen[0]:
            super().refresh()  # type: ignore[no-untyped-call]
            self._seen[0] = self._n_definitions()

    def _n_definitions(self) -> int:
        return _n_registered(self._registries) + _n_registered(self.typing_context._registries)
