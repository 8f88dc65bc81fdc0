"""Whether one translator is better than another on a test set: paired bootstrap resampling (Koehn 2004)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plainformer.errors import InputError

SAMPLES = 1000  # sacreBLEU's own


@dataclass(frozen=True)
class Significance:
    """A system beside a baseline.

    Attributes:
        difference: its BLEU less the baseline's.
        p_value: how often a difference as large as this one comes about by the draw of sentences alone; 1 where the
            translations are the same (sacreBLEU counts the larger ones alone, and would find the smallest p there is).
        samples: sets of sentences that were drawn, with replacement.
        signature: sacreBLEU's, with the seed of the draws.
    """

    difference: float
    p_value: float
    samples: int
    signature: str


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    samples: int = SAMPLES,
) -> Significance:
    """Compare two systems' translations of the same sentences by BLEU, as `sacrebleu --paired-bs` does.

    The draws are the same each time (sacreBLEU's seed 12345, or that of the variable SACREBLEU_SEED).

    Raises:
        InputError: the counts differ, or there is nothing to compare.
    """
    if not len(baseline) == len(system) == len(references) or not references:
        what = f"there are {len(baseline)} and {len(system)} translations, and {len(references)} references"
        raise InputError(what, fix="give as many of each, at least one")
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest

    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True, references=[references])
    systems: list[tuple[str, Sequence[str]]] = [("Baseline", list(baseline)), ("System", list(system))]
    signatures: Any
    table: Any
    signatures, table = PairedTest(systems, {"BLEU": metric}, None, test_type="bs", n_samples=samples)()
    before, after = table["BLEU"]
    p_value = 1.0 if [*baseline] == [*system] else float(after.p_value)
    return Significance(float(after.score - before.score), p_value, samples, str(signatures["BLEU"]))
