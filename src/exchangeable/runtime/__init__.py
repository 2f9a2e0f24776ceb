"""Threads, the clock, memory and interrupts; `kernels` is the basis of compiled loops."""
