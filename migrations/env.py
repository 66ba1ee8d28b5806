"""Runs the numbered steps on the connection that ``app.store.migrate`` hands over."""

from __future__ import annotations

from alembic import context

# The caller began the transaction and commits it: all pending steps take effect, or none.
if context.is_offline_mode():
    context.configure(dialect_name=context.config.attributes["dialect"])
else:
    context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
