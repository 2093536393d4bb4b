"""Programs for maintainers; the product imports none of them."""
