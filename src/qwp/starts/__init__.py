"""First maps for methods that have no pairs: one file a start, and the choice between them.

Every file has `first_map`. Two need nothing but the two spaces: `profiles` and `frank_wolfe`. `matrix` takes one of the
user's. `choice` tries those that need nothing in turn and judges them without a dictionary.
"""
