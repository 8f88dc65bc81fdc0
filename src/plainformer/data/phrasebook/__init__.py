"""The phrasebook, a corpus that ships with the library: everyday English sentences and their Hindi translations.

Read it in this order: `words` (the lexicon and the rules of inflection), `people` and `things` (phrases), `slots` (what
fills a pattern), then the patterns in `doing`, `being` and `meeting`, an English rule above its Hindi rule; `corpus`
draws the sentences and splits them.

Where English leaves open what Hindi must say, one answer is fixed, so that a sentence has one translation: 'I', 'we'
and 'they' are masculine, 'you' is the polite masculine आप unless a name, 'my friend', 'sir' or 'madam' is called
first, and parents are honoured with the plural.
"""

from plainformer.data.phrasebook.corpus import SPLITS as SPLITS, examples as examples, phrasebook as phrasebook
