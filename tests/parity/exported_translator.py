"""A trained translator, exported, in other libraries: the same translations?

    python tests/parity/exported_translator.py RUN SENTENCES [--out FOLDER] [--limit N]

Exports the model of RUN, and translates the lines of the file SENTENCES with the exported folder: by plainformer, by
the Hugging Face library's `generate` and, where it is installed and the decoder starts from zero, by CTranslate2, which
its own converter makes a model for. All search alike: a full beam of 4, an average length penalty, at most 100 tokens;
it ends as each of the two libraries ends it.
Each line that differs is shown, with the two translations. It is a program and no test: it needs a trained model.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

BATCH = 32  # sentences that are translated side by side
LONGEST = 100  # tokens of a translation, its end among them
SEARCH = {"beam_size": 4, "length_penalty": "average", "alpha": 1.0, "beam": "full", "early_stopping": "heuristic"}
SEARCH |= {"max_ratio": 0.0, "max_margin": LONGEST}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a trained translator: a run, or a model folder")
    parser.add_argument("sentences", type=Path, help="a file of sentences, one a line")
    parser.add_argument("--out", type=Path, help="the folder to export to; a new one, which is kept")
    parser.add_argument("--limit", type=int, help="so many sentences alone")
    options = parser.parse_args()
    sentences = [line for line in options.sentences.read_text(encoding="utf-8").splitlines() if line.strip()]
    sentences = sentences[: options.limit]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.out or Path(scratch) / "exported"
        starts_from_zero = export(options.run, folder)
        ours = by_plainformer(folder, sentences)
        compare("transformers", ours, by_transformers(folder, sentences))
        if not starts_from_zero:
            print("ctranslate2: not asked; it starts every Marian from zero, and this model starts from a token")
        else:
            # Its search ends as soon as there are as many ended hypotheses as the beam is wide.
            ours = by_plainformer(folder, sentences, early_stopping="first")
            compare("ctranslate2", ours, by_ctranslate2(folder, Path(scratch) / "converted", sentences))


def export(run: Path, folder: Path) -> bool:
    """Write the folder; whether the decoder starts from zero."""
    from plainformer.folder import load_folder
    from plainformer.interop.export import Export, export_model
    from plainformer.locate import find_model

    content = load_folder(find_model(run))
    tokenizers = content.source_tokenizer, content.target_tokenizer
    print(f"{folder}: {export_model(Export(content.model, *tokenizers, SEARCH, content.about), folder)}")
    return getattr(content.model.config, "decoder_start", "token") == "zero"


def by_plainformer(folder: Path, sentences: Sequence[str], **changes: Any) -> list[str]:
    from plainformer.decode.load import load

    return load(folder).translate(sentences, **changes)


def by_transformers(folder: Path, sentences: Sequence[str]) -> list[str]:
    """By the settings in the folder, as a user of theirs would."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    found: dict[int, str] = {}
    for members in batches(sentences):
        given = tokenizer([sentences[index] for index in members], return_tensors="pt", padding=True)
        with torch.no_grad():
            said = model.generate(**given)
        found |= zip(members, tokenizer.batch_decode(said, skip_special_tokens=True), strict=True)
    return [found[index] for index in range(len(sentences))]


def by_ctranslate2(folder: Path, converted: Path, sentences: Sequence[str]) -> list[str] | None:
    """None where it is not installed."""
    try:
        ctranslate2 = import_module("ctranslate2")
    except ImportError:
        return None
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    ctranslate2.converters.TransformersConverter(str(folder)).convert(str(converted))
    translator = ctranslate2.Translator(str(converted), compute_type="float32")
    rows = [tokenizer.convert_ids_to_tokens(tokenizer(sentence).input_ids) for sentence in sentences]
    said = translator.translate_batch(
        rows, beam_size=4, length_penalty=1.0, max_decoding_length=LONGEST, max_batch_size=BATCH
    )
    ids = [tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in said]
    return tokenizer.batch_decode(ids, skip_special_tokens=True)


def batches(sentences: Sequence[str]) -> Iterator[list[int]]:
    """The places of the sentences, those of like length together."""
    order = sorted(range(len(sentences)), key=lambda index: len(sentences[index]))
    yield from (order[at : at + BATCH] for at in range(0, len(order), BATCH))


def compare(name: str, ours: Sequence[str], theirs: Any) -> None:
    """Say how many translations agree, and show those that do not."""
    if theirs is None:
        print(f"{name}: not installed")
        return
    pairs = list(zip(ours, theirs, strict=True))
    different = [index for index, (mine, other) in enumerate(pairs) if mine.strip() != other.strip()]
    for index in different:
        print(f"{name}: line {index + 1}\n  ours    {pairs[index][0]}\n  theirs  {pairs[index][1]}")
    agree = len(pairs) - len(different)
    print(f"{name}: {agree:,} of {len(pairs):,} translations are the same ({agree / len(pairs):.2%})")


if __name__ == "__main__":
    main()
