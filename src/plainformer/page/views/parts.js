/** What a model is made of, by the names of a trace (`engine/nn/trace.js`), and how it is called on the page. */

/** @typedef {import("../engine/session.js").Description} Description */

const CONTROL = /[\0-\x1f\x7f]/g;

/** @param {Description} description */
export function is_translator({ kind }) {
  return kind === "plainformer-transformer";
}

/**
 * Every attention of a model, the first layer first: "encoder/0/self_attention", or "0/self_attention" of one stack.
 * @param {Description} description
 * @returns {string[]}
 */
export function attentions({ stacks }) {
  return Object.entries(stacks).flatMap(([stack, layers]) =>
    Array.from({ length: layers }, (_, layer) => {
      const own = `${stack}${layer}`;
      return stack === "decoder/" ? [`${own}/self_attention`, `${own}/cross_attention`] : [`${own}/self_attention`];
    }).flat(),
  );
}

/**
 * Whose tokens the rows and the columns of an attention are.
 * @param {Description} description
 * @param {string} name of the attention
 * @returns {{queries: "source" | "target", keys: "source" | "target"}} models of one stack have target tokens alone
 */
export function axes(description, name) {
  if (name.startsWith("encoder/")) return { queries: "source", keys: "source" };
  return { queries: "target", keys: name.endsWith("cross_attention") ? "source" : "target" };
}

/** The layers of a model, "encoder/0" or "0". @param {Description} description @returns {string[]} */
export function layers({ stacks }) {
  return Object.entries(stacks).flatMap(([stack, count]) =>
    Array.from({ length: count }, (_, layer) => `${stack}${layer}`),
  );
}

/** @param {string} name of a part @returns {string} as people say it: "decoder 1 cross-attention head 3" */
export function spoken(name) {
  const words = name.replace(/(cross|self)_attention\/(\d+)/, "$1-attention head $2").replace(/^(\d+)/, "layer $1");
  return words.replace("_attention", "-attention").replace("feed_forward", "feed-forward").replaceAll("/", " ");
}

/**
 * A token as it is shown: white space is made visible, and what has no text of its own is named.
 * @param {import("../engine/tokenizer/tokenizer.js").TokenView} view
 * @returns {string}
 */
export function label({ token, text, special }) {
  if (special || text === "") return token;
  if (text.includes("\ufffd")) return token;
  const seen = text.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(" ", "␣");
  return seen.replace(CONTROL, pictured);
}

/** The character that Unicode has to show a control character: "␛". */
function pictured(control) {
  return control === "\x7f" ? "\u2421" : String.fromCodePoint(0x2400 + control.codePointAt(0));
}

/** @param {number} probability @returns {string} of one to three digits that say something: "98.7%", "0.04%" */
export function percent(probability) {
  const hundredths = probability * 100;
  if (hundredths >= 99.95) return "100%";
  if (hundredths < 0.001) return "<0.001%";
  return `${hundredths.toFixed(hundredths >= 0.1 ? 1 : 3)}%`;
}
