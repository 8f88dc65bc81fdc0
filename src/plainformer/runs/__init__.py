"""A recipe carried out: from text to a measured model."""
