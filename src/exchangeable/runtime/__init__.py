"""Threads, the clock, memory and interrupts; `kernels` has what compiled loops are made of."""
