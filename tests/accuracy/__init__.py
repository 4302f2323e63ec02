"""How often the diagnosis is right: answers on labelled runs and reported incidents, scored."""
