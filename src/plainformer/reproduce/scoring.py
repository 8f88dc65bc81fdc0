"""The scores of a row's outputs: computed from them, and held against what was recorded of them."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from plainformer.errors import InputError
from plainformer.evaluate.bleu import score_translations
from plainformer.reproduce.record import Comparison, Run, Score
from plainformer.reproduce.rows import Metric, Scoring

TOLERANCE = 1e-9  # relative: the same sums by the same library, read back from JSON, which keeps all digits
ROUNDED = 1e-6  # nats of a block in a file of outputs


def of_translations(lines: Sequence[str], references: Sequence[str], scorings: Sequence[Scoring]) -> list[Score]:
    """BLEU and chrF, by every scoring. Raises InputError as `score_translations` does."""
    found = []
    for one in scorings:
        scores = score_translations(lines, references, tokenize=one.tokenize, lowercase=one.lowercase)
        lengths: dict[str, Any] = {"hyp_len": scores.hyp_len, "ref_len": scores.ref_len}
        counts: dict[str, Any] = {"counts": scores.counts, "totals": scores.totals}
        found.append(Score(metric="bleu", value=scores.bleu, signature=scores.bleu_signature, **lengths, **counts))
        # chrF knows no tokenizer: of several scorings with the same case it is the same.
        if not any(score.signature == scores.chrf_signature for score in found):
            found.append(Score(metric="chrf", value=scores.chrf, signature=scores.chrf_signature))
    return found


def of_blocks(lines: Sequence[str], tokens: float, tokens_a_byte: float) -> list[Score]:
    """Nats a token, its perplexity and bits a byte, of the losses of blocks.

    Raises:
        InputError: a line is no number.
    """
    try:
        nll = math.fsum(map(float, lines)) / tokens
    except ValueError as error:
        raise InputError(f"a loss is no number ({error})", fix="record the run again") from error
    bits = nll * tokens_a_byte / math.log(2)
    values: dict[Metric, float] = {"nll": nll, "perplexity": math.exp(min(nll, 700.0)), "bits_per_byte": bits}
    return [Score(metric=name, value=value) for name, value in values.items()]


def differences(recorded: Sequence[Score], found: Sequence[Score], tolerance: float = TOLERANCE) -> Iterator[str]:
    """How scores that were computed again differ from those that were recorded."""
    if len(recorded) != len(found):
        yield f"{len(found)} scores, and {len(recorded)} recorded"
        return
    for old, new in zip(recorded, found, strict=True):
        if _settings(old) != _settings(new):
            yield f"{old.metric} is recorded as {_settings(old) or 'unsigned'}, and computed as {_settings(new)}"
        elif not math.isclose(old.value, new.value, rel_tol=tolerance):
            yield f"{old.metric} is {new.value:.4f}, and {old.value:.4f} recorded"
        elif (old.hyp_len, old.ref_len, old.counts, old.totals) != (new.hyp_len, new.ref_len, new.counts, new.totals):
            yield f"the n-grams or lengths of {old.metric} are not those recorded"


def _settings(score: Score) -> str:
    """A signature without the version of sacreBLEU."""
    return "|".join(part for part in score.signature.split("|") if not part.startswith("version:"))


def all_close(recorded: Sequence[Comparison], found: Sequence[Comparison]) -> bool:
    """Whether comparisons that were made again are those recorded, p-values included: the draws are the same."""
    return len(recorded) == len(found) and all(
        (old.baseline, old.seed, old.samples) == (new.baseline, new.seed, new.samples)
        and math.isclose(old.difference, new.difference, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        # sacreBLEU adds n-grams in float32: on another processor a sample at the edge may fall on its other side.
        and math.isclose(old.p_value, new.p_value, abs_tol=2 / old.samples)
        for old, new in zip(recorded, found, strict=True)
    )


def without_references(run: Run, lines: Sequence[str]) -> Iterator[str]:
    """What in a run's recorded BLEU does not go with its outputs, which can be told without the references.

    The n-grams of the outputs are counted anew, and the figure computed from counts and lengths.
    """
    from sacrebleu.metrics.bleu import BLEU

    for score in run.scores:
        if score.metric != "bleu":
            continue
        if score.counts is None or score.totals is None or not score.hyp_len or not score.ref_len:
            yield "BLEU is recorded without its counts"
            continue
        computed = BLEU.compute_bleu(
            list(score.counts), list(score.totals), score.hyp_len, score.ref_len, smooth_method="exp"
        )
        if not math.isclose(computed.score, score.value, rel_tol=TOLERANCE):
            yield f"BLEU is recorded as {score.value:.4f}, and its counts make {computed.score:.4f}"
        settings = dict(part.split(":", 1) for part in score.signature.split("|"))
        tokenizer = BLEU(tokenize=settings["tok"], force=True).tokenizer
        lengths = [len(tokenizer(line.lower() if settings["case"] == "lc" else line).split()) for line in lines]
        totals = tuple(sum(max(0, length - n) for length in lengths) for n in range(4))
        if (totals[0], totals) != (score.hyp_len, score.totals):
            yield f"the outputs have {totals[0]:,} tokens, and {score.hyp_len:,} recorded, or other n-grams"
