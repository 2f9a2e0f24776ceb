"""Numba's compiler, without work that it would do twice for our kernels.

Numba optimises each function when it is added to a library, again when it is linked with the
functions it calls, and again in everything that calls it; and it generates machine code for all of
them. Here kernels are optimised once, when everything they need has been linked. Functions that
only kernels call are neither optimised nor compiled to machine code by themselves; both happens
where they are called.
"""

from collections.abc import Callable
from types import CodeType
from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import (
    AnnotateTypes,
    DumpParforDiagnostics,
    InlineOverloads,
    NopythonRewrites,
)
from numba.core.untyped_passes import InlineClosureLikes, LiteralUnroll, WithLifting

from exchangeable.runtime.kernels.contexts import KernelContext, KernelTyping

DEFAULTS = Flags().values()  # type: ignore[no-untyped-call]
HASH = hash(Flags())  # type: ignore[no-untyped-call]
"""The hash of all flags: Numba's hash depends on their names only."""


UNUSED = {
    AnnotateTypes,
    DumpParforDiagnostics,
    InlineOverloads,
    LiteralUnroll,
    WithLifting,
}
"""Passes for features that no kernel uses: ``with`` blocks, loops over tuples of several types,
inlined functions of Numba, and reports for people."""


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[misc,no-untyped-call,unused-ignore]
class ArrayRewrites(NopythonRewrites):  # type: ignore[misc,unused-ignore]
    """Joins expressions of whole arrays, if a kernel has any."""

    _name = "exchangeable_array_rewrites"

    def run_pass(self, state: Any) -> bool:
        """Rewrite a kernel's expressions."""
        for expression, signature in state.calltypes.items():
            whole = signature is not None and isinstance(signature.return_type, types.Array)
            if whole and getattr(expression, "op", None) in ("unary", "binop", "call"):
                return bool(super().run_pass(state))  # type: ignore[no-untyped-call]
        return False


class KernelFlags(Flags):
    """Flags that are fast to compare, since Numba does so whenever it looks up an operation."""

    def __hash__(self) -> int:
        return HASH

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flags):
            return NotImplemented
        mine, others = self._values, other._values
        return bool(mine == others or DEFAULTS | mine == DEFAULTS | others)

    def copy(self) -> "KernelFlags":
        """Return the key of operations: how the caller is called is not part of it.

        Otherwise Numba's own functions would be compiled again for each way.
        """
        shared: KernelFlags = super().copy()  # type: ignore[no-untyped-call]
        for name in ("forceinline", "inline", "no_compile", "no_cpython_wrapper"):
            shared.discard(name)  # type: ignore[no-untyped-call]
        return shared


class KernelLibrary(JITCodeLibrary):
    """Machine code of a kernel, optimised once."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class HelperLibrary(KernelLibrary):
    """A function that is linked into kernels, as it was written."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class KernelCompiler(Compiler):
    """Compiles kernels."""

    library: type[KernelLibrary] = KernelLibrary

    def __init__(
        self,
        typingctx: Any,
        targetctx: Any,
        library: Any,
        args: Any,
        return_type: Any,
        flags: Flags,
        locals: Any,
    ) -> None:
        quick: Any = KernelFlags(flags)  # type: ignore[no-untyped-call]
        super().__init__(  # type: ignore[no-untyped-call]
            typingctx, targetctx, library, args, return_type, quick, locals
        )
        self.state.typingctx = KernelTyping.of(typingctx)
        KernelContext.turn(self.state.targetctx)

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes without those that find nothing to do in kernels."""
        pipelines = super().define_pipelines()  # type: ignore[no-untyped-call]
        inner = any(isinstance(value, CodeType) for value in self.state.func_id.code.co_consts)
        skipped = UNUSED if inner else {*UNUSED, InlineClosureLikes}
        for pipeline in pipelines:
            pipeline.passes = [
                (ArrayRewrites if each is NopythonRewrites else each, description)
                for each, description in pipeline.passes
                if each not in skipped
            ]
        return list(pipelines)

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Return a function compiled for the types of its arguments."""
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


class HelperCompiler(KernelCompiler):
    """Compiles functions that only kernels call, as far as is needed to link them."""

    library = HelperLibrary

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Return a function compiled for the types of its arguments, which cannot be called."""
        self.state.flags.no_compile = True
        self.state.flags.no_cpython_wrapper = True
        result = super().compile_extra(func)
        name = object().__reduce__  # any builtin will do: kernels look the function up by it
        result.target_context.insert_user_function(name, result.fndesc, [result.library])
        return result._replace(entry_point=name)
