/**
 * Everything that belongs to one token lights up with it. What belongs to a token says so, `belongs("source", 3)` among
 * its data; a map, which has no element for each token, listens to `hover` in the store.
 */

/** @param {"source" | "target"} side @param {number} index @returns {{token: string}} data of an element */
export function belongs(side, index) {
  return { token: `${side}:${index}` };
}

/**
 * Pointer and focus set `hover`, and `hover` sets the class `lit`.
 * @param {HTMLElement} root
 * @param {import("./store.js").Store} store
 */
export function follow_hover(root, store) {
  const found = ({ target }) => {
    const said = target.closest?.("[data-token]")?.dataset.token;
    if (said === undefined) return null;
    const [side, index] = said.split(":");
    return { side, index: Number(index) };
  };
  const point = (event) => {
    const [next, now] = [found(event), store.get("hover")];
    if (next?.side !== now?.side || next?.index !== now?.index) store.set({ hover: next });
  };
  root.addEventListener("pointerover", point);
  root.addEventListener("focusin", point);
  root.addEventListener("pointerleave", () => store.set({ hover: null }));
  store.on(["hover", "result"], () => {
    for (const one of root.querySelectorAll(".lit")) one.classList.remove("lit");
    const hover = store.get("hover");
    if (hover === null) return;
    for (const one of root.querySelectorAll(`[data-token="${hover.side}:${hover.index}"]`)) one.classList.add("lit");
  });
}
