"""Decoding as one would write it on paper: one text, no cache, no batch, plain Python over NumPy.

`beam_search` is the definition that `beam.py` must equal; a shrinking beam is searched to the end here. `continuation`
is the one that `sampling_loop.py` must equal.
"""

from collections.abc import Callable, Container, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.length_penalty import length_weights
from plainformer.decode.protocols import EncoderDecoder, Hypothesis
from plainformer.decode.sampling import in_range
from plainformer.decode.settings import GenerationSettings, SamplingSettings
from plainformer.decode.sliding_window import window_start
from plainformer.models.language_model import LanguageModel
from plainformer.shapes import Array, Float, Ids, Int, PRNGKeyArray, Valid

NextLogits = Callable[[list[int]], np.ndarray]
"""The logits (vocab,) of the next token, given the tokens so far (of a target: without its beginning of sentence)."""


def model_logits(model: EncoderDecoder, source: Sequence[int], *, bos: int, eos: int) -> NextLogits:
    """Next-token logits of `model` for one `source`, each computed by the full forward."""
    source_ids = jnp.array([[*source, eos]], jnp.int32)
    source_valid = jnp.ones(source_ids.shape, bool)

    def next_logits(ids: list[int]) -> np.ndarray:
        # The future is hidden, so what stands there is free: padding to a multiple of 16 keeps compiled shapes few.
        target = [bos, *ids, *[eos] * (-(len(ids) + 1) % 16)]
        return np.asarray(_forward(model, source_ids, source_valid, jnp.array([target], jnp.int32))[0, len(ids)])

    return next_logits


@eqx.filter_jit
def _forward(
    model: EncoderDecoder, source: Ids, source_valid: Valid, target: Int[Array, "batch target"]
) -> Float[Array, "batch target vocab"]:
    return model(source, source_valid, target)


def text_logits(model: LanguageModel) -> NextLogits:
    """Next-token logits of a language model for the last of the tokens it is given, by the full forward."""

    def next_logits(ids: list[int]) -> np.ndarray:
        # As above, but no longer than the context.
        filled = [*ids, *[0] * (-len(ids) % 64)][: max(len(ids), model.config.context)]
        return np.array(_read(model, jnp.array([filled], jnp.int32))[0, len(ids) - 1])

    return next_logits


@eqx.filter_jit
def _read(model: LanguageModel, ids: Ids) -> Float[Array, "batch seq vocab"]:
    return model(ids)


def continuation(
    next_logits: NextLogits,
    prompt: Sequence[int],
    settings: SamplingSettings,
    *,
    context: int,
    number: int = 0,
    suppress_tokens: Sequence[int] = (),
    eos: int | None = None,
) -> list[int]:
    """What sample `number` of a language model writes after `prompt`."""
    key = jax.random.fold_in(jax.random.key(settings.seed), number)
    text = list(prompt)
    ends = settings.end_tokens or (eos,)
    suppress_tokens = [*suppress_tokens, *settings.suppress_tokens]
    while len(text) < len(prompt) + settings.max_new_tokens(len(prompt)):
        window = text[window_start(len(text), context) :]
        logits = penalised(next_logits(window), text, settings.repetition_penalty)
        logits[list(suppress_tokens)] = -np.inf
        token = choose(logits, jax.random.fold_in(key, len(text)), settings)
        if token in ends:
            break
        text.append(token)
    return text[len(prompt) :]


def choose(logits: np.ndarray, key: PRNGKeyArray, settings: SamplingSettings) -> int:
    """One token, drawn from those that temperature, top-k, top-p and min-p leave, in this order."""
    ranked = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    if settings.temperature == 0.0:
        return ranked[0]
    scaled = (logits - logits[ranked[0]]) / np.float32(in_range(settings.temperature))
    ranked = ranked[: settings.top_k or None]
    probability = np.exp(scaled[ranked]) / np.exp(scaled[ranked]).sum()
    kept = np.full_like(scaled, -np.inf)
    before = 0.0
    for token, p in zip(ranked, probability, strict=True):
        if settings.top_p < 1.0 and before >= in_range(settings.top_p):
            break
        if p >= settings.min_p * probability[0]:
            kept[token] = scaled[token]
        before += p
    return int(jax.random.categorical(key, jnp.asarray(kept)))


