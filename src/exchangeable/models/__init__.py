"""Estimators, and the parameters and fits they are made of."""
