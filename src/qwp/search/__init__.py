"""Finding translations in a common space, exactly or approximately, and how sure each is."""
