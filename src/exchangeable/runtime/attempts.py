"""Fits that leave the estimator unchanged if they fail."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """Decorate a method that fits, so that its estimator is unchanged if it fails.

    Otherwise, what scikit-learn's validation sets at the beginning of a fit, such as
    ``n_features_in_``, would be combined with the model of an earlier fit.
    """

    @functools.wraps(method)
    def fit(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(self.__dict__)
        try:
            return method(self, *args, **options)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return fit  # type: ignore[return-value]
