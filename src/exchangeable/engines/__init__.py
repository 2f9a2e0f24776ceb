"""Engines: sum moments, sum histograms and score rows, knowing arrays but no estimators."""
