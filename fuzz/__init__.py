"""Programs that look for inputs which break qwp; see the module of each."""
