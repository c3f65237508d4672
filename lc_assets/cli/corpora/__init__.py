"""Commands that run stages over files of documents."""
