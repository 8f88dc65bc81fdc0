"""A prompt and what a language model goes on with, by the Hugging Face library; the most probable token each time.

python -m benchmarks.peers.transformers_generate FOLDER PROMPT TOKENS
"""

import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    folder, prompt, tokens = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    given = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
    with torch.inference_mode():
        found = model.generate(
            given["input_ids"],
            attention_mask=given["attention_mask"],
            max_new_tokens=int(tokens),
            min_new_tokens=int(tokens),
            do_sample=False,
        )
    print(tokenizer.decode(found[0], clean_up_tokenization_spaces=False))


if __name__ == "__main__":
    main()
