"""Facts and identities: the vocabulary that every other part speaks. Pure data, no I/O."""
