"""
Where the correlation shows
===========================

Ten answers of a survey that are all driven by the same mood. Each is given by half of the people;
independent answers would make five of ten the most frequent count. The block captures that people
give nearly all of them, or nearly none.
"""

import matplotlib.pyplot as plt
import numpy as np

from exchangeable import ExchangeableMixture
from exchangeable.plotting import CountDistributionDisplay

rng = np.random.default_rng(0)
mood = rng.beta(0.5, 0.5, size=(1_000, 1))
X = rng.random((1_000, 10)) < mood
model = ExchangeableMixture(1, blocks="full", random_state=0).fit(X)
CountDistributionDisplay.from_estimator(model, X=X)
plt.show()

# %%
# The same number of parameters, different likelihoods:

independent = ExchangeableMixture(1, blocks="independent", random_state=0).fit(X)
print(f"one block:   {model.score(X):.3f} nats a row")
print(f"independent: {independent.score(X):.3f} nats a row")
