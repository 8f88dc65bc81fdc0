/** The attention that is open: whose tokens are on its axes, its weights, and how it is opened and told apart. */

import { h } from "./elements.js";
import { attentions, axes, label, spoken } from "./parts.js";
import { unless_stale } from "./results.js";

/** @typedef {import("../engine/tokenizer/tokenizer.js").TokenView} TokenView */

/**
 * Opens a head; the row that is followed stays one that it has.
 * @param {import("./page.js").Page} page
 * @param {string} name of the attention
 * @param {number} head
 */
export function open({ store, description }, name, head) {
  const rows = store.get("result").pass[axes(description, name).queries].length;
  return store.set({ attention: { name, head }, query: Math.min(store.get("query"), rows - 1) });
}

/**
 * @param {import("./page.js").Page} page
 * @returns {Promise<null | {name: string, head: number, sides: {queries: string, keys: string}, queries: TokenView[],
 *   keys: TokenView[], weights: Float32Array | null, is_off: boolean}>} weights (queries, keys), null where a part is
 *   off and has none; the whole is null before the first result, and where something else was opened meanwhile
 */
export async function opened({ store, description }) {
  const [result, attention] = [store.get("result"), store.get("attention")];
  if (result === null) return null;
  const { name, head } = attention;
  const { pass } = result;
  const is_there = `${name}/weights` in pass.names;
  const found = is_there ? await unless_stale(result.array(`${name}/weights`, head)) : { data: null };
  if (found === null || result !== store.get("result") || attention !== store.get("attention")) return null;
  const sides = axes(description, name);
  const [queries, keys] = [pass[sides.queries], pass[sides.keys]];
  return { name, head, sides, queries, keys, weights: found.data, is_off: is_off(result.off, name, head) };
}

/** @param {string[]} off @returns {boolean} whether a head is left out, alone or with its sublayer or layer */
export function is_off(off, name, head) {
  return [`${name}/${head}`, name, name.slice(0, name.lastIndexOf("/"))].some((part) => off.includes(part));
}

/**
 * Which attention and which head is open, to be chosen from lists.
 * @param {import("./page.js").Page} page
 * @param {string} view whose lists these are
 * @returns {HTMLElement}
 */
export function head_lists(page, view) {
  const { store, description } = page;
  const list = (id, said, options) => {
    const select = h("select", { id: `${view}-${id}`, on: { change: () => choose() } }, options);
    return [h("label", { for: select.id }, said), select];
  };
  const names = attentions(description).map((name) => h("option", { value: name }, spoken(name)));
  const heads = Array.from({ length: description.heads }, (_, head) => h("option", { value: head }, head));
  const [name, head] = [list("name", "Attention", names), list("head", "Head", heads)];
  const choose = () => open(page, name[1].value, Number(head[1].value));
  const show = () => {
    name[1].value = store.get("attention").name;
    head[1].value = store.get("attention").head;
  };
  store.on(["attention"], show);
  show();
  return h("div", { class: "lists" }, name, head);
}

/**
 * A cell in words: two tokens, and the weight between them.
 * @param {TokenView} query @param {TokenView} key @param {number} weight @returns {(Node | string)[]}
 */
export function told(query, key, weight) {
  return [h("bdi", {}, label(query)), " looks at ", h("bdi", {}, label(key)), `: ${weight.toFixed(4)}`];
}

/**
 * The largest of a row or a column in words.
 * @param {ArrayLike<number>} weights
 * @param {TokenView[]} tokens that they are of
 * @param {number} count
 * @returns {(Node | string)[]}
 */
export function told_largest(weights, tokens, count) {
  const order = largest(weights, count);
  return order.flatMap((at, rank) => [
    ...[rank ? ", " : "", h("bdi", {}, label(tokens[at])), ` ${weights[at].toFixed(4)}`],
  ]);
}

/** Where the largest numbers are, those of 0 left out. @returns {number[]} */
export function largest(weights, count) {
  const places = Array.from(weights, (_, at) => at).filter((at) => weights[at] > 0);
  return places.sort((one, other) => weights[other] - weights[one]).slice(0, count);
}
