"""Sources of the documentation site, and what generates parts of them."""
