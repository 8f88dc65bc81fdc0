"""Beam search for a language model: the most probable continuations of a prompt."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from plainformer.decode.batch import check_vocabulary
from plainformer.decode.beam import first, ranked, run
from plainformer.decode.beam_state import SLOTS, Query, Search
from plainformer.decode.constraints import Constraints
from plainformer.decode.length_penalty import check_length, length_weights
from plainformer.decode.protocols import Hypothesis
from plainformer.decode.sampling_loop import read, round_up
from plainformer.decode.settings import GenerationSettings, check_tokens
from plainformer.errors import InputError, WorkError
from plainformer.models.language_model import LanguageModel, LanguageModelState
from plainformer.programs.compiled import compiled
from plainformer.renamed import old_arguments
from plainformer.shapes import Array, Int


@old_arguments
def best_continuations(
    model: LanguageModel,
    prompt: Sequence[int],
    settings: GenerationSettings,
    *,
    max_tokens: int,
    eos: int | None = None,
    suppress_tokens: Sequence[int] = (),
) -> list[Hypothesis]:
    """The `n_best` continuations of one prompt, best first, by the search of `beam.py`.

    The prompt is read once. The length that scores and bounds speak of is that of the continuation, `eos` included; so
    is what may not be repeated. `max_ratio` and `max_margin` are not looked at.

    Raises:
        InputError: the prompt is empty or holds an id outside the vocabulary, or prompt and `max_tokens` do not fit the
            context: a window cannot slide under hypotheses of which each has its own past. Or what is to be forced is
            no token.
        WorkError: the model's outputs are not finite.
    """
    config = model.config
    check_vocabulary([prompt], config.vocab, "prompt")
    if not prompt:
        raise InputError("the prompt is empty", fix="give at least one token")
    check_tokens(settings, config.vocab)
    check_length(settings, max_tokens)
    if settings.forced_eos and eos is None and not settings.end_tokens:
        raise InputError("there is no end of text to force", where="generation.forced_eos", fix="leave it out")
    needed = len(prompt) - 1 + max_tokens  # the last token is not read
    if needed > config.context:
        raise InputError(
            f"a prompt of {len(prompt):,} tokens and {max_tokens:,} more do not fit the context of {config.context:,}, "
            "and a beam search cannot slide",
            fix="ask for fewer tokens, give a shorter prompt, or sample",
        )
    nothing = config.rows(config.vocab)  # an id that never comes
    constraints = Constraints.of(settings, bos=nothing, eos=nothing if eos is None else eos, pad=nothing)
    allowed_tokens = np.ones(config.vocab, bool)
    allowed_tokens[[*suppress_tokens, *settings.suppress_tokens]] = False
    known = np.array([prompt[:-1]], np.int32).reshape(1, -1)
    capacity = round_up(known.shape[1])
    search = _begin(
        model,
        read(model, known, capacity),
        jnp.int32(prompt[-1]),
        jnp.int32(max_tokens),
        constraints,
        settings.beam_size,
        min(SLOTS, max_tokens),
    )
    weights = jnp.asarray(length_weights(settings, max_tokens))
    how = constraints, settings.n_best, settings.beam, settings.early_stopping
    query = Query(model, jnp.int32(known.shape[1]), weights, jnp.asarray(allowed_tokens), *how, before=capacity)
    found = ranked(run(query, search), settings.n_best)
    (hypotheses,) = found.unbatch()
    if not hypotheses:
        raise WorkError("the model's log-probabilities are not finite", fix="check that its weights are finite")
    return hypotheses


@compiled
def _begin(
    model: LanguageModel,
    state: LanguageModelState,
    last: Int[Array, ""],
    max_tokens: Int[Array, ""],
    constraints: Constraints,
    beam: int,
    slots: int,
) -> Search:
    """The search for one prompt, of which all but the `last` token is read."""
    state = model.grow(state, slots * beam)
    return first(state, last[None], max_tokens[None], constraints, beam, slots)
