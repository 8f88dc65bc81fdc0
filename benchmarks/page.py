"""How large and how quick a page is in which a model runs: `python -m benchmarks.page TRANSLATOR [--writer MODEL]`.

The page is opened from its file in headless Chromium, the network cut. A time is of the page's own clock, from what is
asked to when all views are drawn and a frame is painted; the figures are medians. `opening` begins where the file is
asked for; a `sentence` has ten words, and no two are alike: search, pass and all views. `a token` is of greedy text
behind a prompt, cached, in the page's worker, and of no view. `--arrays` is a page without its model: 512 tokens in 144
heads, GPT-2's shape with random weights; its heap is taken before and after every head was opened. No peer takes part,
so this is no row of the table.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TEXT = "I like pizza and you want a cup of tea but my friend has no time for us two today"
LONG, SENTENCES, OPENINGS = 10, 20, 5
PROMPT, NEW = "The morning was", 64
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BARS = {"size (MB)": 8.0, "opening (ms)": 1500.0, "a sentence (ms)": 300.0} | {
    "opening of arrays (ms)": 2000.0,
    "heap (MB)": 400.0,
    "heap after all heads (MB)": 400.0,
}
TOKENS, LAYERS, HEADS = 512, 12, 12

READ = """async (text) => {
  const { store } = window.plainformer;
  const begun = performance.now();
  await store.set({ text, written: [] });
  await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
  if (store.get("problem")) throw new Error(store.get("problem"));
  return performance.now() - begun;
}"""
OPEN_HEADS = """async ([layers, heads]) => {
  const { store } = window.plainformer;
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads; head++)
      await store.set({ attention: { name: `${layer}/self_attention`, head } });
}"""
WRITE = """async ([text, max_tokens]) => {
  const { ask } = window.plainformer;
  const { ids } = await ask("step", { text });
  const begun = performance.now();
  const written = await ask("generate", { ids, settings: { temperature: 0, max_tokens } });
  return (performance.now() - begun) / (written.ids.length - ids.length);
}"""


def main() -> int:
    options = argparse.ArgumentParser(description="How large and how quick a page is.")
    options.add_argument("translator", type=Path, help="a model folder, or a run")
    options.add_argument("--writer", type=Path, help="a language model's")
    options.add_argument("--arrays", action="store_true", help="a page of arrays, too, of GPT-2's shape")
    given = options.parse_args()
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"there is no browser: install one of {', '.join(BROWSERS)}, or name one by CHROMIUM", file=sys.stderr)
        return 2
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        print(f"Chromium {started.version}, {os.cpu_count()} cores")
        found = _of_a_translator(started, _page(given.translator, Path(folder), TEXT[:12]))
        if given.writer:
            found["a token (ms)"] = _of_a_writer(started, _page(given.writer, Path(folder), PROMPT))
        if given.arrays:
            found |= _of_arrays(started, Path(folder) / "arrays.html")
        started.close()
    for name, figure in found.items():
        bar = f"  (bar {BARS[name]:g})" if name in BARS else ""
        print(f"{name}: {figure:.3g}{bar}")
    return 1 if any(figure > BARS.get(name, figure) for name, figure in found.items()) else 0


def _page(model: Path, folder: Path, text: str) -> Path:
    from plainformer.decode.load import load
    from plainformer.page.save import save_page

    path = folder / f"{len([*folder.iterdir()])}.html"
    save_page(load(model), path, text)
    return path


def _open(browser: Any, path: Path) -> tuple[Any, float]:
    """A page that is drawn, and how many milliseconds that took."""
    page = browser.new_context(viewport={"width": 1400, "height": 1000}, offline=True).new_page()
    begun = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("#page[data-ready]")
    return page, (time.perf_counter() - begun) * 1e3


def _of_a_translator(browser: Any, path: Path) -> dict[str, float]:
    openings = []
    for _ in range(OPENINGS):
        page, took = _open(browser, path)
        openings.append(took)
        page.context.close()
    page, _ = _open(browser, path)
    words = TEXT.split()
    sentences = [" ".join((2 * words)[at : at + LONG]) for at in range(SENTENCES)]
    page.evaluate(READ, " ".join(reversed(words[:LONG])))  # the first is of code that is not compiled yet
    took = [page.evaluate(READ, sentence) for sentence in sentences]
    page.context.close()
    return {
        "size (MB)": path.stat().st_size / 1e6,
        "opening (ms)": statistics.median(openings),
        "a sentence (ms)": statistics.median(took),
        "the slowest sentence (ms)": max(took),
    }


def _of_a_writer(browser: Any, path: Path) -> float:
    page, _ = _open(browser, path)
    took = [page.evaluate(WRITE, [PROMPT, NEW]) for _ in range(4)]
    page.context.close()
    return statistics.median(took[1:])


def _of_arrays(browser: Any, path: Path) -> dict[str, float]:
    import jax

    from plainformer import LanguageModel, LanguageModelConfig
    from plainformer.decode.text_generator import TextGenerator
    from plainformer.folder import ModelFolder
    from plainformer.page.save import save_page
    from plainformer.tokenizer import train_character

    tokenizer = train_character([TEXT])
    shape = {"d_model": 64 * HEADS, "d_ff": 256 * HEADS, "heads": HEADS, "layers": LAYERS, "context": 2 * TOKENS}
    model = LanguageModel(LanguageModelConfig(vocab=tokenizer.vocab_size, **shape), key=jax.random.key(0))
    text = (TEXT * TOKENS)[:TOKENS]
    save_page(TextGenerator.of(ModelFolder(model, tokenizer, tokenizer)), path, text, max_size=1.0)
    openings = []
    for _ in range(OPENINGS):
        page, took = _open(browser, path)
        openings.append(took)
        first = _heap(page)
        if len(openings) < OPENINGS:
            page.context.close()
    page.evaluate(OPEN_HEADS, [LAYERS, HEADS])
    return {
        "size of arrays (MB)": path.stat().st_size / 1e6,
        "opening of arrays (ms)": statistics.median(openings),
        "heap (MB)": first,
        "heap after all heads (MB)": _heap(page),
    }


def _heap(page: Any) -> float:
    """Megabytes of JavaScript's heap in use, in the page's own thread."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return metrics["JSHeapUsedSize"] / 1e6


if __name__ == "__main__":
    raise SystemExit(main())
