/** What is said of each step of a head: in a sentence, in a formula, in the paper, and by the library's functions. */

/**
 * @typedef {object} Told of what the sentences speak
 * @property {string} token whose row it is
 * @property {number} d_k
 * @property {number} keys how many there are
 * @property {number} masked how many of them are masked
 * @property {boolean} is_causal
 * @property {boolean} has_bias
 *
 * @typedef {object} Step
 * @property {string} name
 * @property {string} short its button
 * @property {string} title
 * @property {(told: Told) => string} sentence
 * @property {(told: Told) => string} formula
 * @property {string} paper where "Attention Is All You Need" has it
 * @property {string[]} library what computes it there
 */

/** @type {Step[]} in the order of equation 1 */
export const STEPS = [
  {
    name: "product",
    short: "q·k",
    title: "The query meets every key",
    sentence: ({ token }) => `${token} asks with its query; the sum of products says how well each key answers it.`,
    formula: () => "qᵢ · kⱼ = Σₙ qᵢₙ kⱼₙ",
    paper: "equation 1 (Q Kᵀ), section 3.2.1",
    library: ["plainformer.equations.attention.attention"],
  },
  {
    name: "scale",
    short: "÷√dₖ",
    title: "Divided by √dₖ",
    sentence: ({ d_k, has_bias }) => {
      const root = Math.sqrt(d_k);
      const is = root % 1 ? `≈ ${root.toFixed(4)}` : `= ${root}`;
      const said = `Long vectors have large products, so each is divided by √${d_k} ${is}`;
      return has_bias ? `${said}; then the bias takes away the more, the farther a key stands.` : `${said}.`;
    },
    formula: ({ has_bias }) => (has_bias ? "sᵢⱼ = qᵢ · kⱼ / √dₖ + biasᵢⱼ" : "sᵢⱼ = qᵢ · kⱼ / √dₖ"),
    paper: "equation 1 (Q Kᵀ / √dₖ), section 3.2.1",
    library: ["plainformer.equations.attention.attention"],
  },
  {
    name: "mask",
    short: "mask",
    title: "The mask",
    sentence: ({ token, is_causal, masked, keys }) => {
      if (!is_causal) return `Nothing is hidden here: ${token} may look at all ${keys} keys.`;
      if (masked === 0) return `A token may not look at what comes after it; nothing comes after ${token}.`;
      return `A token may not look at what comes after it: ${masked} of ${keys} keys are hidden from ${token}.`;
    },
    formula: ({ is_causal }) => (is_causal ? "sᵢⱼ = −∞ where j > i" : "sᵢⱼ stays as it is"),
    paper: "“masked (opt.)” in figure 2, section 3.2.3",
    library: ["plainformer.equations.masks.causal_mask", "plainformer.equations.attention.masked_softmax"],
  },
  {
    name: "softmax",
    short: "softmax",
    title: "Softmax",
    sentence: ({ token }) => `The scores become weights: how much ${token} looks at each key, of 1 altogether.`,
    formula: () => "αᵢⱼ = exp(sᵢⱼ) / Σₙ exp(sᵢₙ)",
    paper: "equation 1 (softmax), section 3.2.1",
    library: ["plainformer.equations.attention.masked_softmax"],
  },
  {
    name: "values",
    short: "× V",
    title: "Times the values",
    sentence: () => "Every key brings a value; the sum of the values, each times its weight, is the head's output.",
    formula: () => "headᵢ = Σⱼ αᵢⱼ vⱼ",
    paper: "equation 1 (softmax(…) V), section 3.2.1",
    library: ["plainformer.equations.attention.attention"],
  },
  {
    name: "projection",
    short: "× Wᴼ",
    title: "The output projection",
    sentence: ({ token }) => `The head's own rows of Wᴼ turn its output into what it adds to the stream of ${token}.`,
    formula: () => "MultiHead(Q, K, V) = Concat(head₁, …, headₕ) Wᴼ = Σₕ headₕ Wᴼₕ",
    paper: "section 3.2.2 (MultiHead)",
    library: ["plainformer.nn.attention.MultiHeadAttention", "plainformer.nn.linear.Linear"],
  },
];

/** What some models do besides, in the steps from `steps` on. */
export const SCHEMES = {
  grouped: {
    steps: ["product", "values"],
    sentence: ({ first, last }) =>
      `Heads ${first} to ${last} share these keys and values (grouped queries, Ainslie et al. 2023).`,
    library: ["plainformer.nn.attention.MultiHeadAttention"],
  },
  rotary: {
    steps: ["product"],
    sentence: () => "Query and keys are shown already turned by their positions (rotary, Su et al. 2021).",
    library: ["plainformer.equations.positions.rotate"],
  },
  alibi: {
    steps: ["scale"],
    sentence: () => "The bias is the head's slope times the distance (ALiBi, Press et al. 2022); the paper has none.",
    library: ["plainformer.equations.positions.alibi"],
  },
};
