"""The crash suite on one's own configuration: the program killed and troubled, counted outside."""
