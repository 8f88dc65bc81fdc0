"""One model on one set of pairs: translate, score, and measure the likelihood of the references."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from plainformer.data.pairs import Pairs
from plainformer.decode.translator import Translator
from plainformer.evaluate.bleu import check_tokenizer, score_translations
from plainformer.evaluate.report import Likelihood, Report


def evaluate(
    translator: Translator,
    pairs: Pairs,
    *,
    model: str,
    data: str,
    tokenize: str = "13a",
    lowercase: bool = False,
    changes: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Report, list[str]]:
    """The report, and the translations it is about, in order.

    Every pair counts: a blank source is translated as nothing, and scored so.

    Args:
        model, data: what to call them in the report.
        tokenize, lowercase: sacreBLEU's.
        changes: search settings that differ from the model's own.

    Raises:
        InputError: a setting is unknown, or a sentence cannot be read by the model.
    """
    check_tokenizer(tokenize)
    began = time.monotonic()
    changes = dict(changes or {})
    options = translator.translate_n_best(pairs.source, max_source_tokens=None, progress=progress, **changes)
    translations = [found[0].text if found else "" for found in options]
    scored = translator.score(pairs.source, pairs.target)
    tokens = sum(score.length for score in scored)
    scores = score_translations(translations, pairs.target, tokenize=tokenize, lowercase=lowercase)
    cut = sum(not found[0].finished for found in options if found)
    if cut:
        scores = replace(scores, warnings=(*scores.warnings, f"{cut:,} translations reached the length bound"))
    report = Report(
        model=model,
        data=data,
        pairs=len(pairs),
        likelihood=Likelihood(nll=sum(-score.logprob for score in scored) / max(tokens, 1), tokens=tokens),
        scores=scores,
        seconds=time.monotonic() - began,
        settings={**asdict(translator.settings), **changes, "tokenize": tokenize, "lowercase": lowercase},
    )
    return report, translations
