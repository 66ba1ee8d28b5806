"""``python -m app.cli``: the command line without its installed script."""

from __future__ import annotations

from app.cli import main

main()
