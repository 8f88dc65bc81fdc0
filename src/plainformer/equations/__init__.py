"""The paper's functions, each one its definition: no weights, no devices."""
