"""Looking inside a model: what it is made of."""
