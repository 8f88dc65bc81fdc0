"""Corpus BLEU and chrF by sacreBLEU, each with the signature without which the number means little."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args

from plainformer.errors import InputError
from plainformer.evaluate.report import versions

BleuTokenizer = Literal[
    "13a", "intl", "char", "zh", "none", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K"
]
"""sacreBLEU's names. The first five work at once; the others need a package, and the SentencePiece ones a download."""

TOKENIZERS: tuple[str, ...] = get_args(BleuTokenizer)

_NEEDS = {
    "ja-mecab": "sacrebleu[ja]",
    "ko-mecab": "sacrebleu[ko]",
    "spm": "sentencepiece",
    "flores101": "sentencepiece",
    "flores200": "sentencepiece",
    "spBLEU-1K": "sentencepiece",
}

# sacreBLEU's own threshold for "this looks tokenised" (its warning names an argument that our users do not have).
_TOKENIZED_LINES = 100


@dataclass(frozen=True)
class Scores:
    """What a set of translations scored against one reference each.

    Attributes:
        bleu: corpus BLEU, 0 to 100 (Papineni et al. 2002).
        bleu_signature: sacreBLEU's full signature of it (Post 2018).
        chrf: corpus chrF2, 0 to 100 (Popović 2015).
        chrf_signature: its signature.
        precisions: the 1- to 4-gram precisions, in percent.
        brevity_penalty: exp(1 - r/c) where the hypotheses are shorter than the references, else 1.
        length_ratio: hypothesis length / reference length, in tokens of the scoring tokenizer; 0 for empty references.
        hyp_len, ref_len: those lengths.
        counts, totals: the 1- to 4-grams of the translations that are in their reference, and all of them.
        sentences: how many pairs were scored.
        warnings: what a reader of the numbers should know, one sentence each.
    """

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    precisions: tuple[float, ...]
    brevity_penalty: float
    length_ratio: float
    hyp_len: int
    ref_len: int
    counts: tuple[int, ...]
    totals: tuple[int, ...]
    sentences: int
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON values, with the versions of what computed them."""
        listed = {name: list(value) for name, value in asdict(self).items() if isinstance(value, tuple)}
        return {**asdict(self), **listed, "versions": versions("plainformer", "sacrebleu")}

    def __str__(self) -> str:
        grams = "/".join(f"{precision:.1f}" for precision in self.precisions)
        return (
            f"BLEU {self.bleu:.1f} ({grams}, BP {self.brevity_penalty:.3f}, ratio {self.length_ratio:.3f}) "
            f"{self.bleu_signature}\nchrF {self.chrf:.1f} {self.chrf_signature}"
        )


def score_translations(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a", lowercase: bool = False
) -> Scores:
    """Score detokenised translations as `sacrebleu REFERENCES -i HYPOTHESES -m bleu chrf` does.

    Args:
        hypotheses: the translations, plain text, one a sentence.
        references: the right answers, in the same order.
        tokenize: sacreBLEU's tokenizer for BLEU, one of `TOKENIZERS`; chrF needs none. "none" is for text whose tokens
            stand apart already, of which there is then no warning.
        lowercase: ignore case, in both scores.

    Raises:
        InputError: the counts differ, there is nothing to score, or the tokenizer is unknown or not installed.
    """
    if len(hypotheses) != len(references):
        raise InputError(
            f"there are {len(hypotheses)} hypotheses and {len(references)} references",
            fix="give one reference for each hypothesis, in the same order",
        )
    if not hypotheses:
        raise InputError("there are no sentences to score", fix="give at least one hypothesis and its reference")
    bleu = _bleu_metric(tokenize, lowercase)
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF(lowercase=lowercase)
    bleu_score = bleu.corpus_score(hypotheses, [references])
    chrf_score = chrf.corpus_score(hypotheses, [references])
    return Scores(
        bleu=float(bleu_score.score),
        bleu_signature=str(bleu.get_signature()),
        chrf=float(chrf_score.score),
        chrf_signature=str(chrf.get_signature()),
        precisions=tuple(float(precision) for precision in bleu_score.precisions),
        brevity_penalty=float(bleu_score.bp),
        length_ratio=float(bleu_score.ratio),
        hyp_len=int(bleu_score.sys_len),
        ref_len=int(bleu_score.ref_len),
        counts=tuple(int(count) for count in bleu_score.counts),
        totals=tuple(int(total) for total in bleu_score.totals),
        sentences=len(hypotheses),
        warnings=tuple(_warnings(hypotheses, is_tokenized=tokenize == "none")),
    )


def _bleu_metric(tokenize: str, lowercase: bool) -> Any:
    """sacreBLEU's corpus metric, with its tokenizer loaded."""
    if tokenize not in TOKENIZERS:
        near = get_close_matches(tokenize, TOKENIZERS, n=1)
        suggestion = f"did you mean {near[0]}? " if near else ""
        raise InputError(
            f"there is no BLEU tokenizer {tokenize!r}", fix=f"{suggestion}the tokenizers are {', '.join(TOKENIZERS)}"
        )
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    # RuntimeError: what sacreBLEU raises without MeCab; OSError: a SentencePiece model that could not be downloaded.
    except (ImportError, RuntimeError, OSError) as failure:
        if isinstance(failure, OSError):
            raise InputError(
                f"the files of the BLEU tokenizer {tokenize} could not be had ({failure})",
                fix="connect to the network once, or use 13a",
            ) from failure
        raise InputError(
            f"the BLEU tokenizer {tokenize} needs a package that is not installed",
            fix=f"run: pip install '{_NEEDS.get(tokenize, 'sacrebleu')}'",
        ) from failure


def check_tokenizer(name: str) -> None:
    """Raise InputError unless sacreBLEU's tokenizer `name` exists and all that it needs is there."""
    _bleu_metric(name, lowercase=False)


def _warnings(hypotheses: Sequence[str], *, is_tokenized: bool) -> list[str]:
    found = []
    empty = sum(not hypothesis.strip() for hypothesis in hypotheses)
    if empty:
        found.append(f"{empty} of {len(hypotheses)} hypotheses are empty")
    tokenized = sum(hypothesis.endswith(" .") for hypothesis in hypotheses)
    if tokenized >= _TOKENIZED_LINES and not is_tokenized:
        found.append(f"{tokenized} hypotheses end in ' .', as tokenised text does: BLEU is for detokenised text")
    return found
