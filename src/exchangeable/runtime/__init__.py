"""What compiled code runs on: threads, the worker pool, bits, and vectorisable exp and log."""
