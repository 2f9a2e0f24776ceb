"""Passes over rows on an accelerator, written in JAX; nothing here imports other packages.

Modules are imported when a fit begins, so that importing the library never imports JAX. EM's passes
(`linear.py`, `hidden.py`) are used through `Model.expect_on`, which returns None if a pass runs on
the CPU. Networks are decoded and trained on plain arrays; the meaning of their outputs is defined
in `families.neural`.
"""
