"""A sample document platform, a sample ERP, and what is played between them."""
