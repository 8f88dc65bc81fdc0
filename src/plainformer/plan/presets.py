"""The recipe that a preset is planned by: a batch for every device, and the vocabulary that it is known with."""

from plainformer.models.presets import PRESETS


def preset_recipe(name: str, devices: int) -> str:
    """A recipe, as TOML, that trains the preset of a name with a batch for so many devices."""
    preset = PRESETS[name]
    kind = preset.config.__name__
    if kind == "TransformerConfig":
        task, size = "translation", f"max_tokens = 255\nbatch_tokens = {4096 * devices}\nrow_tokens = 0"
        data = 'embedded = "phrasebook"\ndev_pairs = 10'
    else:
        task = "language-model" if kind == "LanguageModelConfig" else "masked-language-model"
        data, size = 'embedded = "python-docs"', f"batch_size = {8 * devices}"
    return (
        f'name = "{name}"\ntask = "{task}"\n[data]\n{data}\n{size}\n[tokenizer]\nvocab_size = {preset.vocab}\n'
        f'[model]\npreset = "{name}"\n[train]\nsteps = 100000\ncompute_dtype = "bfloat16"\n'
    )
