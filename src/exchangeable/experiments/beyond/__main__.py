"""``python -m exchangeable.experiments.beyond``: the density benchmark from a terminal."""

from exchangeable.experiments.beyond.command import main

main()
