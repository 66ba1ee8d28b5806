"""What the web side and the command line show: queries as typed functions, all of them bounded."""
