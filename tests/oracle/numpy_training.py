"""Section 5 of the paper in float64 NumPy: what training must compute. Written apart, as numpy_transformer.py is."""

import numpy as np
from numpy_transformer import softmax
from numpy_weights import Floats, Ids, Mask


def cross_entropy(logits: Floats, target: Ids, real: Mask, smoothing: float) -> float:
    """§5.4, nats a token: the mean over real tokens of -Σ q log p; q is (1-ε) on the target plus ε/V everywhere.

    logits (b, t, vocab), target and real (b, t). With smoothing ε = 0 this is the negative log-likelihood.
    """
    vocab = logits.shape[-1]
    losses = []
    for row in range(logits.shape[0]):
        for place in range(logits.shape[1]):
            if not real[row, place]:
                continue
            probabilities = softmax(logits[row, place])
            wanted = np.full(vocab, smoothing / vocab)
            wanted[target[row, place]] += 1 - smoothing
            losses.append(-(wanted * np.log(probabilities)).sum())
    return float(np.mean(losses))


def noam(step: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """Equation 3: factor · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), steps counted from 1."""
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
