/** What the views share: named values, and who is told when one of them changes. */

/**
 * | value       | what it is                                                                                          |
 * | ----------- | --------------------------------------------------------------------------------------------------- |
 * | text        | what is read                                                                                        |
 * | settings    | of decoding, those that were changed                                                                |
 * | off         | names of the parts that are left out (`engine/nn/trace.js`)                                         |
 * | written     | ids that the output begins with: forced in a translation; behind the prompt, in a text              |
 * | result      | what the model made of all that (`results.js`), null before the first                               |
 * | busy        | whether another result is being waited for                                                          |
 * | attention   | which map is open: {name: "decoder/0/cross_attention", head: 0}                                     |
 * | place       | which place of `result.pass.target` is explained; -1 is the whole, of a classifier                  |
 * | query       | which row of the open map is followed step by step                                                  |
 * | token       | the id whose logit is explained there; null is the one that was chosen                              |
 * | hover       | the token that is pointed at: {side: "source" or "target", index}, or null                          |
 * | theme       | "light" or "dark"                                                                                   |
 */
export class Store {
  /** @param {Record<string, any>} values */
  constructor(values) {
    this.values = values;
    this.listeners = [];
  }

  get(name) {
    return this.values[name];
  }

  /**
   * Changes values, and tells those who asked for one that is not what it was.
   * @param {Record<string, any>} values
   * @returns {Promise<void>} when all have drawn
   */
  async set(values) {
    const changed = Object.keys(values).filter((name) => !Object.is(values[name], this.values[name]));
    Object.assign(this.values, values);
    if (changed.length === 0) return;
    const told = this.listeners.filter(({ names }) => names.some((name) => changed.includes(name)));
    await Promise.all(told.map(({ listener }) => listener(changed)));
  }

  /**
   * @param {string[]} names of values
   * @param {(changed: string[]) => void | Promise<void>} listener called once for each `set` that changes one of them
   */
  on(names, listener) {
    this.listeners.push({ names, listener });
  }
}