def beam_search(
    next_logits: NextLogits,
    bound: int,
    settings: GenerationSettings,
    *,
    bos: int,
    eos: int,
    pad: int,
    allowed_tokens: Container[int] | None = None,
    on_cut: Callable[[float], None] = lambda gap: None,
) -> list[Hypothesis]:
    """The `n_best` hypotheses of one sentence of at most `bound` tokens, best first.

    A shrinking beam searches to the end here; when a full one stops is part of what it finds. `on_cut` is told,
    wherever an extension falls outside the beam, by how much the last that stays is better.
    """
    ends = settings.end_tokens or (eos,)
    live: list[tuple[list[int], np.float32]] = [([], np.float32(0.0))]
    finished: list[Hypothesis] = []
    for step in range(1, bound + 1):
        extensions = []
        for row, (ids, total) in enumerate(live):
            logits, no_repeat = next_logits(ids), settings.no_repeat_ngram
            banned = [
                token in settings.suppress_tokens
                or not may_follow(ids, token, no_repeat, bos=bos, ends=ends, pad=pad, allowed_tokens=allowed_tokens)
                for token in range(len(logits))
            ]
            logprobs = next_logprobs(logits, ids, settings, banned, ends=ends, last=step == bound)
            extensions += [(total + logprob, row, token) for token, logprob in enumerate(logprobs)]
        possible = [extension for extension in extensions if extension[0] > -np.inf]
        possible.sort(key=lambda extension: (-extension[0], extension[1], extension[2]))
        beam = settings.beam_size
        width = (1 + len(ends)) * beam if settings.is_full else beam - len(finished)
        if len(possible) > width:
            on_cut(float(possible[width - 1][0] - possible[width][0]))
        survivors = []
        for place, (total, row, token) in enumerate(possible[:width]):
            ids = [*live[row][0], token]
            if token not in ends and step < bound:
                survivors.append((ids, total))
            elif place < beam:
                finished.append(hypothesis(ids, total, settings, ends))
        finished.sort(key=lambda candidate: -candidate.score)  # stable: among equals the earlier comes first
        live = survivors[:beam]
        if settings.is_full:
            finished = finished[:beam]
            if live and is_over(finished, float(live[0][1]), step, bound, settings):
                break
    return finished[: settings.n_best]


def is_over(finished: list[Hypothesis], best: float, step: int, bound: int, settings: GenerationSettings) -> bool:
    """Whether a full beam stops, where the `best` that lives has this log-probability."""
    if len(finished) < settings.beam_size or settings.early_stopping == "first":
        return len(finished) == settings.beam_size
    weights = length_weights(settings, bound)
    hoped = min(weights[step], weights[bound]) if settings.early_stopping == "never" else weights[step]
    return bool(best * hoped <= finished[-1].score)


def next_logprobs(
    logits: np.ndarray,
    ids: list[int],
    settings: GenerationSettings,
    banned: list[bool],
    *,
    ends: Sequence[int],
    last: bool,
) -> np.ndarray:
    """Log-probabilities (vocab,) of the next token after `ids`, -inf for banned tokens."""
    forced = ends[0] if last and settings.forced_eos else settings.forced_bos if not ids else None
    if forced is not None:
        return np.where(np.arange(len(logits)) == forced, np.float32(0.0), -np.float32(np.inf))
    logits = log_softmax(logits) if settings.penalises_logprobs else logits
    logits = penalised(logits, ids, settings.repetition_penalty)
    possible = ~np.array(banned) & (logits > -np.inf)
    if len(ids) + 1 < settings.min_tokens and any(possible[token] for token in set(range(len(logits))) - set(ends)):
        possible[list(ends)] = False
    if settings.penalises_logprobs and not settings.renormalize_logits:
        return np.where(possible, logits, -np.inf).astype(np.float32)
    shown = np.where(possible, logits, -np.inf) if settings.renormalize_logits else logits
    return np.where(possible, log_softmax(shown), -np.inf).astype(np.float32)


def hypothesis(ids: list[int], total: np.float32, settings: GenerationSettings, ends: Sequence[int]) -> Hypothesis:
    """A sequence that is complete, its end of sentence counted in its length and then cut off."""
    weight = length_weights(settings, len(ids))[-1]
    ended = ids[-1] in ends
    return Hypothesis(tuple(ids[:-1] if ended else ids), float(total * weight), float(total), ended)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logits (vocab,) to log-probabilities, float32."""
    shifted = logits - logits.max()
    return (shifted - np.log(np.exp(shifted).sum())).astype(np.float32)


def penalised(logits: np.ndarray, ids: list[int], penalty: float) -> np.ndarray:
    """The logits after the repetition penalty on the tokens `ids`."""
    result = logits.astype(np.float32).copy()
    for token in set(ids):
        result[token] = result[token] / penalty if result[token] > 0 else result[token] * penalty
    return result


def may_follow(
    ids: list[int],
    token: int,
    no_repeat_ngram: int,
    *,
    bos: int,
    ends: Container[int],
    pad: int,
    allowed_tokens: Container[int] | None,
) -> bool:
    """Whether `token` is allowed after `ids`: it is in the vocabulary and repeats no n-gram."""
    if token in ends:
        return True
    if token in (bos, pad) or (allowed_tokens is not None and token not in allowed_tokens):
        return False
    n = no_repeat_ngram
    extended = [*ids, token]
    earlier = [extended[i : i + n] for i in range(len(extended) - n)]
    return not (n and extended[-n:] in earlier and len(extended) >= n)
