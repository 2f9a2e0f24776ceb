"""How sure classifiers of text are, and what calibration makes of it.

    python benchmarks/calibration.py

20newsgroups, the official split; all twenty groups, and three of them. Calibration is isotonic, by
scikit-learn's `CalibratedClassifierCV` with five folds of the training rows. Printed for each:
accuracy, mean confidence (the average probability of the predicted class), log-loss, and the
expected calibration error over ten equal bins of confidence.
"""

from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.naive_bayes import BernoulliNB, ComplementNB

from exchangeable import ExchangeableClassifier
from exchangeable.datasets import fetch_classification

THREE = ("comp.graphics", "rec.autos", "sci.med")
BINS = 10


def calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Return the average gap between confidence and accuracy in bins, by their sizes."""
    number = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [
        abs(confidence[number == b].mean() - right[number == b].mean()) * (number == b).mean()
        for b in np.unique(number)
    ]
    return float(sum(gaps))


def line(name: str, model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> None:
    """Fit a model, and print what its probabilities are worth."""
    chances = model.fit(X, y).predict_proba(X_test)
    confidence, right = chances.max(axis=1), model.classes_[chances.argmax(axis=1)] == y_test
    loss = log_loss(y_test, np.clip(chances, 1e-15, 1), labels=model.classes_)
    error = calibration_error(confidence, right)
    print(
        f"{name:28s} accuracy {right.mean():.3f}  confidence {confidence.mean():.3f}  "
        f"log-loss {loss:.3f}  calibration error {error:.3f}",
        flush=True,
    )


def main() -> None:
    """Print both tables."""
    models = {
        "BernoulliNB": lambda: BernoulliNB(alpha=0.1),
        "ComplementNB": ComplementNB,
        "blocks": ExchangeableClassifier,
        "blocks, isotonic": lambda: CalibratedClassifierCV(
            ExchangeableClassifier(), method="isotonic", cv=5
        ),
        "hybrid": lambda: ExchangeableClassifier(training="hybrid"),
    }
    for chosen in (None, THREE):
        print("all twenty groups" if chosen is None else ", ".join(chosen))
        data = fetch_classification("20newsgroups", classes=chosen)
        for name, make in models.items():
            line(name, make(), data.X_train, data.y_train, data.X_test, data.y_test)


if __name__ == "__main__":
    main()
