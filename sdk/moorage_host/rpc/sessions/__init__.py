"""What the filter and scorer services share: sessions of gateways, and calls by hand on them."""
