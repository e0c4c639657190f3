"""How an endpoint is measured. Knows a URL and a model name, never a stack."""
