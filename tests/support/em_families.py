"""The families that EM fits; those that train themselves have tests of their own."""

from exchangeable.families import REGISTRY
from exchangeable.families.contract import Family

BY_EM = [name for name, spec in REGISTRY.items() if issubclass(spec.family, Family)]
