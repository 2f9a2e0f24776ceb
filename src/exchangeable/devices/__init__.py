"""Passes over rows on an accelerator, written in JAX; nothing here imports the other rooms.

Modules are imported when a fit begins, so that importing the package never imports JAX. EM's
passes (`linear.py`, `hidden.py`) are asked for by `Model.expect_on`, which returns None where a
pass is the processor's. Networks are decoded and trained on arrays alone: what their outputs stand
for is said by `families.neural`.
"""
