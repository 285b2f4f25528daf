"""What is special to a kind: defaults, checks and admission, as hooks that the verbs call."""
