"""Initial maps for methods that have no pairs: one file an initializer, and the search among them.

Every file has `initial_map`. `profiles`, `fused`, `belief_propagation` and `frank_wolfe` need nothing but the two
spaces; `matrix` takes one of the user's. `choice` tries those that need nothing and scores them without a dictionary.
"""
